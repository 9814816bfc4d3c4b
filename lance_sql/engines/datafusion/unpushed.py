"""Plans that pass no conditions to scans, for conditions that DataFusion cannot pass.

DataFusion converts the conditions of a scan to pyarrow expressions. A NULL among them becomes a scalar, and
``NULL AND x = 1`` (also what ``x BETWEEN NULL AND 1`` and ``x NOT IN (NULL, 1)`` become) the operation of a
scalar with an expression, which pyarrow does not have. DataFusion only finds out when it plans the scan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lance_sql.engines.errors import NULL_OPERAND

if TYPE_CHECKING:
    import pyarrow as pa
    from datafusion import SessionContext

#: The rule that passes conditions to scans.
_RULE: Final = "push_down_filter"


def combines_null(error: Exception) -> bool:
    """Whether DataFusion could not plan a scan because its condition combines NULL with others."""
    return NULL_OPERAND.search(str(error)) is not None


def explains_error(plan: pa.Table) -> bool:
    """Whether the result of EXPLAIN has this error in the place of a plan."""
    return any(NULL_OPERAND.search(text) is not None for text in plan.column(1).to_pylist())


def unpushed(context: SessionContext) -> Any:
    """A context with the tables, functions and settings of `context`, whose plans test all conditions
    themselves; None if this version of DataFusion has no such contexts."""
    if not hasattr(context, "remove_optimizer_rule"):
        return None
    # The method with which a context can be copied. The copy also reads files by path, but it only gets
    # statements that the original context has planned, up to their scans.
    copy = context.enable_url_table()
    return copy if copy.remove_optimizer_rule(_RULE) else None
