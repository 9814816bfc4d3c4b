"""Searches without an index, against BM25 in plain Python."""

import random

import pyarrow as pa
import pytest
from lance_engine.errors import InvalidSearchError, UnsupportedFeatureError
from text_reference import bm25, has_phrase

import lance_sql
from lance_sql.full_text import Boolean, Boost, Match, MultiMatch, Phrase

WORDS = ["ash", "birch", "cedar", "elm", "fir", "oak", "pine"]


def texts(rows, seed=1):
    generator = random.Random(seed)
    return [
        None if generator.random() < 0.1 else " ".join(generator.choices(WORDS, k=generator.randrange(9)))
        for _ in range(rows)
    ]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("text") / "t.lance")
    values = texts(300)
    other = texts(300, seed=2)
    lists = [None if value is None else value.split() for value in other]
    table = pa.table({"id": range(300), "text": values, "other": other, "list": lists})
    return lance_sql.write(table, path, max_rows_per_file=90), values


def scores(ds, query, column="text", **options):
    found = ds.search(query, column, None, columns=["id"], **options)
    return dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))


def tokens(values):
    return [value.split() if value else [] for value in values]


@pytest.mark.parametrize("operator", ["or", "and"])
@pytest.mark.parametrize("words", ["ash", "ash oak", "oak elm pine"])
def test_scores_are_those_of_the_formula(written, words, operator):
    ds, values = written
    expected = bm25(tokens(values), words.split(), needs_all=operator == "and")
    assert scores(ds, Match(words, operator=operator)) == pytest.approx(expected, rel=1e-5)


def test_a_word_twice_counts_twice(written):
    ds, _ = written
    once = scores(ds, "ash")
    assert scores(ds, "ash ash") == pytest.approx({row: 2 * score for row, score in once.items()}, rel=1e-5)
    assert scores(ds, Match("ash", boost=3.0)) == pytest.approx(
        {row: 3 * score for row, score in once.items()}, rel=1e-5
    )


def test_phrases_are_in_order(written):
    ds, values = written
    expected = {row for row, words in enumerate(tokens(values)) if has_phrase(words, ["oak", "elm"])}
    assert expected
    assert scores(ds, Phrase("oak elm")).keys() == expected
    loose = {
        row
        for row, words in enumerate(tokens(values))
        if has_phrase(words, ["oak", "elm"])
        or any(has_phrase(words, ["oak", between, "elm"]) for between in WORDS)
    }
    assert scores(ds, Phrase("oak elm", slop=1)).keys() == loose


def test_lists_are_documents(written):
    ds, _ = written
    assert scores(ds, "ash pine", "list") == pytest.approx(scores(ds, "ash pine", "other"), rel=1e-6)
    assert scores(ds, Phrase("ash pine"), "list").keys() == scores(ds, Phrase("ash pine"), "other").keys()


def test_queries_combine(written):
    ds, _ = written
    ash, oak, elm = (scores(ds, word) for word in ("ash", "oak", "elm"))
    both = scores(ds, Boolean(must=[Match("ash")], should=[Match("oak")], must_not=[Match("elm")]))
    assert both == pytest.approx(
        {row: score + oak.get(row, 0) for row, score in ash.items() if row not in elm}, rel=1e-5
    )
    lowered = scores(ds, Boost(Match("ash"), Match("oak"), 0.5))
    assert lowered == pytest.approx(
        {row: score - 0.5 * oak.get(row, 0) for row, score in ash.items()}, rel=1e-5
    )
    other = scores(ds, "ash", "other")
    best = scores(ds, MultiMatch("ash", ["text", "other"], boosts=[1.0, 2.0]))
    assert best == pytest.approx(
        {row: max(ash.get(row, 0), 2 * other.get(row, 0)) for row in ash.keys() | other.keys()}, rel=1e-5
    )
    assert scores(ds, "ash", ["text", "other"]) == scores(ds, MultiMatch("ash", ["text", "other"]))


