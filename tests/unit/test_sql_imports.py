"""The modules of lance_sql import one another in one direction, imports inside functions included."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import lance_sql

ROOT = Path(lance_sql.__file__).parent


def imported(path: Path) -> set[str]:
    """The modules of lance_sql that `path` imports when it runs."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)  # modules that are imported by name
    return names


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_circles():
    modules = {module_name(path): path for path in ROOT.rglob("*.py")}
    modules.pop("lance_sql")  # the names of the public API, imported on first use
    graph = {name: imported(path) & modules.keys() - {name} for name, path in modules.items()}
    assert len(graph) > 20
    assert "lance_sql.query.dataset" in graph["lance_sql.query.catalog"]
    assert list(TopologicalSorter(graph).static_order())  # CycleError names the circle
