"""Texts are cut and scored without an index as pylance does it."""

import lance
import pyarrow as pa
import pytest
from lance.query import MatchQuery, PhraseQuery
from lance_engine.index.inverted.analysis import TextAnalyzer, analysis_of

import lance_sql
from lance_sql.full_text import Phrase

TEXTS = [
    "Hello, the_World 3.5 naïve Straße",
    "हिन्दी İstanbul ÆTHER ½ ﬁne ŋ ǿ",
    "日本語 テスト résumé don't",
    "running runners ran easily generously",
    "a\u00a0b\u3000c\td e\u0301",
    "y" * 39 + " " + "z" * 40 + " end",
    "",
]
OPTIONS = [
    {},
    {"stem": False},
    {"stem": False, "remove_stop_words": False},
    {"lower_case": False},
    {"ascii_folding": False},
    {"base_tokenizer": "whitespace"},
    {"base_tokenizer": "raw"},
    {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 3, "stem": False},
    {"base_tokenizer": "ngram", "prefix_only": True, "remove_stop_words": False},
    {"max_token_length": None},
    {"max_token_length": 5},
    {"language": "French", "remove_stop_words": False},
    {"custom_stop_words": ["hello", "end"]},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_tokens(options):
    analyzer = TextAnalyzer(analysis_of(options))
    for text in TEXTS:
        found = analyzer.tokens(text)
        expected = lance.tokenize(text, **options)
        assert [token.text.decode() for token in found] == [token.text for token in expected]
        first = found[0].position if found else 0
        assert [token.position - first for token in found] == [token.position for token in expected]


def test_scores(tmp_path):
    table = pa.table({"id": range(5), "text": ["red ash", "ash", None, "a red oak", "Red red ash tree"]})
    theirs = lance.write_dataset(table, tmp_path / "t")
    ours = lance_sql.open(str(tmp_path / "t"))
    for theirs_query, query in [
        (MatchQuery("red ash", "text"), "red ash"),
        (PhraseQuery("red ash", "text"), Phrase("red ash")),
    ]:
        expected = theirs.to_table(full_text_query=theirs_query, columns=["id", "_score"])
        found = ours.search(query, "text", None, columns=["id"])
        assert dict(zip(*found.to_pydict().values(), strict=True)) == pytest.approx(
            dict(zip(*expected.to_pydict().values(), strict=True)), abs=1e-5
        )
