"""Keys as 64-bit hashes: equal keys have the same, whatever the types of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from lance_engine import kernels
from lance_engine.arrow_values import plain
from lance_engine.errors import UnsupportedTypeError
from lance_engine.expr.membership import stored_bytes, text_hashes
from lance_engine.expr.value_types import is_bytes, is_text

U64Array = npt.NDArray[np.uint64]

_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
# Bits of the hashes in a table of those that occur, which is tested first.
_TABLE_BITS: Final = 22


def check_key_type(name: str, kind: pa.DataType) -> None:
    """UnsupportedTypeError unless a key can consist of values of this type."""
    if at.is_dictionary(kind):
        kind = kind.value_type
    if at.is_nested(kind) or at.is_null(kind) or not (is_text(kind) or is_bytes(kind) or _is_fixed(kind)):
        raise UnsupportedTypeError(
            f"Type {kind} cannot be used in a key",
            column=name,
            remedy="Use numeric, string, date or time columns",
        )


def _is_fixed(kind: pa.DataType) -> bool:
    return bool(
        at.is_primitive(kind) or at.is_boolean(kind) or at.is_decimal(kind) or at.is_fixed_size_binary(kind)
    )


def key_hashes(columns: Sequence[pa.Array]) -> tuple[U64Array, npt.NDArray[np.int64]]:
    """The hashes of the rows without nulls, and the numbers of these rows."""
    valid = None
    for column in columns:
        if column.null_count:
            present = column.is_valid()
            valid = present if valid is None else pc.and_(valid, present)
    rows = np.arange(len(columns[0]))
    if valid is not None:
        rows = np.flatnonzero(valid.to_numpy(zero_copy_only=False))
        columns = [column.filter(valid) for column in columns]
    hashes = _hashes(columns[0])
    for column in columns[1:]:
        hashes = (hashes ^ (hashes >> np.uint64(29))) * _FACTOR + _hashes(column)
    return hashes, rows


def _hashes(values: pa.Array) -> U64Array:
    values = plain(values)
    kind = values.type
    if is_text(kind) or is_bytes(kind):
        return text_hashes(values)
    if at.is_boolean(kind):
        values = values.cast(pa.uint8())
    width = int(values.type.bit_width) // 8
    held = np.ascontiguousarray(stored_bytes(values))
    return kernels.xxhash64(held, np.arange(len(values) + 1, dtype=np.int64) * width)


class HashSet:
    """Sorted hashes, and which of others are among them."""

    def __init__(self, hashes: U64Array) -> None:
        self.hashes = hashes
        self._present = np.zeros(1 << _TABLE_BITS, np.bool_)
        self._present[hashes >> np.uint64(64 - _TABLE_BITS)] = True

    def among(self, others: U64Array) -> npt.NDArray[np.bool_]:
        """For each of others, whether it is in the set."""
        present: npt.NDArray[np.bool_] = self._present[others >> np.uint64(64 - _TABLE_BITS)]
        likely = np.flatnonzero(present)
        if len(likely):
            places = np.searchsorted(self.hashes, others[likely])
            places[places == len(self.hashes)] = 0
            present[likely] = self.hashes[places] == others[likely]
        return present
