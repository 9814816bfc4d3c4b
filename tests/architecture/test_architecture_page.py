"""The page about the architecture names layers, files and functions that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from test_layers import FLOORS
from walk import MOST_STEPS, PAGE, ROOT, hops


def functions(path: Path) -> set[str]:
    """The functions of a Python file by their qualified names."""
    found = set()

    def visit(node: ast.AST, place: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                found.add(place + child.name)
                visit(child, f"{place}{child.name}.")

    visit(ast.parse(path.read_text(encoding="utf-8")), "")
    return found


def test_the_walk_is_short():
    assert 15 < len(hops("the walk")) <= MOST_STEPS


@pytest.mark.parametrize("hop", hops("the walk") + hops("the scan"), ids=str)
def test_every_hop_exists(hop):
    path = ROOT / hop.file
    assert path.is_file()
    if path.suffix == ".py":
        assert hop.function in functions(path)
    else:
        assert f'"{hop.function}"' in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("distribution", FLOORS)
def test_every_floor_is_described(distribution):
    section = PAGE.read_text(encoding="utf-8").split(f"`{distribution}`, from top to bottom")[1]
    rows = re.findall(r"^\| (`.*?) \|", section.split("\n\n")[1], re.MULTILINE)
    described = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    packages = {name.partition(".")[0] for name in FLOORS[distribution].split()} - {"__init__"}
    assert described == packages, "docs/architecture.md: one table for each list in test_layers.py"


def test_sizes_are_about_right():
    """The table of packages and lines is not older than a tenth of the code."""
    table = PAGE.read_text(encoding="utf-8").split("<!-- sizes -->")[1].split("\n\n")[0]
    root, seen = "", set()
    for name, files, lines in re.findall(r"^\| (.+?) \| (\d+) \| ([\d,]+) \|", table, re.MULTILINE):
        bold = re.fullmatch(r"\*\*`(.+)`\*\*", name)
        root = bold[1] if bold else root
        if name == "**all**":
            continue
        paths = [path for path in (ROOT / root).rglob("*") if path.suffix in (".py", ".cpp", ".hpp", ".java")]
        if not bold and name.startswith("`"):
            paths = [path for path in paths if path.relative_to(ROOT / root).parts[0] == name.strip("`")]
        elif not bold:
            paths = [path for path in paths if path.parent == ROOT / root]
        paths = [path for path in paths if "pb" not in path.parts and path.name != "_kernels.pyi"]
        known = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
        assert abs(known - int(lines.replace(",", ""))) <= max(known / 10, 100), f"{root} {name}: {known}"
        assert abs(len(paths) - int(files)) <= max(len(paths) / 10, 2), f"{root} {name}: {len(paths)} files"
        seen.add((root, name))
    assert len(seen) > 40
