"""Of JSON documents, scans give DuckDB the members that a statement uses: what statements read, and that they
answer as those do that get whole documents.
"""

from __future__ import annotations

import json
import random
import string

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from used_parts import read_by, with_all, write_in_halves

import lance_sql
from lance_sql.session import struct_parts
from lance_sql.text.json_members import member_path
from lance_sql.text.tokens import tokenize

KEYS = ["a", "b", "user", "id", "A", "ä", "a b", "$", 'x"y\\z\n']
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
)
values = st.recursive(
    scalars,
    lambda below: st.one_of(
        st.lists(below, max_size=3), st.dictionaries(st.sampled_from(KEYS), below, max_size=5)
    ),
    max_leaves=12,
)
documents = st.one_of(
    st.none(), st.one_of(values, st.dictionaries(st.sampled_from(KEYS), values, max_size=6)).map(json.dumps)
)

#: Expressions of a document, and the members that they need.
EXPRESSIONS = {
    "doc->>'$.a'": "a",
    "doc->>'a'": "a",
    "t.doc->>'$.user.id'": "user.id",
    "(doc->>'$.user.a.b') || 'x'": "user.a.b",
    "doc->>'$.a[0]'": "a",
    "doc->>'$.a[#-1].b'": "a",
    "doc->>'$.a[*].b'": "a",
    "doc->'$.user'": "user",
    "doc->'b'": "b",
    "json_extract(doc, '$.a.b')": "a.b",
    "json_extract_string(doc, '$.user')": "user",
    "JSON_TYPE(doc, '$.a')": "a",
    "json_array_length(\"doc\", '$.a')": "a",
    "json_exists(doc, '$.user.id')": "user.id",
    "json_keys(doc, '$.user')": "user",
    "json_value(t.doc, '$.a')": "a",
    "doc->>'$.a' = 'x' OR doc->>'$.a' IS NULL": "a",
    "CASE WHEN doc->>'a' LIKE 'x%' THEN 1 ELSE 2 END": "a",
    "'x' <> doc->>'$.a'": "a",
    "doc->>'$.a' IN ('x', 'true', '1')": "a",
    "doc->>'$.a' NOT BETWEEN 'a' AND doc->>'$.a'": "a",
    "doc->>'$.b' >= 'b' AND 'c' < doc->>'$.b'": "b",
    "coalesce(doc->>'$.b', doc->>'b')": "b",
}
#: Those that need all of it, or may.
WHOLE = [
    "doc",
    "doc::VARCHAR",
    "length(doc::VARCHAR) || (doc->>'$.a')",
    "doc->>'$'",
    "doc->>'$.*'",
    "doc->>'$..a'",
    "doc->>'$.\"a b\"'",
    "doc->>'/user/id'",
    "doc->>'$.aä'",
    "doc->>'a b'",
    "doc->>0",
    "doc->>('$' || '.a')",
    "doc->>'$.a'::VARCHAR",
    "json_extract(doc, ['$.a', '$.b'])",
    "json_extract(doc, '$.' || 'a')",
    "json_type(doc)",
    "json_keys(doc)",
    "json_array_length(doc)",
    "json(doc)",
    "json_structure(doc)",
    "json_contains(doc, '1')",
    "json_merge_patch(doc, '{\"a\": 7}')",
    "json_extract(json_merge_patch('{\"a\": 7}', doc), '$.a')",
    "(doc)->>'$.a'",
]


def answers(session: lance_sql.Connection, text: str) -> list[object]:
    return session.sql(text).fetchall()


def fill(place, texts: list[str | None]) -> None:
    table = pa.table({"id": pa.array(range(len(texts))), "doc": pa.array(texts, pa.json_())})
    write_in_halves(place, table, "doc", "JSON")


@pytest.fixture(autouse=True)
def always(monkeypatch):
    monkeypatch.setattr(struct_parts, "_LEAST_BYTES", 0)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("documents")
    number = random.Random(3)
    texts = [None, "null", '[1, {"a": 2}]', "3.5", '"a"', "{}"]
    for _ in range(120):
        some = number.choice
        found = {
            "a": some([1, "x", None, True, [1, {"b": 2}], {"b": [some([1.5, "y"])]}, 1e300, -0.0, 'ä\n"\\']),
            "user": some([{"id": 1, "a": {"b": "x"}, "name": "n" * 30}, [], "u", {"id": None}]),
            "b": some(["a", "b", "c"]),
            "other": {"long": "text" * 20},
        }
        texts.append(json.dumps({key: found[key] for key in found if number.random() < 0.8}))
    fill(place, texts)
    return place


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("column", ["doc", "later"])
def test_only_used_members_become_text(place, expression, column, monkeypatch):
    used = expression.replace("doc", column)
    text = f"SELECT id, {used} AS v, {used} FROM t WHERE id > 2 ORDER BY ({used}), id"
    found, plain, read = with_all(place, monkeypatch, text)
    assert found == plain
    assert any(row[1] is not None for row in found[0])
    assert read == [f"{column}.{EXPRESSIONS[expression]}"]


@pytest.mark.parametrize("expression", WHOLE)
def test_whole_documents_where_others_may_be_used(place, expression, monkeypatch):
    text = f"SELECT id, {expression} AS v FROM t WHERE id NOT IN (SELECT 2) ORDER BY id"
    found, plain, read = with_all(place, monkeypatch, text)
    assert found == plain
    assert read == ["doc"]


