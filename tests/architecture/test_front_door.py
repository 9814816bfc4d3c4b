"""`lance_sql` uses the interfaces of `lance_engine`, not its other modules."""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path

import pytest
from test_layers import ROOTS, modules

#: What `lance_sql` may import from `lance_engine`. This list only shrinks: add other names of the engine to
#: the table of an interface (``lazy_names`` in its file), not to this list.
INTERFACES = {
    "base", "dataset", "errors", "expr", "index", "inspection", "io", "operations", "scan", "search", "table",
    "write",
}  # fmt: skip
#: Modules whose functions are called with the name of the module.
MODULES = {"expr.build"}


@cache
def engine_imports(path: Path) -> frozenset[tuple[str, str]]:
    """The (module, name) pairs that a file imports from the engine, for type checkers too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "lance_engine":
            found |= {(str(node.module), alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {(a.name, "") for a in node.names if a.name.split(".")[0] == "lance_engine"}
    return frozenset(found)


def module_of(module: str, name: str) -> str:
    """The module that an import statement needs, without the name of the distribution."""
    inner = f"{module}.{name}"
    used = inner if inner in modules("lance_engine") and not is_name_of(module, name) else module
    return used.removeprefix("lance_engine").removeprefix(".")


@cache
def table(interface: str) -> dict[str, tuple[str, str]]:
    """name -> (module, name there): the lazy names of an interface."""
    for node in ast.walk(ast.parse(modules("lance_engine")[interface].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "lazy_names":
            entries = [
                (f"lance_engine.{module}", *entry.partition("=")[::2])
                for module, names in ast.literal_eval(node.args[1]).items()
                for entry in names.split()
            ]
            return {other or own: (module, own) for module, own, other in entries}
    return {}


def is_name_of(module: str, name: str) -> bool:
    return name in table(module)


def used_by(package: Path) -> set[str]:
    return {module_of(*pair) for path in package.rglob("*.py") for pair in engine_imports(path)}


def test_lance_sql_imports_interfaces_only() -> None:
    used = used_by(ROOTS["lance_sql"])
    assert used == INTERFACES | MODULES, "add names to the table of an interface"


@pytest.mark.parametrize("interface", sorted(INTERFACES - {"dataset", "errors"}))
def test_type_checkers_see_the_names_of_an_interface(interface: str) -> None:
    name = f"lance_engine.{interface}"
    seen = {}
    for node in ast.walk(ast.parse(modules("lance_engine")[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.If):
            for statement in node.body:
                assert isinstance(statement, ast.ImportFrom)
                seen |= {a.asname or a.name: (statement.module, a.name) for a in statement.names}
    assert seen == table(name)
    assert seen
    for exported, (module, own) in seen.items():
        assert getattr(importlib.import_module(name), exported) is getattr(
            importlib.import_module(module), own
        )


@pytest.mark.parametrize("interface", sorted(INTERFACES - {"dataset", "errors"}))
def test_no_name_of_an_interface_is_also_a_module(interface: str) -> None:
    # An import of the module would set the name.
    name = f"lance_engine.{interface}"
    assert [exported for exported in table(name) if f"{name}.{exported}" in modules("lance_engine")] == []


@pytest.mark.parametrize("interface", sorted(INTERFACES - {"dataset", "errors"}))
def test_the_engine_itself_imports_from_modules(interface: str) -> None:
    # Lazy names would hide which module imports which.
    name = f"lance_engine.{interface}"
    users = [
        module
        for module, path in modules("lance_engine").items()
        for imported, own in engine_imports(path)
        if imported == name and own in table(name)
    ]
    assert users == []


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match=r"module 'lance_engine.scan' has no attribute 'nothing'"):
        importlib.import_module("lance_engine.scan").nothing  # noqa: B018
