"""The number of index partitions to search first: those whose centroids are near enough to the query."""

from __future__ import annotations

from typing import Final

import numpy as np

from lance_engine import kernels
from lance_engine.index.vector.segment import VectorSegment
from lance_engine.search.options import SearchOptions
from lance_engine.search.query import F32Array

# Number of rows: the distance of the farthest centroid relative to that of the nearest one, and the minimum
# and maximum number of partitions. The authors of the format tuned them for unquantized vectors.
_STEPS: Final = (1, 10, 100, 200, 500, 1000)
_L2: Final = (
    (0.2175, 0.265, 0.33, 0.375, 0.3725, 0.4175),
    (5, 6, 11, 15, 22, 29),
    (19, 24, 38, 56, 81, 93),
)
_COSINE: Final = (
    (0.235, 0.2875, 0.38, 0.415, 0.45, 0.47),
    (3, 8, 7, 18, 28, 34),
    (50, 77, 106, 156, 192, 248),
)


def first_probes(segment: VectorSegment, distances: F32Array, k: int, options: SearchOptions) -> int:
    """The number of partitions, given the ascending `distances` of their centroids."""
    if options.nprobes is not None:
        return min(options.nprobes, len(distances))
    least = options.minimum_nprobes or 1
    most = min(options.maximum_nprobes or len(distances), len(distances))
    nearest = float(distances[0]) if len(distances) else 0.0
    tables = {kernels.Metric.L2: _L2, kernels.Metric.COSINE: _COSINE}.get(segment.metric)
    if segment.kind == "IVF_FLAT" and k <= _STEPS[-1] and tables and not options.refine_factor:
        margins, floors, caps = tables
        step = next(number for number, rows in enumerate(_STEPS) if k <= rows)
        # Squared distances are compared as distances.
        limit = nearest * (1 + margins[step]) ** 2
        near = int(np.searchsorted(distances, limit, "right"))
        return max(least, min(most, max(floors[step], min(near, caps[step]))))
    factor = 7 if k <= 10 else 81
    near = int(np.searchsorted(distances, factor * nearest, "right")) if nearest > 0 else 1
    return max(min(least, most), min(near, most))


def most_probes(segment: VectorSegment, options: SearchOptions) -> int:
    """The maximum number of partitions to search while too few rows are found."""
    most = options.nprobes or options.maximum_nprobes
    return len(segment.centroids) if most is None else min(most, len(segment.centroids))
