"""Which rows a training loop reads, and in which order: shuffled by blocks, cut into shards; no PyTorch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as at
from lance_engine.errors import UnsupportedTypeError
from lance_engine.scan.splits import ScanSplit

from lance_sql.dataset import Dataset

#: What a training loop is given of a column: an array, or a list where there is no array of such values.
Values = npt.NDArray[Any] | list[Any]


def blocks_of_shard(
    blocks: int, shard: int, shards: int, *, shuffle: bool, seed: int, epoch: int
) -> npt.NDArray[np.int64]:
    """The numbers of the blocks that one of `shards` readers reads, in order; each block has one reader."""
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
) -> Iterator[pa.Table]:
    """The rows of one shard in batches of `batch_size`, the last one smaller.

    `mixed_blocks` blocks at a time are read whole, and their rows shuffled together.
    """
    splits = [
        ScanSplit(fragment.id, start, min(start + block_rows, fragment.physical_rows))
        for fragment in dataset.snapshot.fragments
        for start in range(0, fragment.physical_rows, block_rows)
    ]
    mine = blocks_of_shard(len(splits), shard, shards, shuffle=shuffle, seed=seed, epoch=epoch)
    random = np.random.default_rng([seed, epoch, shard])
    rest: pa.Table | None = None
    for first in range(0, len(mine), mixed_blocks):
        chosen = [splits[number] for number in mine[first : first + mixed_blocks]]
        rows = dataset.scan(columns, filter, splits=chosen).to_table()
        if shuffle:
            rows = rows.take(random.permutation(rows.num_rows))
        if rest is not None:
            rows = pa.concat_tables([rest, rows])
        whole = rows.num_rows // batch_size * batch_size
        for start in range(0, whole, batch_size):
            yield rows.slice(start, batch_size)
        rest = rows.slice(whole)
    if rest is not None and rest.num_rows:
        yield rest


def arrays(table: pa.Table) -> dict[str, Values]:
    """Columns of numbers, booleans and vectors as arrays that own their memory, all others as lists."""
    return {name: _values(name, table.column(name).combine_chunks()) for name in table.column_names}


def _values(name: str, column: pa.Array) -> Values:
    if isinstance(column, pa.ChunkedArray):  # what an empty table leaves
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    kind = column.type
    vectors = at.is_fixed_size_list(kind)
    element = kind.value_type if vectors else kind
    if not (at.is_integer(element) or at.is_floating(element) or at.is_boolean(element)):
        values: list[Any] = column.to_pylist()
        return values
    flat = column.flatten() if vectors else column
    if column.null_count or flat.null_count:
        raise UnsupportedTypeError(
            "a tensor holds no nulls",
            column=name,
            remedy=f'Leave such rows out, for example with filter="{name} IS NOT NULL", or fill them in SQL',
        )
    array = np.array(flat.to_numpy(zero_copy_only=False))
    return array.reshape(len(column), kind.list_size) if vectors else array
