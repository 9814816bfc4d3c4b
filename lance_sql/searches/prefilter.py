"""``prefilter := true``: the condition of the query is applied before the nearest rows are selected."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from lance_engine.base import load
from lance_engine.errors import LanceError, UnsupportedFeatureError

from lance_sql.text.searches import SearchCall

if TYPE_CHECKING:
    from sqlglot import exp

#: The end of a time with an offset from UTC.
_OFFSET: Final = re.compile(r":\d\d(\.\d+)?\s*([+-]\d\d(:?\d\d)?|Z|UTC)$")
_REMEDY = "Pass the condition as an argument: filter := 'price < 5'"


def condition_of(text: str, call: SearchCall, schema: pa.Schema) -> str | None:
    """The WHERE condition of the query around `call`, over the columns of the dataset; None without one.

    UnsupportedFeatureError if it is ambiguous, or cannot be evaluated before the search.
    """
    load("sqlglot")
    import sqlglot
    from lance_engine.expr import has_zone, parse_sql, walk
    from sqlglot import exp

    marked = f"{text[: call.start]}__search__{text[call.end :]}"
    try:
        tree = sqlglot.parse_one(marked, dialect="duckdb")
    except sqlglot.ParseError as error:
        raise UnsupportedFeatureError(
            "Cannot parse the query to find its condition", remedy=_REMEDY
        ) from error
    select = next(
        (
            table.parent_select
            for table in tree.find_all(exp.Table)
            if table.name == "__search__" and table.parent_select is not None
        ),
        None,
    )
    if select is None or select.args.get("joins"):
        raise UnsupportedFeatureError(
            f"prefilter needs a query over {call.function.name} only, without joins", remedy=_REMEDY
        )
    where = select.args.get("where")
    if where is None:
        return None
    condition = where.this.copy()
    for column in condition.find_all(exp.Column):
        column.set("table", None)
    found: str = condition.sql(dialect="duckdb")
    try:
        parsed = parse_sql(found, schema)
    except LanceError as error:
        raise UnsupportedFeatureError(
            f"prefilter cannot evaluate {found!r} before the search: {error}", remedy=_REMEDY
        ) from error
    # The search would take times without an offset as UTC, the query those of the session's time zone.
    if any(has_zone(node.type) for node in walk(parsed)) and not _has_offsets(condition):
        raise UnsupportedFeatureError(
            f"prefilter cannot evaluate {found!r} before the search: it depends on the session's time zone",
            remedy="Write each time with an offset, such as '2026-01-31 18:00:00+00'",
        )
    return found


def _has_offsets(condition: exp.Expression) -> bool:
    """Whether each text in a condition ends with an offset from UTC."""
    from sqlglot import exp

    return all(_OFFSET.search(text.name) for text in condition.find_all(exp.Literal) if text.is_string)
