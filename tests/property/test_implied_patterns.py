"""Patterns that scans test instead of others: all strings match them that match the others in an engine."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from lance_engine.expr.evaluate import evaluate
from lance_engine.expr.patterns import implied, matching
from lance_engine.expr.tree import Column, Node

from lance_sql.text.regexes import implied_pattern

TEXT = Column(("t",), pa.string())
#: Letters with cases outside of ASCII, and what has a meaning in patterns.
LETTERS = "aAbBiIkKsS\u0130\u0131\u212a\u017f\u00e4\u00c4.%_\\^$-]\n"
TEXTS = st.lists(st.text(LETTERS, max_size=6), min_size=1, max_size=40)


def _passing(node: Node, texts: list[str]) -> set[str]:
    batch = pa.record_batch({"t": pa.array(texts, pa.string())})
    return set(batch.filter(evaluate(node, batch))["t"].to_pylist())


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as connection:
        yield connection


def _found_by(
    connection: duckdb.DuckDBPyConnection, condition: str, texts: list[str], value: str
) -> set[str]:
    rows = connection.execute(f"SELECT t FROM (SELECT unnest($1) AS t) WHERE {condition}", [texts, value])
    return {text for (text,) in rows.fetchall()}


@settings(max_examples=40, deadline=None)
@given(
    texts=TEXTS,
    pattern=st.text("aAbBkKiIsS\u212a\u00e4\u00c4%_%", max_size=5),
    kind=st.sampled_from(["like", "ilike"]),
)
def test_of_like(connection: duckdb.DuckDBPyConnection, texts: list[str], pattern: str, kind: str) -> None:
    found = _found_by(connection, f"t {kind} $2", texts, pattern)
    assert found <= _passing(implied(kind, TEXT, pattern), texts)


_ATOMS = [
    "a",
    "b",
    "A",
    "\u00e4",
    ".",
    "\\.",
    "\\\\",
    "\\-",
    "%",
    "_",
    "[ab]",
    "[^a]",
    "[]a]",
    "\\d",
    "\\w",
    "\\S",
]
_REPEATS = ["", "", "", "*", "+", "?", "{2}", "{0,1}", "*?", "+?"]
REGEXES = st.tuples(
    st.sampled_from(["", "^"]),
    st.lists(st.tuples(st.sampled_from(_ATOMS), st.sampled_from(_REPEATS)), min_size=1, max_size=4),
    st.sampled_from(["", "$"]),
).map(lambda parts: parts[0] + "".join(map("".join, parts[1])) + parts[2])


@settings(max_examples=60, deadline=None)
@given(texts=TEXTS, regex=REGEXES)
def test_of_regular_expressions(connection: duckdb.DuckDBPyConnection, texts: list[str], regex: str) -> None:
    pattern = implied_pattern(regex)
    assume(pattern is not None)
    assert pattern is not None
    found = _found_by(connection, "regexp_matches(t, $2)", texts, regex)
    assert found <= _passing(matching("like", TEXT, pattern, "\\"), texts)


@pytest.mark.parametrize(
    ("regex", "pattern"),
    [
        ("abc", "%abc%"),
        ("^a+b?c%", "a%c\\%%"),
        ("x.*y{2}z$", "%x%z%"),
        ("https?://[^/]+/a_b", "%http%://%/a\\_b%"),
        ("(a|b)", None),
        ("a|b", None),
        ("(?i)a", None),
        ("\\bword", None),
        ("\\x41", None),
        ("a**", None),
        ("a{b", None),
        ("a^b", None),
        ("[[:alpha:]]a", None),
        (".*", None),
        ("", None),
        ("a\\", None),
        ("[ab", None),
    ],
)
def test_what_is_understood(regex: str, pattern: str | None) -> None:
    assert implied_pattern(regex) == pattern
