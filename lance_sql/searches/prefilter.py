"""``prefilter := true``: the condition of the query is applied before the nearest rows are selected."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from lance_engine.errors import LanceError, UnsupportedFeatureError

from lance_sql.searches.one_table import filter_text
from lance_sql.syntax.tree import query_tree
from lance_sql.text.searches import SearchCall
from lance_sql.text.statement import Statement

if TYPE_CHECKING:
    from sqlglot import exp

#: The end of a time with an offset from UTC.
_OFFSET: Final = re.compile(r":\d\d(\.\d+)?\s*([+-]\d\d(:?\d\d)?|Z|UTC)$")
_REMEDY = "Pass the condition as an argument: filter := 'price < 5'"


def condition_of(statement: Statement, call: SearchCall, schema: pa.Schema) -> str | None:
    """The WHERE condition of the query around `call`, over the columns of the dataset; None without one.

    UnsupportedFeatureError if it is ambiguous, or cannot be evaluated before the search.
    """
    tree = query_tree(statement)
    if tree is None:
        raise UnsupportedFeatureError("Cannot parse the query to find its condition", remedy=_REMEDY)
    from lance_engine.expr import has_zone, parse_sql, walk
    from sqlglot import exp

    function = tree.function_at(call.start)
    table = None if function is None else function.parent
    begin = None if table is None else table.parent
    select = None if begin is None else begin.parent
    if (
        not isinstance(table, exp.Table)
        or not isinstance(begin, exp.From)
        or not isinstance(select, exp.Select)
        or any(part.args.get(name) for part in (table, select) for name in ("joins", "laterals"))
    ):
        raise UnsupportedFeatureError(
            f"prefilter needs a query over {call.function.name} only, without joins", remedy=_REMEDY
        )
    where = select.args.get("where")
    if where is None:
        return None
    name = table.alias or call.function.name
    condition = tree.condition(where.this, name, schema.names)
    if condition is None:
        raise UnsupportedFeatureError(
            f"prefilter: {name} in the condition may be the search or a column of it", remedy=_REMEDY
        )
    text = filter_text(condition)
    try:
        parsed = parse_sql(text, schema)
    except LanceError as error:
        raise UnsupportedFeatureError(
            f"prefilter cannot evaluate {text!r} before the search: {error}", remedy=_REMEDY
        ) from error
    # The search would take times without an offset as UTC, the query those of the session's time zone.
    if any(has_zone(node.type) for node in walk(parsed)) and not _has_offsets(condition):
        raise UnsupportedFeatureError(
            f"prefilter cannot evaluate {text!r} before the search: it depends on the session's time zone",
            remedy="Write each time with an offset, such as '2026-01-31 18:00:00+00'",
        )
    return text


def _has_offsets(condition: exp.Expression) -> bool:
    """Whether each text in a condition ends with an offset from UTC."""
    from sqlglot import exp

    return all(_OFFSET.search(text.name) for text in condition.find_all(exp.Literal) if text.is_string)
