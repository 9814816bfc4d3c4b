"""Patterns that scans test instead of others: all strings match them that match the others in an engine."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from lance_engine.expr.evaluate import evaluate
from lance_engine.expr.patterns import implied
from lance_engine.expr.tree import Column, Node

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


@settings(max_examples=examples(10), deadline=None)
@given(
    texts=TEXTS,
    pattern=st.text("aAbBkKiIsS\u212a\u00e4\u00c4%_%", max_size=5),
    kind=st.sampled_from(["like", "ilike"]),
)
def test_of_like(connection: duckdb.DuckDBPyConnection, texts: list[str], pattern: str, kind: str) -> None:
    found = _found_by(connection, f"t {kind} $2", texts, pattern)
    assert found <= _passing(implied(kind, TEXT, pattern), texts)
