"""Finds pages whose values are all the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_engine.kernels import Levels
from lance_engine.write.values import fixed_values, is_variable, offset_bits, value_bytes, without_nulls


def constant_value(array: pa.Array, levels: Levels) -> list[bytes] | None:
    """The Arrow buffers of the one value that all slots but nulls have; None if there are several.

    `array` holds at least one value, of fixed or variable width.
    """
    if pa.types.is_boolean(array.type) or is_variable(array.type):
        return _of_any(array, levels)
    values = without_nulls(fixed_values(array), levels)
    rows = np.frombuffer(value_bytes(values), np.uint8).reshape(values.count, -1)
    first = rows[0]
    for part in (rows[len(rows) // 2], rows[-1], rows):
        if not (part == first).all():
            return None
    return [first.tobytes()]


def _of_any(array: pa.Array, levels: Levels) -> list[bytes] | None:
    if levels.valid_slots < levels.slots:
        array = array.filter(pa.array(np.asarray(levels.null_slots()) == 0))
    first = array[0]
    if array[len(array) // 2] != first or array[-1] != first or not pc.all(pc.equal(array, first)).as_py():
        return None
    if pa.types.is_boolean(array.type):
        return [bytes([first.as_py()])]
    content = memoryview(first.as_buffer()).tobytes()
    ends = np.array([0, len(content)], f"<i{offset_bits(array.type) // 8}")
    return [ends.tobytes(), content]
