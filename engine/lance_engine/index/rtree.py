"""RTREE (indices, RTREE): the bounding boxes of geometries in a tree, for conditions on their coordinates.

``page_data.lance`` has the columns ``bbox`` and ``id``: pages of a fixed number of rows, the boxes of rows
first, then level by level the boxes of the pages below, the root last. It supports conditions that bound both
coordinates of points, or the corners of boxes, from above: other rows may have no box. Such indices are read,
not built.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as at

from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.expr.tree import And, Column, Comparison, Literal, Node
from lance_engine.index.cache import CACHE
from lance_engine.index.files import SegmentFiles, index_errors, number_in, whole_numbers
from lance_engine.index.kind import RowFinderKind, U64Array, not_built

FILE: Final = "page_data.lance"
_COLUMNS: Final = ("bbox", "id")
_SIDES: Final = ("xmin", "ymin", "xmax", "ymax")
_MAX_PAGE_ROWS: Final = 1 << 24
# The type that columns of all geometries have for their indices.
_ANY: Final = pa.null()

F64Array = npt.NDArray[np.float64]


class RTree:
    """An open RTREE segment: pages are read on demand."""

    def __init__(self, files: SegmentFiles) -> None:
        self._files = files
        with index_errors(files.segment.name):
            self._table = files.open(FILE, _COLUMNS)
            metadata = self._table.schema.metadata
            self._page_rows = number_in(metadata, "page_size", 4096, _MAX_PAGE_ROWS)
            if self._page_rows < 2:
                raise CorruptFileError("The tree has pages of a single row", path=self._table.path)
            # Empty trees may have no entry.
            self._items = number_in(metadata, "num_items", 1, self._table.rows) if self._table.rows else 0
            self._levels = _levels(self._items, self._page_rows)
            if self._levels[-1][1] != self._table.rows:
                raise CorruptFileError(
                    f"A tree over {self._items} rows has {self._levels[-1][1]} entries, but the file "
                    f"{self._table.rows}",
                    path=self._table.path,
                )
        self._last: tuple[Node, U64Array] | None = None

    @property
    def nbytes(self) -> int:
        return 1 << 12

    @property
    def value_type(self) -> pa.DataType:
        return _ANY

    @property
    def statistics(self) -> Mapping[str, int]:
        return {"rows": self._items, "levels": len(self._levels), "rows_per_page": self._page_rows}

    def estimate(self, node: Node, rows: int) -> int:
        return len(self.find(node))

    def find(self, node: Node) -> U64Array:
        # The estimate for a search is followed by the search itself.
        last = self._last
        if last is not None and last[0] is node:
            return last[1]
        row_ids = self._search(_bounds(node))
        self._last = node, row_ids
        return row_ids

    def entries(self) -> Iterator[pa.RecordBatch]:
        raise UnsupportedFeatureError("Indices of this kind can be read, but not built")

    def _search(self, bounds: F64Array) -> U64Array:
        """The rows whose box may intersect the bounds."""
        if not self._items:
            return np.empty(0, dtype=np.uint64)
        with index_errors(self._files.segment.name):
            first, end = self._levels[-1]
            pages = [(first, end)]
            for level in range(len(self._levels) - 1, -1, -1):
                entries = [self._meeting(begin, stop, bounds) for begin, stop in pages]
                ids = np.concatenate([np.empty(0, dtype=np.uint64), *entries])
                if level == 0:
                    return ids
                pages = self._below(level - 1, ids)
        raise AssertionError("the last level has been searched")

    def _meeting(self, begin: int, end: int, bounds: F64Array) -> U64Array:
        """The ids of the entries of a page that intersect the bounds."""
        boxes, ids = CACHE.get(
            (self._files.key, begin), lambda: self._read(begin, end), lambda made: 40 * len(made[1]) + 256
        )
        # NaN in an upper level means no bound.
        low, high = boxes[:, :2], boxes[:, 2:]
        meets = ~((high < bounds[0]) | (low > bounds[1])).any(axis=1)
        meeting: U64Array = ids[meets]
        return meeting

    def _read(self, begin: int, end: int) -> tuple[F64Array, U64Array]:
        batch = self._table.read(_COLUMNS, begin, end)
        kind = batch.schema.field(0).type
        if not at.is_struct(kind) or any(
            kind.get_field_index(side) < 0 or not at.is_float64(kind.field(side).type) for side in _SIDES
        ):
            raise CorruptFileError("The boxes of the index are not of doubles", path=self._table.path)
        column = batch.column(0)
        if column.null_count:
            raise CorruptFileError("A box of the index is null", path=self._table.path)
        sides = [column.field(side).to_numpy(zero_copy_only=False) for side in _SIDES]
        return np.stack(sides, axis=1), whole_numbers(batch.column(1)).astype(np.uint64)

    def _below(self, level: int, pages: U64Array) -> list[tuple[int, int]]:
        """The rows of some pages of a level."""
        first, end = self._levels[level]
        # Every level before begins with its own page.
        before = sum(-(-(stop - begin) // self._page_rows) for begin, stop in self._levels[:level])
        count = -(-(end - first) // self._page_rows)
        numbers = np.sort(pages)
        if len(numbers) and not (before <= int(numbers[0]) and int(numbers[-1]) < before + count):
            raise CorruptFileError("A page of the index is not on the level below", path=self._table.path)
        if (numbers[1:] == numbers[:-1]).any():
            raise CorruptFileError("A page of the index is listed twice", path=self._table.path)
        begins = first + (numbers.astype(np.int64) - before) * self._page_rows
        return [(begin, min(begin + self._page_rows, end)) for begin in begins.tolist()]


def _levels(items: int, page_rows: int) -> list[tuple[int, int]]:
    """The entries of each level as ranges of rows of the file, those of the table's rows first."""
    levels = [(0, items)]
    while levels[-1][1] - levels[-1][0] > page_rows:
        first, end = levels[-1]
        levels.append((end, end - (first - end) // page_rows))
    return levels


def answers(node: Node) -> bool:
    """Whether a predicate bounds points, or boxes, from above in both directions."""
    bounds = _bounds(node)
    return bool(np.isfinite(bounds[1]).all())


def _bounds(node: Node) -> F64Array:
    """Lower and upper bounds of x and y that a box must intersect; infinite means unbounded.

    Fields without an upper bound are ignored: NaN is greater than all numbers, and a row with NaN may have no
    box.
    """
    bounds = np.array([[-np.inf] * 2, [np.inf] * 2])
    for direction, axis in enumerate("xy"):
        for field in (axis, f"{axis}min", f"{axis}max"):
            low, high = _interval(node, field)
            # Boxes across the antimeridian have a minimum above their maximum.
            if high < np.inf and field != f"{axis}min":
                bounds[0, direction] = max(bounds[0, direction], low)
            if field != f"{axis}max":
                bounds[1, direction] = min(bounds[1, direction], high)
    return bounds


def _interval(node: Node, field: str) -> tuple[float, float]:
    """The bounds of a field of the column, by all conditions that hold."""
    low, high = -np.inf, np.inf
    for operand in node.operands if isinstance(node, And) else (node,):
        if not isinstance(operand, Comparison) or not isinstance(operand.left, Column):
            continue
        value = operand.right.value.as_py() if isinstance(operand.right, Literal) else None
        if operand.left.parts[-1] != field or not isinstance(value, float) or value != value:
            continue
        if operand.op in (">", ">=", "="):
            low = max(low, value)
        if operand.op in ("<", "<=", "="):
            high = min(high, value)
    return low, high


RTREE: Final = RowFinderKind(
    name="rtree",
    message="RTree",
    newest=0,
    supports=lambda kind: False,
    holds_addresses=lambda version: False,
    stable_version=0,
    open=RTree,
    build=not_built,
    answers=answers,
    entry_type=lambda kind: _ANY,
    is_exact=False,
    reads_fields=True,
)
