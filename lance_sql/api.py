"""The main functions of the package: open, write, sql, connect."""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from lance_engine.base import load, public
from lance_engine.errors import InvalidArgumentError
from lance_engine.io import AllowExternal, with_external_access

if TYPE_CHECKING:
    from lance_engine.base import ProgressOption

    from lance_sql.dataset import Dataset
    from lance_sql.session.connection import Connection
    from lance_sql.session.result import QueryResult

__all__ = ["connect", "open", "sql", "write"]


@public
def open(
    uri: str | os.PathLike[str],
    version: int | None = None,
    *,
    tag: str | None = None,
    as_of: datetime.datetime | None = None,
    branch: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    allow_external: AllowExternal | None = None,
) -> Dataset:
    """Open the Lance dataset at `uri`: its newest version, or the one that another argument names.

    `tag` selects a tagged version, and `as_of` the version that was current at that time (a naive time is
    local time). `version` and `as_of` apply to `branch`, by default the main branch. The result is an
    immutable view of that version. Raises `DatasetNotFoundError` and `VersionNotFoundError`.

    `allow_external` controls which locations outside of the dataset it may read: ``"none"``, ``"same-store"``
    (the default: base paths on the same disk or in the same bucket), ``"all"``, or a list of allowed
    locations; a dictionary also gives storage options for each. Reading any other location raises
    `ExternalAccessError`.
    """
    load("lance_sql.dataset")
    from lance_sql.dataset import Dataset

    return Dataset.open(
        _location(uri),
        version,
        tag=tag,
        as_of=as_of,
        branch=branch,
        storage_options=storage_options,
        allow_external=allow_external,
    )


def _location(uri: Any) -> str:
    try:
        return str(os.fspath(uri))
    except TypeError:
        raise InvalidArgumentError(
            f"The location of a dataset must be a path or a URI, not {type(uri).__name__}",
            remedy="Pass for example 'path/to/sales.lance' or 's3://bucket/sales.lance'",
        ) from None


@public
def write(
    data: Any,
    uri: str | os.PathLike[str],
    mode: Literal["create", "append", "overwrite"] = "create",
    *,
    data_storage_version: Literal["2.0", "2.1", "2.2"] | None = None,
    max_rows_per_file: int = 1 << 20,
    max_bytes_per_file: int = 90 << 30,
    zone_maps: bool = True,
    zone_rows: int = 8192,
    zone_index: Literal["compatible", "strict"] = "compatible",
    profile: Literal["size", "speed", "balanced"] = "balanced",
    branch: str | None = None,
    stable_row_ids: bool = False,
    progress: ProgressOption = None,
    storage_options: Mapping[str, Any] | None = None,
    primary_key: Sequence[str] | None = None,
) -> Dataset:
    """Write `data` as a new version of the dataset at `uri` and return the dataset at that version.

    `data` is one of

    - Arrow: a pyarrow Table, RecordBatch, RecordBatchReader, Dataset or Scanner, an iterable of record
      batches, or any object with ``__arrow_c_stream__``, such as a `QueryResult` or a DuckDB relation;
    - a data frame: pandas (an index with a name becomes a column), Polars, also lazy;
    - Python values: a dict of columns, or a list of dicts;
    - files: the path of a Parquet, CSV, NDJSON or Arrow file, a glob such as ``"data/*.parquet"``, or a
      directory of such files. The first file decides on the columns.

    ``mode="create"`` raises `DatasetExistsError` if the dataset already exists, and ``"append"`` raises
    `DatasetNotFoundError` if it does not. ``"overwrite"`` replaces schema and rows, or creates the dataset.

    - `data_storage_version` is the file format version of new files. The default is the version of the
      dataset when appending, otherwise 2.1, or 2.2 if a column needs it (maps).
    - `max_rows_per_file` and `max_bytes_per_file` limit the size of each file.
    - `zone_maps` stores min, max and null count for every `zone_rows` rows; `zone_index` is ``"compatible"``
      or, for files of version 2.0 that pylance does not have to read, ``"strict"``.
    - `profile` is the optimization goal: ``"size"``, ``"speed"`` (of scans) or ``"balanced"``.
    - `branch` is an existing branch to write to.
    - `stable_row_ids` keeps the ids of rows when they are updated or compacted. It applies to new datasets.
    - `progress` is True for a progress bar, or a function that takes a `ProgressEvent`.
    - `storage_options` are passed to the object store.
    - `primary_key` names columns of a new dataset whose values, together, occur once and are never null. From
      then on, whoever writes the dataset with this library, a duplicate raises `ConstraintError`.

    Raises `InvalidArgumentError` for unsupported kinds of data, and `SchemaMismatchError` or
    `UnsupportedTypeError` for data that does not match the schema. After an error, no part of the new version
    is visible.
    """
    load("lance_sql.dataset")
    from lance_engine.write import is_dataset_path, write_dataset

    from lance_sql.dataset import Dataset

    if isinstance(data, str | os.PathLike) and not isinstance(uri, str | os.PathLike):
        raise InvalidArgumentError(
            f"The location of a dataset must be a path or a URI, not {type(uri).__name__}",
            remedy=f"The data comes first: lance_sql.write(data, {os.fspath(data)!r})",
        )
    from lance_sql.types.sources import stored_source

    if isinstance(data, str | os.PathLike) and is_dataset_path(os.fspath(data)):
        data = open(data, storage_options=storage_options)
    return Dataset(
        write_dataset(
            stored_source(data),
            _location(uri),
            mode,
            data_storage_version=data_storage_version,
            max_rows_per_file=max_rows_per_file,
            max_bytes_per_file=max_bytes_per_file,
            zone_maps=zone_maps,
            zone_rows=zone_rows,
            zone_index=zone_index,
            profile=profile,
            branch=branch,
            stable_row_ids=stable_row_ids,
            progress=progress,
            storage_options=storage_options,
            convert=Dataset._compiler.convert,
            primary_key=primary_key,
        )
    )


