"""JSON documents as texts: each value in a document gives tokens ``path,type,value``.

Paths name the members that lead to a value, joined by dots; arrays add nothing to them. Types are str,
number, bool and null. Strings are cut and filtered as other texts are; each of their words becomes a token.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_engine import kernels
from lance_engine.errors import CorruptFileError, InvalidSearchError
from lance_engine.index.inverted.analysis import Analysis, TextAnalyzer, Token

_TYPES: Final = ("str", "number", "bool", "null")
# So many different strings are remembered with their words.
_MOST_STRINGS: Final = 1 << 16


class _Number(str):
    """A number as the document has it."""


class JsonAnalyzer:
    """Tokenizes JSON documents as `TextAnalyzer` does texts; not thread-safe."""

    def __init__(self, analysis: Analysis, *, keep_words: bool = False) -> None:
        self.words: set[bytes] | None = set() if keep_words else None
        self._strings = TextAnalyzer(analysis)
        self._known: dict[str, list[bytes]] = {}
        nothing = np.empty(0, dtype=np.uint8)
        self.native = kernels.Analyzer(kernels.BaseTokenizer.RAW, nothing, 0, 1, 1, False, False)

    def split(self, texts: pa.Array) -> kernels.Tokens:
        """The tokens of documents."""
        return self._native([[] if text is None else self._of_document(text) for text in texts.to_pylist()])

    def tokens(self, text: str) -> list[Token]:
        """The tokens of a query: triplets as documents have them, with ``;`` between them."""
        found: list[bytes] = []
        for triplet in text.split(";"):
            parts = triplet.split(",", 2)
            if len(parts) != 3 or parts[1] not in _TYPES:
                raise InvalidSearchError(
                    f"{triplet!r} is not a query for JSON documents",
                    remedy="Write path,type,value, such as 'title,str,some words;year,number,2020'; types "
                    f"are {', '.join(_TYPES)}",
                )
            path, kind, value = parts
            found += self._of_value(path, value if kind == "str" else None, f"{kind},{value}")
        return [Token(token, position) for position, token in enumerate(found)]

    def _native(self, documents: list[list[bytes]]) -> kernels.Tokens:
        tokens = [token for document in documents for token in document]
        offsets = np.cumsum([0, *map(len, tokens)], dtype=np.int64)
        boundaries = np.cumsum([0, *map(len, documents)], dtype=np.int64)
        data = np.frombuffer(b"".join(tokens), dtype=np.uint8)
        found = self.native.split(offsets, data, None, boundaries)
        fresh = self.native.unresolved()
        if self.words is not None:
            self.words.update(fresh)
        self.native.resolve([*fresh])
        return found

    def _of_document(self, text: str) -> list[bytes]:
        try:
            document = json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
            return list(self._of(document, ""))
        except (ValueError, RecursionError) as error:
            raise CorruptFileError("A JSON document cannot be parsed") from error

    def _of(self, value: Any, path: str) -> Iterator[bytes]:
        if isinstance(value, dict):
            for name, member in value.items():
                yield from self._of(member, f"{path}.{name}" if path else name)
        elif isinstance(value, list):
            for item in value:
                yield from self._of(item, path)
        elif isinstance(value, _Number):
            yield from self._of_value(path, None, f"number,{value}")
        elif isinstance(value, str):
            yield from self._of_value(path, value, "")
        else:
            yield from self._of_value(path, None, "null,null" if value is None else f"bool,{value}".lower())

    def _of_value(self, path: str, string: str | None, plain: str) -> list[bytes]:
        if string is None:
            return [_bytes(f"{path},{plain}")]
        words = self._known.get(string)
        if words is None:
            words = [token.text for token in self._strings.tokens(string)]
            if len(self._known) < _MOST_STRINGS:
                self._known[string] = words
        return [_bytes(f"{path},str,") + word for word in words]


def _bytes(text: str) -> bytes:
    # Escapes in documents may be halves of letters, which no file holds.
    return text.encode("utf-8", "replace")


#: What cuts documents into tokens.
Analyzer = TextAnalyzer | JsonAnalyzer


def analyzer_of(analysis: Analysis, *, keep_words: bool = False) -> Analyzer:
    """What cuts the documents of an index, or of a column, into tokens."""
    if analysis.lance_tokenizer == "json":
        return JsonAnalyzer(analysis, keep_words=keep_words)
    return TextAnalyzer(analysis, keep_words=keep_words)
