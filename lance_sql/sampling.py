"""Which rows a training loop or task reads, and in which order: shuffled by blocks, divided into shards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as at
from lance_engine.base import RowPieces
from lance_engine.errors import UnsupportedTypeError
from lance_engine.scan import ScanSplit

from lance_sql.dataset import Dataset

#: A column as a training loop receives it: an array, or a list for types without arrays.
Values = npt.NDArray[Any] | list[Any]
#: The columns of a batch, by name.
Columns = dict[str, Values]


def stretches(dataset: Dataset, rows: int | None = None) -> list[ScanSplit]:
    """All fragments, divided into ranges of `rows` physical rows, or whole."""
    return [
        ScanSplit(fragment.id, start, min(start + (rows or fragment.physical_rows), fragment.physical_rows))
        for fragment in dataset.snapshot.fragments
        for start in range(0, fragment.physical_rows, rows or fragment.physical_rows or 1)
    ]


def blocks_of_shard(
    blocks: int, shard: int, shards: int, *, shuffle: bool, seed: int, epoch: int
) -> npt.NDArray[np.int64]:
    """The block numbers that one of `shards` readers reads, in order; each block has one reader."""
    order = np.arange(blocks)
    if shuffle:
        order = np.random.default_rng([seed, epoch]).permutation(blocks)
    return order[shard::shards]


def batches_of_shard(
    dataset: Dataset,
    columns: Sequence[str] | None,
    filter: Any,
    *,
    batch_size: int,
    block_rows: int,
    mixed_blocks: int,
    shard: int,
    shards: int,
    shuffle: bool,
    seed: int,
    epoch: int,
) -> Iterator[Columns]:
    """The rows of one shard in batches of `batch_size`, the last one smaller.

    The arrays own their memory. One scan reads the shard's blocks. With `shuffle`, the rows of `mixed_blocks`
    blocks at a time are collected and shuffled together. Otherwise the shards take turns with ranges of
    `mixed_blocks` blocks.
    """
    mixed_rows = block_rows * mixed_blocks
    splits = stretches(dataset, block_rows if shuffle else mixed_rows)
    mine = blocks_of_shard(len(splits), shard, shards, shuffle=shuffle, seed=seed, epoch=epoch)
    scan = dataset.scan(columns, filter, splits=[splits[number] for number in mine])
    if shuffle and all(_is_numeric(field.type) for field in scan.schema):
        scan.decode_here()  # numbers of a small block decode faster than another thread wakes up
    tables = map(_table, scan.to_batches())
    if not shuffle:
        return map(arrays, _in_batches(tables, batch_size))
    random = np.random.default_rng([seed, epoch, shard])
    return _shuffled_batches(_in_batches(tables, mixed_rows), batch_size, random)


def _table(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


def _in_batches(tables: Iterator[pa.Table], size: int) -> Iterator[pa.Table]:
    """The rows of `tables` in pieces of `size`, the last one smaller."""
    waiting: list[pa.Table] = []
    missing = size
    for table in tables:
        start = 0
        while table.num_rows - start >= missing:
            yield pa.concat_tables([*waiting, table.slice(start, missing)])
            start, waiting, missing = start + missing, [], size
        if start < table.num_rows:
            waiting.append(table.slice(start))
            missing -= table.num_rows - start
    if waiting:
        yield pa.concat_tables(waiting)


def _shuffled_batches(
    tables: Iterator[pa.Table], size: int, random: np.random.Generator
) -> Iterator[Columns]:
    """The rows of each table in a random order, in batches of `size`, the last one smaller."""
    begun: Columns = {}  # rows left over from the tables before
    missing = size
    for table in tables:
        columns = {name: _Rows(name, table.column(name)) for name in table.column_names}
        order = random.permutation(table.num_rows)
        for rows in np.split(order, range(missing, len(order), size)):
            part = {name: column.take(rows) for name, column in columns.items()}
            begun = {name: _joined(begun[name], part[name]) for name in part} if begun else part
            missing -= len(rows)
            if not missing:
                yield begun
                begun, missing = {}, size
    if missing < size:
        yield begun


class _Rows:
    """The rows of a column, to be copied from where they are in any order."""

    def __init__(self, name: str, column: pa.ChunkedArray) -> None:
        self._values = None if _is_numeric(column.type) else column.to_pylist()
        if self._values is None:
            pieces = _pieces(name, column)
            self._row = pieces[0][:0]
            self._pieces = RowPieces(pieces)

    def take(self, rows: npt.NDArray[np.int64]) -> Values:
        if self._values is not None:
            return [self._values[row] for row in rows]
        copied = np.empty((len(rows), *self._row.shape[1:]), self._row.dtype)
        self._pieces.take(rows, copied)
        return copied


def _joined(first: Values, second: Values) -> Values:
    if isinstance(first, list):
        return [*first, *second]
    return np.concatenate([first, second])


def arrays(table: pa.Table) -> Columns:
    """Columns of numbers, booleans and vectors as arrays that own their memory, other columns as lists."""
    return {name: _values(name, table.column(name)) for name in table.column_names}


def _values(name: str, column: pa.ChunkedArray) -> Values:
    """A copy of the values of a column."""
    if _is_numeric(column.type):
        return np.concatenate(_pieces(name, column))
    values: list[Any] = column.to_pylist()
    return values


def _is_numeric(kind: pa.DataType) -> bool:
    """Whether values are numbers, booleans or vectors of them, which tensors hold."""
    element = kind.value_type if at.is_fixed_size_list(kind) else kind
    return bool(at.is_integer(element) or at.is_floating(element) or at.is_boolean(element))


def _pieces(name: str, column: pa.ChunkedArray) -> list[npt.NDArray[Any]]:
    """The values of a column of numbers as arrays, which may share its memory; at least one array."""
    chunks = column.chunks or [pa.array([], column.type)]
    vectors = at.is_fixed_size_list(column.type)
    flat = [chunk.flatten() for chunk in chunks] if vectors else chunks
    if column.null_count or any(values.null_count for values in flat):
        raise UnsupportedTypeError(
            "A tensor cannot hold nulls",
            column=name,
            remedy=f'Leave such rows out, for example with filter="{name} IS NOT NULL", or fill them in SQL',
        )
    pieces = [values.to_numpy(zero_copy_only=False) for values in flat]
    if not vectors:
        return pieces
    width = column.type.list_size
    return [values.reshape(len(chunk), width) for chunk, values in zip(chunks, pieces, strict=True)]
