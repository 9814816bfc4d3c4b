"""The metadata of vector indices: JSON in their files, and a message in the manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.message import DecodeError

from lance_engine import kernels
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.format.pb import index_pb2

METRICS: Final = {
    "l2": kernels.Metric.L2,
    "cosine": kernels.Metric.COSINE,
    "dot": kernels.Metric.DOT,
    "hamming": kernels.Metric.HAMMING,
}
METRIC_NAMES: Final = {metric: name for name, metric in METRICS.items()}


def json_of(metadata: Mapping[str, str], key: str) -> Any:
    """The value of an entry; CorruptFileError if it is invalid."""
    try:
        return json.loads(metadata[key])
    except (KeyError, ValueError, RecursionError) as error:
        raise CorruptFileError(f"The metadata '{key}' of the index is missing or not valid JSON") from error


def object_in(value: Any, key: str) -> dict[str, Any]:
    """`value` if it is an object; CorruptFileError if not."""
    if not isinstance(value, dict):
        raise CorruptFileError(f"The metadata '{key}' of the index is not a JSON object")
    return value


def embedded(value: Any, key: str) -> dict[str, Any]:
    """The object in a JSON text that is a string in other JSON."""
    try:
        return object_in(json.loads(value), key)
    except (TypeError, ValueError, RecursionError) as error:
        raise CorruptFileError(f"The metadata '{key}' of the index is not valid JSON") from error


def whole(entries: Mapping[str, Any], key: str, low: int, high: int, default: int | None = None) -> int:
    """A number from `low` to `high`; CorruptFileError if it is invalid."""
    value = entries.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise CorruptFileError(f"The entry '{key}' of the index is {str(value)[:40]}")
    return value


def real(entries: Mapping[str, Any], key: str) -> float:
    """A number; CorruptFileError if it is invalid."""
    value = entries.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise CorruptFileError(f"The entry '{key}' of the index is {str(value)[:40]}")
    return float(value)


def metric_in(name: object) -> kernels.Metric:
    """The metric of an index; UnsupportedFeatureError for unknown metrics."""
    metric = METRICS.get(name.lower()) if isinstance(name, str) else None
    if metric is None:
        raise UnsupportedFeatureError(f"The index has the metric {str(name)[:40]}")
    return metric


def metric_in_details(details: bytes) -> kernels.Metric | None:
    """The metric in the message of the manifest; None for an empty message, as older releases wrote it."""
    try:
        number = index_pb2.VectorIndexDetails.FromString(details).metric_type if details else None
    except DecodeError:
        return None
    known = {index_pb2.VectorIndexDetails.MetricType.Value(name.upper()): METRICS[name] for name in METRICS}
    return None if number is None else known.get(number)


def described_index(details: bytes) -> tuple[str, dict[str, Any]] | None:
    """The kind and the options in the message of the manifest; None if it does not say them."""
    try:
        message = index_pb2.VectorIndexDetails.FromString(details)
    except DecodeError:
        return None
    coding, metric = message.WhichOneof("compression"), metric_in_details(details)
    if coding is None or metric is None:
        return None
    options: dict[str, Any] = {"metric": METRIC_NAMES[metric]}
    # What is not recorded is 0, for which the defaults stand.
    if coding == "pq":
        options["num_bits"] = message.pq.num_bits or None
        options["num_sub_vectors"] = message.pq.num_sub_vectors or None
    if message.HasField("hnsw"):
        options["m"] = message.hnsw.max_connections or None
        options["ef_construction"] = message.hnsw.construction_ef or None
    return f"IVF_{'HNSW_' if message.HasField('hnsw') else ''}{coding.upper()}", options
