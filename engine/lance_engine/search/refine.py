"""Exact distances of the rows that an index finds: their vectors are read and compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from lance_engine import kernels
from lance_engine.distinct import distinct
from lance_engine.scan.take import take
from lance_engine.search.column import VectorColumn, vectors_in
from lance_engine.search.options import SearchOptions
from lance_engine.search.query import Query

if TYPE_CHECKING:
    from lance_engine.scan.fragment import FragmentReader
    from lance_engine.search.choice import OpenIndex
    from lance_engine.table.snapshot import Snapshot

# How many rows to compare for each row of the result, by how the index stores vectors: with these, an index
# finds more than nine of the ten nearest rows of common embeddings in the partitions that it searches.
_FACTORS: Final = {"FLAT": 1, "SQ": 4, "RQ": 4, "PQ": 10}
# Larger results get fewer rows for each, because a few hundred more hardly change what is found.
_MOST_ROWS: Final = 512
_MANY_ROWS_FACTOR: Final = 2
# Bytes of vectors that are read at once, and the minimum number of vectors.
_READ_BYTES: Final = 8 << 20
_READ_ROWS: Final = 256


def is_exact(index: OpenIndex, column: VectorColumn) -> bool:
    """Whether an index stores the vectors of a column with the precision that exact search has."""
    # Longer elements are compared in single precision, shorter ones are rounded when they are normalized.
    return index.coding == "FLAT" and column.value_type in (pa.float32(), pa.uint8())


def candidates_wanted(k: int, index: OpenIndex, options: SearchOptions) -> int:
    """The number of rows to find in an index, if `k` rows of them are returned."""
    if options.refine_factor is not None:
        return k * options.refine_factor
    wanted = max(k, min(k * _FACTORS[index.coding], max(_MOST_ROWS, k * _MANY_ROWS_FACTOR)))
    return wanted if options.ef is None else min(wanted, max(k, options.ef))


def refine(
    snapshot: Snapshot,
    reader_for: Callable[[int], FragmentReader],
    query: Query,
    candidates: kernels.Nearest,
    result: kernels.Nearest,
) -> None:
    """Offer the candidates to `result`, with their exact distances."""
    numbers, ids, _ = candidates.result()
    column = query.column
    step = max(_READ_ROWS, _READ_BYTES // column.vector_bytes)
    for begin in range(0, len(ids), step):
        asked, wanted = numbers[begin : begin + step], ids[begin : begin + step]
        rows = distinct(wanted)
        read = take(snapshot, reader_for, rows, [column.parts[0]]).combine_chunks().to_batches()
        for batch in read:
            values, valid = vectors_in(column.of(batch), column)
            matrix = values.reshape(len(rows), -1)
            places = np.searchsorted(rows, wanted)
            # Candidates are sorted by query.
            borders = np.flatnonzero(np.diff(asked, prepend=-1, append=-1))
            for first, last in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
                number, here = int(asked[first]), places[first:last]
                result.scan(
                    query.compiled(None, number, number + 1),
                    number,
                    np.ascontiguousarray(matrix[here]).reshape(-1),
                    np.ascontiguousarray(wanted[first:last]),
                    None if valid is None else np.ascontiguousarray(valid[here]),
                )
