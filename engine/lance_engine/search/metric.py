"""Distance metrics between vectors."""

from __future__ import annotations

from typing import Final

from lance_engine import kernels
from lance_engine.errors import InvalidSearchError

Metric = kernels.Metric

#: By user-facing name; `l2` is the squared Euclidean distance, `dot` is 1 minus the inner product.
_METRICS: Final = {
    "l2": Metric.L2,
    "euclidean": Metric.L2,
    "cosine": Metric.COSINE,
    "dot": Metric.DOT,
    "hamming": Metric.HAMMING,
}


def metric_named(name: str) -> Metric:
    """The metric of a name in any case; InvalidSearchError lists the existing ones."""
    metric_named = _METRICS.get(name.lower()) if isinstance(name, str) else None
    if metric_named is None:
        raise InvalidSearchError(
            f"Unknown metric {name!r}", remedy="Choose l2, cosine, dot, or hamming for bytes"
        )
    return metric_named
