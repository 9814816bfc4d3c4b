"""Datasets as DuckDB describes tables of its own: empty tables with the same columns and constraints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from lance_engine.base import load
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import LanceError
from lance_engine.index import kind_of
from lance_engine.table import constraints_of

from lance_sql.catalog.defaults import default_of
from lance_sql.catalog.metadata import COMMENT, table_comment
from lance_sql.scratch import scratch
from lance_sql.text.tokens import as_string, quote
from lance_sql.types.duckdb_names import duckdb_types

if TYPE_CHECKING:
    import duckdb

_QUERIES: Final = {
    "describe": "DESCRIBE described",
    "table_info": "SELECT * FROM pragma_table_info('described')",
}


def describe(dataset: DatasetVersion, what: str) -> pa.Table:
    """What DuckDB answers to ``DESCRIBE``, ``pragma_table_info`` and ``pragma_storage_info``."""
    if what == "storage_info":
        return _storage_info(dataset)
    with scratch() as connection:
        create(connection, dataset, "described")
        return connection.sql(_QUERIES[what]).to_arrow_table()


def _storage_info(dataset: DatasetVersion) -> pa.Table:
    """Pages as DuckDB's segments; what these have and pages have not is null."""
    pages = dataset.inspect.pages()
    names = dataset.storage_schema.names
    columns = [path.partition(".")[0] for path in pages["column"].to_pylist()]
    number = pa.array([names.index(name) if name in names else None for name in columns], pa.int64())
    nothing = pa.nulls(pages.num_rows, pa.string())
    return pa.table(
        {
            "row_group_id": pages["fragment_id"].cast(pa.int64()),
            "column_name": pa.array(columns, pa.string()),
            "column_id": number,
            "column_path": pages["column"],
            "segment_id": pages["page"].cast(pa.int64()),
            "segment_type": nothing,
            "start": pages["first_row"].cast(pa.int64()),
            "count": pages["rows"].cast(pa.int64()),
            "compression": pages["encoding"],
            "stats": nothing,
            "has_updates": pa.array([False] * pages.num_rows, pa.bool_()),
            "persistent": pa.array([True] * pages.num_rows, pa.bool_()),
            "block_id": pa.nulls(pages.num_rows, pa.int64()),
            "block_offset": pa.nulls(pages.num_rows, pa.int64()),
            "additional_block_ids": pa.nulls(pages.num_rows, pa.list_(pa.int64())),
        }
    )


def create(
    connection: duckdb.DuckDBPyConnection, dataset: DatasetVersion, target: str, *, enforced: bool = False
) -> None:
    """Create an empty table with the definition of a dataset, temporary unless `target` has dots.

    What DuckDB does not know of stays away: keys on some types, defaults that may not be executed.
    With `enforced`, so do keys that nobody enforces. LanceError if it has no such types.
    """
    import duckdb

    declared = constraints_of(dataset.snapshot.schema)
    keys = declared.enforced if enforced else declared.keys
    columns = list(_columns(dataset, {key.columns[0]: key.kind for key in keys if len(key.columns) == 1}))
    constraints = [
        f"{key.kind} ({', '.join(map(quote, key.columns))})" for key in keys if len(key.columns) > 1
    ]
    conditions = (_expression(check.condition) for check in declared.checks)
    constraints += [f"CHECK ({condition})" for condition in conditions if condition is not None]
    temporary = "" if "." in target else "TEMPORARY "
    plain = list(_columns(dataset, {}))
    for parts in ([*columns, *constraints], plain):
        text = f"CREATE {temporary}TABLE {target} ({', '.join(parts)})"
        try:
            if len(connection.extract_statements(text)) == 1:
                connection.execute(text)
                break
        except duckdb.Error as error:
            if parts is plain:
                raise LanceError(f"DuckDB has no such table: {error}", path=dataset.uri) from error
    comment = table_comment(dataset)
    if comment is not None:
        connection.execute(f"COMMENT ON TABLE {target} IS {as_string(comment)}")
    for field in dataset.storage_schema:
        comment = (field.metadata or {}).get(COMMENT.encode())
        if comment is not None:
            text = as_string(comment.decode("utf-8", "replace"))
            connection.execute(f"COMMENT ON COLUMN {target}.{quote(field.name)} IS {text}")


def create_indices(connection: duckdb.DuckDBPyConnection, dataset: DatasetVersion, target: str) -> None:
    """Create the indices for filters of a dataset on its table, where DuckDB can have them."""
    import duckdb

    for index in dataset.inspect.index_health().to_pylist():
        names = [name for name in index["columns"] if name in dataset.storage_schema.names]
        if kind_of(index["kind"]) is not None and names == index["columns"]:
            on = ", ".join(map(quote, names))
            try:
                connection.execute(f"CREATE INDEX {quote(index['name'])} ON {target} ({on})")
            except duckdb.Error:  # not on columns of this type
                continue


def _columns(dataset: DatasetVersion, keys: Mapping[str, str]) -> Iterator[str]:
    schema = dataset.storage_schema
    for field, kind in zip(schema, duckdb_types(schema), strict=True):
        try:
            default = default_of(field)
        except LanceError:
            default = None
        key = keys.get(field.name)
        words = [] if default is None else [f"DEFAULT ({default})"]
        words += [] if field.nullable else ["NOT NULL"]
        words += [] if key is None else [key]
        yield " ".join((quote(field.name), kind, *words))


def _expression(text: str) -> str | None:
    """A stored condition as written from its tree: a text could close brackets that it did not open."""
    load("sqlglot")
    from sqlglot import errors, parse

    try:
        trees = parse(text, dialect="duckdb")
    except (errors.SqlglotError, RecursionError, ValueError):
        trees = []
    if len(trees) != 1 or trees[0] is None:
        return None
    return str(trees[0].sql(dialect="duckdb", comments=False))
