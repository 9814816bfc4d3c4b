"""What a new version of an engine may change stands in one file an engine, and only there.

These are private names, names that only some versions have, modules that may be missing, classes by name,
classes of the JVM, and what plans and messages look like.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from test_layers import ROOTS, modules

from lance_sql.types.kinds import KINDS

ENGINES = {"duckdb", "_duckdb", "datafusion", "pyspark", "py4j"}
VERSIONS = {
    "duckdb": "engines/duckdb/versions.py",
    "datafusion": "engines/datafusion/versions.py",
    "spark": "spark/versions.py",
}
#: What other libraries have, with the reason why it may be used.
OTHERS = {
    "_getframe",  # the caller's variables: documented in `sys`
    "_replace", "_fields",  # documented members of named tuples
    "_curr", "_prev",  # the parser of sqlglot, which is pinned to one major version: in `syntax/source.py`
}  # fmt: skip


def relative(path: Path) -> str:
    return str(path.relative_to(ROOTS["lance_sql"]))


SOURCES = [path for path in modules("lance_sql").values() if relative(path) not in VERSIONS.values()]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def own_names() -> frozenset[str]:
    """Every name that code of ours defines, or may use: functions, classes, variables and attributes."""
    names = set()
    for distribution in ROOTS:
        for path in modules(distribution).values():
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.FunctionDef | ast.ClassDef):
                    names.add(node.name)
                elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
                    names.add(node.id if isinstance(node, ast.Name) else node.attr)
    return frozenset(names | OTHERS)


def called(node: ast.AST) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def compares_class(node: ast.Compare) -> bool:
    """Whether this is such as ``type(x).__name__ == "Name"``."""
    return text_of(node.comparators[0]) != "" and bool(
        re.fullmatch(r"type\(.*\)\.__name__", ast.unparse(node.left))
    )


def text_of(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def foreign(path: Path) -> Iterator[str]:
    """What a file uses that belongs into a `versions.py`."""
    uses_engine = bool(engines_of(path))
    for node in ast.walk(parsed(path)):
        at = f"{path.name}:{getattr(node, 'lineno', 0)}: "
        if isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr):
            if node.attr not in own_names():
                yield f"{at}private attribute {node.attr}"
        elif isinstance(node, ast.Attribute) and node.attr == "__version__":
            yield f"{at}comparison of versions"
        elif called(node) in ("hasattr", "getattr") and isinstance(node, ast.Call):
            name = text_of(node.args[1])
            if re.match(r"_[a-z]", name) and name not in own_names():
                yield f"{at}private attribute {name}"
            asks = called(node) == "hasattr" or len(node.args) == 3
            if asks and uses_engine and name and not name.startswith("_") and name not in own_names():
                yield f"{at}asks for {name}"
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            private = [name for name in names if name and re.search(r"(^|\.)_[a-z]", name)]
            if private and private[0].split(".")[0] in ENGINES:
                yield f"{at}private module {private[0]}"
        elif isinstance(node, ast.Try):
            handled = {text for handler in node.handlers for text in ast.dump(handler).split("'")}
            if handled & {"ImportError", "ModuleNotFoundError"}:
                for inner in node.body:
                    if isinstance(inner, ast.ImportFrom) and str(inner.module).split(".")[0] in ENGINES:
                        yield f"{at}module that may be missing: {inner.module}"
        elif isinstance(node, ast.Compare) and uses_engine and compares_class(node):
            yield f"{at}class by name: {ast.unparse(node)}"
        if "org.apache." in text_of(node) or (isinstance(node, ast.Attribute) and node.attr == "apache"):
            yield f"{at}class of the JVM"


def engines_of(path: Path) -> set[str]:
    """The engines that a file imports, or whose folder it is in."""
    imported = {
        name.split(".")[0]
        for node in ast.walk(parsed(path))
        for name in (
            [str(node.module)]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }
    inside = relative(path).startswith(("engines/", "installed/", "spark/"))
    return (imported & ENGINES) | ({"folder"} if inside else set())


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_nothing_else_knows_versions(path: Path) -> None:
    assert list(foreign(path)) == []


def patterns(path: Path) -> set[str]:
    """The patterns, and other words with capitals, of a list of what we rely on."""
    texts = {text_of(node) for node in ast.walk(parsed(path))}
    return {text for text in texts if len(text) > 3 and re.search(r"[A-Z\\]", text)}


@pytest.mark.parametrize("engine", VERSIONS)
def test_nothing_else_reads_plans_and_messages(engine: str) -> None:
    """The names of nodes, the patterns of plans and of messages stand in no other file."""
    listed = ROOTS["lance_sql"] / VERSIONS[engine]
    documented = {text for node in ast.walk(parsed(listed)) if (text := docstring(node))}
    relied = patterns(listed) - documented
    assert len(relied) > 5
    folders = {"spark": ["spark"]}.get(engine, ["engines", f"installed/{engine}", "display"])
    for path in SOURCES:
        if relative(path).startswith(tuple(folders)):
            again = relied & {text_of(node) for node in ast.walk(parsed(path))}
            assert again == set(), relative(path)


def docstring(node: ast.AST) -> str | None:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        return ast.get_docstring(node, clean=False)
    return None


def test_types_of_duckdb_are_named_by_the_types() -> None:
    """The names that only DuckDB has stand in `lance_sql/types`; results and filters ask there."""
    rare = {name.lower() for name in KINDS if re.search(r"HUGE|BIGNUM|_NS$|WITH TIME|^U[A-Z]+INT$", name)}
    assert len(rare) >= 9
    for path in SOURCES:
        if not relative(path).startswith("types/"):
            spelled = {text_of(node).lower() for node in ast.walk(parsed(path))} & rare
            assert spelled == set(), relative(path)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("from duckdb._sources import nodes", "private module duckdb._sources"),
        ("import duckdb\nduckdb.connect()._impl", "private attribute _impl"),
        ("import pyspark\nif pyspark.__version__ > '4': pass", "comparison of versions"),
        ("import duckdb\nhasattr(duckdb.sql(''), 'to_arrow_reader')", "asks for to_arrow_reader"),
        ("def f(frame): return getattr(frame, '_jdf', None)", "private attribute _jdf"),
        ("try:\n    from pyspark.sql import x\nexcept ImportError: pass", "module that may be missing"),
        ("import duckdb\nassert type(1).__name__ == 'Binary'", "class by name"),
        ("def f(jvm): return jvm.org.apache.spark", "class of the JVM"),
    ],
)
def test_the_test_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, problem: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(code)
    monkeypatch.setitem(ROOTS, "lance_sql", tmp_path)
    assert any(problem in one for one in foreign(path)), list(foreign(path))
