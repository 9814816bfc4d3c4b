"""The verbs of the package: open, write, sql, connect."""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from lance_engine.errors import InvalidArgumentError
from lance_engine.interrupts import load
from lance_engine.io.external_access import AllowExternal, with_external_access

if TYPE_CHECKING:
    from lance_engine.progress import ProgressOption

    from lance_sql.dataset import Dataset
    from lance_sql.session.connection import Connection
    from lance_sql.session.result import QueryResult

__all__ = ["connect", "open", "sql", "write"]


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

    `tag` names a tagged version, `as_of` the one that was the newest at that time (a naive time is local
    time). `version` and `as_of` count on `branch`, by default on the main history. The result is an immutable
    view of that version. Raises `DatasetNotFoundError` and `VersionNotFoundError`.

    `allow_external` says which places outside of the dataset it may read from: ``"none"``, ``"same-store"``
    (the default: base paths on the same disk, or in the same bucket), ``"all"``, or a list of the places
    allowed; as a dictionary with storage options of their own. Anything else is an `ExternalAccessError`.
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
) -> Dataset:
    """Write `data` as a new version of the dataset at `uri` and return the dataset at that version.

    `data` is one of

    - Arrow: a pyarrow Table, RecordBatch, RecordBatchReader, Dataset or Scanner, an iterable of record
      batches, or any object with ``__arrow_c_stream__``, such as a `QueryResult` or a DuckDB relation;
    - a data frame: pandas (an index with a name becomes a column), Polars, also lazy;
    - Python values: a dict of columns, or a list of dicts;
    - files: the path of a Parquet, CSV, NDJSON or Arrow file, a glob such as ``"data/*.parquet"``, or a
      directory of such files. The first file decides on the columns.

    ``mode="create"`` raises `DatasetExistsError` if there is a dataset, ``"append"`` raises
    `DatasetNotFoundError` if none exists, ``"overwrite"`` replaces schema and rows, or creates.

    - `data_storage_version` is the version of new files: by default that of the dataset to append to,
      otherwise 2.1, or 2.2 if a column needs it (maps).
    - `max_rows_per_file` and `max_bytes_per_file` limit a file, which ends at whichever comes first.
    - `zone_maps` stores min, max and null count for every `zone_rows` rows; `zone_index` is ``"compatible"``
      or, for files of version 2.0 that pylance need not read, ``"strict"``.
    - `profile` says what matters most: ``"size"``, ``"speed"`` (of scans) or ``"balanced"``.
    - `branch` is an existing branch to write to.
    - `stable_row_ids` keeps the ids of rows when they are updated or compacted. It applies to new datasets.
    - `progress` is True for a progress bar, or a function that takes a `ProgressEvent`.
    - `storage_options` are those of the object store.

    Raises `InvalidArgumentError` for data of another kind, `SchemaMismatchError` and `UnsupportedTypeError`
    for data that does not fit. After an error nothing of the new version is visible.
    """
    load("lance_sql.dataset")
    load("lance_engine.write.dataset")
    from lance_engine.write.dataset import write_dataset
    from lance_engine.write.files import is_dataset_path

    from lance_sql.dataset import Dataset

    if isinstance(data, str | os.PathLike) and is_dataset_path(os.fspath(data)):
        data = open(data, storage_options=storage_options)
    return Dataset(
        write_dataset(
            data,
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
        )
    )


def sql(
    text: str,
    engine: str = "duckdb",
    params: Sequence[Any] | Mapping[str, Any] | None = None,
) -> QueryResult:
    """Run one SQL statement; tables are written as ``FROM 'path/to/sales.lance'``.

    A name that is not a table can be a variable of the caller: ``FROM ds`` reads a dataset, a pandas or
    Polars data frame, an Arrow table or any other object that exports an Arrow stream. The variable is not
    changed.

    `params` replaces ``?`` and ``$1`` (a sequence) or ``$name`` (a mapping). Each call has a session of its
    own: use `connect` to keep tables and views between statements.
    """
    load("lance_sql.session.variables")
    from lance_sql.session.variables import execute
    from lance_sql.text.script import split

    session = connect(engine=engine)
    frame = sys._getframe(1)
    *before, last = split(text)
    for statement in before:
        execute(session, statement, None, frame)
    return execute(session, last, params, frame)


def connect(
    directory: str | os.PathLike[str] | None = None,
    engine: Any = "duckdb",
    *,
    duckdb: Any = None,
    datafusion: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    materialize_bytes: int | None = None,
    allow_external: AllowExternal | None = None,
) -> Connection:
    """A SQL session; with a `directory`, each ``NAME.lance`` dataset in it is the table NAME.

    `engine` is ``"duckdb"`` or ``"datafusion"``. `duckdb` is an open `duckdb.DuckDBPyConnection`, and
    `datafusion` an open `datafusion.SessionContext`, to run in, with the tables that it has; closing the
    session leaves it open. `materialize_bytes` is for DataFusion alone: the smallest tables of
    a join are read into memory first, up to so many bytes (256 MiB unless given, 0 for none), because only so
    does it learn how large they are and build its hash tables of them. `allow_external` is that of `open`,
    for all datasets of the session.
    """
    load("lance_sql.session.connection")
    from lance_sql.session.connection import Connection

    if duckdb is not None or datafusion is not None:
        if engine != "duckdb" or None not in (duckdb, datafusion):
            raise InvalidArgumentError("Pass only one of engine, duckdb and datafusion")
        engine = datafusion if duckdb is None else duckdb
    location = None if directory is None else os.fspath(directory)
    options = with_external_access(storage_options, allow_external)
    return Connection(location, engine, storage_options=options, materialize_bytes=materialize_bytes)
