"""Inverted indices of pylance are searched as pylance does, and it searches, extends and merges ours."""

import random

import lance
import pyarrow as pa
import pytest
from lance.query import (
    BooleanQuery,
    BoostQuery,
    DocumentGranularity,
    FullTextOperator,
    MatchQuery,
    Occur,
    PhraseQuery,
)
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.index.inverted.kind import INVERTED

import lance_sql
from lance_sql.full_text import Boolean, Boost, Match, Phrase

TEXT = "the running runner café of tree trees apple and stone river mountain over quick brown fox"
WORDS = TEXT.split()


def texts(rows, seed=0, most=14):
    generator = random.Random(seed)
    weights = [1 / (place + 1) for place in range(len(WORDS))]
    return [
        None
        if generator.random() < 0.05
        else " ".join(generator.choices(WORDS, weights, k=generator.randrange(most)))
        + ("" if generator.random() < 0.5 else f" word{generator.randrange(40)}")
        for _ in range(rows)
    ]


def table(rows, first=0, seed=0, lists=False):
    values = texts(rows, seed)
    if lists:
        values = [None if value is None else [value[:9], value[9:]] for value in values]
    return pa.table(
        {
            "id": range(first, first + rows),
            "text": pa.array(values, pa.list_(pa.string()) if lists else pa.string()),
        }
    )


#: The same queries for both.
QUERIES = {
    "one": (MatchQuery("river", "text"), Match("river")),
    "two": (MatchQuery("river trees", "text"), Match("river trees")),
    "twice": (MatchQuery("fox fox stone", "text"), Match("fox fox stone")),
    "and": (
        MatchQuery("running apple", "text", operator=FullTextOperator.AND),
        Match("running apple", operator="and"),
    ),
    "rare": (MatchQuery("the word7 fox", "text", boost=2.0), Match("the word7 fox", boost=2.0)),
    "missing": (MatchQuery("nowhere", "text"), Match("nowhere")),
    "boolean": (
        BooleanQuery(
            [
                (Occur.MUST, MatchQuery("apple", "text")),
                (Occur.SHOULD, MatchQuery("stone", "text")),
                (Occur.MUST_NOT, MatchQuery("cafe", "text")),
            ]
        ),
        Boolean(must=[Match("apple")], should=[Match("stone")], must_not=[Match("cafe")]),
    ),
    "boost": (
        BoostQuery(MatchQuery("apple", "text"), MatchQuery("tree", "text"), negative_boost=0.3),
        Boost(Match("apple"), Match("tree"), 0.3),
    ),
}
PHRASES = {
    "phrase": (PhraseQuery("running apple", "text"), Phrase("running apple")),
    "gap": (PhraseQuery("runner of tree", "text"), Phrase("runner of tree")),
    "slop": (PhraseQuery("apple river", "text", slop=2), Phrase("apple river", slop=2)),
}


def found_by_pylance(path, query, **options):
    found = lance.dataset(path).to_table(full_text_query=query, columns=["id", "_score"], **options)
    return dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))


def found_by_us(path, query, **options):
    found = lance_sql.open(path).search(query, "text", None, columns=["id"], **options)
    return dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))


def same(path, queries, **options):
    for name, (theirs, ours) in queries.items():
        expected = found_by_pylance(path, theirs, **options)
        found = found_by_us(path, ours, **{key: options[key] for key in options if key == "filter"})
        assert found == pytest.approx(expected, abs=1e-5, rel=1e-5), name


@pytest.mark.parametrize("format_version", [1, 2, 3])
@pytest.mark.parametrize("with_position", [False, True])
def test_indices_of_pylance(tmp_path, monkeypatch, format_version, with_position):
    monkeypatch.setenv("LANCE_FTS_FORMAT_VERSION", str(format_version))
    path = str(tmp_path / "t")
    theirs = lance.write_dataset(table(900), path, max_rows_per_file=400)
    theirs.create_scalar_index("text", "INVERTED", with_position=with_position)
    same(path, {**QUERIES, **(PHRASES if with_position else {})})
    same(path, QUERIES, filter="id % 3 = 1", prefilter=True)
    # Rows that are deleted, and rows that came later.
    theirs = lance.dataset(path)
    theirs.delete("id % 7 = 2")
    lance.write_dataset(table(200, first=1000, seed=1), path, mode="append")
    same(path, {**QUERIES, **(PHRASES if with_position else {})})
    theirs = lance.dataset(path)
    theirs.optimize.optimize_indices()
    same(path, {**QUERIES, **(PHRASES if with_position else {})})


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"with_position": True},
        {"stem": False, "remove_stop_words": False},
        {"base_tokenizer": "whitespace", "lower_case": False},
        {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 3},
        {"base_tokenizer": "raw", "stem": False},
        {"custom_stop_words": ["fox"], "ascii_folding": False},
    ],
    ids=str,
)
def test_our_indices(tmp_path, options):
    path = str(tmp_path / "t")
    ours = lance_sql.write(table(700), path, max_rows_per_file=300)
    ours = ours.create_index("text", "INVERTED", **options)
    queries = {**QUERIES, **(PHRASES if options.get("with_position") else {})}
    if options.get("base_tokenizer") == "ngram":
        queries = {name: queries[name] for name in ("one", "two", "and", "missing")}
    same(path, queries)
    ours = lance_sql.write(table(150, first=1000, seed=1), path, "append").delete("id % 5 = 3")
    same(path, queries)
    ours = ours.optimize_indices()
    assert len(INVERTED.indices(ours.snapshot)[0].segments) == 2
    same(path, queries)
    lance.write_dataset(table(50, first=2000, seed=2), path, mode="append")
    lance.dataset(path).optimize.optimize_indices()
    same(path, queries)
    lance_sql.open(path).compact()
    same(path, queries)


