"""BITMAP (indices, BITMAP): for each distinct value, the set of rows with it.

``bitmap_page_lookup.lance`` has the columns ``keys``, distinct, null first and ascending, and ``bitmaps``. In
files of old releases of pylance, keys have no order; pylance 14 sometimes has null at the end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lance_engine.errors import CorruptFileError, LanceError, UnsupportedFeatureError
from lance_engine.expr.evaluate import evaluate
from lance_engine.expr.total_order import tells_nan_apart
from lance_engine.expr.tree import Node
from lance_engine.file.table import FileTable
from lance_engine.format.row_id_map import ids_of, parse_row_id_map, row_id_map, serialize_row_id_map
from lance_engine.index.btree import supports
from lance_engine.index.cache import CACHE
from lance_engine.index.files import SegmentFiles, index_errors
from lance_engine.index.kind import (
    ROW,
    VALUE,
    IndexOutput,
    RowFinderKind,
    U64Array,
    as_batch,
    column_of,
    is_plain,
)
from lance_engine.index.order import equal_runs, sort_key

FILE: Final = "bitmap_page_lookup.lance"
_STATISTICS: Final = "lance:index_stats"
# Bytes of bitmaps that are written at once.
_STEP_BYTES: Final = 8 << 20
# Maximum number of bitmaps that are read to estimate a row count.
_STEP_KEYS: Final = 256

# Bitmaps of the lower halves of row ids by upper half.
Rows = Mapping[int, BitMap | None]


class Bitmap:
    """An open BITMAP segment: the keys in memory, bitmaps read on demand."""

    def __init__(self, files: SegmentFiles) -> None:
        self._files = files
        with index_errors(files.segment.name):
            self._table = files.open(FILE, ["keys", "bitmaps"])
            self._keys = self._table.read(["keys"]).column(0)

    @property
    def nbytes(self) -> int:
        return int(self._keys.get_total_buffer_size())

    @property
    def value_type(self) -> pa.DataType:
        return self._keys.type

    @property
    def statistics(self) -> Mapping[str, int]:
        return {"distinct_values": len(self._keys)}

    def estimate(self, node: Node, rows: int) -> int:
        return self.estimate_rows(self._matching(node), rows)

    def estimate_rows(self, keys: npt.NDArray[np.int64], rows: int) -> int:
        """The estimated number of rows, of `rows`, that have one of these keys."""
        if len(keys) > _STEP_KEYS:
            return rows * len(keys) // len(self._keys)
        return sum(_cardinality(bitmap) for bitmap in self._bitmaps(keys))

    @property
    def table(self) -> FileTable:
        """The file."""
        return self._table

    @property
    def keys(self) -> pa.Array:
        """The distinct values."""
        return self._keys

    def find(self, node: Node) -> U64Array:
        return self.rows_of(self._matching(node))

    def rows_of(self, keys: npt.NDArray[np.int64]) -> U64Array:
        """The rows of these keys, in any order."""
        row_ids = [ids for rows in self._bitmaps(keys) for ids in ids_in(rows)]
        return np.concatenate(row_ids) if row_ids else np.empty(0, dtype=np.uint64)

    def entries(self) -> Iterator[pa.RecordBatch]:
        order = pc.array_sort_indices(sort_key(self._keys), null_placement="at_start").to_numpy()
        for key, rows in zip(order, self._bitmaps(order), strict=True):
            for ids in ids_in(rows):
                values = self._keys.take(pa.array(np.full(len(ids), key, dtype=np.int64)))
                yield pa.RecordBatch.from_arrays([values, pa.array(ids)], [VALUE, ROW])

    def _matching(self, node: Node) -> npt.NDArray[np.int64]:
        """The numbers of the keys that match."""
        column = column_of(node)
        assert column is not None
        mask = pc.fill_null(evaluate(node, as_batch(column, self._keys)), False)
        return np.flatnonzero(mask.to_numpy(zero_copy_only=False))

    def _bitmaps(self, keys: npt.NDArray[np.int64]) -> Iterator[Rows]:
        for number in keys.tolist():
            yield CACHE.get((self._files.key, number), lambda: self._read(number), _size)  # noqa: B023

    def _read(self, number: int) -> Rows:
        with index_errors(self._files.segment.name):
            data = self._table.read(["bitmaps"], number, number + 1).column(0)[0].as_py()
            if data is None:
                raise CorruptFileError("A set of rows is null", path=self._table.path)
            try:
                return parse_row_id_map(data)
            except LanceError as error:
                raise error.at(path=self._table.path) from error.__cause__


def build(
    entries: Iterable[pa.RecordBatch], kind: pa.DataType, output: IndexOutput, options: Mapping[str, Any]
) -> bytes:
    """Write the file of a segment from sorted entries."""
    write_bitmaps(entries, kind, output, lambda: ({}, []))
    return b""


def write_bitmaps(
    entries: Iterable[pa.RecordBatch],
    kind: pa.DataType,
    output: IndexOutput,
    more: Callable[[], tuple[Mapping[str, str], Iterable[bytes]]],
) -> None:
    """Write sets of rows by value; `more` is called at the end for additional metadata and buffers."""
    schema = pa.schema([("keys", kind), ("bitmaps", pa.binary())])
    file = output.create(FILE, schema)
    pending = _Pending(schema)
    written = 0
    for batch in entries:
        ids = batch.column(1).to_numpy()
        for begin, end in equal_runs(batch.column(0)):
            pending.add(batch.column(0).slice(begin, 1), ids[begin:end])
        if pending.bytes >= _STEP_BYTES:
            ready = pending.take()
            written += ready.num_rows
            file.write(ready)
    ready = pending.take(last=True)
    file.write(ready)
    statistics = json.dumps({"num_bitmaps": written + ready.num_rows}, separators=(",", ":"))
    metadata, buffers = more()
    file.finish({**metadata, _STATISTICS: statistics}, buffers)


class _Pending:
    """Keys and their rows that have not been written; more rows of the last key may follow."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._keys: list[pa.Array] = []
        self._rows: list[dict[int, BitMap]] = []
        self._last = pa.nulls(0)
        self.bytes = 0

    def add(self, key: pa.Array, ids: U64Array) -> None:
        """Add rows of a key, which is the previous key or a greater one."""
        bitmaps = row_id_map(ids)
        # Arrays are compared, because strings of a damaged file may not be convertible to Python objects.
        mark = sort_key(key)
        if self._keys and mark.equals(self._last):
            for high, lows in bitmaps.items():
                held = self._rows[-1].setdefault(high, lows)
                held |= lows
        else:
            self._keys.append(key)
            self._rows.append(bitmaps)
            self._last = mark
        self.bytes += 2 * len(ids) + 64

    def take(self, *, last: bool = False) -> pa.RecordBatch:
        """The completed entries, ready to be written; with `last` all entries."""
        count = len(self._keys) if last else len(self._keys) - 1
        keys, rows = self._keys[:count], self._rows[:count]
        self._keys, self._rows, self.bytes = self._keys[count:], self._rows[count:], 0
        data = pa.array([serialize_row_id_map(bitmaps) for bitmaps in rows], pa.binary())
        none = pa.nulls(0, self._schema.field(0).type)
        return pa.RecordBatch.from_arrays([pa.concat_arrays([none, *keys]), data], schema=self._schema)


def ids_in(rows: Rows) -> Iterator[U64Array]:
    """The row ids of a set."""
    for high, lows in rows.items():
        if lows is None:
            raise UnsupportedFeatureError(
                "A set of rows represents a whole fragment", remedy="Rebuild the index"
            )
        yield ids_of(high, lows)


def _cardinality(rows: Rows) -> int:
    # A set that does not list its rows makes the index unusable here.
    return sum(1 << 32 if lows is None else len(lows) for lows in rows.values())


def _size(rows: Rows) -> int:
    # An array container holds two bytes per row, a bitmap container at most this many.
    return 256 + sum(0 if lows is None else min(2 * len(lows), 1 << 29) for lows in rows.values())


BITMAP: Final = RowFinderKind(
    name="bitmap",
    message="Bitmap",
    newest=0,
    supports=supports,
    holds_addresses=lambda version: False,
    stable_version=0,
    open=Bitmap,
    build=build,
    # All kinds of NaN share one set of rows.
    answers=lambda node: is_plain(node) and not tells_nan_apart(node),
)
