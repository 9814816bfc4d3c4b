"""Imports run downward only: by package and by module, imports inside functions included.

Imports for type checkers alone (under ``if TYPE_CHECKING``) are exempt. A module that a string names, to
be imported at first use, counts as imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import lance_engine
import pytest

import lance_sql

#: The floors of each distribution, from top to bottom. A floor may import those below it. Parts of one line
#: stand side by side and may not import one another. A dotted name is a floor inside a package; the name of
#: the package then means the rest of it.
FLOORS = {
    "lance_sql": """
        __init__
        cli
        report  shell  notebook  dbapi
        polars  torch  dask  huggingface  dbt  ray  daft  otel  sqlalchemy
        api  spark
        distributed_write
        session
        sampling
        dataset
        arrow_dataset
        statements
        duckdb  datafusion
        installed
        pushdown
        searches
        engines.start
        engines.duckdb  engines.datafusion
        engines
        catalog
        syntax
        text
        types
        display  progress  full_text  scratch  pushdown_settings
        errors  other_names
    """,
    "lance_engine": """
        base
        dataset
        inspection
        operations
        search
        write
        constraints
        scan
        index
        table
        progress
        distinct
        file
        fetch
        expr
        encodings
        format  io
        metrics
        events
        schema_limits
        blob_type
        schema_tree
        logical_types
        cache
        finite
        lazy  compute
        interrupts
        kernels  lru_cache  tasks  weak_identity
        machine
        plan_picture  public
        errors  arrow_values  python_values
        legible  spelling
        __init__
    """,
}

#: What each distribution never imports, wherever it is.
FOREIGN = {
    "lance_sql": ["lance"],
    "lance_engine": ["lance_sql", "duckdb", "datafusion", "pyspark", "lance"],
}

ROOTS = {
    "lance_sql": Path(lance_sql.__file__).parent,
    "lance_engine": Path(lance_engine.__file__).parent,
}


@cache
def modules(distribution: str) -> dict[str, Path]:
    """The file of each module, by name."""
    root = ROOTS[distribution]
    found = {}
    for path in root.rglob("*.py"):
        parts = path.relative_to(root.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imported(path: Path) -> frozenset[str]:
    """The names of what may be modules that the file at `path` imports when it runs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where they lead"
            names.add(str(node.module))
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            names.add(node.value)
    return frozenset(names)


def graph(distribution: str) -> dict[str, set[str]]:
    """Each module with those of its distribution that it imports; a package if nothing inside of it is."""
    found = {}
    for name, path in modules(distribution).items():
        targets = (imported(path) & modules(distribution).keys()) - {name}
        inner = {target.rpartition(".")[0] for target in targets}
        empty = {target for target in targets & inner if not imported(modules(distribution)[target])}
        found[name] = targets - empty
    return found


def floors(distribution: str) -> dict[str, int]:
    """Floor -> its height, the top one 0."""
    lines = [line.split() for line in FLOORS[distribution].strip().splitlines()]
    return {name: height for height, line in enumerate(lines) for name in line}


def floor_of(distribution: str, module: str) -> str:
    """The floor that a module belongs to: the longest name in the list that it begins with."""
    inside = module.removeprefix(distribution).removeprefix(".") or "__init__"
    known = floors(distribution)
    while inside and inside not in known:
        inside = inside.rpartition(".")[0]
    assert inside, f"{module} is on no floor: add its package to the list"
    return inside


def upward(distribution: str) -> Iterator[str]:
    heights = floors(distribution)
    for name, targets in graph(distribution).items():
        own = floor_of(distribution, name)
        for target in targets:
            other = floor_of(distribution, target)
            if own != other and heights[other] <= heights[own]:
                yield f"{name} ({own}) imports {target} ({other})"


@pytest.mark.parametrize("distribution", FLOORS)
def test_imports_run_downward(distribution):
    assert sorted(upward(distribution)) == []


@pytest.mark.parametrize("distribution", FLOORS)
def test_no_module_imports_itself_by_way_of_others(distribution):
    assert list(TopologicalSorter(graph(distribution)).static_order())  # CycleError names the circle


def test_packages_of_lance_sql_do_not_import_each_other():
    """A floor inside a package may be below others; the packages are still in one order."""
    packages: dict[str, set[str]] = {}
    for name, targets in graph("lance_sql").items():
        own = ".".join(name.split(".")[:2])
        others = {".".join(target.split(".")[:2]) for target in targets}
        packages.setdefault(own, set()).update(others - {own})
    assert list(TopologicalSorter(packages).static_order())  # CycleError names the circle


@pytest.mark.parametrize("distribution", FLOORS)
def test_every_floor_exists(distribution):
    known = modules(distribution)
    assert {floor_of(distribution, name) for name in known} == set(floors(distribution))


@pytest.mark.parametrize("distribution", FLOORS)
def test_nothing_foreign_is_imported(distribution):
    for name, path in modules(distribution).items():
        packages = {module.partition(".")[0] for module in imported_statements(path)}
        assert packages.isdisjoint(FOREIGN[distribution]), name


@cache
def imported_statements(path: Path) -> frozenset[str]:
    """The modules in the import statements of a file, those for type checkers included."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    return frozenset(
        name
        for node in nodes
        for name in (
            [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    )


def test_imports_inside_functions_count(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import lance_sql.typed\n"
        "def later():\n    from lance_sql.text import tokens\n    return 'lance_sql.named'\n"
    )
    found = imported(path)
    assert {"lance_sql.text.tokens", "lance_sql.named"} <= found
    assert "lance_sql.typed" not in found


def test_the_graph_is_complete():
    assert "lance_sql.catalog.dataset" in graph("lance_sql")["lance_sql.catalog.catalog"]
    assert "lance_engine.scan.scanner" in graph("lance_engine")["lance_engine.dataset"]
