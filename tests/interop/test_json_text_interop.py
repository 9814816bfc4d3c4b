"""Full text over JSON: indices of pylance are searched as it does, and it searches and extends ours."""

import json

import lance
import pyarrow as pa
import pytest
from lance.query import FullTextOperator, MatchQuery, PhraseQuery
from lance_engine.errors import InvalidSearchError

import lance_sql
from lance_sql.full_text import Match, Phrase

DOCUMENTS = [
    {"title": "Quick brown fox", "n": 7, "tags": ["red fox", "blue"], "in": {"a": "the running of dogs"}},
    {"n": 1e30, "m": 1.0, "k": 12345678901234567890, "j": -0.0, "arr": [None, True, "x y"], "f": False},
    {"title": "fox, brown", "odd.name": "Über, x;y", "q,r": "comma", "l": [[{"p": "deep fox"}]]},
    {"title": "w" * 50, "empty": {}, "none": "", "list": []},
    {},
    [1, "fox"],
    "fox",
    None,
]
QUERIES = {
    "word": (MatchQuery("title,str,fox", "doc"), Match("title,str,fox")),
    "words": (MatchQuery("title,str,quick brown", "doc"), Match("title,str,quick brown")),
    "stemmed": (MatchQuery("in.a,str,runs", "doc"), Match("in.a,str,runs")),
    "several": (MatchQuery("title,str,fox;n,number,7", "doc"), Match("title,str,fox;n,number,7")),
    "and": (
        MatchQuery("title,str,fox;n,number,7", "doc", operator=FullTextOperator.AND),
        Match("title,str,fox;n,number,7", operator="and"),
    ),
    "number": (MatchQuery("m,number,1.0", "doc"), Match("m,number,1.0")),
    "large": (MatchQuery("k,number,12345678901234567890", "doc"), Match("k,number,12345678901234567890")),
    "exponent": (MatchQuery("n,number,1e+30", "doc"), Match("n,number,1e+30")),
    "zero": (MatchQuery("j,number,-0.0", "doc"), Match("j,number,-0.0")),
    "null": (MatchQuery("arr,null,null", "doc"), Match("arr,null,null")),
    "bool": (MatchQuery("f,bool,false", "doc"), Match("f,bool,false")),
    "folded": (MatchQuery("odd.name,str,uber", "doc"), Match("odd.name,str,uber")),
    "within": (MatchQuery("l.p,str,fox", "doc"), Match("l.p,str,fox")),
    "top": (MatchQuery(",str,fox", "doc"), Match(",str,fox")),
    "long": (MatchQuery("title,str," + "w" * 50, "doc"), Match("title,str," + "w" * 50)),
    "phrase": (PhraseQuery("title,str,quick brown", "doc"), Phrase("title,str,quick brown")),
    "reversed": (PhraseQuery("title,str,brown quick", "doc"), Phrase("title,str,brown quick")),
    "across": (PhraseQuery("tags,str,fox blue", "doc"), Phrase("tags,str,fox blue")),
    "stop words": (PhraseQuery("in.a,str,running of dogs", "doc"), Phrase("in.a,str,running of dogs")),
}


def table(first=0):
    texts = [json.dumps(document) for document in DOCUMENTS] + [None]
    return pa.table({"id": range(first, first + len(texts)), "doc": pa.array(texts, pa.json_())})


def by_pylance(path, query):
    found = lance.dataset(path).to_table(columns=["id", "_score"], full_text_query=query)
    return dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))


def by_us(path, query, **options):
    found = lance_sql.open(path).search(query, "doc", k=None, columns=["id"], **options)
    return dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))


def compare(path):
    found = 0
    for name, (theirs, ours) in QUERIES.items():
        expected = by_pylance(path, theirs)
        assert by_us(path, ours) == pytest.approx(expected, abs=1e-5), name
        found += bool(expected)
    assert found >= len(QUERIES) - 2


@pytest.mark.parametrize("builder", ["lance-sql", "pylance"])
def test_the_same_rows_and_scores(tmp_path, builder):
    path = str(tmp_path / "t.lance")
    lance.write_dataset(table(), path)
    if builder == "pylance":
        lance.dataset(path).create_scalar_index("doc", "INVERTED", with_position=True)
    else:
        lance_sql.open(path).create_index("doc", "INVERTED", with_position=True)
    compare(path)
    lance.write_dataset(table(100), path, mode="append")
    compare(path)  # the new rows in a flat pass
    lance.dataset(path).delete("id = 6")
    if builder == "pylance":
        lance_sql.open(path).optimize_indices()
    else:
        lance.dataset(path).optimize.optimize_indices()
    compare(path)
    lance_sql.open(path).compact()
    compare(path)


def test_without_an_index(tmp_path):
    path = str(tmp_path / "t.lance")
    lance.write_dataset(table(), path)
    analysis = {"stem": True, "lower_case": True}
    flat = {name: by_us(path, ours, analysis=analysis) for name, (_, ours) in QUERIES.items()}
    lance_sql.open(path).create_index("doc", "INVERTED", with_position=True)
    for name, (_, ours) in QUERIES.items():
        assert flat[name] == pytest.approx(by_us(path, ours), abs=1e-6), name
    found = lance_sql.sql(f"SELECT id FROM lance_fts('{path}', 'doc', 'title,str,fox') ORDER BY _score DESC")
    assert {row[0] for row in found.fetchall()} == {0, 2}


@pytest.mark.parametrize("query", ["fox", "title,str", "title,string,fox", "title,str,fox;", ""])
def test_queries_that_are_no_triplets(tmp_path, query):
    path = str(tmp_path / "t.lance")
    ds = lance_sql.write(table(), path)
    with pytest.raises(InvalidSearchError, match="path,type,value"):
        ds.search(query, "doc")
