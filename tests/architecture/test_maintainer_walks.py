"""The walks of CONTRIBUTING name files and functions that exist, and all files that a maintainer touches."""

from __future__ import annotations

import re

import pytest
from walk import ROOT, hops

PAGE = ROOT / "CONTRIBUTING.md"
WALKS = ["an index kind", "a statement", "a version of DuckDB"]
SOURCES = [
    path
    for top in ("engine/lance_engine", "lance_sql")
    for path in (ROOT / top).rglob("*.py")
    if not path.name.endswith("_pb2.py")
]


def knowing(pattern: str) -> set[str]:
    """The sources that know an example."""
    word = re.compile(pattern)
    return {str(path.relative_to(ROOT)) for path in SOURCES if word.search(path.read_text(encoding="utf-8"))}


def named(walk: str) -> set[str]:
    """The sources that a walk names."""
    return {hop.file for hop in hops(walk, PAGE) if hop.file.startswith(("engine/", "lance_sql/"))}


@pytest.mark.parametrize("hop", [hop for walk in WALKS for hop in hops(walk, PAGE)], ids=str)
def test_every_place_exists(hop):
    text = (ROOT / hop.file).read_text(encoding="utf-8")
    assert re.search(rf"\b{re.escape(hop.function)}\b", text), hop


def test_an_index_kind_is_known_where_the_walk_says():
    assert knowing("(?i)bloom_?filter") == named("an index kind")


def test_a_statement_is_known_where_the_walk_says():
    assert knowing('"OPTIMIZE"') == named("a statement")


def test_the_private_parts_of_duckdb_are_known_where_the_walk_says():
    """`test_engine_versions.py` finds what else uses private names."""
    versions = "lance_sql/engines/duckdb/versions.py"
    assert knowing(r"duckdb\._sources") == {versions}
    assert versions in named("a version of DuckDB")
