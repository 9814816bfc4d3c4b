"""Rows that DuckDB computes as datasets store them; its export to Arrow would change the types of some."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from lance_engine.errors import SchemaMismatchError

from lance_sql.scratch import scratch
from lance_sql.types.casts import to_stored
from lance_sql.types.columns import columns
from lance_sql.types.duckdb_names import quoted
from lance_sql.types.exact import exact_columns
from lance_sql.types.row_numbers import by_number, numbers
from lance_sql.types.stored import stored_batches

if TYPE_CHECKING:
    import duckdb
    from duckdb.sqltypes import DuckDBPyType


def stored_source(data: Any) -> Any:
    """A relation of DuckDB, or a result, as rows of datasets; other data as it is."""
    duckdb = sys.modules.get("duckdb")
    if duckdb is not None and isinstance(data, duckdb.DuckDBPyRelation):
        relation, schema = stored_relation(data)
        return pa.RecordBatchReader.from_batches(schema, stored_batches(relation.arrow(), schema))
    stored_reader = getattr(type(data), "_stored_reader", None)
    return data if stored_reader is None else stored_reader(data)


def exact_as_stored(
    rows: Iterable[pa.RecordBatch], names: Sequence[str], kinds: Sequence[DuckDBPyType]
) -> pa.RecordBatchReader:
    """Rows in which nothing was lost (see `exact_columns`) as rows of datasets."""
    places = [f"c{number}" for number in range(len(names))]
    values, schema = stored_values(names, kinds, places)

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            fields = [field.with_name(place) for place, field in zip(places, batch.schema, strict=True)]
            numbered = pa.table(
                [*batch.columns, numbers(batch.num_rows)], pa.schema([*fields, ("number", pa.int64())])
            )
            with scratch() as connection:
                relation, _ = _stored(connection.from_arrow(numbered), places, kinds, ", number")
                table = relation.to_arrow_table()
            arrays = [by_number(column, table.column(-1), batch.num_rows) for column in table.columns[:-1]]
            yield pa.RecordBatch.from_arrays(arrays, names=schema.names)

    given = rows if values == places and exact_columns(kinds) is None else batches()
    return pa.RecordBatchReader.from_batches(schema, stored_batches(given, schema))


def stored_relation(relation: duckdb.DuckDBPyRelation) -> tuple[duckdb.DuckDBPyRelation, pa.Schema]:
    """A relation with what datasets store of the values of another, and the columns of a dataset for them."""
    return _stored(relation, relation.columns, relation.types)


def stored_values(
    names: Sequence[str], kinds: Sequence[DuckDBPyType], places: Sequence[str]
) -> tuple[list[str], pa.Schema]:
    """SQL for what datasets store of the values at these places, and the columns of a dataset for them."""
    schema = columns(names, kinds)
    values = [
        to_stored(place, kind, field.type) for place, kind, field in zip(places, kinds, schema, strict=True)
    ]
    return values, schema


def _stored(
    relation: duckdb.DuckDBPyRelation, names: Sequence[str], kinds: Sequence[DuckDBPyType], rest: str = ""
) -> tuple[duckdb.DuckDBPyRelation, pa.Schema]:
    """The same with the columns of `rest`, for values that a relation has in another type."""
    if len(set(names)) < len(names):
        raise SchemaMismatchError("Two columns have the same name", remedy="Rename one of them")
    places = [f"c{number}" for number in range(len(names))]
    values, schema = stored_values(names, kinds, places)
    typed = ", ".join(
        f"CAST(#{number} AS {kind}) AS {place}"
        for number, (place, kind) in enumerate(zip(places, kinds, strict=True), 1)
    )
    shown = ", ".join(f"{value} AS {quoted(name)}" for value, name in zip(values, names, strict=True))
    return relation.project(typed + rest).project(shown + rest), schema
