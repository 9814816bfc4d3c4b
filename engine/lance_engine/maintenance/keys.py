"""Finding rows by the values of key columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_engine.errors import UnsupportedTypeError

I64Array = npt.NDArray[np.int64]


class Keys:
    """The distinct keys of some rows, numbered from 0.

    `numbers` is the number of each row's key, -1 for a key with a null: as in SQL it equals no other key.
    """

    def __init__(self, names: Sequence[str], columns: Sequence[pa.Array]) -> None:
        # For each column its distinct values, and the distinct combinations with the columns before it.
        self._steps: list[tuple[pa.Array, I64Array]] = []
        self.numbers: I64Array = np.zeros(len(columns[0]), dtype=np.int64)
        self.count = 0
        for name, column in zip(names, columns, strict=True):
            values = _distinct(name, column)
            combined = _combined(self.numbers, _positions(column, values), len(values))
            distinct = np.unique(combined[combined >= 0])
            self._steps.append((values, distinct))
            self.numbers = _number(combined, distinct)
            self.count = len(distinct)

    def find(self, columns: Sequence[pa.Array]) -> I64Array:
        """The number of the key of each row of other columns, -1 if none of ours equals it."""
        numbers = np.zeros(len(columns[0]), dtype=np.int64)
        for column, (values, distinct) in zip(columns, self._steps, strict=True):
            numbers = _number(_combined(numbers, _positions(column, values), len(values)), distinct)
        return numbers


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _distinct(name: str, column: pa.Array) -> pa.Array:
    try:
        values = _plain(column).unique().drop_null()
        pc.index_in(values, value_set=values)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise UnsupportedTypeError(
            f"Values of type {column.type} cannot be a key",
            column=name,
            remedy="Use columns of numbers, strings, dates or times",
        ) from error
    return values


def _positions(column: pa.Array, values: pa.Array) -> I64Array:
    found = pc.index_in(_plain(column), value_set=values)
    positions: I64Array = pc.fill_null(found, -1).to_numpy().astype(np.int64)
    return positions


def _combined(numbers: I64Array, positions: I64Array, count: int) -> I64Array:
    # Both factors are below the number of rows, so the product fits.
    return np.where((numbers < 0) | (positions < 0), -1, numbers * count + positions)


def _number(combined: I64Array, distinct: I64Array) -> I64Array:
    if not len(distinct):
        return np.full(len(combined), -1, dtype=np.int64)
    places = np.minimum(np.searchsorted(distinct, combined), len(distinct) - 1)
    return np.where((combined >= 0) & (distinct[places] == combined), places, -1)
