"""The plans of DuckDB as trees of steps, for pictures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lance_engine.base import PlanNode

from lance_sql.engines.duckdb.versions import ESTIMATE, Step


def tree_of_steps(steps: Iterable[Step]) -> tuple[PlanNode, ...]:
    """The steps for a picture."""
    return tuple(
        PlanNode(
            step.name.replace("_", " ").capitalize(),
            tuple(
                ("rows, about" if name == ESTIMATE else name.lower(), _as_text(value))
                for name, value in step.details.items()
                if value not in ("", [], None)
            ),
            tree_of_steps(step.children),
            step.is_scan,
        )
        for step in steps
    )


def _as_text(value: Any) -> str:
    if not isinstance(value, str):
        return ", ".join(map(str, value))
    return f"{int(value):,}" if value.isdecimal() else value
