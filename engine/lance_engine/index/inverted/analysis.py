"""Text analysis: the options of an index, and the steps from a text to tokens.

A text is split into tokens; each token passes the length limit, lower case, stemming, stop words and folding,
in this order. Splitting is native; each distinct token is filtered once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as at

from lance_engine import kernels
from lance_engine.errors import InvalidSearchError, UnsupportedFeatureError
from lance_engine.index.inverted.folding import fold
from lance_engine.index.inverted.stop_words import ENGLISH

_BASES: Final = {
    "simple": kernels.BaseTokenizer.SIMPLE,
    "whitespace": kernels.BaseTokenizer.WHITESPACE,
    "raw": kernels.BaseTokenizer.RAW,
    "ngram": kernels.BaseTokenizer.NGRAM,
}
# Longer ones would only waste memory.
_LONGEST_NGRAM: Final = 256


@dataclass(frozen=True, slots=True)
class Analysis:
    """Options with the names and defaults of the format."""

    base_tokenizer: str = "simple"
    language: str = "English"
    max_token_length: int | None = 40
    lower_case: bool = True
    stem: bool = True
    remove_stop_words: bool = True
    custom_stop_words: tuple[str, ...] | None = None
    ascii_folding: bool = True
    min_ngram_length: int = 3
    max_ngram_length: int = 3
    prefix_only: bool = False
    lance_tokenizer: str = "text"
    """What documents are: text, or json, as those of JSON columns are."""

    def check(self) -> None:
        """InvalidSearchError if a value is invalid, UnsupportedFeatureError if it is unknown."""
        for name in ("base_tokenizer", "language"):
            if not isinstance(getattr(self, name), str):
                raise InvalidSearchError(f"{name} must be a name, not {getattr(self, name)!r}")
        if self.lance_tokenizer not in ("text", "json"):
            raise UnsupportedFeatureError(f"Unknown kind of documents {self.lance_tokenizer!r}")
        if self.base_tokenizer not in _BASES:
            raise UnsupportedFeatureError(
                f"Unknown tokenizer {self.base_tokenizer!r}", remedy="Choose " + ", ".join(_BASES)
            )
        for name in ("lower_case", "stem", "remove_stop_words", "ascii_folding", "prefix_only"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidSearchError(f"{name} must be True or False, not {getattr(self, name)!r}")
        longest = self.max_token_length
        if longest is not None and not (_is_whole(longest) and longest > 0):
            raise InvalidSearchError(f"max_token_length must be a number of bytes or None, not {longest!r}")
        low, high = self.min_ngram_length, self.max_ngram_length
        if not (_is_whole(low) and _is_whole(high) and 1 <= low <= high <= _LONGEST_NGRAM):
            raise InvalidSearchError(
                f"N-gram lengths must be between 1 and {_LONGEST_NGRAM}, not {low!r} and {high!r}"
            )
        words = self.custom_stop_words
        if words is not None and not (
            isinstance(words, (tuple, list, set, frozenset)) and all(isinstance(word, str) for word in words)
        ):
            raise InvalidSearchError("custom_stop_words must be a list of words")
        if self.stem:
            _stemmer(self.language)
        if self.remove_stop_words and words is None and self.language.lower() != "english":
            raise UnsupportedFeatureError(
                f"No list of stop words for {self.language}",
                remedy="Pass custom_stop_words=[...] or remove_stop_words=False",
            )

    def filter(self) -> Callable[[bytes], bytes | None]:
        """The filtered token; None drops it."""
        stem = _stemmer(self.language) if self.stem else None
        stop_words: frozenset[str] = frozenset()
        if self.remove_stop_words:
            words = self.custom_stop_words
            stop_words = ENGLISH if words is None else frozenset(words)
        lower, folding = self.lower_case, self.ascii_folding

        def filtered(token: bytes) -> bytes | None:
            text = token.decode("utf-8", "replace")
            if lower:
                # Each letter is converted separately, independent of its neighbours.
                text = text.lower() if text.isascii() else "".join(letter.lower() for letter in text)
            if stem is not None:
                text = stem(text)
            if text in stop_words:
                return None
            return (fold(text) if folding else text).encode()

        return filtered

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Analysis:
        """From the JSON of an index; unknown keys are ignored."""
        known = {field.name for field in fields(cls)}
        given = {key: value for key, value in params.items() if key in known}
        if isinstance(given.get("custom_stop_words"), list):
            given["custom_stop_words"] = tuple(given["custom_stop_words"])
        if given.get("lance_tokenizer", "") is None:
            del given["lance_tokenizer"]
        names = ("language", "base_tokenizer", "lance_tokenizer")
        if not all(isinstance(given.get(name, ""), str) for name in names):
            raise UnsupportedFeatureError("The index does not describe its tokenizer")
        analysis = cls(**given)
        try:
            analysis.check()
        except (InvalidSearchError, TypeError) as error:
            raise UnsupportedFeatureError(f"The index has an unsupported tokenizer: {error}") from error
        return analysis

    def params(self, *, with_position: bool, block_size: int) -> str:
        """The JSON for an index."""
        given = asdict(self)
        words = given.pop("custom_stop_words")
        entries = {
            "lance_tokenizer": given.pop("lance_tokenizer"),
            "base_tokenizer": given.pop("base_tokenizer"),
            "language": given.pop("language"),
            "with_position": with_position,
            **given,
            "custom_stop_words": None if words is None else list(words),
            "block_size": block_size,
        }
        return json.dumps(entries, separators=(",", ":"))


def analysis_of(options: Mapping[str, Any]) -> Analysis:
    """A copy with other options; InvalidSearchError if one is unknown or invalid."""
    if not isinstance(options, Mapping):
        raise InvalidSearchError(f"analysis must be a dictionary of options, not {options!r}")
    given = dict(options)
    if given.get("base_tokenizer") == "ngram":
        # Parts of words are not stemmed.
        given = {"stem": False, "remove_stop_words": False, **given}
    if isinstance(given.get("custom_stop_words"), list):
        given["custom_stop_words"] = tuple(given["custom_stop_words"])
    try:
        analysis = Analysis(**given)
    except TypeError as error:
        known = ", ".join(Analysis.__dataclass_fields__)
        raise InvalidSearchError(
            f"An option of the analysis is unknown: {', '.join(map(str, given))}",
            remedy=f"Its arguments are {known}",
        ) from error
    analysis.check()
    return analysis


#: The analysis for columns without an index: words are not changed.
PLAIN: Final = Analysis(
    max_token_length=None, lower_case=False, stem=False, remove_stop_words=False, ascii_folding=False
)


class Token(NamedTuple):
    """A token and its position in the text, counting dropped tokens."""

    text: bytes
    position: int


class TextAnalyzer:
    """Tokenizes the texts of batches; not thread-safe.

    `words` are the distinct tokens, if requested.
    """

    def __init__(self, analysis: Analysis, *, keep_words: bool = False) -> None:
        self.filter = analysis.filter()
        self.words: set[bytes] | None = set() if keep_words else None
        self.native = kernels.Analyzer(
            _BASES[analysis.base_tokenizer],
            _alphabet() if analysis.base_tokenizer == "simple" else np.empty(0, dtype=np.uint8),
            analysis.max_token_length or 0,
            analysis.min_ngram_length,
            analysis.max_ngram_length,
            analysis.prefix_only,
            analysis.lower_case,
        )

    def split(self, texts: pa.Array) -> kernels.Tokens:
        """The tokens of strings, or of lists of strings: the strings of a list form one document."""
        boundaries = None
        if at.is_list(texts.type) or at.is_large_list(texts.type):
            boundaries, texts = _flattened(texts)
        tokens = self.native.split(*strings_of(texts), boundaries)
        filtered = [self.filter(token) for token in self.native.unresolved()]
        if self.words is not None:
            self.words.update(word for word in filtered if word is not None)
        self.native.resolve(filtered)
        return tokens

    def tokens(self, text: str) -> list[Token]:
        """The tokens of one text."""
        return [Token(*token) for token in self.native.tokens(self.split(pa.array([text], pa.large_utf8())))]


def is_text(kind: pa.DataType) -> bool:
    """Whether values are strings or lists of strings."""
    if at.is_list(kind) or at.is_large_list(kind):
        kind = kind.value_type
    return bool(at.is_string(kind) or at.is_large_string(kind))


def _flattened(lists: pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """For each list, its first string and the end of the last one; null lists have no strings."""
    if lists.null_count:
        # Items of null lists are not texts.
        lists = lists.fill_null([])
    return np.asarray(lists.offsets).astype(np.int64), lists.values


def strings_of(
    texts: pa.Array,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8], npt.NDArray[np.uint8] | None]:
    """Offsets, bytes and validity."""
    wide = at.is_large_string(texts.type)
    _, offsets, data = texts.buffers()
    count = len(texts)
    kind = np.int64 if wide else np.int32
    if offsets is None or not offsets.size:
        numbers = np.zeros(count + 1, dtype=np.int64)
    else:
        item = np.dtype(kind).itemsize
        numbers = np.frombuffer(offsets, dtype=kind, count=count + 1, offset=texts.offset * item).astype(
            np.int64
        )
    values = np.empty(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    valid = None
    if texts.null_count:
        valid = texts.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
    return numbers, values, valid


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    import Stemmer

    name = language.lower()
    if name not in Stemmer.algorithms():
        raise UnsupportedFeatureError(
            f"Unknown stemming language {language!r}",
            remedy="Choose a language of Snowball, or stem=False",
        )
    # Every token is stemmed once: a cache would only take memory.
    stemmer: Callable[[str], str] = Stemmer.Stemmer(name, 0).stemWord
    return stemmer


@cache
def _alphabet() -> npt.NDArray[np.uint8]:
    """A bit for every code point that is a letter or a number."""
    import regex

    points = np.concatenate([np.arange(0xD800, dtype="<u4"), np.arange(0xE000, 0x110000, dtype="<u4")])
    every = points.tobytes().decode("utf-32-le")
    inside = np.zeros(0x110000, dtype=np.uint8)
    for run in regex.finditer(r"[\p{Alphabetic}\p{N}]+", every):
        inside[points[run.start() : run.end()]] = 1
    return np.packbits(inside, bitorder="little")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
