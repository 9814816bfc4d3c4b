"""JSON documents as texts: each value in a document gives tokens ``path,type,value``.

Paths contain the names of the members that lead to a value, joined by dots; arrays are skipped. Types are
str, number, bool and null. Strings are tokenized and filtered like other texts; each of their words becomes a
token.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from lance_engine import kernels
from lance_engine.errors import CorruptFileError, InvalidSearchError
from lance_engine.index.inverted.analysis import Analysis, TextAnalyzer, Token, strings_of

_TYPES: Final = ("str", "number", "bool", "null")


class JsonAnalyzer:
    """Tokenizes JSON documents, like `TextAnalyzer` for texts; not thread-safe."""

    def __init__(self, analysis: Analysis, *, keep_words: bool = False) -> None:
        self.words: set[bytes] | None = set() if keep_words else None
        self._queries, self._documents = TextAnalyzer(analysis), TextAnalyzer(analysis)
        self.native = self._documents.native

    def split(self, texts: pa.Array) -> kernels.Tokens:
        """The tokens of documents."""
        offsets, data, valid = strings_of(texts)
        try:
            values, ends = kernels.encode_jsonb(data, offsets, valid)
            tokens = self.native.split_documents(ends.view(np.int64), values, valid)
        except kernels.InvalidJsonError as error:
            raise CorruptFileError(f"A JSON document cannot be parsed: {error.args[0]}") from error
        filtered = [self._filtered(token) for token in self.native.unresolved()]
        if self.words is not None:
            self.words.update(word for word in filtered if word is not None)
        self.native.resolve(filtered)
        self.native.number_kept(tokens)
        return tokens

    def _filtered(self, token: bytes) -> bytes | None:
        """The filtered path,type,word, given with the length of the part before it."""
        begin = 4 + int.from_bytes(token[:4], "little")
        if begin == len(token):
            return token[4:]
        word = self._documents.filter(token[begin:])
        return None if word is None else token[4:begin] + word

    def tokens(self, text: str) -> list[Token]:
        """The tokens of a query: triplets in the form of documents, separated by ``;``."""
        texts: list[bytes] = []
        for triplet in text.split(";"):
            parts = triplet.split(",", 2)
            if len(parts) != 3 or parts[1] not in _TYPES:
                raise InvalidSearchError(
                    f"{triplet!r} is not a query for JSON documents",
                    remedy="Write path,type,value, such as 'title,str,some words;year,number,2020'; types "
                    f"are {', '.join(_TYPES)}",
                )
            path, kind, value = parts
            texts += self._of_value(path, value if kind == "str" else None, f"{kind},{value}")
        return [Token(token, position) for position, token in enumerate(texts)]

    def _of_value(self, path: str, string: str | None, plain: str) -> list[bytes]:
        if string is None:
            return [f"{path},{plain}".encode()]
        return [f"{path},str,".encode() + token.text for token in self._queries.tokens(string)]


#: Tokenizes documents.
Analyzer = TextAnalyzer | JsonAnalyzer


def analyzer_of(analysis: Analysis, *, keep_words: bool = False) -> Analyzer:
    """The tokenizer for the documents of an index or column."""
    if analysis.lance_tokenizer == "json":
        return JsonAnalyzer(analysis, keep_words=keep_words)
    return TextAnalyzer(analysis, keep_words=keep_words)
