"""``SELECT ... FROM t LIMIT 10 OFFSET 5``: the scan returns these rows of the table, and reads no others.

With a condition, the scan only begins with few rows: the engine may test it, so the number of rows that it
reads is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from lance_sql.pushdown.rule import Asked
from lance_sql.pushdown.wrapped_query import WrappedQuery
from lance_sql.syntax.scopes import BoundQuery
from lance_sql.syntax.shapes import is_row_wise, limited_rows, plain_select

if TYPE_CHECKING:
    from lance_sql.engines.base import Engine, Query
    from lance_sql.engines.statement_run import StatementRun

#: Maximum number of requested rows.
_MOST_ROWS: Final = 100_000
#: Reading fewer rows takes less time than planning the statement once more.
_LEAST_SKIPPED: Final = 10_000


class Limited(NamedTuple):
    """The rows of a dataset that a query returns, each of which is a row of the dataset.

    `tested`: they are positions among those that pass a condition.
    """

    table: str
    rows: range
    tested: bool


def limited(query: BoundQuery) -> Limited | None:
    """The rows that a query returns if any rows of a dataset will do; None for other queries."""
    plain = plain_select(query, "where", "limit", "offset")
    if plain is None or not is_row_wise([*plain.select.expressions, plain.select.args.get("where")]):
        return None
    rows = limited_rows(plain.select)
    return Limited(plain.occurrence.table, rows, bool(plain.select.args.get("where"))) if rows else None


class LimitedQuery(WrappedQuery):
    """`query`, which only needs some rows of a table.

    `skips`: the query has no OFFSET, the scan skips these rows.
    """

    def __init__(self, query: Query, wanted: Limited, *, skips: bool = False) -> None:
        super().__init__(query)
        self._wanted = wanted
        self._skips = skips

    def prepare(self, run: StatementRun) -> None:
        table, rows, tested = self._wanted
        if tested:
            run.expected[table] = rows.stop
        else:
            run.ranges[table] = range(rows.start if self._skips else 0, rows.stop)


class Limit:
    """The rule."""

    name = "limit"
    words = (frozenset({"LIMIT"}),)

    def hindrance(self, engine: Engine) -> str:
        return ""

    def applied(self, asked: Asked, query: Query | None = None) -> Query | None:
        wanted = self._wanted(asked)
        if wanted is None:
            return None
        query = query or asked.planned()
        if _pays_to_skip(wanted, asked.force) and query is asked.planned():
            skipping = asked.engine_query(_without_offset(asked))
            if skipping.scans.get(wanted.table) == 1:
                return LimitedQuery(skipping, wanted, skips=True)
        return LimitedQuery(query, wanted)

    def described(self, asked: Asked) -> str | None:
        wanted = self._wanted(asked)
        if wanted is None:
            return None
        begins = "begins with few rows" if wanted.tested else "reads no other rows"
        return f"{wanted.table}: {len(wanted.rows):,} after {wanted.rows.start:,}; the scan {begins}"

    def _wanted(self, asked: Asked) -> Limited | None:
        query = asked.bound(self)
        wanted = None if query is None else asked.plan.fact(self.name, lambda: limited(query))
        if wanted is None:
            return None
        rows = asked.plan.datasets[wanted.table].count_rows()
        pays = asked.force or wanted.rows.stop <= min(_MOST_ROWS, rows - 1)
        return wanted if pays or _pays_to_skip(wanted, asked.force) else None


def _pays_to_skip(wanted: Limited, force: bool) -> bool:
    """Whether a scan should skip the rows before the requested ones."""
    if wanted.tested or not wanted.rows.start:
        return False
    return force or (wanted.rows.start >= _LEAST_SKIPPED and len(wanted.rows) <= _MOST_ROWS)


def _without_offset(asked: Asked) -> str:
    """The text of a query without its OFFSET."""
    text, tokens = asked.plan.statement.original, asked.plan.statement.tokens
    place = max(place for place, token in enumerate(tokens) if token.upper == "OFFSET")
    return text[: tokens[place].start] + text[tokens[place + 1].end :]
