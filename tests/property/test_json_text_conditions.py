"""Conditions on the text of JSON documents."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from lance_engine.dataset import DatasetVersion
from lance_engine.expr.build import conjunction, disjunction
from lance_engine.expr.tree import Column, Match, Node, Not
from lance_engine.scan.filter import FilterSteps
from lance_engine.write.dataset import write_dataset

import lance_sql
from lance_sql.engines import pushdown

WORDS = ["refused", "word\nrefused", "\refused", "\x1fuse", "refuse", "used", "true", "Zoë", '"quoted" text']
PATTERNS = ["refused", "efused", "001fuse", "Zoë", "quoted", "true", '"d":"', "nref", "12", "word"]


def documents(count: int) -> list[str | None]:
    found: list[str | None] = []
    for row in range(count):
        word, key = WORDS[row % len(WORDS)], WORDS[row // 7 % len(WORDS)]
        text = json.dumps(
            {"d": word, key: row, "list": [row % 5, word * (row % 3)]}, ensure_ascii=row % 2 == 0
        )
        found.append(None if row % 11 == 3 else text)
    return found


@pytest.fixture(scope="module", params=["2.1", "2.2"])
def place(request, tmp_path_factory) -> Path:
    found: Path = tmp_path_factory.mktemp("texts")
    texts = pa.array(documents(3_000), pa.json_())
    nested = pa.StructArray.from_arrays([texts], fields=[pa.field("doc", pa.json_())])
    table = pa.table({"id": range(3_000), "doc": texts, "st": nested})
    options = {"max_rows_per_file": 1_100, "data_storage_version": request.param}
    DatasetVersion(write_dataset(table, str(found / "t.lance"), **options)).delete("id % 19 = 2")
    return found


def expected(text: str, node: Node) -> bool:
    match node:
        case Match("contains", _, pattern):
            return pattern in text
        case Match("starts_with", _, pattern):
            return text.startswith(pattern)
        case Match("like", _, pattern):
            wanted = re.escape(pattern).replace("%", ".*").replace("_", ".")
            return re.fullmatch(wanted, text, re.DOTALL) is not None
        case Not(inner):
            return not expected(text, inner)
        case _:
            tests = [expected(text, part) for part in node.children]
            return all(tests) if type(node).__name__ == "And" else any(tests)


@settings(max_examples=examples(7), deadline=None)
@given(data=st.data())
def test_rows_that_pass(place, data):
    dataset = DatasetVersion.open(str(place / "t.lance"))
    parts = data.draw(st.sampled_from([("doc",), ("st", "doc")]))
    column = Column(parts, pa.string())

    def match() -> Node:
        pattern = data.draw(st.sampled_from(PATTERNS))
        kind = data.draw(st.sampled_from(["contains", "like", "starts_with", "not"]))
        if kind == "not":
            return Not(Match("contains", column, pattern))
        return Match(kind, column, f"%{pattern[:2]}_{pattern[3:]}%" if kind == "like" else pattern)

    node = data.draw(st.sampled_from([conjunction, disjunction]))([match(), match()])
    node = data.draw(st.sampled_from([node, match()]))
    rows = dataset.scan(["id", "doc"]).to_table().to_pylist()
    found = dataset.scan(["id"], node).to_table()["id"].to_pylist()
    assert found == [row["id"] for row in rows if row["doc"] is not None and expected(row["doc"], node)]


def test_sessions_test_the_text_of_documents(place, monkeypatch):
    monkeypatch.setattr(pushdown, "_SMALL_BYTES", 0)
    monkeypatch.setattr(pushdown, "_SELECTIVE_SHARE", 1)
    text = "SELECT id, doc FROM t WHERE {} ORDER BY id"
    for engine in ("duckdb", "datafusion"):
        with lance_sql.connect(place, engine=engine) as session:
            rows = session.sql("SELECT id, doc FROM t ORDER BY id").fetchall()
            result = session.sql(text.format("doc LIKE '%001fuse%' AND id >= 0"))
            found = result.fetchall()
            assert found == [row for row in rows if row[1] is not None and "001fuse" in row[1]]
            assert found
            (scan,) = result.metrics["scans"]
            assert "001fuse" in scan["filter"]
            assert scan["rows_out"] == len(found)
            # Other comparisons of documents mean what the engine says.
            result = session.sql(text.format("doc = '{}' OR doc LIKE '%001fuse%'"))
            assert result.fetchall() == found
            assert "001fuse" not in str(result.metrics["scans"][0]["filter"])


def test_kernels_do_not_test_documents(place):
    schema = DatasetVersion.open(str(place / "t.lance")).snapshot.schema
    match = Match("contains", Column(("doc",), pa.string()), "refused")
    assert not FilterSteps(match, schema).are_native
