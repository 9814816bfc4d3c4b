"""Rows that a query finds, with their scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

F32Array = npt.NDArray[np.float32]
U64Array = npt.NDArray[np.uint64]


class Found(NamedTuple):
    """Distinct row ids, and their scores."""

    ids: U64Array
    scores: F32Array

    @classmethod
    def nothing(cls) -> Found:
        """No rows."""
        return cls(np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.float32))

    def best(self, k: int | None) -> Found:
        """The `k` best rows, best first; rows with equal scores by row id."""
        ids, scores = self
        if k is not None and len(ids) > 4 * k:
            least = np.partition(scores, len(scores) - k)[len(scores) - k]
            kept = scores >= least
            ids, scores = ids[kept], scores[kept]
        order = np.lexsort((ids, -scores))[:k]
        return Found(ids[order], scores[order])


def joined(parts: list[Found]) -> Found:
    """The rows of disjoint parts."""
    if not parts:
        return Found.nothing()
    return Found(np.concatenate([p.ids for p in parts]), np.concatenate([p.scores for p in parts]))


def summed(parts: list[Found], signs: list[float]) -> Found:
    """All rows of all parts, with the sum of their scores, each multiplied by its sign."""
    every = joined(parts)
    if not len(every.ids):
        return every
    factors = np.repeat(np.array(signs, dtype=np.float32), [len(part.ids) for part in parts])
    ids, places = np.unique(every.ids, return_inverse=True)
    totals = np.zeros(len(ids), dtype=np.float32)
    np.add.at(totals, places, every.scores * factors)
    return Found(ids, totals)


def best_of(parts: list[Found]) -> Found:
    """All rows of all parts, with their highest score."""
    every = joined(parts)
    ids, places = np.unique(every.ids, return_inverse=True)
    scores = np.full(len(ids), -np.inf, dtype=np.float32)
    np.maximum.at(scores, places, every.scores)
    return Found(ids, scores)


def among(rows: Found, ids: U64Array, *, inside: bool = True) -> Found:
    """The rows whose ids are, or are not, in `ids`."""
    kept = np.isin(rows.ids, ids, invert=not inside)
    return Found(rows.ids[kept], rows.scores[kept])