def test_the_best_rows_come_first(written):
    ds, _ = written
    every = scores(ds, "ash oak")
    found = ds.search("ash oak", "text", 7, columns=["id"], with_row_id=True)
    assert found.column_names == ["id", "_score", "_rowid"]
    ranked = sorted(every, key=lambda row: (-every[row], row))
    assert found["id"].to_pylist() == ranked[:7]


def test_filters_and_deletions_apply_before(written):
    ds, values = written
    kept = ds.delete("id % 7 = 3")
    expected = bm25([words if row % 7 != 3 else [] for row, words in enumerate(tokens(values))], ["ash"])
    assert scores(kept, "ash") == pytest.approx(expected, rel=1e-5)
    expected = bm25([words if row >= 100 else [] for row, words in enumerate(tokens(values))], ["ash"])
    assert scores(ds, "ash", filter="id >= 100") == pytest.approx(expected, rel=1e-5)


def test_analysis_says_how_texts_are_cut(tmp_path):
    values = ["The Cats, running", "a cat", "Über straße", "x" * 50]
    ds = lance_sql.write(pa.table({"id": range(4), "text": values}), str(tmp_path / "t"))
    assert scores(ds, "cats") == {}
    assert scores(ds, "cats", analysis={}).keys() == {0, 1}
    assert scores(ds, "the", analysis={}) == {}
    assert scores(ds, "uber STRASSE", analysis={}).keys() == {2}
    assert scores(ds, "x" * 50).keys() == {3}
    assert scores(ds, "x" * 50, analysis={}) == {}
    assert scores(ds, "run", analysis={}).keys() == {0}
    ngrams = {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 3}
    assert scores(ds, "ber", analysis=ngrams).keys() == {2}
    assert scores(ds, "a cat", analysis={"base_tokenizer": "raw", "stem": False}).keys() == {1}


def test_searches_that_make_no_sense_are_refused(written):
    ds, _ = written
    for wrong in (
        {"query": Match("a", operator="xor")},
        {"query": Match("a", fuzziness=-1)},
        {"query": Boolean(must_not=[Match("a")])},
        {"query": 5},
        {"query": Phrase("a", slop=-1)},
        {"query": MultiMatch("a", ["text"], boosts=[1.0, 2.0])},
        {"query": "a", "k": 0},
        {"query": "a", "column": "id"},
        {"query": "a", "analysis": {"steming": True}},
        {"query": "a", "analysis": {"min_ngram_length": 0}},
    ):
        with pytest.raises(InvalidSearchError):
            ds.search(**{"column": "text", **wrong})
    with pytest.raises(InvalidSearchError, match="query has no column"):
        ds.search("ash")
    with pytest.raises(UnsupportedFeatureError, match="tokenizer"):
        ds.search("ash", "text", analysis={"base_tokenizer": "jieba"})


def test_queries_that_name_their_columns_need_no_other(tmp_path):
    table = pa.table({"id": range(3), "text": ["ash oak", "oak", "elm"], "title": ["elm", "ash", "oak"]})
    ds = lance_sql.write(table, tmp_path / "t")
    found = ds.search(MultiMatch("elm", ["text", "title"]), columns=["id"])
    assert sorted(found["id"].to_pylist()) == [0, 2]
    found = ds.search(Boolean(must=[Match("oak", "text")], must_not=[Match("elm", "title")]), columns=["id"])
    assert found["id"].to_pylist() == [1]
    assert ds.search(Match("ash oak", "text", operator="AND"), columns=["id"])["id"].to_pylist() == [0]
    # Without a column and an index, the texts of the answer are searched.
    assert ds.search("elm", columns=["text"])["text"].to_pylist() == ["elm"]
    assert sorted(ds.search("elm", columns=["id", "text", "title"])["id"].to_pylist()) == [0, 2]
    for wrong in (None, 3):
        with pytest.raises(InvalidSearchError, match="by name"):
            ds.nearest(wrong, [1.0])
