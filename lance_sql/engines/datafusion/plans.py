"""The plans of DataFusion as trees of steps, for pictures."""

from __future__ import annotations

from lance_engine.base import PlanNode

from lance_sql.engines.datafusion.versions import is_scan, split_step


def tree_of_lines(plan: str) -> tuple[PlanNode, ...]:
    """The steps of a plan: one per line, indented below the step that consumes its rows."""
    lines = [line for line in plan.splitlines() if line.strip()]
    return _below([(len(line) - len(line.lstrip()), line.strip()) for line in lines])


def _below(lines: list[tuple[int, str]]) -> tuple[PlanNode, ...]:
    """The trees of lines; roots have the indent of the first line."""
    if not lines:
        return ()
    trees = []
    starts = [number for number, (indent, _) in enumerate(lines) if indent <= lines[0][0]]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        name, details, metrics = split_step(lines[start][1])
        shown = tuple((label, text) for label, text in (("", details), ("measured", metrics)) if text)
        trees.append(PlanNode(name, shown, _below(lines[start + 1 : end]), is_scan(name)))
    return tuple(trees)
