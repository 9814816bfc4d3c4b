"""BTREE (indices, BTREE): all values in order with their rows, in pages whose bounds are in a lookup file.

``page_data.lance`` has the columns ``values`` and ``ids``, nulls first; page p are rows [p * B, (p + 1) * B).
``page_lookup.lance`` has one row per page: ``min``, ``max``, ``null_count``, ``page_idx``; B is its metadata
``batch_size``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine.errors import CorruptFileError, InvalidArgumentError
from lance_engine.expr.evaluate import evaluate
from lance_engine.expr.statistics import ColumnStatistics, ZoneMatch, match_zones
from lance_engine.expr.tree import Column, Node
from lance_engine.expr.value_types import is_bytes, is_comparable, is_text, value_type
from lance_engine.fetch import each_ahead
from lance_engine.file.zone_map import ZoneMap
from lance_engine.index.cache import CACHE
from lance_engine.index.files import SegmentFiles, index_errors, number_in, whole_numbers
from lance_engine.index.kind import (
    ROW,
    VALUE,
    IndexOutput,
    RowFinder,
    RowFinderKind,
    U64Array,
    as_batch,
    column_of,
)

DATA_FILE: Final = "page_data.lance"
LOOKUP_FILE: Final = "page_lookup.lance"
_PAGE_ROWS: Final = "batch_size"
_DEFAULT_PAGE_ROWS: Final = 4096
_MAX_PAGE_ROWS: Final = 1 << 24
# Testing a page costs about as much as this many rows that are known to match.
_TESTED_PAGE_ROWS: Final = 1024
# Rows tested at once: an Arrow call takes longer than comparing the rows of a page.
_TESTED_ROWS: Final = 1 << 16
# Rows decoded at once if all of them are needed.
_STEP_ROWS: Final = 1 << 18

Bools = npt.NDArray[np.bool_]


class BTree:
    """An open BTREE segment: the lookup in memory, pages read on demand."""

    def __init__(self, files: SegmentFiles) -> None:
        self._files, self._is_remote = files, not files.is_local
        with index_errors(files.segment.name):
            lookup = files.open(LOOKUP_FILE, ["min", "max", "null_count", "page_idx"])
            self.page_rows = number_in(lookup.schema.metadata, _PAGE_ROWS, _DEFAULT_PAGE_ROWS, _MAX_PAGE_ROWS)
            self._data = files.open(DATA_FILE, ["values", "ids"])
            self.rows = self._data.rows
            pages = -(-self.rows // self.page_rows)
            if lookup.rows != pages:
                raise CorruptFileError(
                    f"{lookup.rows} pages are described, but the index has {pages}", path=lookup.path
                )
            table = lookup.read(["min", "max", "null_count", "page_idx"])
            order = whole_numbers(table.column("page_idx"))
            if not np.array_equal(order, np.arange(pages)):
                if not np.array_equal(np.sort(order), np.arange(pages)):
                    raise CorruptFileError("Pages are missing or described twice", path=lookup.path)
                table = table.take(pa.array(np.argsort(order)))
            self._lookup = _LookupPages(self.rows, self.page_rows, table)
        self.pages = pages
        self._last: tuple[Node, ZoneMatch] | None = None

    @property
    def _pages_at_once(self) -> int:
        """How many pages are tested together; strings of several pages may exceed the limit of one array."""
        kind = self.value_type
        return 1 if is_text(kind) or is_bytes(kind) else max(1, _TESTED_ROWS // self.page_rows)

    @property
    def nbytes(self) -> int:
        return self._lookup.nbytes

    @property
    def value_type(self) -> pa.DataType:
        return self._lookup.value_type

    @property
    def statistics(self) -> Mapping[str, int]:
        return {"rows": self.rows, "pages": self.pages, "rows_per_page": self.page_rows}

    def estimate(self, node: Node, rows: int) -> int:
        may, must = self._match(node)
        lengths = self._lookup.lengths
        tested = np.minimum(lengths[may & ~must], _TESTED_PAGE_ROWS)
        return int(lengths[may & must].sum() + tested.sum())

    def find(self, node: Node) -> U64Array:
        may, must = self._match(node)
        column = column_of(node)
        assert column is not None
        row_ids: list[U64Array] = []
        with index_errors(self._files.segment.name):
            for begin, end in _runs(may & must):
                row_ids += self._ids(begin * self.page_rows, min(end * self.page_rows, self.rows))
            tested = np.flatnonzero(may & ~must).tolist()
            pages = each_ahead(self._page, tested) if self._is_remote else map(self._page, tested)
            while batches := list(islice(pages, self._pages_at_once)):
                row_ids.append(self._test(node, column, batches))
        return np.concatenate(row_ids) if row_ids else np.empty(0, dtype=np.uint64)

    def entries(self) -> Iterator[pa.RecordBatch]:
        with index_errors(self._files.segment.name):
            for begin in range(0, self.rows, _STEP_ROWS):
                batch = self._data.read(["values", "ids"], begin, min(begin + _STEP_ROWS, self.rows))
                yield pa.RecordBatch.from_arrays(batch.columns, [VALUE, ROW])

    def _match(self, node: Node) -> ZoneMatch:
        # The estimate for a search is followed by the search itself.
        last = self._last
        if last is not None and last[0] is node:
            return last[1]
        column = column_of(node)
        assert column is not None
        match = match_zones(node, {column.parts: self._lookup.statistics}, self.pages)
        self._last = node, match
        return match

    def _ids(self, begin: int, end: int) -> Iterator[U64Array]:
        for start in range(begin, end, _STEP_ROWS):
            yield whole_numbers(self._data.read(["ids"], start, min(start + _STEP_ROWS, end)).column(0))

    def _test(self, node: Node, column: Column, pages: Sequence[pa.RecordBatch]) -> U64Array:
        """The rows of some pages that match."""
        values, ids = _joined(pages)
        matching: U64Array = whole_numbers(ids.filter(evaluate(node, as_batch(column, values))))
        return matching

    def _page(self, page: int) -> pa.RecordBatch:
        return CACHE.get((self._files.key, page), lambda: self._read_page(page), _size)

    def _read_page(self, page: int) -> pa.RecordBatch:
        begin = page * self.page_rows
        return self._data.read(["values", "ids"], begin, min(begin + self.page_rows, self.rows))


def _joined(batches: Sequence[pa.RecordBatch]) -> list[pa.Array]:
    """The columns of batches; not copied if there is only one batch."""
    if len(batches) == 1:
        return list(batches[0].columns)
    return [pa.concat_arrays(parts) for parts in zip(*(batch.columns for batch in batches), strict=True)]


class _LookupPages:
    """Bounds and null counts of all pages."""

    def __init__(self, rows: int, page_rows: int, table: pa.RecordBatch) -> None:
        minimum, maximum, null_count, _ = table.columns
        held = ZoneMap(
            rows,
            page_rows,
            minimum,
            maximum,
            whole_numbers(null_count).astype(np.int64),
            nan_order_known=not (_has_negative_nan(minimum) or _has_negative_nan(maximum)),
        )
        self.lengths = held.lengths
        if (held.null_count > self.lengths).any():
            raise CorruptFileError("A page has more nulls than rows")
        self.statistics: ColumnStatistics = held.statistics
        self.value_type: pa.DataType = minimum.type
        self.nbytes = int(table.nbytes) + 40 * len(table)


def supports(kind: pa.DataType) -> bool:
    """Whether values of a column of this type can be put in order."""
    return is_comparable(value_type(kind)) and not pa.types.is_dictionary(kind)


def build(
    entries: Iterable[pa.RecordBatch], kind: pa.DataType, output: IndexOutput, options: Mapping[str, Any]
) -> bytes:
    """Write the files of a segment from sorted entries."""
    page_rows = int(options["page_rows"])
    if not 1 <= page_rows <= _MAX_PAGE_ROWS:
        raise InvalidArgumentError(f"page_rows must be between 1 and {_MAX_PAGE_ROWS}, not {page_rows}")
    data = output.create(DATA_FILE, pa.schema([("values", kind), pa.field("ids", pa.uint64(), False)]))
    bounds = _Bounds(kind, page_rows)
    for batch in entries:
        data.write(batch)
        bounds.add(batch.column(0))
    data.finish({})
    table = bounds.finish()
    lookup = output.create(LOOKUP_FILE, table.schema)
    lookup.write(table)
    lookup.finish({_PAGE_ROWS: str(page_rows), "range_partitioned": "false"})
    return b""


class _Bounds:
    """Collects the first and last value and the nulls of every page from sorted values."""

    def __init__(self, kind: pa.DataType, page_rows: int) -> None:
        self._kind = kind
        self._page_rows = page_rows
        self._rows = 0
        self._minimum: list[pa.Array] = []
        self._maximum: list[pa.Array] = []
        self._null_counts: list[int] = []

    def add(self, values: pa.Array) -> None:
        """The next values in order."""
        position = 0
        while position < len(values):
            begun = self._rows % self._page_rows
            piece = values.slice(position, self._page_rows - begun)
            if begun == 0:
                self._null_counts.append(0)
                self._minimum.append(piece.slice(0, 1))
                self._maximum.append(piece.slice(0, 1))
            # Nulls come first: the last value is the largest, and only null if all are null.
            self._maximum[-1] = piece.slice(len(piece) - 1, 1)
            self._null_counts[-1] += piece.null_count
            position += len(piece)
            self._rows += len(piece)

    def finish(self) -> pa.RecordBatch:
        """The lookup table."""
        schema = pa.schema(
            [
                ("min", self._kind),
                ("max", self._kind),
                pa.field("null_count", pa.uint32(), False),
                pa.field("page_idx", pa.uint32(), False),
            ]
        )
        none = pa.nulls(0, self._kind)
        columns = [
            pa.concat_arrays(self._minimum or [none]),
            pa.concat_arrays(self._maximum or [none]),
            pa.array(self._null_counts, pa.uint32()),
            pa.array(range(len(self._null_counts)), pa.uint32()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def _has_negative_nan(values: pa.Array) -> bool:
    """Other writers may sort NaN with a sign before all other values."""
    if not pa.types.is_floating(values.type):
        return False
    held = values.drop_null().to_numpy(zero_copy_only=False)
    return bool((np.isnan(held) & np.signbit(held)).any())


def _runs(flags: Bools) -> Iterator[tuple[int, int]]:
    """Runs of set `flags`, as half-open ranges."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _size(batch: pa.RecordBatch) -> int:
    return int(batch.get_total_buffer_size())


def _built_with(index: RowFinder) -> Mapping[str, int]:
    return {"page_rows": index.statistics["rows_per_page"]}


BTREE: Final = RowFinderKind(
    name="btree",
    message="BTree",
    newest=1,
    supports=supports,
    # Version 1 means that rows are found by address even with stable row ids.
    holds_addresses=lambda version: version >= 1,
    # An entry of an updated row contains the address of the old row; a row id would still find it.
    stable_version=1,
    open=BTree,
    build=build,
    options={"page_rows": _DEFAULT_PAGE_ROWS},
    built_with=_built_with,
)
