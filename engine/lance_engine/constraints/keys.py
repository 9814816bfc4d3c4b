"""Finds rows by the values of key columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_engine.arrow_values import plain
from lance_engine.distinct import distinct
from lance_engine.errors import UnsupportedTypeError

I64Array = npt.NDArray[np.int64]

# Maximum range of integers for a direct lookup table, with 4 bytes per value.
_TABLE_PLACES: Final = 1 << 23


class Keys:
    """The distinct keys of some rows, numbered from 0.

    `numbers` is the number of each row's key, -1 for a key with a null: as in SQL, it does not equal any key.
    """

    def __init__(self, names: Sequence[str], columns: Sequence[pa.Array]) -> None:
        # For each column, its distinct values, and their distinct combinations with the previous columns.
        self._steps: list[tuple[_Positions, I64Array | None]] = []
        self.numbers: I64Array = np.empty(0, dtype=np.int64)
        self.count = 0
        for name, column in zip(names, columns, strict=True):
            positions = _positions_of(name, column)
            numbers = positions.find(column)
            if not self._steps:
                self._steps.append((positions, None))
                self.numbers, self.count = numbers, positions.count
                continue
            combined = _combined(self.numbers, numbers, positions.count)
            values = distinct(combined[combined >= 0])
            self._steps.append((positions, values))
            self.numbers = _number(combined, values)
            self.count = len(values)

    def matches(self, columns: Sequence[pa.Array]) -> tuple[I64Array, I64Array]:
        """The rows of other columns whose key is one of these, ascending, and the numbers of these keys."""
        if len(self._steps) == 1:
            return self._steps[0][0].matches(columns[0])
        return _where_found(self.find(columns))

    def find(self, columns: Sequence[pa.Array]) -> I64Array:
        """The number of the key of each row of other columns, -1 if no key equals it."""
        numbers: I64Array = np.empty(0, dtype=np.int64)
        for column, (positions, values) in zip(columns, self._steps, strict=True):
            ranks = positions.find(column)
            numbers = ranks if values is None else _number(_combined(numbers, ranks, positions.count), values)
        return numbers


class _Positions(Protocol):
    """The distinct values of a column, numbered from 0."""

    count: int

    def find(self, column: pa.Array) -> I64Array:
        """The number of each value, -1 for null and for unknown values."""
        ...

    def matches(self, column: pa.Array) -> tuple[I64Array, I64Array]:
        """The rows whose value is known, ascending, and the numbers of these values."""
        ...


class _TablePositions:
    """Integers in a narrow range: a table from value to number."""

    def __init__(self, values: I64Array, low: int, high: int) -> None:
        self._low = low
        self._present = np.zeros(high - low + 1, dtype=np.bool_)
        self._present[values - low] = True
        distinct = np.flatnonzero(self._present)
        self.count = len(distinct)
        # Entries of other values are never read: memory that is not written costs nothing.
        self._table = np.empty(len(self._present), dtype=np.int32)
        self._table[distinct] = np.arange(self.count, dtype=np.int32)

    def find(self, column: pa.Array) -> I64Array:
        rows, numbers = self.matches(column)
        positions = np.full(len(column), -1, dtype=np.int64)
        positions[rows] = numbers
        return positions

    def matches(self, column: pa.Array) -> tuple[I64Array, I64Array]:
        values, valid = _whole_numbers(column)
        offsets = values - np.int64(self._low)
        # What is below the range wraps around to far above it.
        inside = offsets.view(np.uint64) < np.uint64(len(self._present))
        hits = np.take(self._present, offsets, mode="clip")  # the fastest way if most values are inside
        if not inside.all():
            hits &= inside
        if valid is not None:
            hits &= valid
        rows = np.flatnonzero(hits)
        return rows, self._table[offsets[rows]].astype(np.int64)


class _HashedPositions:
    """Values of any type that Arrow can hash."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values
        self.count = len(values)

    def find(self, column: pa.Array) -> I64Array:
        indices = pc.index_in(plain(column), value_set=self._values)
        positions: I64Array = pc.fill_null(indices, -1).to_numpy().astype(np.int64)
        return positions

    def matches(self, column: pa.Array) -> tuple[I64Array, I64Array]:
        return _where_found(self.find(column))


def _positions_of(name: str, column: pa.Array) -> _Positions:
    if pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type):
        numbers, valid = _whole_numbers(column)
        numbers = numbers if valid is None else numbers[valid]
        if len(numbers):
            low, high = int(numbers.min()), int(numbers.max())
            if high - low < _TABLE_PLACES:
                return _TablePositions(numbers, low, high)
    try:
        values = plain(column).unique().drop_null()
        pc.index_in(values, value_set=values)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise UnsupportedTypeError(
            f"Type {column.type} cannot be used as a key",
            column=name,
            remedy="Use numeric, string, date or time columns",
        ) from error
    return _HashedPositions(values)


def _where_found(numbers: I64Array) -> tuple[I64Array, I64Array]:
    rows = np.flatnonzero(numbers >= 0)
    return rows, numbers[rows]


def _whole_numbers(column: pa.Array) -> tuple[I64Array, npt.NDArray[np.bool_] | None]:
    """The values as 64-bit integers, and which of them are not null; None if all are."""
    if not column.null_count:
        return column.to_numpy().astype(np.int64, copy=False), None
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return pc.fill_null(column, 0).to_numpy().astype(np.int64, copy=False), valid


def _combined(numbers: I64Array, positions: I64Array, count: int) -> I64Array:
    # Both factors are below the number of rows, so the product fits.
    return np.where((numbers < 0) | (positions < 0), -1, numbers * count + positions)


def _number(combined: I64Array, values: I64Array) -> I64Array:
    if not len(values):
        return np.full(len(combined), -1, dtype=np.int64)
    places = np.minimum(np.searchsorted(values, combined), len(values) - 1)
    return np.where((combined >= 0) & (values[places] == combined), places, -1)
