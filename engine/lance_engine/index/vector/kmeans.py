"""Centroids of vectors: Lloyd's k-means algorithm with k-means++ seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from lance_engine import kernels
from lance_engine.index.vector.codec import F32Array
from lance_engine.machine import processors
from lance_engine.tasks import Pool

# Rounds end when the sum of distances shrinks by less than this share.
_LEAST_GAIN: Final = 1e-4
# Vectors per centroid that seeds are chosen from.
_SEED_ROWS: Final = 32
# Vectors that a thread compares at once.
_STEP_ROWS: Final = 8192


def kmeans(
    vectors: F32Array,
    count: int,
    rounds: int,
    random: np.random.Generator,
    told: Callable[[], None] = lambda: None,
) -> F32Array:
    """`count` centroids of the rows of a matrix, by L2; with fewer rows, the rows are the centroids.

    `told` is called after each round; it may raise an error to stop.
    """
    dim = vectors.shape[1]
    if len(vectors) <= count:
        return _repeated(vectors, count)
    centroids = _seeds(vectors, count, random)
    chunks = [vectors[begin : begin + _STEP_ROWS].reshape(-1) for begin in range(0, len(vectors), _STEP_ROWS)]
    before = np.inf
    with Pool(processors(), "lance-train") as pool:
        for _ in range(rounds):
            compiled = kernels.Centroids(centroids.reshape(-1), dim, False)
            sums = np.zeros((count, dim))
            members = np.zeros(count, dtype=np.int64)
            losses = np.zeros(count)
            for step in pool.map(compiled.step, chunks):
                sums += step[0]
                members += step[1]
                losses += step[2]
            kept = members > 0
            centroids[kept] = (sums[kept] / members[kept, None]).astype(np.float32)
            _reseed(centroids, members, losses, random)
            told()
            loss = float(losses.sum())
            if kept.all() and before - loss <= _LEAST_GAIN * loss:
                break
            before = loss
    return centroids


def kmeans_by_faiss(
    vectors: F32Array,
    count: int,
    rounds: int,
    random: np.random.Generator,
    told: Callable[[], None] = lambda: None,
) -> F32Array:
    """Like `kmeans`, with the same seeds and the rounds of faiss."""
    import faiss

    if len(vectors) <= count:
        return _repeated(vectors, count)
    centroids, before = _seeds(vectors, count, random), np.inf
    for _ in range(rounds):
        trained = faiss.Kmeans(
            vectors.shape[1], count, niter=1, seed=int(random.integers(1 << 30)),
            min_points_per_centroid=1, max_points_per_centroid=len(vectors),
        )  # fmt: skip
        trained.train(vectors, init_centroids=centroids)
        centroids = np.ascontiguousarray(trained.centroids, dtype=np.float32)
        told()
        loss = float(np.asarray(trained.obj)[-1])
        if before - loss <= _LEAST_GAIN * loss:
            break
        before = loss
    return centroids


def _repeated(vectors: F32Array, count: int) -> F32Array:
    """`count` centroids out of fewer vectors."""
    dim = vectors.shape[1]
    filled = np.resize(vectors, (count, dim)) if len(vectors) else np.zeros((count, dim))
    return np.ascontiguousarray(filled, dtype=np.float32)


def _seeds(vectors: F32Array, count: int, random: np.random.Generator) -> F32Array:
    """Vectors that are far from each other: the probability of each grows with its distance."""
    if len(vectors) > _SEED_ROWS * count:
        vectors = vectors[np.sort(random.choice(len(vectors), _SEED_ROWS * count, replace=False))]
    flat, dim = np.ascontiguousarray(vectors).view(np.uint8).reshape(-1), vectors.shape[1]
    chosen = np.empty(count, dtype=np.int64)
    nearest = np.full(len(vectors), np.inf)
    chosen[0] = random.integers(len(vectors))
    for number in range(1, count):
        last = vectors[chosen[number - 1]]
        query = kernels.VectorQuery(
            kernels.Metric.L2, kernels.Element.FLOAT32, dim, np.ascontiguousarray(last).view(np.uint8)
        )
        nearest = np.minimum(nearest, query.distances(flat)[0])
        ends = np.cumsum(nearest)
        if not ends[-1] > 0:  # only copies of chosen vectors are left
            chosen[number:] = random.integers(len(vectors), size=count - number)
            break
        chosen[number] = min(np.searchsorted(ends, random.random() * ends[-1], "right"), len(vectors) - 1)
    return vectors[chosen].copy()


def _reseed(
    centroids: F32Array, members: np.ndarray, losses: np.ndarray, random: np.random.Generator
) -> None:
    """Put centroids without members next to those with the farthest ones."""
    empty = np.flatnonzero(members == 0)
    if not len(empty):
        return
    crowded = np.argsort(-losses, kind="stable")[: len(empty)]
    crowded = np.resize(crowded[members[crowded] > 1], len(empty)) if (members[crowded] > 1).any() else empty
    scale = np.abs(centroids[crowded]).mean() * 1e-3 + 1e-12
    noise = random.normal(size=(len(empty), centroids.shape[1])) * scale
    centroids[empty] = (centroids[crowded] + noise).astype(np.float32)
