"""NGRAM (indices, NGRAM): for each trigram of letters and digits, the set of rows whose text contains it.

``ngram_postings.lance`` has the columns ``tokens``, ascending, and ``posting_list``. Texts are first
converted to lower case and folded to ASCII. A text that contains another has all its trigrams, but the
reverse is not always true, so the rows found must be tested.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from lance_engine.errors import CorruptFileError
from lance_engine.expr.tree import And, Column, Match, Node, Or
from lance_engine.expr.value_types import is_text
from lance_engine.index.cache import CACHE
from lance_engine.index.files import SegmentFiles, index_errors, whole_numbers
from lance_engine.index.inverted.folding import fold
from lance_engine.index.kind import ROW, VALUE, IndexOutput, RowFinderKind, U64Array
from lance_engine.index.order import equal_runs

FILE: Final = "ngram_postings.lance"
_LETTERS: Final = 3
_BASE: Final = 37
#: The token of null rows.
_NULL: Final = 0
# Bytes of row sets written at once, and number of texts tokenized at once.
_STEP_BYTES: Final = 8 << 20
_STEP_TEXTS: Final = 1 << 14
_TOKENS: Final = pa.uint32()
_SCHEMA: Final = pa.schema(
    [
        ("tokens", _TOKENS),
        pa.field("posting_list", pa.binary(), False, {"lance-encoding:compression": "none"}),
    ]
)


def _codes() -> npt.NDArray[np.uint32]:
    codes = np.zeros(256, dtype=np.uint32)
    for letters in (b"0123456789abcdefghijklmnopqrstuvwxyz", b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
        codes[np.frombuffer(letters, np.uint8)] = np.arange(1, _BASE)
    return codes


# The number of each letter, in either case, and digit; 0 for other bytes.
_CODES: Final = _codes()


class NGrams:
    """An open NGRAM segment: the tokens in memory, sets of rows read on demand."""

    def __init__(self, files: SegmentFiles) -> None:
        self._files = files
        with index_errors(files.segment.name):
            self._table = files.open(FILE, ["tokens", "posting_list"])
            self._tokens = whole_numbers(self._table.read(["tokens"]).column(0))
            if (self._tokens[1:] <= self._tokens[:-1]).any():
                raise CorruptFileError("The tokens are not in ascending order", path=self._table.path)

    @property
    def nbytes(self) -> int:
        return int(self._tokens.nbytes)

    @property
    def value_type(self) -> pa.DataType:
        return _TOKENS

    @property
    def statistics(self) -> Mapping[str, int]:
        return {"trigrams": len(self._tokens)}

    def estimate(self, node: Node, rows: int) -> int:
        return len(self._rows(node))

    def find(self, node: Node) -> U64Array:
        return _ids(self._rows(node))

    def entries(self) -> Iterator[pa.RecordBatch]:
        for number, token in enumerate(self._tokens.tolist()):
            yield _entries(token, _ids(self._posting_list(number)))

    def _rows(self, node: Node) -> BitMap64:
        """The rows that may match a supported predicate."""
        if isinstance(node, Match):
            lists = [self._having(token) for token in _tokens_of(node)]
            return reduce(lambda left, right: left & right, lists)
        parts = [self._rows(part) for part in node.children if answers(part)]
        if isinstance(node, Or):
            return reduce(lambda left, right: left | right, parts)
        return reduce(lambda left, right: left & right, parts)

    def _having(self, token: int) -> BitMap64:
        number = int(np.searchsorted(self._tokens, token))
        if number == len(self._tokens) or int(self._tokens[number]) != token:
            return BitMap64()
        return CACHE.get((self._files.key, number), lambda: self._posting_list(number), _size)

    def _posting_list(self, number: int) -> BitMap64:
        with index_errors(self._files.segment.name):
            data = self._table.read(["posting_list"], number, number + 1).column(0)[0].as_py()
            try:
                return BitMap64.deserialize(data)
            except (ValueError, IndexError, TypeError) as error:
                raise CorruptFileError("A set of rows is damaged", path=self._table.path) from error


def answers(node: Node) -> bool:
    """Whether a predicate is only true for texts that contain some trigram."""
    if isinstance(node, Match):
        return isinstance(node.operand, Column) and bool(_tokens_of(node))
    if isinstance(node, And):
        return any(answers(part) for part in node.operands)
    return isinstance(node, Or) and all(answers(part) for part in node.operands)


def _tokens_of(node: Match) -> list[int]:
    """Tokens of every matching text: from ASCII characters of the pattern, which folding does not change."""
    runs = _literal_runs(node.pattern) if node.kind in ("like", "ilike") else [node.pattern]
    trigrams = {
        run[start : start + _LETTERS].lower() for run in runs for start in range(len(run) - _LETTERS + 1)
    }
    plain = sorted(letters for letters in trigrams if letters.isascii() and letters.isalnum())
    return [_token(_CODES[list(letters.encode())]) for letters in plain]


def _token(codes: npt.NDArray[np.uint32]) -> int:
    return int(codes[0]) * _BASE * _BASE + int(codes[1]) * _BASE + int(codes[2])


def _literal_runs(pattern: str) -> list[str]:
    """The parts of a pattern of LIKE between its wildcards."""
    parts = re.findall(r"\\.|[%_]|[^\\%_]+|\\", pattern, re.DOTALL)
    runs = [""]
    for part in parts:
        if part in ("%", "_"):
            runs.append("")
        else:
            runs[-1] += part[1:] if len(part) == 2 and part[0] == "\\" else part
    return runs


def entries_of(ids: U64Array, texts: pa.Array) -> pa.RecordBatch:
    """One entry for each distinct token of a text, and one for each null row."""
    null = ids[texts.is_null().to_numpy(zero_copy_only=False)]
    pieces = [_entries(_NULL, null)]
    # Tokenizing takes several times the size of the texts.
    step = max(1, min(_STEP_TEXTS, _STEP_BYTES * len(texts) // max(1, texts.nbytes)))
    for start in range(0, len(texts), step):
        tokens, owners = _cut(texts.slice(start, step))
        pieces.append(_batch(tokens, ids[start + owners]))
    return pa.concat_batches(pieces)


def _cut(texts: pa.Array) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """The distinct tokens of each text, and the number of the text."""
    folded = [_folded(text) for text in texts.to_pylist()]
    ends = np.cumsum([len(text) for text in folded])
    codes = _CODES[np.frombuffer(b"".join(folded), np.uint8)]
    if len(codes) < _LETTERS:
        return np.empty(0, np.uint32), np.empty(0, np.int64)
    first, second, third = codes[:-2], codes[1:-1], codes[2:]
    whole = (first > 0) & (second > 0) & (third > 0)
    # A trigram does not reach from one text into the next.
    for back in (1, 2):
        last = ends - back
        whole[last[(last >= 0) & (last < len(whole))]] = False
    places = np.flatnonzero(whole)
    tokens = (first[places] * _BASE + second[places]) * _BASE + third[places]
    owners = np.searchsorted(ends, places, side="right").astype(np.uint64)
    pairs = np.unique(owners << np.uint64(32) | tokens)
    return pairs.astype(np.uint32), (pairs >> np.uint64(32)).astype(np.int64)


def _folded(text: str | None) -> bytes:
    # Letters of ASCII have the same code in either case.
    text = text or ""
    return (text if text.isascii() else fold(text.lower())).encode()


def _entries(token: int, ids: U64Array) -> pa.RecordBatch:
    return _batch(np.full(len(ids), token, dtype=np.uint32), ids)


def _batch(tokens: npt.NDArray[np.uint32], ids: U64Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(tokens), pa.array(ids)], [VALUE, ROW])


def build(
    entries: Iterable[pa.RecordBatch], kind: pa.DataType, output: IndexOutput, options: Mapping[str, Any]
) -> bytes:
    """Write the file of a segment from sorted entries."""
    file = output.create(FILE, _SCHEMA)
    tokens: list[int] = []
    rows: list[BitMap64] = []
    held = 0

    def write(count: int) -> None:
        data = [bitmap.serialize() for bitmap in rows[:count]]
        columns = [pa.array(tokens[:count], _TOKENS), pa.array(data, pa.binary())]
        file.write(pa.RecordBatch.from_arrays(columns, schema=_SCHEMA))
        del tokens[:count], rows[:count]

    for batch in entries:
        ids = batch.column(1).to_numpy()
        for begin, end in equal_runs(batch.column(0)):
            token, bitmap = batch.column(0)[begin].as_py(), _bitmap(ids[begin:end])
            if tokens and tokens[-1] == token:
                rows[-1] |= bitmap
            else:
                tokens.append(token)
                rows.append(bitmap)
            held += 2 * (end - begin) + 64
        if held >= _STEP_BYTES:
            # The rows of the last token may still grow.
            write(len(tokens) - 1)
            held = 0
    write(len(tokens))
    file.finish({})
    return b""


def _bitmap(ids: U64Array) -> BitMap64:
    return BitMap64(array("Q", np.ascontiguousarray(ids).tobytes()))


def _ids(rows: BitMap64) -> U64Array:
    return np.frombuffer(rows.to_array(), dtype=np.uint64)


def _size(rows: BitMap64) -> int:
    return 256 + 2 * len(rows)


NGRAM: Final = RowFinderKind(
    name="ngram",
    message="NGram",
    newest=0,
    supports=is_text,
    holds_addresses=lambda version: False,
    stable_version=0,
    open=NGrams,
    build=build,
    answers=answers,
    entries_of=entries_of,
    entry_type=lambda kind: _TOKENS,
    is_exact=False,
)
