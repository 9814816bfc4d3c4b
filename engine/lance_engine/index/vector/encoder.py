"""Turning vectors into what new segments store: training, partitions, codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine import kernels
from lance_engine.index.vector import flat, pq, sq
from lance_engine.index.vector.codec import F32Array, U8Array
from lance_engine.index.vector.ivf import tensor
from lance_engine.index.vector.kmeans import kmeans, kmeans_by_faiss
from lance_engine.index.vector.options import VectorOptions

Metric = kernels.Metric

_SEED: Final = 42
_VECTOR_TYPES: Final = {pa.float16(): np.float16, pa.float32(): np.float32, pa.float64(): np.float64}


class Stages(Protocol):
    """A callback that receives the progress of the build and may raise to end it."""

    def begin(self, stage: str, total_rows: int | None = None, unit: str = "rows") -> None:
        """A new stage."""
        ...

    def advance(self, rows: int) -> None:
        """This many more are done."""
        ...

    def end(self) -> None:
        """The stage is done."""
        ...


class Encoder:
    """Partitions and codes of an index: trained, or those of an existing segment."""

    def __init__(self, options: VectorOptions, centroids: F32Array, coder: Coder) -> None:
        self.options = options
        self.centroids = centroids
        self.coder = coder
        dot = options.metric is Metric.DOT
        self._nearest = kernels.Centroids(np.ascontiguousarray(centroids).reshape(-1), options.dim, dot)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.options, self.centroids, self.coder)

    @property
    def stored_centroids(self) -> npt.NDArray[Any]:
        """The centroids in the type of the column."""
        dtype = _VECTOR_TYPES.get(self.options.value_type, np.uint8)
        return self.centroids.astype(dtype)

    def encode(self, vectors: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint32], U8Array]:
        """Per vector, as `usable` gives them, its partition and the bytes that are stored."""
        floats = np.ascontiguousarray(vectors, dtype=np.float32)
        if self.options.metric is Metric.HAMMING:
            labels = _nearest_by_bits(vectors, self.centroids)
        else:
            labels, _ = self._nearest.assign(floats.reshape(-1))
        return labels, self.coder.encode(vectors, floats, self.centroids, labels)


class Coder:
    """How vectors of an index are stored; this one stores them as they are."""

    column = flat.COLUMN

    def __init__(self, options: VectorOptions) -> None:
        self.options = options

    @property
    def width(self) -> int:
        """Bytes that are stored of a vector."""
        return self.options.dim * int(self.options.value_type.bit_width) // 8

    @property
    def column_type(self) -> pa.DataType:
        """The type of the column in the file."""
        return pa.list_(self.options.value_type, self.options.dim)

    def encode(
        self,
        vectors: npt.NDArray[Any],
        floats: F32Array,
        centroids: F32Array,
        labels: npt.NDArray[np.uint32],
    ) -> U8Array:
        """The bytes of vectors, one row each."""
        stored: U8Array = np.ascontiguousarray(vectors).view(np.uint8).reshape(len(vectors), self.width)
        return stored

    def partition(self, codes: U8Array) -> U8Array:
        """The bytes of the vectors of a partition, in the order of the file."""
        return codes.reshape(-1)

    def entries(self) -> tuple[dict[str, Any], list[bytes]]:
        """The entry for the metadata of the file, and its buffers from number 2 on."""
        return {"dim": self.options.dim}, []

    def metadata(self) -> tuple[str, list[bytes]]:
        """The entry for the metadata of the file, and buffers from number 2 on."""
        entries, buffers = self.entries()
        return json.dumps([json.dumps(entries, separators=(",", ":"))], separators=(",", ":")), buffers

    def decoded(self, codes: U8Array) -> F32Array:
        """About the vectors that were stored, for building graphs."""
        stored = np.ascontiguousarray(codes).view(_VECTOR_TYPES[self.options.value_type])
        floats: F32Array = stored.astype(np.float32).reshape(len(codes), self.options.dim)
        return floats


class ScalarCoder(Coder):
    """One byte per element."""

    column = sq.COLUMN

    def __init__(self, options: VectorOptions, low: float, high: float) -> None:
        super().__init__(options)
        self.low, self.high = low, high

    @property
    def width(self) -> int:
        return self.options.dim

    @property
    def column_type(self) -> pa.DataType:
        return pa.list_(pa.uint8(), self.options.dim)

    def encode(
        self,
        vectors: npt.NDArray[Any],
        floats: F32Array,
        centroids: F32Array,
        labels: npt.NDArray[np.uint32],
    ) -> U8Array:
        # If all elements are equal, they all have the code 0, which is the lower bound.
        scale = 255 / (self.high - self.low) if self.high > self.low else 0.0
        scaled = (floats - np.float32(self.low)) * np.float32(scale)
        codes: U8Array = np.clip(scaled, 0, 255).astype(np.uint8)
        return codes

    def entries(self) -> tuple[dict[str, Any], list[bytes]]:
        bounds = {"start": self.low, "end": self.high}
        return {"dim": self.options.dim, "num_bits": 8, "bounds": bounds}, []

    def decoded(self, codes: U8Array) -> F32Array:
        floats: F32Array = codes.astype(np.float32)
        # In place: these are the largest arrays of a build.
        floats *= np.float32((self.high - self.low) / 255)
        floats += np.float32(self.low)
        return floats


class ProductCoder(Coder):
    """One code for each part of a vector, of 4 or 8 bits."""

    column = pq.COLUMN

    def __init__(self, options: VectorOptions, codebook: F32Array) -> None:
        """`codebook`: [parts][centroids][dim / parts]."""
        super().__init__(options)
        self.codebook = codebook
        part_dim = options.dim // options.parts
        self._nearest = [
            kernels.Centroids(np.ascontiguousarray(part).reshape(-1), part_dim, False) for part in codebook
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.options, self.codebook)

    @property
    def width(self) -> int:
        return self.options.parts * self.options.bits // 8

    @property
    def column_type(self) -> pa.DataType:
        return pa.list_(pa.uint8(), self.width)

    def encode(
        self,
        vectors: npt.NDArray[Any],
        floats: F32Array,
        centroids: F32Array,
        labels: npt.NDArray[np.uint32],
    ) -> U8Array:
        if self.options.metric is not Metric.DOT:
            floats = floats - centroids[labels]
        codes = np.empty((len(floats), self.options.parts), dtype=np.uint8)
        for part, values in enumerate(np.split(floats, self.options.parts, axis=1)):
            nearest, _ = self._nearest[part].assign(np.ascontiguousarray(values).reshape(-1))
            codes[:, part] = nearest
        if self.options.bits == 4:
            paired: U8Array = np.bitwise_or(codes[:, ::2], np.left_shift(codes[:, 1::2], 4), dtype=np.uint8)
            return paired
        return codes

    def partition(self, codes: U8Array) -> U8Array:
        return np.ascontiguousarray(codes.T).reshape(-1)

    def entries(self) -> tuple[dict[str, Any], list[bytes]]:
        options = self.options
        dtype = _VECTOR_TYPES[options.value_type]
        # Readers only check the size of the shape.
        message = tensor(self.codebook.astype(dtype).reshape(-1), (1 << options.bits, options.dim))
        entries = {
            "codebook_position": 2,
            "nbits": options.bits,
            "num_sub_vectors": options.parts,
            "dimension": options.dim,
            "codebook_tensor": [],
            "transposed": True,
        }
        return entries, [message.SerializeToString()]


def usable(
    vectors: npt.NDArray[Any], valid: npt.NDArray[np.uint8] | None, metric: Metric
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The vectors that an index takes, of length 1 for cosine, and which those are: finite ones.

    Finite also as single-precision numbers, which is what distances are.
    """
    if metric is Metric.HAMMING:
        kept = np.ones(len(vectors), dtype=np.bool_)
    else:
        kept = np.isfinite(vectors).all(axis=1)
        if metric is not Metric.COSINE and vectors.dtype == np.float64:
            kept &= (np.abs(vectors) <= np.finfo(np.float32).max).all(axis=1)
    if valid is not None:
        kept &= valid != 0
    vectors = vectors if kept.all() else vectors[kept]
    if metric is Metric.COSINE and len(vectors):
        # By the largest element first: squares of the others neither overflow nor vanish then.
        largest = np.abs(vectors).max(axis=1).astype(np.float64)
        directed = largest > 0
        kept[np.flatnonzero(kept)[~directed]] = False
        scaled = vectors[directed] / largest[directed, None]
        vectors = (scaled / np.linalg.norm(scaled, axis=1)[:, None]).astype(vectors.dtype)
    return vectors, kept


