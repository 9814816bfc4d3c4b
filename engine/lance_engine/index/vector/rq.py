"""Rotational quantization (RaBitQ): signs of the rotated vector, and a few more bits of each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_engine import kernels
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.index.vector.codec import F32Array, U8Array, U64Array, lists_in, numbers_in
from lance_engine.index.vector.ivf import parse_tensor_bytes
from lance_engine.index.vector.metadata import whole

_SIGNS: Final = "_rabit_codes"
_OTHERS: Final = "__blocked_ex_codes"
_MOST_BITS: Final = 8


class RotatedCodec:
    """Reads the codes of a segment."""

    def __init__(
        self,
        entries: dict[str, Any],
        metric: kernels.Metric,
        dim: int,
        stored: pa.Schema,
        buffer: Callable[[int], bytes],
    ) -> None:
        whole(entries, "code_dim", dim, dim, dim)
        self._bits = whole(entries, "num_bits", 1, 64, 1)
        if entries.get("query_estimator", "residual_query") != "raw_query":
            raise UnsupportedFeatureError("The index estimates distances from residual queries")
        if (
            "row_layout" in entries
            or self._bits > _MOST_BITS
            or (self._bits > 1 and _OTHERS not in stored.names)
        ):
            raise UnsupportedFeatureError(f"The index has codes of {self._bits} bits in an unknown layout")
        self._packed = bool(entries.get("packed", False))
        self._metric, self._dim = metric, dim
        none = np.empty(0, dtype=np.float32)
        if entries.get("rotation_type", "matrix") == "fast":
            self._rotation = kernels.Rotation(dim, _signs(entries, dim), none)
        else:
            matrix = parse_tensor_bytes(buffer(whole(entries, "rotate_mat_position", 1, 1 << 20))).reshape(-1)
            if len(matrix) != dim * dim:
                raise CorruptFileError(f"The rotation of the index has {len(matrix)} numbers")
            self._rotation = kernels.Rotation(dim, np.empty(0, dtype=np.uint8), matrix)

    @property
    def columns(self) -> list[str]:
        end = "_ex" if self._bits > 1 else ""
        others = [_OTHERS] if self._bits > 1 else []
        return [_SIGNS, f"__add_factors{end}", f"__scale_factors{end}", *others]

    def partition(
        self, ids: U64Array, columns: list[pa.Array], centroid: F32Array, by_row: bool
    ) -> kernels.Partition:
        signs = lists_in(columns[0], pa.uint8(), -(-self._dim // 8))
        add, scale = (numbers_in(column, pa.float32()) for column in columns[1:3])
        others: U8Array = np.empty(0, dtype=np.uint8)
        if self._bits > 1:
            others = lists_in(columns[3], pa.uint8(), -(-self._dim // 64) * 8 * (self._bits - 1))
        return kernels.Partition.rotated(
            self._metric, self._rotation, centroid, ids, self._bits, signs, self._packed, others, add, scale
        )


def _signs(entries: dict[str, Any], dim: int) -> U8Array:
    try:
        signs = np.frombuffer(bytes(entries.get("fast_rotation_signs") or []), dtype=np.uint8)
    except (TypeError, ValueError) as error:
        raise CorruptFileError("The rotation of the index is not a list of bytes") from error
    if len(signs) != 4 * -(-dim // 8) or dim % 8:
        raise CorruptFileError(f"The rotation of the index has {len(signs)} bytes for {dim} dimensions")
    return signs
