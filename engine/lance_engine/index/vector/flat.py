"""Vectors as they are; those of a cosine index have the length 1."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from lance_engine import kernels
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.index.vector.codec import F32Array, U64Array, lists_in
from lance_engine.index.vector.metadata import whole

COLUMN: Final = "flat"
_ELEMENTS: Final = {
    pa.float16(): kernels.Element.FLOAT16,
    pa.float32(): kernels.Element.FLOAT32,
    pa.float64(): kernels.Element.FLOAT64,
    pa.uint8(): kernels.Element.UINT8,
}


class FlatCodec:
    """Reads the vectors of a segment."""

    def __init__(self, entries: dict[str, Any], metric: kernels.Metric, dim: int, stored: pa.Schema) -> None:
        whole(entries, "dim", dim, dim)
        kind = stored.field(COLUMN).type if COLUMN in stored.names else None
        if kind is None or not pa.types.is_fixed_size_list(kind) or kind.value_type not in _ELEMENTS:
            raise UnsupportedFeatureError(f"The index contains vectors of type {kind}")
        self.item, self._metric, self._dim = kind.value_type, metric, dim
        if (metric is kernels.Metric.HAMMING) != (self.item == pa.uint8()):
            raise UnsupportedFeatureError(f"The index has the metric {metric.name} on {self.item}")

    @property
    def columns(self) -> list[str]:
        return [COLUMN]

    def partition(
        self, ids: U64Array, columns: list[pa.Array], centroid: F32Array, by_row: bool
    ) -> kernels.Partition:
        values = lists_in(columns[0], self.item, self._dim)
        return kernels.Partition.flat(self._metric, _ELEMENTS[self.item], self._dim, ids, values)
