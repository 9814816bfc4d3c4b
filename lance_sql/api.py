"""The verbs of the package: open, write, sql, connect."""

from __future__ import annotations

import datetime
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from lance_engine.io.external_access import AllowExternal, with_external_access

if TYPE_CHECKING:
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
    from lance_sql.dataset import Dataset

    return Dataset.open(
        os.fspath(uri),
        version,
        tag=tag,
        as_of=as_of,
        branch=branch,
        storage_options=storage_options,
        allow_external=allow_external,
    )


def write(
    data: Any,
    uri: str | os.PathLike[str],
    mode: Literal["create", "append", "overwrite"] = "create",
    **options: Any,
) -> Dataset:
    """Write `data` as a new version of the dataset at `uri` and return the dataset at that version.

    `data` is a pyarrow Table, RecordBatch or RecordBatchReader, an iterable of record batches, anything that
    exports an Arrow stream (Polars, DuckDB and DataFusion results, pandas 3 frames, a `QueryResult`), or a
    pandas DataFrame. `options` are those of `lance_engine.write.dataset.write_dataset`, for example
    ``data_storage_version``, ``max_rows_per_file``, ``stable_row_ids``, ``progress`` and ``storage_options``.
    Raises `DatasetExistsError`, `SchemaMismatchError` and `UnsupportedTypeError`; after an error nothing of
    the new version is visible.
    """
    from lance_engine.write.dataset import write_dataset

    from lance_sql.dataset import Dataset

    return Dataset(write_dataset(data, os.fspath(uri), mode, **options))


def sql(
    text: str,
    engine: str = "duckdb",
    params: Sequence[Any] | Mapping[str, Any] | None = None,
) -> QueryResult:
    """Run one SQL statement; tables are written as ``FROM 'path/to/sales.lance'``.

    A name that is no table may be a variable of the caller: ``FROM ds`` reads a dataset, a pandas or Polars
    data frame, an Arrow table or anything else that exports an Arrow stream. Such a variable is only read.

    `params` replaces ``?`` and ``$1`` (a sequence) or ``$name`` (a mapping). Each call has a session of its
    own: use `connect` to keep tables and views between statements.
    """
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
    storage_options: Mapping[str, Any] | None = None,
    materialize_bytes: int | None = None,
    allow_external: AllowExternal | None = None,
) -> Connection:
    """A SQL session; with a `directory`, each ``NAME.lance`` dataset in it is the table NAME.

    `engine` is ``"duckdb"`` or ``"datafusion"``, or an open `duckdb.DuckDBPyConnection` or
    `datafusion.SessionContext` to run in. `materialize_bytes` is for DataFusion alone: the smallest tables of
    a join are read into memory first, up to so many bytes (256 MiB unless given, 0 for none), because only so
    does it learn how large they are and build its hash tables of them. `allow_external` is that of `open`,
    for all datasets of the session.
    """
    from lance_sql.session.connection import Connection

    location = None if directory is None else os.fspath(directory)
    options = with_external_access(storage_options, allow_external)
    return Connection(location, engine, storage_options=options, materialize_bytes=materialize_bytes)