def test_members_of_several_expressions(place, monkeypatch):
    text = "SELECT doc->>'$.user.id', json_type(doc, '$.user'), doc->>'b' AS b FROM t ORDER BY b, 1, 2"
    found, plain, read = with_all(place, monkeypatch, text)
    assert found == plain
    assert read == ["doc.b", "doc.user", "doc.user.id"]
    both, plain, read = with_all(place, monkeypatch, "SELECT doc->>'$.b', doc FROM t ORDER BY id")
    assert both == plain
    assert read == ["doc"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t WHERE doc->>'$.b' = 'b' ORDER BY id",
        "SELECT count(*) FROM (SELECT doc FROM t) AS t WHERE doc->>'$.b' = 'b'",
        "WITH c AS (SELECT doc->>'$.b' AS doc FROM t) SELECT doc, count(*) FROM c GROUP BY doc ORDER BY doc",
        "SELECT count(x.doc->>'$.b') FROM t x JOIN t y ON x.doc->>'$.b' = y.doc->>'$.b'",
        "SELECT DISTINCT doc->>'$.b' FROM t ORDER BY 1",
        "SELECT doc->>'$.b', count(*) FROM t GROUP BY ALL HAVING count(*) > 1 ORDER BY ALL",
        "SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY doc->>'$.b' ORDER BY id) = 1 ORDER BY id",
        "SELECT list_transform([1, 2], lambda doc: doc + 1), doc->>'$.b' FROM t ORDER BY id",
        "SELECT doc->>'$.b' AS doc FROM t ORDER BY doc, id",
        "SELECT count(*) FROM t WHERE NOT doc->>'$.b' = 'b'",
        "SELECT id FROM t WHERE doc IS NULL OR doc->>'$.b' IS NULL ORDER BY id",
    ],
)
def test_queries_answer_as_over_whole_documents(place, text, monkeypatch):
    found, plain, _ = with_all(place, monkeypatch, text)
    assert found == plain
    assert found[0]


def test_macros_with_names_of_functions_get_whole_documents(place):
    text = "SELECT json_extract_string(doc, '$.b') FROM t ORDER BY id"
    with lance_sql.connect(place) as session:
        session.sql("SET threads = 1")
        assert read_by(session, text)[1] == ["doc.b"]
        session.sql("CREATE MACRO json_extract_string(d, p) AS length(d::VARCHAR)")
        assert read_by(session, text)[1] == ["doc"]
        lengths = answers(session, "SELECT length(doc::VARCHAR) FROM t ORDER BY id")
        assert answers(session, text) == lengths
    with lance_sql.connect(duckdb=duckdb.connect()) as session:  # anybody may create macros there
        assert read_by(session, f"SELECT json_extract(doc, '$.b') FROM '{place / 't.lance'}'")[1] == ["doc"]


@given(
    st.lists(documents, min_size=2, max_size=12),
    st.lists(st.sampled_from(sorted(EXPRESSIONS)), min_size=1, max_size=4),
)
@settings(max_examples=40, deadline=None)
def test_any_documents(tmp_path_factory, texts, expressions):
    place = tmp_path_factory.mktemp("any")
    fill(place, texts)
    selected = ", ".join(f"({used}) AS v{number}" for number, used in enumerate(expressions))
    text = f"SELECT id, {selected} FROM t ORDER BY id"
    with pytest.MonkeyPatch.context() as patch, lance_sql.connect(place) as session:
        patch.setattr(struct_parts, "_LEAST_BYTES", 0)
        found = answers(session, text)
        assert read_by(session, text)[1] == sorted({f"doc.{EXPRESSIONS[used]}" for used in expressions})
        patch.setattr(struct_parts, "_LEAST_BYTES", 1 << 60)
        assert found == answers(session, text)


@pytest.mark.parametrize("length", range(40))
def test_strings_of_every_length_come_back(tmp_path, length):
    number = random.Random(length)
    alphabet = string.ascii_letters + string.digits
    texts = []
    for special in ["", '"', "\\", "\n", "\x1f", "ä", "😀", "\x7f", " ", "~"]:
        for place in range(0, length + 1, 3):
            plain = "".join(number.choices(alphabet, k=length))
            texts.append(plain[:place] + special + plain[place + len(special) :])
    column = pa.array([json.dumps({text: text}) for text in texts], pa.json_())
    lance_sql.write(pa.table({"doc": column}), tmp_path / "t.lance")
    found = lance_sql.open(tmp_path / "t.lance").scan(columns=["doc"]).to_table()["doc"].to_pylist()
    assert [json.loads(text) for text in found] == [{text: text} for text in texts]


@pytest.mark.parametrize(
    "text",
    [
        "x || doc->>'a'",
        "NOT doc->'a'",
        "1 + doc->>'a'",
        "doc->>'a' || 'x'",
        "doc->>'a' -> 'b'",
        "doc->>'a'->>'b'",
        "doc->'a' = 'x'",
        "doc->'a'->'b'",
        "doc ->> 'a' <-> 'b'",
        "x -> doc->>'a'",
        "x ->> doc->>'a'",
        "x.json_extract(doc, 'a')",
        "mine(doc, 'a')",
        "json_extract(doc, 'a', 1)",
        "doc->>-1",
        "doc->>'$.' 'a'",
        "doc - >> 'a'",
        "doc->>E'a'",
        "doc.a->>'b'",
    ],
)
def test_what_is_not_understood_uses_the_document(text):
    tokens = tokenize(f"SELECT ({text}) FROM t")
    (place,) = [number for number, token in enumerate(tokens) if token.value == "doc"]
    assert member_path(tokens, place, functions=True) == ()
