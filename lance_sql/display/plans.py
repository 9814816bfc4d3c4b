"""Engine plans for people: unwrapped lines in a monospaced font."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final

from lance_engine.base import legible_text

if TYPE_CHECKING:
    import pyarrow as pa

#: The columns of an EXPLAIN result in DuckDB and in DataFusion: titles, and plans.
DUCKDB_PLAN: Final = ("explain_key", "explain_value")
DATAFUSION_PLAN: Final = ("plan_type", "plan")
_FONT = "font-family: ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def plan_text(table: pa.Table) -> str | None:
    """The text of the plans in an EXPLAIN result; None for other rows."""
    if tuple(table.schema.names) not in (DUCKDB_PLAN, DATAFUSION_PLAN):
        return None
    titles, plans = (column.to_pylist() for column in table.columns)
    if not all(isinstance(text, str) for text in [*titles, *plans]):
        return None
    return "\n\n".join(
        legible_text(f"{title.replace('_', ' ')}\n{plan.rstrip()}" if len(plans) > 1 else plan.rstrip())
        for title, plan in zip(titles, plans, strict=True)
    )


def plan_html(text: str) -> str:
    """The lines of a plan for a notebook, never wrapped, whatever the style of the page."""
    style = f"{_FONT}; font-size: 13px; line-height: 1.25; white-space: pre; overflow-x: auto"
    return f'<pre style="{html.escape(style)}">{html.escape(text)}</pre>'
