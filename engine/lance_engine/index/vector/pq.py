"""Product quantization: a vector is cut into parts, each stored as the number of its nearest centroid.

With L2 and cosine, the stored vector is the difference from the centroid of its partition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_engine import kernels
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.index.vector.codec import F32Array, U64Array, lists_in
from lance_engine.index.vector.ivf import parse_tensor_bytes
from lance_engine.index.vector.metadata import whole

COLUMN: Final = "__pq_code"


class ProductCodec:
    """Reads the codes of a segment."""

    def __init__(
        self, entries: dict[str, Any], metric: kernels.Metric, dim: int, buffer: Callable[[int], bytes]
    ) -> None:
        whole(entries, "dimension", dim, dim)
        self.bits = whole(entries, "nbits", 1, 64)
        self.parts = whole(entries, "num_sub_vectors", 1, dim)
        if self.bits not in (4, 8) or dim % self.parts or (self.bits == 4 and self.parts % 2):
            raise UnsupportedFeatureError(
                f"The index has {self.parts} codes of {self.bits} bits for {dim} dimensions"
            )
        self.transposed = bool(entries.get("transposed", False))
        inline = entries.get("codebook_tensor") or []
        if inline:
            try:
                data = bytes(inline)
            except (TypeError, ValueError) as error:
                raise CorruptFileError("The codebook of the index is not a list of bytes") from error
        else:
            data = buffer(whole(entries, "codebook_position", 1, 1 << 20))
        self.codebook = parse_tensor_bytes(data).reshape(-1)
        if len(self.codebook) != dim << self.bits or not np.isfinite(self.codebook).all():
            raise CorruptFileError(f"The codebook of the index has {len(self.codebook)} numbers")
        self._compiled = kernels.Codebook(metric, dim, self.parts, self.bits, self.codebook)

    @property
    def columns(self) -> list[str]:
        return [COLUMN]

    def partition(
        self, ids: U64Array, columns: list[pa.Array], centroid: F32Array, by_row: bool
    ) -> kernels.Partition:
        codes = lists_in(columns[0], pa.uint8(), self.parts * self.bits // 8)
        return kernels.Partition.product(self._compiled, centroid, ids, codes, self.transposed, by_row)