def train(options: VectorOptions, sample: npt.NDArray[Any], stages: Stages) -> Encoder:
    """The partitions and codes that a sample of the vectors, as `usable` gives them, suggests."""
    random = np.random.default_rng(_SEED)
    floats = np.ascontiguousarray(sample, dtype=np.float32)
    stages.begin("training partitions", options.rounds, "rounds")
    if options.metric is Metric.HAMMING:
        centroids = _byte_centroids(floats, options, random)
    else:
        most = options.sample_rate * options.partitions
        chosen = (
            floats[np.sort(random.choice(len(floats), most, replace=False))] if len(floats) > most else floats
        )
        centroids = _kmeans(options)(
            chosen, options.partitions, options.rounds, random, lambda: stages.advance(1)
        )
    stages.end()
    if options.value_type == pa.float16():
        centroids = centroids.astype(np.float16).astype(np.float32)
    if options.coding == "SQ":
        low, high = (float(floats.min()), float(floats.max())) if len(floats) else (0.0, 1.0)
        if high <= low:
            high = low + max(1.0, abs(low))
        return Encoder(options, centroids, ScalarCoder(options, low, high))
    if options.coding == "PQ":
        return Encoder(options, centroids, _train_codes(options, floats, centroids, random, stages))
    return Encoder(options, centroids, Coder(options))