def test_large_blocks(tmp_path, monkeypatch):
    monkeypatch.setenv("LANCE_FTS_FORMAT_VERSION", "3")
    path = str(tmp_path / "t")
    theirs = lance.write_dataset(table(1200), path)
    theirs.create_scalar_index("text", "INVERTED", with_position=True, block_size=256)
    index = INVERTED.indices(lance_sql.open(path).snapshot)[0]
    assert index.segments[0].open().layout.block_size == 256
    same(path, {**QUERIES, **PHRASES})


def test_segments_are_merged(tmp_path):
    path = str(tmp_path / "t")
    ours = lance_sql.write(table(200), path).create_index("text", "INVERTED", with_position=True)
    for part in range(1, 9):
        ours = lance_sql.write(table(30, first=1000 * part, seed=part), path, "append").optimize_indices()
    assert len(INVERTED.indices(ours.snapshot)[0].segments) == 1
    same(path, {**QUERIES, **PHRASES})


def test_lists_of_texts(tmp_path):
    path = str(tmp_path / "t")
    lance_sql.write(table(400, lists=True), path).create_index("text", "INVERTED", with_position=True)
    same(path, {**QUERIES, **PHRASES})


def test_stable_row_ids(tmp_path):
    path = str(tmp_path / "t")
    ours = lance_sql.write(table(400), path, max_rows_per_file=150, stable_row_ids=True)
    ours.create_index("text", "INVERTED")
    lance.write_dataset(table(100, first=1000, seed=1), path, mode="append")
    lance.dataset(path).delete("id % 9 = 4")
    same(path, QUERIES)
    lance_sql.open(path).compact()
    same(path, QUERIES)
    lance_sql.open(path).optimize_indices()
    same(path, QUERIES)


def test_updated_rows(tmp_path):
    path = str(tmp_path / "t")
    lance_sql.write(table(300), path, max_rows_per_file=150).create_index("text", "INVERTED")
    lance.dataset(path).update({"text": "'river of gold'"}, where="id < 20")
    same(path, QUERIES)


@pytest.mark.parametrize("fuzziness", [1, 2])
def test_fuzzy_words(tmp_path, fuzziness):
    path = str(tmp_path / "t")
    lance_sql.write(table(500), path).create_index("text", "INVERTED", stem=False)
    for word in ("rivr", "tres", "stnoe", "aple"):
        same(
            path,
            {
                word: (MatchQuery(word, "text", fuzziness=fuzziness), Match(word, fuzziness=fuzziness)),
                "prefix": (
                    MatchQuery(word, "text", fuzziness=fuzziness, prefix_length=2),
                    Match(word, fuzziness=fuzziness, prefix_length=2),
                ),
            },
        )


def test_items_of_lists_as_documents_are_read_from_the_texts_if_asked(tmp_path):
    path = str(tmp_path / "t")
    theirs = lance.write_dataset(table(300, lists=True), path)
    theirs.create_scalar_index("text", "INVERTED", document_granularity=DocumentGranularity.LIST_ELEMENT)
    with pytest.raises(UnsupportedFeatureError, match="each item of a list"):
        found_by_us(path, Match("apple"))
    found = found_by_us(path, Match("apple"), analysis={"stem": False})
    assert found
    assert found.keys() == found_by_us(path, Match("apple"), use_index=False, analysis={"stem": False}).keys()


@pytest.mark.parametrize("tokenizer", ["icu", "code"])
def test_tokenizers_that_are_not_ours_find_no_wrong_rows(tmp_path, tokenizer):
    texts = pa.table({"id": range(3), "text": ["hello big World", "the worlds", "other"]})
    ds = lance.write_dataset(texts, str(tmp_path / "t"))
    ds.create_scalar_index("text", "INVERTED", base_tokenizer=tokenizer)
    ours = lance_sql.open(str(tmp_path / "t"))
    for column in ("text", None):
        with pytest.raises(UnsupportedFeatureError, match=tokenizer) as raised:
            ours.search("world", column)
        assert "analysis" in str(raised.value)
    found = ours.search("world", "text", columns=["id"], analysis={})
    assert sorted(found["id"].to_pylist()) == [0, 1]
    assert ours.search("World", "text", columns=["id"], use_index=False)["id"].to_pylist() == [0]
