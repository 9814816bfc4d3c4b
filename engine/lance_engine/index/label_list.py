"""LABEL_LIST (indices, LABEL_LIST): for each distinct list item, the set of rows whose list contains it.

The file is that of a BITMAP over the items; an extra buffer contains the rows whose list is null. Empty lists
are not in the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
from pyroaring import BitMap

from lance_engine.arrow_values import stored
from lance_engine.errors import LanceError, UnsupportedFeatureError
from lance_engine.expr.evaluate import evaluate
from lance_engine.expr.total_order import has_nan
from lance_engine.expr.tree import Column, Function, Literal, Node
from lance_engine.format.row_id_map import parse_row_id_map, row_id_map, serialize_row_id_map
from lance_engine.index import btree
from lance_engine.index.bitmap import Bitmap, Rows, ids_in, write_bitmaps
from lance_engine.index.files import SegmentFiles, index_errors, number_in
from lance_engine.index.kind import ROW, VALUE, IndexOutput, RowFinderKind, U64Array, as_batch

#: Column of entries: whether the list itself is null, and not an item.
IS_NULL_LIST: Final = "is_null_list"
_NULL_LISTS: Final = "lance:label_list_nulls"
_ANY_OF: Final = ("array_has", "array_has_any")
_ALL_OF: Final = "array_has_all"


class LabelList:
    """An open LABEL_LIST segment: the items in memory, sets of rows read on demand."""

    def __init__(self, files: SegmentFiles) -> None:
        self._items = Bitmap(files)
        with index_errors(files.segment.name):
            table = self._items.table
            metadata = table.schema.metadata
            self._null_lists: Rows = {}
            if _NULL_LISTS in metadata:
                data = table.buffer(number_in(metadata, _NULL_LISTS, 1, 1 << 16))
                try:
                    self._null_lists = parse_row_id_map(data)
                except LanceError as error:
                    raise error.at(path=table.path) from error.__cause__
            elif files.segment.index_version < 1:
                raise UnsupportedFeatureError("The rows whose list is null are not listed", path=table.path)

    @property
    def nbytes(self) -> int:
        null = sum(2 * len(lows) for lows in self._null_lists.values() if lows is not None)
        return self._items.nbytes + null

    @property
    def value_type(self) -> pa.DataType:
        return self._items.value_type

    @property
    def statistics(self) -> Mapping[str, int]:
        return {"distinct_items": len(self._items.keys)}

    def estimate(self, node: Node, rows: int) -> int:
        return min(self._items.estimate_rows(keys, rows) for keys in self._wanted(node))

    def find(self, node: Node) -> U64Array:
        row_ids = [np.unique(self._items.rows_of(keys)) for keys in self._wanted(node)]
        return reduce(lambda left, right: np.intersect1d(left, right, assume_unique=True), row_ids)

    def entries(self) -> Iterator[pa.RecordBatch]:
        for ids in ids_in(self._null_lists):
            yield _entries(pa.nulls(len(ids), self.value_type), ids, is_null_list=True)
        for batch in self._items.entries():
            yield _entries(batch.column(0), batch.column(1).to_numpy(), is_null_list=False)

    def _wanted(self, node: Node) -> list[npt.NDArray[np.int64]]:
        """Sets of item numbers: a list matches if it contains an item of each set."""
        function = cast(Function, node)
        column, wanted = cast(Column, function.arguments[0]), cast(Literal, function.arguments[1])
        if function.name in _ANY_OF:
            return [self._matching(column, function)]
        items = pa.array(wanted.value.values)
        each = [items.slice(number, 1) for number in range(len(items))]
        return [
            self._matching(column, Function("array_has", (column, Literal(item[0])), function.result_type))
            for item in each
        ]

    def _matching(self, column: Column, node: Node) -> npt.NDArray[np.int64]:
        """The numbers of the items for which a list with only this item matches."""
        items = self._items.keys
        lists = pa.LargeListArray.from_arrays(np.arange(len(items) + 1, dtype=np.int64), items)
        mask = pc.fill_null(evaluate(node, as_batch(column, lists)), False)
        return np.flatnonzero(mask.to_numpy(zero_copy_only=False))


def answers(node: Node) -> bool:
    """Whether a predicate tests lists for constant items that are not null."""
    if not isinstance(node, Function) or node.name not in (*_ANY_OF, _ALL_OF) or len(node.arguments) != 2:
        return False
    column, wanted = node.arguments
    if not isinstance(column, Column) or not isinstance(wanted, Literal) or wanted.is_null:
        return False
    items = pa.repeat(wanted.value, 1) if node.name == "array_has" else pa.array(wanted.value.values)
    # The index does not distinguish NaN values.
    return len(items) > 0 and not items.null_count and not has_nan(items)


def supports(kind: pa.DataType) -> bool:
    """Whether a column has lists whose items can be put in order."""
    return (at.is_list(kind) or at.is_large_list(kind)) and btree.supports(kind.value_type)


def _stored_items(kind: pa.DataType) -> pa.DataType:
    """The type in which the items of lists are stored."""
    items = kind.value_type
    return items.storage_type if isinstance(items, pa.BaseExtensionType) else items


def entries_of(ids: U64Array, lists: pa.Array) -> pa.RecordBatch:
    """One entry for each item, and one for each null list."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    items = stored(lists.flatten())
    null = ids[lists.is_null().to_numpy(zero_copy_only=False)]
    here = _entries(items, np.repeat(ids, lengths), is_null_list=False)
    if not len(null):
        return here
    return pa.concat_batches([_entries(pa.nulls(len(null), items.type), null, is_null_list=True), here])


def _entries(values: pa.Array, ids: U64Array, *, is_null_list: bool) -> pa.RecordBatch:
    flags = pa.array(np.full(len(ids), is_null_list))
    return pa.RecordBatch.from_arrays([values, pa.array(ids)], [VALUE, ROW]).append_column(
        IS_NULL_LIST, flags
    )


def build(
    entries: Iterable[pa.RecordBatch], kind: pa.DataType, output: IndexOutput, options: Mapping[str, Any]
) -> bytes:
    """Write the file of a segment from sorted entries."""
    null_lists: dict[int, BitMap] = {}

    def items() -> Iterator[pa.RecordBatch]:
        for batch in entries:
            flags = batch.column(2)
            if batch.column(0).null_count:
                for high, lows in row_id_map(batch.column(1).filter(flags).to_numpy()).items():
                    null_lists[high] = null_lists.get(high, BitMap()) | lows
                batch = batch.filter(pc.invert(flags))
            yield batch

    write_bitmaps(items(), kind, output, lambda: ({_NULL_LISTS: "1"}, [serialize_row_id_map(null_lists)]))
    return b""


LABEL_LIST: Final = RowFinderKind(
    name="label_list",
    message="LabelList",
    newest=1,
    supports=supports,
    holds_addresses=lambda version: False,
    stable_version=1,
    version=1,
    open=LabelList,
    build=build,
    answers=answers,
    entries_of=entries_of,
    entry_type=_stored_items,
)
