"""The partitions of a vector index: their centroids, and where their rows are in a file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from lance_engine.errors import CorruptFileError
from lance_engine.format.pb import index_pb2

F32Array = npt.NDArray[np.float32]

_TYPES: Final[dict[Any, type[np.generic]]] = {
    index_pb2.Tensor.BFLOAT16: np.uint16,
    index_pb2.Tensor.FLOAT16: np.float16,
    index_pb2.Tensor.FLOAT32: np.float32,
    index_pb2.Tensor.FLOAT64: np.float64,
    index_pb2.Tensor.UINT8: np.uint8,
}
_DATA_TYPES: Final[dict[Any, Any]] = {
    kind: number for number, kind in _TYPES.items() if kind is not np.uint16
}
# More elements than any centroids or codebook have: a message that claims them is damaged.
_MOST_ELEMENTS: Final = 1 << 34


@dataclass(frozen=True, slots=True)
class Ivf:
    """Partition `p` has the rows ``offsets[p]`` to ``offsets[p] + lengths[p]``; centroids are a matrix."""

    centroids: F32Array | None
    offsets: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return len(self.lengths)


def parse_ivf(data: bytes, rows: int) -> Ivf:
    """The message in a file of `rows` rows; CorruptFileError if it is invalid."""
    try:
        message = index_pb2.IVF.FromString(data)
    except DecodeError as error:
        raise CorruptFileError("The partitions of the index cannot be parsed") from error
    lengths = np.array(message.lengths, dtype=np.int64)
    if message.offsets:
        if max(message.offsets) > rows:
            raise CorruptFileError(f"A partition starts past the {rows} rows of the file")
        offsets = np.array(message.offsets, dtype=np.int64)
    else:
        offsets = np.cumsum(lengths) - lengths
    if len(offsets) != len(lengths) or (offsets + lengths > rows).any():
        raise CorruptFileError(f"The partitions of the index are not within the {rows} rows of the file")
    centroids = None
    if message.HasField("centroids_tensor"):
        centroids = parse_tensor(message.centroids_tensor)
        if centroids.ndim != 2:
            raise CorruptFileError(f"The centroids of the index have the shape {centroids.shape}")
    elif message.centroids:
        count = len(message.centroids)
        if not len(lengths) or count % len(lengths):
            raise CorruptFileError(f"{count} numbers cannot be the centroids of {len(lengths)} partitions")
        centroids = np.array(message.centroids, dtype=np.float32).reshape(len(lengths), -1)
    if centroids is not None:
        if len(centroids) != len(lengths):
            raise CorruptFileError(f"There are {len(centroids)} centroids for {len(lengths)} partitions")
        if not np.isfinite(centroids).all():
            raise CorruptFileError("A centroid of the index is not finite")
    return Ivf(centroids, offsets, lengths)


def parse_tensor(message: Any) -> F32Array:
    """The numbers of a Tensor in its shape; CorruptFileError if these do not fit."""
    kind = _TYPES.get(message.data_type)
    if kind is None:
        raise CorruptFileError(
            f"A tensor has the type {message.data_type}, which is not a floating-point type"
        )
    shape = list(message.shape)
    # An empty tensor may claim any length of its other dimensions.
    claimed = math.prod(max(1, length) for length in shape)
    size = math.prod(shape) * np.dtype(kind).itemsize
    if not shape or claimed > _MOST_ELEMENTS or size != len(message.data):
        raise CorruptFileError(f"A tensor of shape {shape[:8]} has {len(message.data)} bytes")
    values = np.frombuffer(message.data, dtype=kind)
    if message.data_type == index_pb2.Tensor.BFLOAT16:
        values = (values.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values.astype(np.float32).reshape(shape))


def parse_tensor_bytes(data: bytes) -> F32Array:
    """Like `parse_tensor`, for a serialized message."""
    try:
        return parse_tensor(index_pb2.Tensor.FromString(data))
    except DecodeError as error:
        raise CorruptFileError("A tensor of the index cannot be parsed") from error


def tensor(values: npt.NDArray[Any], shape: Sequence[int] | None = None) -> Any:
    """The message of an array, which may say that it has another shape."""
    return index_pb2.Tensor(
        data_type=_DATA_TYPES[values.dtype.type],
        shape=values.shape if shape is None else shape,
        data=np.ascontiguousarray(values).tobytes(),
    )


def serialize_ivf(
    lengths: npt.NDArray[np.int64], centroids: npt.NDArray[Any] | None, *, rows_here: bool = True
) -> bytes:
    """The message of consecutive partitions; without `rows_here` the file has no rows."""
    zeros = np.zeros_like(lengths)
    data: bytes = index_pb2.IVF(
        offsets=(np.cumsum(lengths) - lengths if rows_here else zeros).tolist(),
        lengths=(lengths if rows_here else zeros).tolist(),
        centroids_tensor=None if centroids is None else tensor(centroids),
    ).SerializeToString()
    return data
