"""Targets of full text: any texts through the tokenizers, and an index that finds what a scan does."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from fuzz_loop import Target
from fuzz_mutation import mutate_bytes
from lance_engine.dataset import DatasetVersion
from lance_engine.index.inverted.analysis import TextAnalyzer, analysis_of
from lance_engine.search.text.query import Match, Phrase
from lance_engine.write.dataset import write_dataset

TEXTS = [
    "The quick brown foxes jumped over a lazy dog\nthe running runner, running!\n\nÉclair café naïve ﬁne",
    "i̇stanbul İSTANBUL straße STRASSE ǅ Ωμέγα ПРИВЕТ мир\n"
    "日本語 テキスト 한국어\u200b नमस्ते\n\u0345\ufb03 \U0001d7d8",
    "a b c d e f a a a a b\nalpha_beta-gamma.delta/epsilon 12.5 1e9 0x7f\n" + "long" * 30,
    "\0 \x01\x7f \u00a0\u2003\u3000 tab\there\r\nnew\x0bline\x0c",
    "fox " * 300 + "\n" + "\n".join(f"word{n} of {n % 7} foxes" for n in range(90)),
]
PIECES = (
    "\n",
    " ",
    "fox",
    "FOX",
    "é",
    "e\u0301",
    "ß",
    "İ",
    "\U0001f98a",
    "\0",
    ".",
    "\u200d",
    "\u017f",
    "\udfff",
)
ANALYSES: tuple[dict[str, Any], ...] = (
    {},
    {"stem": False, "remove_stop_words": False, "ascii_folding": False},
    {"base_tokenizer": "whitespace", "lower_case": False, "stem": False},
    {"base_tokenizer": "raw", "max_token_length": None, "stem": False},
    {"base_tokenizer": "ngram", "min_ngram_length": 1, "max_ngram_length": 4},
    {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 2, "prefix_only": True},
    {"max_token_length": 5, "custom_stop_words": ("fox", "é")},
    {"language": "German", "custom_stop_words": ()},
)


@dataclass(frozen=True)
class Texts:
    """A byte that chooses the analysis, and texts, one a line."""

    data: bytes

    def mutated(self, rng: random.Random, others: Sequence[Any]) -> Texts:
        at = rng.randrange(1, len(self.data) + 1)
        if rng.random() < 0.5:
            piece = rng.choice(PIECES).encode(errors="surrogatepass")
            return Texts(self.data[:at] + piece + self.data[at:])
        if rng.random() < 0.2:
            return Texts(rng.randbytes(1) + self.data[1:])
        return Texts(self.data[:1] + mutate_bytes(rng, self.data[1:], rng.choice(others).data))

    def stored(self) -> bytes:
        return self.data

    def texts(self) -> tuple[int, list[str | None]]:
        lines = self.data[1:].decode(errors="replace").split("\n")
        return (self.data or b"\0")[0], [None if line == "null" else line for line in lines]


def read_tokens(input: Texts) -> str:
    """Tokens are UTF-8, at ascending places, and the same one by one as all together."""
    choice, texts = input.texts()
    options = ANALYSES[choice % len(ANALYSES)]
    analyzer, alone = TextAnalyzer(analysis_of(options)), TextAnalyzer(analysis_of(options))
    array = pa.array(["left out", *texts], pa.string())[1:]
    found = [token for token, _ in analyzer.native.tokens(analyzer.split(array))]
    single = []
    for text in texts:
        tokens = alone.tokens(text or "")
        places = [token.position for token in tokens]
        grams = options.get("base_tokenizer") == "ngram"
        if any(left > right or (left == right and not grams) for left, right in pairwise(places)):
            return f"places {places}"
        for token in tokens:
            token.text.decode()
        single += [token.text for token in tokens]
    if single != found:
        return f"{found} together, {single} one by one"
    lists = pa.array([texts[:1], None, texts[1:]], pa.list_(pa.string()))
    again = [token for token, _ in analyzer.native.tokens(analyzer.split(lists))]
    return "" if again == found else f"{again} of lists, {found} of texts"


def read_index(input: Texts) -> str:
    """The same rows with the same scores, with the index and without."""
    choice, texts = input.texts()
    options = ANALYSES[choice % len(ANALYSES)]
    words = " ".join(text for text in texts[:3] if text)[:200]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        table = pa.table({"id": range(len(texts)), "text": pa.array(texts, pa.string())})
        plain = DatasetVersion(write_dataset(table, folder))
        indexed = plain.create_index("text", "INVERTED", with_position=True, **options)
        for query in (
            Match(words),
            Match(words, operator="and"),
            Phrase(words),
            Match(words[:9], fuzziness=1),
        ):
            found = [
                version.search(query, "text", None, columns=["id"], analysis=options, use_index=index)
                for version, index in ((indexed, True), (plain, False))
            ]
            scores = [
                dict(zip(each["id"].to_pylist(), each["_score"].to_pylist(), strict=True)) for each in found
            ]
            if scores[0].keys() != scores[1].keys():
                return f"{query}: {sorted(scores[0])} by the index, {sorted(scores[1])} without"
            if any(abs(score - scores[1][row]) > 1e-4 * max(1, score) for row, score in scores[0].items()):
                return f"{query}: {scores[0]} by the index, {scores[1]} without"
    return ""


def _seeds() -> list[Texts]:
    return [Texts(bytes([number]) + text.encode()) for number in range(len(ANALYSES)) for text in TEXTS]


TARGETS = [
    Target("texts: tokens", _seeds, read_tokens),
    Target("texts: index and scan", _seeds, read_index),
]
