"""Targets of JSON columns: binary values to text, text to binary values, and documents to tokens."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from fuzz_loop import Target
from fuzz_mutation import mutate_bytes
from lance_engine import kernels
from lance_engine.encodings.jsonb import json_text, stored_json
from lance_engine.errors import CorruptFileError, InvalidSearchError, SchemaMismatchError
from lance_engine.index.inverted.analysis import Analysis
from lance_engine.index.inverted.json_documents import JsonAnalyzer
from lance_engine.schema_tree import Schema

TEXTS = [
    "null",
    "true",
    "-0",
    "[1, 2.5e3, -7, 1e-400, 18446744073709551615, -9223372036854775808, 1e308]",
    "[[[[[[[[]]]]]]], [], {}, false]",
    '{"a": {"b": [1, {"c": null}]}, "": "x", "z": -1.5, "long key of some bytes": true}',
    '"text \\u00e9\\ud83d\\ude00 \\n\\t\\"\\\\ \\/ \\b\\f\\r"',
    '{"\\u0000": "ünïcödé", "k1": "v1", "k2": "v2", "k3": ["a", "b"]}',
    "[" * 40 + "]" * 40,
    "[" + ", ".join(map(str, range(70))) + "]",
]
#: Documents of full text, and a query.
DOCUMENTS = [
    '{"title": "The quick brown fox", "n": 7, "tags": ["red fox", "", null], "in": {"a.b": {"c,d": -0.0}}}',
    '{"k": 12345678901234567890123, "x": 1e-400, "y": NaN, "z": [Infinity, true]}',
    '{"a": "\\ud83d", "\\ud800": "\\udc00 x"}',
    "[" * 900 + "]" * 900,
    "title,str,quick brown;n,number,7;in.a,bool,true;,null,null",
]
PIECES = [
    b"[",
    b"]",
    b"{",
    b"}",
    b'"',
    b",",
    b":",
    b"\\",
    b"\\u12",
    b"1e999",
    b"-",
    b"0",
    b".5",
    b"\xff",
    b"\0",
]
_FIELD = Schema.from_arrow(pa.schema([pa.field("value", pa.json_())])).fields[0]


@dataclass(frozen=True)
class JsonValue:
    """A value in one of both forms."""

    data: bytes

    def mutated(self, rng: random.Random, others: Sequence[Any]) -> JsonValue:
        if rng.random() < 0.3:
            at = rng.randrange(len(self.data) + 1)
            return JsonValue(self.data[:at] + rng.choice(PIECES) + self.data[at:])
        return JsonValue(mutate_bytes(rng, self.data, rng.choice(others).data))

    def stored(self) -> bytes:
        return self.data


def _binary(texts: list[str]) -> pa.LargeBinaryArray:
    return stored_json(pa.array(texts), _FIELD)


def _column(value: bytes) -> pa.LargeBinaryArray:
    """The value between others and nulls, and not at the start of the data."""
    return pa.array([b"skipped", b"\x20\0\0\0\x40\0\0\0", value, None, value], pa.large_binary())[1:]


def read_binary(input: JsonValue) -> str:
    """The text of a binary value is JSON, and means the same once it was stored."""
    try:
        texts = json_text(_column(input.data))
    except kernels.InvalidJsonError:
        return ""
    texts.validate(full=True)
    text = texts[1].as_py()
    json.loads(text)
    with suppress(SchemaMismatchError):  # keys that come twice, numbers that text cannot hold
        again = json_text(_binary([text]))[0].as_py()
        if json.loads(again) != json.loads(text):  # keys may come in another order
            return f"{text!r} is stored as {again!r}"
    return ""


def read_text(input: JsonValue) -> str:
    """Text that is stored is JSON for others too, and reads as what it is."""
    try:
        text = input.data.decode()
        stored = _binary([text])
    except (SchemaMismatchError, UnicodeDecodeError):
        return ""
    found = json_text(stored)[0].as_py()
    if json.loads(found) != json.loads(text, parse_int=_number):
        return f"{text!r} reads as {found!r}"
    return ""


def _number(digits: str) -> int | float:
    """A number without fraction as it is stored: as a double if it does not fit into 64 bits."""
    number = int(digits)
    return number if -(2**63) <= number < 2**64 else float(digits)


#: Each string is one token, as other values are; and words of strings are.
_WHOLE = Analysis(
    base_tokenizer="raw",
    max_token_length=None,
    lower_case=False,
    stem=False,
    remove_stop_words=False,
    ascii_folding=False,
    lance_tokenizer="json",
)
_WORDS = Analysis(lance_tokenizer="json")
_KINDS = (b"str", b"number", b"bool", b"null")


def _leaves(text: str) -> int:
    """How many values of a document are not containers."""
    count, left = 0, [json.loads(text)]
    while left:
        value = left.pop()
        if isinstance(value, dict | list):
            left += value.values() if isinstance(value, dict) else value
        else:
            count += 1
    return count


def read_document(input: JsonValue) -> str:
    """Documents are tokens of some kind, one for each value where strings are not cut; so are queries."""
    try:
        text = input.data.decode()
    except UnicodeDecodeError:
        return ""
    with suppress(InvalidSearchError):
        JsonAnalyzer(_WORDS).tokens(text)
    documents = pa.array([None, "[1]", text, "{}"])
    try:
        for analysis in (_WHOLE, _WORDS):
            analyzer = JsonAnalyzer(analysis)
            found = [token for token, _ in analyzer.native.tokens(analyzer.split(documents))]
            for token in found:
                token.decode()
                if not any(b"," + kind + b"," in token for kind in _KINDS):
                    return f"{token!r} is a token"
            if analysis is _WHOLE and len(found) != 1 + _leaves(text):
                return f"{len(found)} tokens: {found}"
    except CorruptFileError:
        return ""
    return ""


TARGETS = [
    Target(
        "JSON: binary",
        lambda: [JsonValue(_binary([text])[0].as_py()) for text in TEXTS],
        read_binary,
        load=JsonValue,
    ),
    Target("JSON: text", lambda: [JsonValue(text.encode()) for text in TEXTS], read_text, load=JsonValue),
    Target(
        "JSON: documents",
        lambda: [JsonValue(text.encode()) for text in (*TEXTS, *DOCUMENTS)],
        read_document,
        load=JsonValue,
    ),
]
