"""Whether numbers are in a long list, batch after batch.

pyarrow hashes the whole list in every call; here that is done once for each list.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as at

from lance_engine import compute as pc
from lance_engine import kernels
from lance_engine.expr.tree import In
from lance_engine.weak_identity import WeakIdentityDict

#: A list of at least this many values is hashed once.
MANY = 256

#: Whether each value of an array is in a list; arbitrary for nulls.
Members = Callable[[pa.Array], pa.BooleanArray]

_prepared: WeakIdentityDict[In, Members | None] = WeakIdentityDict()


def members(node: In, held: pa.Array) -> Members | None:
    """A test for the values `held` of a node; None for types that pyarrow has to test."""
    return _prepared.computed(node, partial(_prepare, held))


def _prepare(held: pa.Array) -> Members | None:
    kind = held.type
    is_number = at.is_integer(kind) or at.is_temporal(kind) or at.is_float32(kind) or at.is_float64(kind)
    return _Numbers(held) if is_number and not at.is_interval(kind) else None


class _Numbers:
    def __init__(self, held: pa.Array) -> None:
        self._width = int(held.type.bit_width) // 8
        self._test = kernels.integer_set_test(8 * self._width, stored_bytes(held).tobytes(), False)

    def __call__(self, values: pa.Array) -> pa.BooleanArray:
        bits = pa.py_buffer(self._test.passing(stored_bytes(values).tobytes(), self._width))
        return pa.BooleanArray.from_buffers(pa.bool_(), len(values), [None, bits])


def text_hashes(values: pa.Array) -> npt.NDArray[np.uint64]:
    """The XXH64 of each text or byte string; those of nulls are arbitrary."""
    if not at.is_large_binary(values.type):
        values = pc.cast(values, pa.large_binary())
    _, offsets, data = values.buffers()
    ends = np.zeros(1, np.int64) if not len(values) else np.frombuffer(offsets, np.int64)
    held = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return kernels.xxhash64(held, np.ascontiguousarray(ends[values.offset :][: len(values) + 1]))


def stored_bytes(values: pa.Array) -> npt.NDArray[np.uint8]:
    """The bytes of fixed-width values; floating-point ones that are equal have the same."""
    width, count = int(values.type.bit_width) // 8, len(values)
    buffer = values.buffers()[1]
    held = np.zeros(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)
    held = held[values.offset * width :][: count * width]
    if at.is_floating(values.type):
        numbers = held.view(f"f{width}") + 0  # -0.0 becomes 0.0
        numbers[np.isnan(numbers)] = np.nan
        held = numbers.view(np.uint8)
    return held
