"""Sets of rows of a fragment as ranges: int64 arrays of shape (n, 2), ascending, disjoint and half-open."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

I64Array = npt.NDArray[np.int64]

EMPTY: Final[I64Array] = np.empty((0, 2), dtype=np.int64)
EMPTY.flags.writeable = False


def ranges_of(offsets: npt.NDArray[np.integer]) -> I64Array:
    """The ranges of strictly ascending offsets."""
    if not len(offsets):
        return EMPTY
    held = offsets.astype(np.int64)
    breaks = np.flatnonzero(held[1:] != held[:-1] + 1)
    ranges = np.empty((len(breaks) + 1, 2), dtype=np.int64)
    ranges[0, 0], ranges[-1, 1] = held[0], held[-1] + 1
    ranges[1:, 0] = held[breaks + 1]
    ranges[:-1, 1] = held[breaks] + 1
    return ranges


def intersection(left: I64Array, right: I64Array) -> I64Array:
    """The intersection of two ascending lists of disjoint ranges."""
    if not len(left) or not len(right):
        return EMPTY
    first = np.searchsorted(right[:, 1], left[:, 0], "right")
    last = np.searchsorted(right[:, 0], left[:, 1], "left")
    counts = np.maximum(last - first, 0)
    owner = np.repeat(np.arange(len(left)), counts)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    other = first[owner] + within
    return np.stack(
        [np.maximum(left[owner, 0], right[other, 0]), np.minimum(left[owner, 1], right[other, 1])], axis=1
    )


def union(parts: list[I64Array]) -> I64Array:
    """The union of ranges, which may also overlap."""
    held = [part for part in parts if len(part)]
    if not held:
        return EMPTY
    return _covered(held)


def _covered(parts: list[I64Array]) -> I64Array:
    """Rows that are in any of the ranges."""
    ranges = np.concatenate(parts)
    edges = np.concatenate([ranges[:, 0], ranges[:, 1]])
    steps = np.repeat(np.array([1, -1], dtype=np.int64), len(ranges))
    order = np.argsort(edges, kind="stable")
    edges = edges[order]
    # Of edges at the same position, only the last one counts the ranges that cover what follows.
    last = np.append(edges[1:] != edges[:-1], True)
    depth = np.cumsum(steps[order])[last] > 0
    edges = edges[last]
    changes = np.flatnonzero(np.diff(np.concatenate(([False], depth))))
    covered: I64Array = edges[changes].reshape(-1, 2)
    return covered
