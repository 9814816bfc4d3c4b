"""Plans that pass no conditions to scans, for conditions that DataFusion cannot pass.

DataFusion converts the conditions of a scan to pyarrow expressions. A NULL among them becomes a scalar, and
``NULL AND x = 1`` (also what ``x BETWEEN NULL AND 1`` and ``x NOT IN (NULL, 1)`` become) the operation of a
scalar with an expression, which pyarrow does not have. DataFusion only finds out when it plans the scan.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from datafusion import SessionContext

from lance_sql.engines.datafusion.versions import MESSAGES, without_scan_conditions
from lance_sql.text.kinds import Does, kind_of
from lance_sql.text.tokens import tokenize

if TYPE_CHECKING:
    import pyarrow as pa


def combines_null(error: Exception) -> bool:
    """Whether DataFusion could not plan a scan because its condition combines NULL with others."""
    return MESSAGES.null_operand.search(str(error)) is not None


def explains_error(plan: pa.Table) -> bool:
    """Whether the result of EXPLAIN has this error in the place of a plan."""
    return any(MESSAGES.null_operand.search(text) is not None for text in plan.column(1).to_pylist())


def planning_again(context: SessionContext) -> Callable[..., Any]:
    """``context.sql`` of a user's context, which plans such statements again; it keeps no reference to it."""
    this = weakref.ref(context)

    @functools.wraps(SessionContext.sql)
    def sql(query: str, *arguments: Any, **options: Any) -> Any:
        context = this()
        try:
            frame = SessionContext.sql(context, query, *arguments, **options)
            if _may_combine_null(query, options.get("param_values")):
                frame.execution_plan()
        except Exception as error:
            copy = None if context is None or not combines_null(error) else without_scan_conditions(context)
            if copy is None:
                raise
            return copy.sql(query, *arguments, **options)
        return frame

    return sql


def _may_combine_null(text: str, params: Mapping[str, Any] | None) -> bool:
    """Whether a query has a NULL that may become part of a condition; a cheap test."""
    tokens = tokenize(text)
    if not kind_of(tokens) & Does.QUERY:
        return False
    words = [token.upper for token in tokens if token.kind == "word"]
    return any(value is None for value in (params or {}).values()) or any(
        word == "NULL" and before not in ("IS", "NOT") for before, word in itertools.pairwise(words)
    )
