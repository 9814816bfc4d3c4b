"""Converts rows of any query to rows of a dataset: column order, casts, and default values."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager

import pyarrow as pa
from lance_engine.base import nearest_name
from lance_engine.errors import ColumnNotFoundError

from lance_sql.catalog.defaults import default_of
from lance_sql.display.amounts import counted
from lance_sql.engines.base import Parameters
from lance_sql.errors import SqlError
from lance_sql.statements.session import LENT, Session
from lance_sql.text.tokens import quote
from lance_sql.types.casts import stored_value
from lance_sql.types.stored import stored_batches

_SOURCE = "lance_sql_source"


@contextmanager
def fitted_query(
    session: Session,
    query: str,
    schema: pa.Schema,
    columns: Sequence[str] | None = None,
    *,
    by_name: bool = False,
    params: Parameters = None,
    width: int | None = None,
) -> Iterator[pa.RecordBatchReader]:
    """The rows of `query` as rows of a dataset with `schema`, to be read in this block.

    `width` is the number of its columns, if known. They are the columns named in `columns`, in that order, by
    default all columns of the dataset; or with `by_name` those with the same names. Columns without a value
    get their default, or null. ColumnNotFoundError for unknown names, SqlError for a wrong number of columns,
    SchemaMismatchError for a missing column that allows no nulls, and while reading for values that cannot be
    converted.
    """
    source: pa.RecordBatchReader | None = None
    if width is not None and not by_name:
        offered = [""] * width
    elif session.capabilities.computes_statements:
        offered = session.select(f"SELECT * FROM ({query}) AS {_SOURCE} LIMIT 0", params).arrow().schema.names
    else:
        source = session.select(query, params).reader()
        offered = source.schema.names
    if by_name:
        names = [column_name(schema, name) for name in offered]
    else:
        names = [column_name(schema, name) for name in columns] if columns else schema.names
        if len(names) != len(offered):
            raise SqlError(
                f"Got {counted(len(offered), 'value')} for {counted(len(names), 'column')}",
                remedy=f"Available columns: {', '.join(names)}",
            )
    if len(set(names)) < len(names):
        raise SqlError("A column is listed twice")
    places = {name: f"{_SOURCE}.{quote(f'c{index}')}" for index, name in enumerate(names)}
    values = [_value(field, places.get(field.name)) for field in schema]
    aliases = ", ".join(quote(f"c{index}") for index in range(len(offered)))
    rows = LENT if source is not None else f"({query})"
    text = f"SELECT {_cast(values, schema)} FROM {rows} AS {_SOURCE}({aliases})"
    if source is None:
        yield pa.RecordBatchReader.from_batches(schema, stored_batches(session.select(text, params), schema))
        return
    with closing(_lent(session.computing(), source, text)) as batches:
        yield pa.RecordBatchReader.from_batches(schema, stored_batches(batches, schema))


def _lent(computing: Session, source: pa.RecordBatchReader, text: str) -> Generator[pa.RecordBatch]:
    """The rows of a query over rows from another engine."""
    with computing.lend(source) as lent:
        yield from computing.select(text.replace(LENT, lent))


def default_row(session: Session, schema: pa.Schema) -> pa.RecordBatchReader:
    """One row that consists of defaults."""
    values = [_value(field, None) for field in schema]
    result = session.computing().select(f"SELECT {_cast(values, schema)}")
    return pa.RecordBatchReader.from_batches(schema, stored_batches(result, schema))


def _value(field: pa.Field, place: str | None) -> str:
    if place is not None:
        return place
    default = default_of(field)
    # Rows of a column that is NOT NULL are refused where they are written: there may be none.
    return "NULL" if default is None else f"({default})"


def _cast(values: Sequence[str], schema: pa.Schema) -> str:
    """The list of values with the types of the columns, by DuckDB's rules."""
    return ", ".join(
        f"{stored_value(value, field)} AS {quote(field.name)}"
        for value, field in zip(values, schema, strict=True)
    )


def column_name(schema: pa.Schema, name: str) -> str:
    """The column with that name, ignoring case; ColumnNotFoundError suggests the most similar one."""
    if name in schema.names:
        return name
    alike = [known for known in schema.names if known.lower() == name.lower()]
    if len(alike) == 1:
        return str(alike[0])
    near = nearest_name(name, schema.names)
    raise ColumnNotFoundError(
        f"Column '{name}' not found",
        remedy=f"Did you mean '{near}'?" if near else f"Available columns: {', '.join(schema.names)}",
    )
