"""Whether values are in a long list, batch after batch.

pyarrow hashes the whole list in every call; here that is done once for each list.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as at

from lance_engine import compute as pc
from lance_engine import kernels
from lance_engine.arrow_values import of_numpy, to_numpy
from lance_engine.expr.tree import In
from lance_engine.expr.value_types import is_bytes, is_text

#: A list of at least this many values is hashed once.
MANY = 256
#: The same for text: pyarrow is faster with shorter lists.
MANY_TEXTS = 32_768

#: Whether each value of an array is in a list; arbitrary for nulls.
Members = Callable[[pa.Array], pa.BooleanArray]

_prepared: WeakKeyDictionary[In, Members | None] = WeakKeyDictionary()


def members(node: In, held: pa.Array) -> Members | None:
    """A test for the values `held` of a node; None for types that pyarrow has to test."""
    if node not in _prepared:
        _prepared[node] = _prepare(held)
    return _prepared[node]


def _prepare(held: pa.Array) -> Members | None:
    kind = held.type
    if is_text(kind) or is_bytes(kind):
        return _Texts(held) if len(held) >= MANY_TEXTS and _are_distinct(text_hashes(held)) else None
    is_number = at.is_integer(kind) or at.is_temporal(kind) or at.is_float32(kind) or at.is_float64(kind)
    return _Numbers(held) if is_number and not at.is_interval(kind) else None


def _are_distinct(hashes: npt.NDArray[np.uint64]) -> bool:
    return len(np.unique(hashes)) == len(hashes)


class _Numbers:
    def __init__(self, held: pa.Array) -> None:
        self._width = int(held.type.bit_width) // 8
        self._test = kernels.integer_set_test(8 * self._width, stored_bytes(held).tobytes(), False)

    def __call__(self, values: pa.Array) -> pa.BooleanArray:
        return _mask(self._test, stored_bytes(values), self._width)


class _Texts:
    """By hash. The hashes of the list are distinct, so a value is compared with at most one entry."""

    def __init__(self, held: pa.Array) -> None:
        hashes = text_hashes(held)
        self._test = kernels.integer_set_test(64, hashes.tobytes(), False)
        order = np.argsort(hashes)
        self._hashes, self._held = hashes[order], pc.take(held, of_numpy(order))

    def __call__(self, values: pa.Array) -> pa.BooleanArray:
        hashes = text_hashes(values)
        found = to_numpy(_mask(self._test, hashes.view(np.uint8), 8))
        places = np.flatnonzero(found)
        entries = np.searchsorted(self._hashes, hashes[places])
        same = pc.equal(pc.take(values, of_numpy(places)), pc.take(self._held, of_numpy(entries)))
        mask = np.zeros(len(values), np.bool_)
        mask[places] = to_numpy(pc.fill_null(same, False))
        return of_numpy(mask)


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


def _mask(test: kernels.ValueTest, held: npt.NDArray[np.uint8], width: int) -> pa.BooleanArray:
    bits = pa.py_buffer(test.passing(held.tobytes(), width))
    return pa.BooleanArray.from_buffers(pa.bool_(), len(held) // width, [None, bits])
