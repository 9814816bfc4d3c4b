"""The order of values in row indices, and external sorting.

Nulls come first, then values ascending; -0.0 comes before 0.0, and NaN after everything else.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from lance_engine.arrow_values import as_integers
from lance_engine.interrupts import interruptible

#: Memory in bytes for values and rows of an `ExternalSorter`, including sorting and merging.
SORT_BYTES: Final = 256 << 20
# Copies of a chunk during sorting: the pieces, their concatenation, its order, the result.
_COPIES: Final = 4
_BLOCK_ROWS: Final = 1 << 16
_MIN_BLOCK_ROWS: Final = 1 << 10
# Maximum share of distinct strings for which sorting these first pays.
_DISTINCT_SHARE: Final = 1 / 8


def sort_key(values: pa.Array) -> pa.Array:
    """An array without NaN whose natural order is that of `values`; nulls stay null."""
    kind = values.type
    if at.is_floating(kind):
        return _floating_key(values)
    if at.is_temporal(kind):
        return as_integers(values)
    if at.is_boolean(kind):
        return values.cast(pa.uint8())
    if at.is_fixed_size_binary(kind):
        return values.cast(pa.binary())
    return values


def _floating_key(values: pa.Array) -> pa.Array:
    bits = values.type.bit_width
    unsigned = {16: np.uint16, 32: np.uint32, 64: np.uint64}[bits]
    held = pc.fill_null(values, 0).to_numpy(zero_copy_only=False) if values.null_count else values.to_numpy()
    raw = held.view(unsigned)
    sign = unsigned(1 << (bits - 1))
    key = np.where(raw & sign, ~raw, raw | sign)
    key[np.isnan(held)] = unsigned((1 << bits) - 1)
    mask = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    return pa.array(key, mask=mask)


def sorted_by_value(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of a batch in the order of its first column; equal ones keep their order."""
    key = sort_key(batch.column(0))
    if at.is_string(key.type) or at.is_large_string(key.type):
        coded = key.dictionary_encode()
        if len(coded.dictionary) < _DISTINCT_SHARE * len(key):
            ranks = np.empty(len(coded.dictionary), dtype=np.int32)
            ranks[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(len(ranks), dtype=np.int32)
            key = pa.array(ranks).take(coded.indices)
    return interruptible(lambda: batch.take(pc.array_sort_indices(key, null_placement="at_start")))


def equal_runs(values: pa.Array) -> Iterator[tuple[int, int]]:
    """The half-open ranges of equal values (including nulls) in sorted `values`."""
    if not len(values):
        return
    key = sort_key(values)
    differs = pc.fill_null(pc.not_equal(key.slice(1), key.slice(0, len(key) - 1)), True)
    changed = differs.to_numpy(zero_copy_only=False).copy()
    # Comparing two neighbouring nulls is null as well; nulls come first.
    changed[: max(0, key.null_count - 1)] = False
    borders = [0, *(np.flatnonzero(changed) + 1).tolist(), len(values)]
    yield from itertools.pairwise(borders)


def merged(runs: Iterable[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Several sorted streams as one; among equal values the earlier stream comes first."""
    heads = [_Head(run) for run in runs]
    heads = [head for head in heads if head.load()]
    while len(heads) > 1:
        bound = min((head.last for head in heads), key=_ordinal)
        pieces = [piece for head in heads if (piece := head.take_up_to(bound)).num_rows]
        yield sorted_by_value(pa.concat_batches(pieces)) if len(pieces) > 1 else pieces[0]
        heads = [head for head in heads if head.load()]
    for head in heads:
        yield head.batch
        yield from head.rest


def _ordinal(value: Any) -> tuple[bool, Any]:
    """Sorts None first."""
    return (False, 0) if value is None else (True, value)


def _comparable(key: pa.Array) -> pa.Array:
    """Values that Python has exactly, with the same order.

    Strings are bytes, because those of a damaged index may not be UTF-8; times and dates are numbers.
    """
    if at.is_temporal(key.type):
        return as_integers(key)
    if at.is_string(key.type):
        return key.view(pa.binary())
    return key.view(pa.large_binary()) if at.is_large_string(key.type) else key


class _Head:
    """The first block of a stream that is not yet consumed."""

    def __init__(self, rest: Iterator[pa.RecordBatch]) -> None:
        self.rest = rest
        self.batch = pa.RecordBatch.from_arrays([], names=[])
        self._key = pa.nulls(0)

    def load(self) -> bool:
        """Load a block if necessary; False at the end of the stream."""
        while not self.batch.num_rows:
            following = next(self.rest, None)
            if following is None:
                return False
            self.batch = following
            if following.num_rows:
                self._key = _comparable(sort_key(following.column(0)))
        return True

    @property
    def last(self) -> Any:
        return self._key[-1].as_py()

    def take_up_to(self, bound: Any) -> pa.RecordBatch:
        """Remove and return the rows with values up to `bound`."""
        rows = self._key.null_count
        if bound is not None:
            below = pc.less_equal(self._key, pa.scalar(bound, self._key.type))
            rows += below.true_count
        taken = self.batch.slice(0, rows)
        self.batch, self._key = self.batch.slice(rows), self._key.slice(rows)
        return taken


class ExternalSorter:
    """Sorts batches by their first column, with temporary files if they do not fit into memory."""

    def __init__(self, memory: int = SORT_BYTES) -> None:
        self._chunk_bytes = max(1, memory // _COPIES)
        self._held: list[pa.RecordBatch] = []
        self._bytes = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._files: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def spilled_files(self) -> int:
        """The number of temporary files."""
        return len(self._files)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        self._held.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= self._chunk_bytes:
            self._spill()

    def sorted(self) -> Iterator[pa.RecordBatch]:
        """All rows in order."""
        if not self._files:
            return self._blocks(_BLOCK_ROWS)
        self._spill()
        return merged([_read(path) for path in self._files])

    def _blocks(self, rows: int) -> Iterator[pa.RecordBatch]:
        if not self._held:
            return
        batch = sorted_by_value(pa.concat_batches(self._held))
        self._held, self._bytes = [], 0
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)

    def _spill(self) -> None:
        if not self._held:
            return
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="lance-index-")
        path = Path(self._folder.name) / f"{len(self._files)}.arrow"
        total = sum(batch.num_rows for batch in self._held)
        # Merging holds one block of every file: smaller ones where values are large.
        rows = max(_MIN_BLOCK_ROWS, min(_BLOCK_ROWS, total * (1 << 22) // max(1, self._bytes)))
        with pa.ipc.new_file(path, self._held[0].schema) as writer:
            for block in self._blocks(rows):
                writer.write_batch(block)
        self._files.append(path)


def _read(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as source:
        reader = pa.ipc.open_file(source)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
