"""``SELECT ... FROM t ORDER BY x LIMIT 10``: the scan drops rows beyond the last value that is returned.

The column is read first, to find its value in the last of the requested rows. The statement itself then only
scans rows up to that value, so that zone maps skip most of the table and other columns are decoded for few
rows. The engine still sorts and limits the result: rows with equal values are all included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.types as at
from lance_engine.scan import estimated_row_bytes

from lance_sql.pushdown.rule import Asked
from lance_sql.pushdown.wrapped_query import WrappedQuery
from lance_sql.syntax.scopes import BoundQuery, Place
from lance_sql.syntax.shapes import PlainSelect, is_row_wise, limited_rows, plain_select
from lance_sql.text.tokens import Token, arguments

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion
    from lance_engine.expr import Node

    from lance_sql.engines.base import Engine, Query
    from lance_sql.engines.statement_run import StatementRun

#: Smaller tables are read in the time that a second query takes.
_SMALL_BYTES: Final = 8 << 20
#: The same of remote tables: each row takes a request for each of its columns, and more with a condition.
_SMALL_REMOTE_BYTES: Final = 256 << 20
#: Maximum share of requested rows, as 1 in this many.
_SHARE: Final = 20


class FirstRows(NamedTuple):
    """``SELECT ... FROM table [WHERE condition] ORDER BY column [DESC] [NULLS FIRST], ... LIMIT 9 OFFSET 5``.

    `rows` is the number of requested rows, including skipped ones. `descending` and `nulls_first` are None if
    the text does not say so. `selected` and `tested` are the names in the SELECT list and in the condition.
    `key` is the text of the column, `source` that between FROM and ORDER BY.
    """

    table: str
    column: str
    rows: int
    descending: bool | None
    nulls_first: bool | None
    selected: frozenset[str]
    tested: frozenset[str]
    key: str
    source: str

    def orders_descending(self, engine: Engine) -> bool:
        """Whether greater values come first, which settings decide if the text does not say so."""
        return engine.orders_descending() if self.descending is None else self.descending

    def puts_nulls_first(self, engine: Engine) -> bool:
        """Whether nulls come first."""
        if self.nulls_first is None:
            return not engine.nulls_are_last(self.orders_descending(engine))
        return self.nulls_first

    def last_key(self, descending: bool, nulls_first: bool) -> str:
        """The query for the value of the ordering column in the last of the rows."""
        order = f"{self.key} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"
        return f"SELECT {self.key} FROM {self.source} ORDER BY {order} LIMIT 1 OFFSET {self.rows - 1}"


def first_rows(query: BoundQuery) -> FirstRows | None:
    """What a query for the first rows in an order asks for; None for other queries, and if uncertain."""
    from sqlglot import exp

    plain = plain_select(query, "where", "order", "limit", "offset")
    rows = None if plain is None else limited_rows(plain.select)
    tokens = query.tree.statement.tokens
    if plain is None or not rows or "order" not in plain.select.args or tokens[0].upper != "SELECT":
        return None
    select, where, order = plain.select, plain.select.args.get("where"), plain.select.args["order"]
    first = order.expressions[0]
    is_plain = all(
        isinstance(item, exp.Ordered) and not item.args.get("with_fill") for item in order.expressions
    )
    keys = [item.this for item in order.expressions]
    if not is_plain or not is_row_wise([*select.expressions, *keys, where]):
        return None
    place = query.column(plain.scope, first.this)
    start = query.tree.place(plain.source.this)
    ends = [token.start for token in tokens if token.upper == "ORDER"]
    names = list(first.this.find_all(exp.Identifier))
    spans = [query.tree.place(name) for name in names]
    if place is None or start is None or len(ends) != 1 or None in spans or first.this is not names[0].parent:
        return None
    if _may_be_renamed(query, plain, place):
        return None
    text = query.tree.statement.original
    return FirstRows(
        plain.occurrence.table,
        place.column,
        rows.stop,
        first.args.get("desc"),
        _nulls_first(tokens),
        _names(select.expressions),
        _names([where]),
        text[min(span[0] for span in spans if span) : max(span[1] for span in spans if span)],
        text[start[0] : ends[0]].rstrip(),
    )


def _nulls_first(tokens: Sequence[Token]) -> bool | None:
    """Whether the first key of ORDER BY has NULLS FIRST: the parser does not tell NULLS LAST from nothing."""
    words = [token.upper for token in tokens]
    begin = words.index("ORDER") + 2
    end = min(place for place in range(begin, len(words)) if words[place] in ("LIMIT", "OFFSET"))
    match [token.upper for token in arguments(list(tokens[begin:end]))[0]][-2:]:
        case ["NULLS", "FIRST"]:
            return True
        case ["NULLS", "LAST"]:
            return False
    return None


def _may_be_renamed(query: BoundQuery, plain: PlainSelect, place: Place) -> bool:
    """Whether the SELECT list may have another value under the name of a column."""
    from sqlglot import exp

    for item in plain.select.expressions:
        same_name = item.output_name.lower() == place.column.lower()
        if isinstance(item, exp.Cast) or (same_name and query.column(plain.scope, item) != place):
            return True
        for star in item.find_all(exp.Star):
            if star.args.get("rename") or star.args.get("replace"):
                return True
    return False


def _names(parts: list[Any]) -> frozenset[str]:
    from sqlglot import exp

    return frozenset(
        node.name.lower() if isinstance(node, exp.Identifier) else "*"
        for part in parts
        if part is not None
        for node in part.find_all(exp.Identifier, exp.Star)
    )


class TopN:
    """The rule."""

    name = "top_n"
    words = (frozenset({"ORDER"}), frozenset({"LIMIT"}))

    def hindrance(self, engine: Engine) -> str:
        return ""

    def applied(self, asked: Asked, query: Query | None = None) -> Query | None:
        wanted = self._wanted(asked)
        if wanted is None or asked.parameters:
            return None
        engine = asked.engine
        descending = wanted.orders_descending(engine)
        nulls_first = wanted.puts_nulls_first(engine)

        def holds() -> bool:
            """Whether the order is the one with which the statement was planned."""
            return descending == wanted.orders_descending(engine) and (
                nulls_first == wanted.puts_nulls_first(engine)
            )

        field = asked.plan.datasets[wanted.table].storage_schema.field(wanted.column)
        last_key = engine.query(wanted.last_key(descending, nulls_first), None)
        return FirstRowsQuery(
            query or asked.planned(), last_key, wanted.table, field, descending, nulls_first, holds
        )

    def described(self, asked: Asked) -> str | None:
        wanted = self._wanted(asked)
        if wanted is None or asked.parameters:
            return None
        return f"{wanted.table}: rows beyond number {wanted.rows:,} by {wanted.column} are dropped"

    def _wanted(self, asked: Asked) -> FirstRows | None:
        query = asked.bound(self)
        wanted = None if query is None else asked.plan.fact(self.name, lambda: first_rows(query))
        if wanted is None:
            return None
        return wanted if _pays(asked.plan.datasets[wanted.table], wanted, asked.force) else None


def _pays(dataset: DatasetVersion, wanted: FirstRows, force: bool) -> bool:
    """Whether it pays to read the ordering column before all other selected columns."""
    schema = dataset.storage_schema
    if not _is_ordered_alike(schema.field(wanted.column).type):
        return False
    if force:
        return True
    read_first = wanted.tested | {wanted.column.lower()}
    late = [
        field
        for field in schema
        if field.name.lower() not in read_first
        and ("*" in wanted.selected or field.name.lower() in wanted.selected)
    ]
    first = [field for field in schema if field.name.lower() in read_first]
    rows = dataset.count_rows()
    is_local = dataset.snapshot.is_local
    if not is_local and wanted.tested:
        return False
    small = _SMALL_BYTES if is_local else _SMALL_REMOTE_BYTES
    if wanted.rows * _SHARE > rows or rows * estimated_row_bytes(schema) < small:
        return False
    return bool(late) and estimated_row_bytes(pa.schema(late)) >= estimated_row_bytes(pa.schema(first))


def _is_ordered_alike(kind: pa.DataType) -> bool:
    """Whether scans and engines agree on the order of values, whatever collation is set."""
    return bool(
        at.is_integer(kind)
        or at.is_float32(kind)
        or at.is_float64(kind)
        or at.is_decimal128(kind)
        or at.is_date(kind)
        or at.is_timestamp(kind)
    )


class FirstRowsQuery(WrappedQuery):
    """`query`, for which `last_key` finds the value of the column `field` of `table` in the last row.

    All rows are read unless the order still `holds` when it runs.
    """

    def __init__(
        self,
        query: Query,
        last_key: Query,
        table: str,
        field: pa.Field,
        descending: bool,
        nulls_first: bool,
        holds: Callable[[], bool],
    ) -> None:
        super().__init__(query)
        self._holds = holds
        self._last_key = last_key
        self._table = table
        self._field = field
        self._descending = descending
        self._nulls_first = nulls_first

    def prepare(self, run: StatementRun) -> None:
        condition = self._condition(self._last_key.to_table(run)) if self._holds() else None
        if condition is not None:
            run.require(self._table, condition)

    def stream(self, run: StatementRun) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        rows = self.to_table(run)
        return rows.schema, iter(rows.to_batches())

    def _condition(self, last: pa.Table) -> Node | None:
        """A condition that all rows up to the last one meet; None if unknown, or if all rows meet it."""
        from lance_engine.expr import Literal, build

        if not last.num_rows:
            return None
        column = build.column(pa.schema([self._field]), [self._field.name])
        is_null = build.is_null(column)
        try:
            value = last.column(0).cast(self._field.type)[0]
        except pa.ArrowInvalid:
            return None
        if not value.is_valid:
            return is_null if self._nulls_first else None
        if at.is_floating(value.type) and math.isnan(value.as_py()):
            return None  # engines disagree about its position
        parts = [build.compare(">=" if self._descending else "<=", column, Literal(value))]
        if at.is_floating(value.type):
            parts.append(build.compare("=", column, Literal(pa.scalar(math.nan, self._field.type))))
        return build.disjunction([*parts, is_null] if self._nulls_first else parts)
