"""Values that an engine computes for rows, assigned by the numbers of the rows.

Engines promise no order of rows: they compute in several threads, and return what is ready first. So queries
carry the number of each row, and results are matched by it, never by position.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
from lance_engine.base import of_numpy, to_numpy


def number_name(names: Collection[str]) -> str:
    """A name for the column of row numbers in addition to columns of these names."""
    taken = {name.lower() for name in names}
    name = "lance_sql_row"
    while name in taken:
        name += "_"
    return name


def numbers(rows: int) -> pa.Array:
    """The numbers of this many rows."""
    return of_numpy(np.arange(rows, dtype=np.int64))


def by_number(values: pa.ChunkedArray, numbered: pa.ChunkedArray, rows: int) -> pa.Array | None:
    """The values in the order of their row numbers; None unless every one of `rows` has exactly one value."""
    if len(numbered) != rows:
        return None
    if rows == 0:
        return pa.nulls(0, values.type)  # of any type, unions too
    values, numbers = values.combine_chunks(), to_numpy(numbered.combine_chunks())
    wanted = np.arange(rows, dtype=np.int64)
    if np.array_equal(numbers, wanted):
        return values
    order = np.argsort(numbers, kind="stable")
    return values.take(of_numpy(order)) if np.array_equal(numbers[order], wanted) else None
