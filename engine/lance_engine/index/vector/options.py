"""The options of new vector indices, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Final

import pyarrow as pa

from lance_engine import kernels
from lance_engine.errors import (
    InvalidArgumentError,
    InvalidSearchError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
)
from lance_engine.format.pb import index_pb2
from lance_engine.index.vector.metadata import METRIC_NAMES, METRICS

#: The kinds that can be built.
KINDS: Final = ("IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ")
#: The algorithms that find centroids.
TRAINERS: Final = ("own", "faiss")

_TARGET_ROWS: Final = {"FLAT": 4096, "PQ": 8192, "SQ": 8192}
_GRAPH_ROWS: Final = 1 << 20
# Memory that the vectors of a partition and their graph may take, unless users set the number of partitions.
_GRAPH_BYTES: Final = 768 << 20
# Memory that the vectors for training may take.
_SAMPLE_BYTES: Final = 384 << 20
_MOST_PARTITIONS: Final = 4096
# Fewer rows than this per partition say too little about where its centroid is.
_LEAST_ROWS: Final = 256
_PART_DIM: Final = 16
_VALUE_TYPES: Final = (pa.float16(), pa.float32(), pa.float64())


@dataclass(frozen=True, slots=True)
class VectorOptions:
    """All options of an index on vectors of `dim` elements of type `value_type`."""

    kind: str
    metric: kernels.Metric
    value_type: pa.DataType
    dim: int
    partitions: int
    parts: int
    bits: int
    rounds: int
    sample_rate: int
    trainer: str
    neighbours: int
    candidates: int

    @property
    def coding(self) -> str:
        """How vectors are stored: FLAT, PQ or SQ."""
        return self.kind.rpartition("_")[2]

    @property
    def has_graph(self) -> bool:
        """Whether partitions get graphs."""
        return "HNSW" in self.kind

    @property
    def sample_rows(self) -> int:
        """Vectors that centroids are trained on."""
        codes = self.sample_rate << self.bits if self.coding == "PQ" else 0
        wanted = max(self.sample_rate * self.partitions, codes, 1024)
        return min(wanted, max(_SAMPLE_BYTES // (4 * self.dim), 2 * self.partitions, 1024))

    def details(self) -> bytes:
        """The message for the manifest."""
        message = index_pb2.VectorIndexDetails(
            metric_type=index_pb2.VectorIndexDetails.MetricType.Value(METRIC_NAMES[self.metric].upper()),
            target_partition_size=_GRAPH_ROWS if self.has_graph else _TARGET_ROWS[self.coding],
        )
        if self.has_graph:
            message.hnsw.max_connections = self.neighbours
            message.hnsw.construction_ef = self.candidates
            message.hnsw.max_level = GRAPH_LEVELS
        if self.coding == "PQ":
            message.pq.num_bits, message.pq.num_sub_vectors = self.bits, self.parts
        elif self.coding == "SQ":
            message.sq.num_bits = 8
        else:
            message.flat.SetInParent()
        data: bytes = message.SerializeToString()
        return data


GRAPH_LEVELS: Final = 7


def vector_options(kind: str, vector: pa.DataType, rows: int, given: Mapping[str, Any]) -> VectorOptions:
    """The options of a new index on a column of type `vector` with `rows` rows.

    UnsupportedTypeError if the index does not support these values, InvalidSearchError if an option is
    invalid, TypeError if no option has this name.
    """
    name = kind.upper()
    if not pa.types.is_fixed_size_list(vector):
        raise UnsupportedTypeError(f"Cannot build an {name} index on type {vector}")
    value_type, dim = vector.value_type, vector.list_size
    options = dict(given)
    metric = _metric(options.pop("metric", None), value_type)
    is_bytes = metric is kernels.Metric.HAMMING
    if (value_type != pa.uint8() if is_bytes else value_type not in _VALUE_TYPES) or (
        is_bytes and name != "IVF_FLAT"
    ):
        raise UnsupportedTypeError(
            f"Cannot build an {name} index with the metric {METRIC_NAMES[metric]} on {value_type}"
        )
    coding = name.rpartition("_")[2]
    has_graph = "HNSW" in name
    neighbours = _number(options, "m", 20, 4, 1024) if has_graph else 0
    default = rows // (_graph_rows(dim, neighbours) if has_graph else _TARGET_ROWS[coding])
    partitions = _number(options, "num_partitions", max(1, min(default, _MOST_PARTITIONS)), 1, 1 << 20)
    bits = parts = 0
    if coding == "PQ":
        bits = _number(options, "num_bits", 8, 4, 8)
        parts = _number(options, "num_sub_vectors", _default_parts(dim), 1, dim)
        if bits not in (4, 8) or dim % parts or (bits == 4 and parts % 2):
            raise InvalidSearchError(
                f"{parts} codes of {bits} bits do not fit vectors of {dim} dimensions",
                remedy="num_sub_vectors must divide the dimensions; num_bits must be 8, or 4 with an even "
                "num_sub_vectors",
            )
    chosen = VectorOptions(
        kind=name,
        metric=metric,
        value_type=value_type,
        dim=dim,
        partitions=partitions,
        parts=parts,
        bits=bits,
        rounds=_number(options, "max_iters", 50, 1, 10_000),
        sample_rate=_number(options, "sample_rate", 256, 1, 1 << 20),
        trainer=_trainer(options.pop("trainer", "own")),
        neighbours=neighbours,
        candidates=_number(options, "ef_construction", 150, neighbours, 1 << 16) if has_graph else 0,
    )
    if options:
        raise InvalidArgumentError(f"'{min(options)}' is not an option of an {name} index")
    return for_rows(chosen, rows)


def for_rows(options: VectorOptions, rows: int) -> VectorOptions:
    """The options with no more partitions than `rows` rows can fill."""
    return replace(options, partitions=max(1, min(options.partitions, rows // _LEAST_ROWS)))


def _metric(name: object, value_type: pa.DataType) -> kernels.Metric:
    if name is None:
        return kernels.Metric.HAMMING if value_type == pa.uint8() else kernels.Metric.L2
    metric = METRICS.get(name.lower()) if isinstance(name, str) else None
    if metric is None:
        raise InvalidSearchError(f"Unknown metric {name!r}", remedy="Choose " + ", ".join(METRICS))
    return metric


def _graph_rows(dim: int, neighbours: int) -> int:
    """The rows of a partition with a graph: vectors, and links of 8 bytes while and after they are found."""
    return min(_GRAPH_ROWS, _GRAPH_BYTES // (4 * dim + 4 * 8 * neighbours))


def _trainer(name: object) -> str:
    if name not in TRAINERS:
        raise InvalidSearchError(f"Unknown trainer {name!r}", remedy="Choose " + ", ".join(TRAINERS))
    if name == "faiss" and find_spec("faiss") is None:
        raise UnsupportedFeatureError(
            "Training with faiss needs faiss", remedy="Install it: pip install 'lance-sql[train]'"
        )
    return str(name)


def _default_parts(dim: int) -> int:
    """About one code for 16 dimensions; the number divides the dimensions."""
    wanted = max(1, dim // _PART_DIM)
    return next(parts for parts in range(wanted, 0, -1) if dim % parts == 0)


def _number(options: dict[str, Any], name: str, default: int, low: int, high: int) -> int:
    value = options.pop(name, None)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidSearchError(f"{name} must be between {low} and {high}, not {value!r}")
    return value
