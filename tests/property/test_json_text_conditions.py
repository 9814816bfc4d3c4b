"""Conditions on the text of JSON documents drop those whose stored form lacks letters, and never too many."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from counts import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lance_engine import kernels
from lance_engine.dataset import DatasetVersion
from lance_engine.encodings import jsonb
from lance_engine.expr.build import conjunction, disjunction
from lance_engine.expr.tree import Column, Match, Node, Not
from lance_engine.scan.filter import FilterSteps
from lance_engine.scan.fragment import FragmentReader
from lance_engine.scan.json_tests import stored_text
from lance_engine.write.dataset import write_dataset

import lance_sql
from lance_sql.engines import pushdown

ALPHABET = 'abfnrtu001e. -_%:,"\\/{}\n\r\t\b\x01\x1fé☃true'
strings = st.text(st.sampled_from(ALPHABET), max_size=12)
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
    max_leaves=6,
)


def stored(documents: list[object]) -> tuple[list[bytes], list[str]]:
    """Documents in binary form, and their texts."""
    texts = pa.array([json.dumps(document) for document in documents], pa.large_string())
    binary = jsonb._array(jsonb.STORED, texts, *kernels.encode_jsonb(*jsonb._buffers(texts)))
    return binary.to_pylist(), jsonb.json_text(binary).to_pylist()


@settings(max_examples=examples(75), deadline=None)
@given(document=values, data=st.data())
def test_what_must_be_stored_is(document, data):
    ((binary,), (text,)) = stored([document])
    first = data.draw(st.integers(0, len(text)))
    last = data.draw(st.integers(first, min(len(text), first + 12)))
    assert stored_text(text[first:last]).encode() in binary


@pytest.mark.parametrize(
    ("piece", "certain"),
    [
        ("refused", "efused"), ("u001fabc", "abc"), ("u00", ""), ("true", ""), ("-1.5e+20", ""), ("x1", "x1"),
        ('"a":{"word', "word"), ("line\\nword", "line"), ("", ""), ("Zoë b", "Zoë b"),
    ],
)  # fmt: skip
def test_texts_that_must_be_stored(piece, certain):
    assert stored_text(piece) == certain


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


@settings(max_examples=examples(15), deadline=None)
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


@settings(max_examples=examples(20), deadline=None)
@given(
    found=st.lists(st.none() | st.binary(max_size=6).map(lambda end: b"\x40" + end) | st.binary(max_size=4)),
    wanted=st.sampled_from([b"a", b"ab", b"aab", b"\x40a"]),
    large=st.booleans(),
)
@example([b"\x40a", b"b\x40ab", b"", b"\x20aab", b"\x80aaab", b"{ab", b"\x40aa", b"\x40b"], b"aab", True)
def test_bytes_that_are_in_documents(tmp_path_factory, found, wanted, large):
    """Texts pass, which early releases stored in place of binary documents; bytes of two documents do not."""
    columns = {"value": pa.array(found, pa.large_binary() if large else pa.binary())}
    dataset = DatasetVersion(
        write_dataset(pa.table(columns), str(tmp_path_factory.mktemp("bytes") / "t.lance"))
    )
    for fragment in dataset.snapshot.fragments:
        reader = FragmentReader(dataset.snapshot, fragment)
        tests = reader.tests(pa.array([0]), {"passes": ("value", kernels.stored_json_test(wanted))})
        assert tests is not None
        passes = tests.read_range(0, reader.rows).column(0).to_pylist()
        assert passes == [
            None if value is None else not value or value[0] not in b"\x20\x40\x80" or wanted in value
            for value in found
        ]


def test_sessions_test_the_text_of_documents_first(place, monkeypatch):
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


@pytest.mark.parametrize(("pattern", "before"), [("refused", True), ("12", False)])
def test_steps_know_columns_of_json(place, pattern, before):
    schema = DatasetVersion.open(str(place / "t.lance")).snapshot.schema
    (step,) = FilterSteps(Match("contains", Column(("doc",), pa.string()), pattern), schema).ordered()
    assert step.native is None
    assert (step.before is not None) == before
