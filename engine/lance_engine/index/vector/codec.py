"""The common parts of the ways to store vectors in an index, and of reading columns of their files."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine import kernels
from lance_engine.errors import CorruptFileError

F32Array = npt.NDArray[np.float32]
U8Array = npt.NDArray[np.uint8]
U64Array = npt.NDArray[np.uint64]

ROW_ID = "_rowid"


class Codec(Protocol):
    """How the vectors of a segment are stored: read into partitions that can be searched."""

    @property
    def columns(self) -> list[str]:
        """The columns of a partition, besides the row ids."""
        ...

    def partition(
        self, ids: U64Array, columns: list[pa.Array], centroid: F32Array, by_row: bool
    ) -> kernels.Partition:
        """A partition; `by_row` if single rows are looked up, as graphs do."""
        ...


def lists_in(column: pa.Array, item: pa.DataType, size: int) -> U8Array:
    """The bytes of the items of fixed-size lists; CorruptFileError for a different column, or nulls."""
    kind = column.type
    if not pa.types.is_fixed_size_list(kind) or kind.value_type != item or kind.list_size != size:
        raise CorruptFileError(f"A column of the index has type {kind}, expected lists of {size} {item}")
    if column.null_count or column.values.null_count:
        raise CorruptFileError("A non-nullable column of the index contains nulls")
    return numbers_in(column.flatten(), item).view(np.uint8)


def numbers_in(column: pa.Array, kind: pa.DataType) -> npt.NDArray[Any]:
    """The values of a column; CorruptFileError if it has another type, or nulls."""
    if column.type != kind or column.null_count:
        raise CorruptFileError(
            f"A column of the index has type {column.type} or contains nulls, expected {kind}"
        )
    return np.ascontiguousarray(column.to_numpy(zero_copy_only=False))
