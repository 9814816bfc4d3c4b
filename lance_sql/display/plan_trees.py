"""The plans of engines as trees of steps, for pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lance_engine.base import PlanNode

#: DuckDB's names for estimates; the other details have self-explanatory names.
_ESTIMATE = "Estimated Cardinality"
#: A scan of Lance data, in the plans of either engine.
_LANCE = ("ARROW_SCAN", "PYTHON_ARROW_SCAN", "DatasetExec", "FFI_ExecutionPlan")


def tree_of_json(nodes: Iterable[Mapping[str, Any]]) -> tuple[PlanNode, ...]:
    """The steps of DuckDB's ``EXPLAIN (FORMAT JSON)``."""
    found = []
    for node in nodes:
        details = node.get("extra_info", {})
        shown = tuple(
            ("rows, about" if name == _ESTIMATE else name.lower(), _as_text(value))
            for name, value in details.items()
            if value not in ("", [], None)
        )
        title = str(node["name"]).strip().replace("_", " ").capitalize()
        is_lance = str(details.get("Function", node["name"])).strip() in _LANCE
        found.append(PlanNode(title, shown, tree_of_json(node.get("children", ())), is_lance))
    return tuple(found)


def tree_of_lines(plan: str) -> tuple[PlanNode, ...]:
    """The steps of a DataFusion plan: one per line, indented below the step that consumes its rows."""
    lines = [line for line in plan.splitlines() if line.strip()]
    return _below([(len(line) - len(line.lstrip()), line.strip()) for line in lines])


def _below(lines: list[tuple[int, str]]) -> tuple[PlanNode, ...]:
    """The trees of lines; roots have the indent of the first line."""
    if not lines:
        return ()
    found = []
    starts = [number for number, (indent, _) in enumerate(lines) if indent <= lines[0][0]]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        step, _, metrics = lines[start][1].partition(", metrics=[")
        name, _, details = step.partition(": ")
        pairs = (("", details), ("measured", metrics.removesuffix("]")))
        shown = tuple((label, text) for label, text in pairs if text)
        is_lance = any(known in name for known in _LANCE)
        found.append(PlanNode(name, shown, _below(lines[start + 1 : end]), is_lance))
    return tuple(found)


def _as_text(value: Any) -> str:
    if not isinstance(value, str):
        return ", ".join(map(str, value))
    return f"{int(value):,}" if value.isdecimal() else value
