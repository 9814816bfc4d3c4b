"""Results in Arrow without loss: what DuckDB's export to Arrow drops travels as text.

DuckDB exports TIME WITH TIME ZONE without its offset, INTERVAL in nanoseconds, which overflow after 292
years, UHUGEINT as if it was signed, and BIT and BIGNUM as the bytes that it has in memory. Columns that
contain them are exported with VARCHAR in their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_sql.scratch import scratch
from lance_sql.types.columns import children, walk
from lance_sql.types.row_numbers import by_number, numbers

if TYPE_CHECKING:
    from duckdb.sqltypes import DuckDBPyType

_AS_TEXT = ("bignum", "bit", "interval", "time with time zone", "uhugeint")


def travels_as_text(kind: DuckDBPyType) -> bool:
    """Whether DuckDB's export of values of this type drops something."""
    return any(inner.id in _AS_TEXT for inner in walk(kind))


def exact_columns(kinds: Sequence[DuckDBPyType]) -> str | None:
    """The columns of a relation, by number, with what Arrow drops as text; None if it drops nothing."""
    if not any(map(travels_as_text, kinds)):
        return None
    return ", ".join(
        f"CAST(#{number} AS {_text_type(kind)})" if travels_as_text(kind) else f"#{number}"
        for number, kind in enumerate(kinds, 1)
    )


def _text_type(kind: DuckDBPyType) -> str:
    """The type with VARCHAR in place of the types that lose something."""
    if kind.id in _AS_TEXT:
        return "VARCHAR"
    if not travels_as_text(kind):
        return str(kind)
    inner = [(name, child if isinstance(child, int) else _text_type(child)) for name, child in children(kind)]
    named = ", ".join(f"{_quoted(name)} {child}" for name, child in inner if name)
    match kind.id:
        case "list":
            return f"{inner[0][1]}[]"
        case "array":
            return f"{inner[0][1]}[{inner[1][1]}]"
        case "map":
            return f"MAP({inner[0][1]}, {inner[1][1]})"
        case "tuple":
            return f"TUPLE({', '.join(str(child) for _, child in inner)})"
    return f"{kind.id.upper()}({named})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def plain_arrow(rows: pa.Table, kinds: Sequence[DuckDBPyType]) -> pa.Table:
    """Rows as DuckDB exports them to Arrow."""
    for number, kind in enumerate(kinds):
        if travels_as_text(kind):
            rows = rows.set_column(number, rows.schema.names[number], by_duckdb(rows.column(number), kind))
    return rows


def by_duckdb(column: pa.ChunkedArray, kind: DuckDBPyType) -> pa.ChunkedArray:
    """The values as DuckDB casts them to a type."""
    with scratch() as connection:
        relation: Any = connection.from_arrow(pa.table({"value": column, "number": numbers(len(column))}))
        table = relation.project(f"CAST(value AS {kind}), number").to_arrow_table()
    values = by_number(table.column(0), table.column(1), len(column))
    assert values is not None, "a cast returns one value for each row"
    return pa.chunked_array([values])
