"""JSON documents as tokens, against a plain walk over what `json` parses."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.errors import CorruptFileError
from lance_engine.index.inverted.analysis import TextAnalyzer, analysis_of
from lance_engine.index.inverted.json_documents import JsonAnalyzer

NAMES = ["a", "b.c", "q,r", "", "Ünï", '"\\']
STRINGS = ["the Quick brown foxes", "", "Café, it's", "the", "tab\tnew\nline \u0000 \U0001f600", "x" * 50]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"stem": False, "remove_stop_words": False, "lower_case": False},
    {"base_tokenizer": "whitespace"},
    {"base_tokenizer": "raw", "stem": False},
    {"base_tokenizer": "ngram"},
]


def document(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(8 if depth < 4 else 5)
    if kind > 4:
        count = rng.randrange(4)
        if kind == 5:
            return [document(rng, depth + 1) for _ in range(count)]
        # As they are stored: members are in the order of their names.
        return {name: document(rng, depth + 1) for name in sorted(rng.sample(NAMES, count), key=str.encode)}
    return [rng.choice(STRINGS), rng.randrange(-9, 10**6), rng.randrange(99) / 4, None, rng.random() < 0.5][
        kind
    ]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield from leaves(member, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, path)
    else:
        yield path, value


def expected(value: Any, words: TextAnalyzer) -> list[tuple[bytes, int]]:
    found: list[bytes] = []
    for path, leaf in leaves(value):
        if isinstance(leaf, str):
            found += [f"{path},str,".encode() + token.text for token in words.tokens(leaf)]
        else:
            kind = "null" if leaf is None else "bool" if isinstance(leaf, bool) else "number"
            found.append(f"{path},{kind},{json.dumps(leaf)}".encode())
    return [(token, position) for position, token in enumerate(found)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("type", [pa.string(), pa.large_string()], ids=str)
def test_tokens(options: dict[str, Any], type: pa.DataType) -> None:
    rng, analysis = random.Random(5), analysis_of(options)
    words, analyzer = TextAnalyzer(analysis), JsonAnalyzer(analysis, keep_words=True)
    seen: set[bytes] = set()
    for ensures_ascii in (True, False):
        documents = [document(rng) if rng.random() > 0.1 else None for _ in range(200)]
        texts = [
            None if value is None else json.dumps(value, ensure_ascii=ensures_ascii) for value in documents
        ]
        array = pa.array(texts, type).slice(3)
        wanted = [expected(value, words) for value in documents[3:] if value is not None]
        found = analyzer.native.tokens(analyzer.split(array))
        assert found == [token for tokens in wanted for token in tokens]
        seen |= {token for token, _ in found}
    assert analyzer.words == seen
    assert len(seen) > 100


@pytest.mark.parametrize("text", ["", "{", '{"a": 1, "a": 2}', '"\\ud800"', "[" * 2000, "1 2", "nope"])
def test_what_is_no_document(text: str) -> None:
    with pytest.raises(CorruptFileError, match="cannot be parsed"):
        JsonAnalyzer(analysis_of({})).split(pa.array(['{"a": 1}', text]))


def test_scalars_and_deep_documents() -> None:
    analyzer = JsonAnalyzer(analysis_of({}))
    deep = "[" * 900 + '"fox"' + "]" * 900
    found = analyzer.native.tokens(analyzer.split(pa.array(['"Foxes run"', "7", deep])))
    assert [token for token, _ in found] == [b",str,fox", b",str,run", b",number,7", b",str,fox"]
    assert [position for _, position in found] == [0, 1, 0, 0]
