"""Scalar quantization: one byte per element, over one range for all dimensions."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from lance_engine import kernels
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.index.vector.codec import F32Array, U64Array, lists_in
from lance_engine.index.vector.metadata import object_in, real, whole

COLUMN: Final = "__sq_code"


class ScalarCodec:
    """Reads the codes of a segment."""

    def __init__(self, entries: dict[str, Any], metric: kernels.Metric, dim: int) -> None:
        whole(entries, "dim", dim, dim)
        if whole(entries, "num_bits", 1, 64, 8) != 8:
            raise UnsupportedFeatureError(f"The index has codes of {entries['num_bits']} bits")
        bounds = object_in(entries.get("bounds"), "bounds")
        self.low, self.high = real(bounds, "start"), real(bounds, "end")
        self._metric, self._dim = metric, dim

    @property
    def columns(self) -> list[str]:
        return [COLUMN]

    def partition(
        self, ids: U64Array, columns: list[pa.Array], centroid: F32Array, by_row: bool
    ) -> kernels.Partition:
        codes = lists_in(columns[0], pa.uint8(), self._dim)
        return kernels.Partition.scalar(self._metric, self._dim, self.low, self.high, ids, codes)
