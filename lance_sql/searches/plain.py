"""Returns the result of a search directly if a statement asks for nothing else.

For ``SELECT id, _distance FROM lance_vector_search(...) ORDER BY _distance LIMIT 5``, no engine has to plan
and run a query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.types as at
from lance_engine.base import with_types

from lance_sql.text.statement import Statement
from lance_sql.text.tokens import Token

if TYPE_CHECKING:
    from lance_sql.engines.statement_run import StatementRun
    from lance_sql.searches.table import SearchTable

#: The ORDER BY that matches the result order of searches, by computed column.
_ORDERS: Final = {"_distance": ((), ("ASC",)), "_score": (("DESC",),)}


class PlainSearch(NamedTuple):
    """Some columns of the first rows of a search; of all rows without `limit`."""

    table: SearchTable
    columns: list[str]
    limit: int | None

    def schema(self) -> pa.Schema:
        fields = [self.table.schema.field(name) for name in self.columns]
        return pa.schema([pa.field(field.name, field.type) for field in fields])

    def to_table(self, run: StatementRun) -> pa.Table:
        table = pa.Table.from_batches(
            [with_types(batch, self.schema()) for batch in self.table.answer(self.columns)], self.schema()
        )
        return table if self.limit is None else table.slice(0, self.limit)

    def kinds(self) -> Sequence[Any]:
        return ()

    def stream(self, run: StatementRun) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        table = self.to_table(run)
        return table.schema, iter(table.to_batches())


def plain_search(statement: Statement, name: str, table: SearchTable, order: str) -> PlainSearch | None:
    """The search of a statement over `table`, with alias `name`; None if an engine is needed.

    Its rows are ordered by the computed column `order`.
    """
    if table.schema.names.count(order) != 1:
        return None
    tokens = [token for token in statement.tokens if token.text != ";"]
    words = [token.upper if token.kind == "word" else "" for token in tokens]
    if words[:1] != ["SELECT"] or "FROM" not in words:
        return None
    source = words.index("FROM")
    columns = _columns(tokens[1:source], table.schema)
    rest = tokens[source + 1 :]
    if columns is None or len(rest) < 3 or rest[0].value != name or rest[1].upper != "AS":
        return None
    return _ordered(PlainSearch(table, columns, None), order, rest[3:])


def _columns(tokens: list[Token], schema: pa.Schema) -> list[str] | None:
    names = [token.value for token in tokens[::2] if token.kind in ("word", "quoted")]
    commas = [token.text for token in tokens[1::2]]
    if len(names) != len(commas) + 1 or len(names) + len(commas) != len(tokens) or {*commas} - {","}:
        return None
    known = all(schema.names.count(name) == 1 and _is_plain(schema.field(name).type) for name in names)
    return names if known and len({*names}) == len(names) else None


def _is_plain(kind: pa.DataType) -> bool:
    """Whether engines return values of a type unchanged."""
    return bool(at.is_integer(kind) or at.is_float32(kind) or at.is_float64(kind) or at.is_string(kind))


def _ordered(search: PlainSearch, order: str, rest: list[Token]) -> PlainSearch | None:
    words = [token.upper for token in rest]
    if words[:2] == ["ORDER", "BY"] and len(rest) > 2:
        end = words.index("LIMIT") if "LIMIT" in words else len(words)
        if rest[2].value != order or tuple(words[3:end]) not in _ORDERS[order]:
            return None
        rest, words = rest[end:], words[end:]
    if not rest:
        return search
    if len(rest) == 2 and words[0] == "LIMIT" and rest[1].text.isdecimal():
        return search._replace(limit=int(rest[1].text))
    return None