@public
def sql(
    text: str,
    engine: str = "duckdb",
    params: Sequence[Any] | Mapping[str, Any] | None = None,
) -> QueryResult:
    """Run the SQL in `text`; tables are written as ``FROM 'path/to/sales.lance'``.

    `engine` is ``duckdb`` or ``datafusion``. If there are several statements, separated by semicolons, the
    last one has the result. SqlError for text that the engine refuses, TableNotFoundError for a name
    without a table.

    A name that is not a table can be a variable of the caller: ``FROM ds`` reads a dataset, a pandas or
    Polars data frame, an Arrow table or any other object that exports an Arrow stream. The variable is not
    changed.

    `params` are the values for ``?`` and ``$1`` (a sequence) or ``$name`` (a mapping). Calls do not
    share tables, views and settings: use `connect` to keep these between statements.
    """
    if engine == "duckdb":
        _open_ahead("lance_sql.session.variables")
    load("lance_sql.session.variables")
    from lance_sql.session.variables import execute, execute_apart, execute_last, in_scope
    from lance_sql.text.script import statements

    frame = sys._getframe(2)  # above `public`
    *before, last = statements(text)
    if engine == "duckdb" and not before:
        return execute_apart(last, params, frame)
    from lance_sql.session.connection import session_of

    session = session_of(connect(engine=engine))
    for statement in before:
        execute(session, statement, None, in_scope(frame))
    return execute_last(session, last, params, in_scope(frame))


@public
def connect(
    directory: str | os.PathLike[str] | None = None,
    engine: Any = "duckdb",
    *,
    duckdb: Any = None,
    datafusion: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    materialize_bytes: int | None = None,
    allow_external: AllowExternal | None = None,
    enable_external_access: bool = True,
    allowed_directories: Sequence[str | os.PathLike[str]] = (),
) -> Connection:
    """A SQL session. With a `directory`, each ``NAME.lance`` dataset in it is a table called NAME.

    `engine` is ``"duckdb"`` or ``"datafusion"``. To use an existing engine session with its tables, pass an
    open `duckdb.DuckDBPyConnection` as `duckdb` or an open `datafusion.SessionContext` as `datafusion`;
    closing our session leaves it open. `materialize_bytes` applies to DataFusion only: the smallest tables of
    a join are first read into memory, up to this many bytes (256 MiB by default, 0 to disable). DataFusion
    then knows their exact sizes and builds its hash tables from them. `allow_external` is the same as in
    `open`, and applies to all datasets of the session.

    With ``enable_external_access=False``, statements can only use the directory of the session, what is
    registered, and `allowed_directories`: for statements of somebody else. These are DuckDB's settings of the
    same names, which also apply when statements set them. InvalidArgumentError for a connection of DuckDB's
    that is already open: it has settings of its own.
    """
    if engine == "duckdb" and duckdb is None and datafusion is None:
        _open_ahead("lance_sql.session.connection")
    load("lance_sql.session.connection")
    from lance_sql.catalog.access import Restrictions
    from lance_sql.session.connection import Connection
    from lance_sql.session.sql_session import SqlSession

    if duckdb is not None or datafusion is not None:
        if engine != "duckdb" or None not in (duckdb, datafusion):
            raise InvalidArgumentError("Pass only one of engine, duckdb and datafusion")
        engine = datafusion if duckdb is None else duckdb
    location = None if directory is None else os.fspath(directory)
    options = with_external_access(storage_options, allow_external)
    if enable_external_access and allowed_directories:
        raise InvalidArgumentError(
            "allowed_directories only apply without external access",
            remedy="Pass enable_external_access=False as well",
        )
    if isinstance(allowed_directories, str | os.PathLike):
        allowed_directories = [allowed_directories]
    restrictions = Restrictions(
        enable_external_access, tuple(os.fspath(place) for place in allowed_directories)
    )
    return Connection(
        SqlSession(
            location,
            engine,
            storage_options=options,
            materialize_bytes=materialize_bytes,
            restrictions=restrictions,
        )
    )


def _open_ahead(sessions: str) -> None:
    """Have DuckDB open a database while the modules of `sessions` are imported, unless they are."""
    if sessions not in sys.modules:
        load("lance_sql.engines.duckdb.opening").open_ahead()