def _train_codes(
    options: VectorOptions,
    sample: F32Array,
    centroids: F32Array,
    random: np.random.Generator,
    stages: Stages,
) -> ProductCoder:
    most = options.sample_rate << options.bits
    if len(sample) > most:
        sample = sample[np.sort(random.choice(len(sample), most, replace=False))]
    if options.metric is not Metric.DOT and len(sample):
        labels, _ = kernels.Centroids(centroids.reshape(-1), options.dim, False).assign(sample.reshape(-1))
        sample = sample - centroids[labels]
    stages.begin("training codes", options.parts, "parts")
    codebook = np.empty((options.parts, 1 << options.bits, options.dim // options.parts), dtype=np.float32)
    for part, values in enumerate(np.split(sample, options.parts, axis=1)):
        codebook[part] = _kmeans(options)(
            np.ascontiguousarray(values), 1 << options.bits, options.rounds, random
        )
        stages.advance(1)
    stages.end()
    if options.value_type == pa.float16():
        codebook = codebook.astype(np.float16).astype(np.float32)
    return ProductCoder(options, codebook)


def _kmeans(options: VectorOptions) -> Callable[..., F32Array]:
    return kmeans_by_faiss if options.trainer == "faiss" else kmeans


def _byte_centroids(floats: F32Array, options: VectorOptions, random: np.random.Generator) -> F32Array:
    """Vectors of the sample: bytes have no means that their bits are near to."""
    if not len(floats):
        return np.zeros((options.partitions, options.dim), dtype=np.float32)
    return floats[random.choice(len(floats), options.partitions, replace=len(floats) < options.partitions)]


def _nearest_by_bits(vectors: U8Array, centroids: F32Array) -> npt.NDArray[np.uint32]:
    queries = np.ascontiguousarray(centroids.astype(np.uint8))
    compiled = kernels.VectorQuery(
        Metric.HAMMING, kernels.Element.UINT8, vectors.shape[1], queries.reshape(-1)
    )
    distances = compiled.distances(np.ascontiguousarray(vectors).reshape(-1))
    nearest: npt.NDArray[np.uint32] = distances.argmin(axis=0).astype(np.uint32)
    return nearest
