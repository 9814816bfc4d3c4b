"""Rows of several arrays in any order, as the kernel behind shuffled training batches copies them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from lance_engine import kernels


def taken(pieces: list[npt.NDArray[Any]], numbers: list[int]) -> npt.NDArray[Any]:
    copied = np.empty((len(numbers), *pieces[0].shape[1:]), pieces[0].dtype)
    kernels.RowPieces(pieces).take(np.array(numbers, np.int64), copied)
    return copied


@pytest.mark.parametrize(
    "kind", ["bool", "int8", "uint16", "float16", "int32", "float32", "int64", "float64"]
)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (700,), (0,)])
def test_rows_come_in_the_given_order(kind: str, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(0)
    whole = random.integers(0, 100, (100, *shape)).astype(kind)
    pieces = [whole[:1], whole[1:1], whole[1:40], whole[40:]]
    for piece in pieces:
        piece.flags.writeable = False
    numbers = random.integers(0, 100, 250).tolist()
    np.testing.assert_array_equal(taken(pieces, numbers), whole[numbers])
    assert taken(pieces, []).shape == (0, *shape)


@pytest.mark.parametrize("number", [-1, 5, 2**62])
def test_rows_outside_of_the_pieces_are_refused(number: int) -> None:
    pieces = [np.arange(3), np.arange(2)]
    with pytest.raises(IndexError, match="outside"):
        taken(pieces, [0, number])


def test_rows_of_different_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="different sizes"):
        kernels.RowPieces([np.arange(3), np.arange(3, dtype="int32")])
    with pytest.raises(ValueError, match="shape"):
        kernels.RowPieces([np.zeros((3, 2))]).take(np.array([0, 1]), np.zeros(2))
    with pytest.raises(ValueError, match="shape"):
        kernels.RowPieces([np.arange(3)]).take(np.array([0, 1]), np.zeros(1, np.int64))


def test_the_arrays_live_as_long_as_their_rows_are_needed() -> None:
    rows = kernels.RowPieces([np.full(1 << 16, number) for number in range(4)])
    copied = np.empty(4, np.int64)
    rows.take(np.arange(4) << 16, copied)
    assert copied.tolist() == [0, 1, 2, 3]
