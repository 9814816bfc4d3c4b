"""Conversion of query vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from lance_engine import kernels
from lance_engine.errors import InvalidSearchError
from lance_engine.search.column import VectorColumn
from lance_engine.search.metric import Metric

F32Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Query:
    """The query: vectors as rows, with the precision of the column."""

    column: VectorColumn
    metric: Metric
    vectors: npt.NDArray[Any]
    is_batch: bool
    """Whether there are several queries, so that results name the one they answer."""

    @property
    def count(self) -> int:
        """The number of queries: on a column of lists of vectors, all vectors form one query."""
        return 1 if self.column.is_multi else len(self.vectors)

    def compiled(self, metric: Metric | None = None, first: int = 0, last: int | None = None) -> Any:
        """Some of the vectors in the form that kernels take."""
        chosen = np.ascontiguousarray(self.vectors[first:last])
        return kernels.VectorQuery(
            self.metric if metric is None else metric,
            self.column.element,
            self.column.dim,
            chosen.view(np.uint8).reshape(-1),
        )


def parse_query(column: VectorColumn, query: Any, metric: Metric) -> Query:
    """The query for a column; InvalidSearchError if its vectors have another length, or are not numbers."""
    if metric is Metric.HAMMING and not column.is_bytes:
        raise InvalidSearchError(
            f"The Hamming distance is not supported for vectors of {column.value_type}",
            remedy="Choose l2, cosine or dot",
            column=column.name,
        )
    vectors = _matrix(query, column)
    is_batch = vectors.ndim == 2 and not column.is_multi
    vectors = np.atleast_2d(vectors)
    if vectors.shape[1] != column.dim:
        raise InvalidSearchError(
            f"The query has {vectors.shape[1]} dimensions, but the vectors have {column.dim}",
            column=column.name,
        )
    if not len(vectors):
        raise InvalidSearchError("No query vector was given", column=column.name)
    if metric is Metric.HAMMING:
        return Query(column, metric, _as_bytes(vectors, column), is_batch)
    if np.isnan(vectors).any():
        raise InvalidSearchError("The query vector contains NaN or null", column=column.name)
    with np.errstate(over="ignore"):
        # Distances to half-precision vectors use the query in half precision.
        if at.is_float16(column.value_type):
            vectors = vectors.astype(np.float16)
        precise = np.float64 if at.is_float64(column.value_type) else np.float32
        vectors = vectors.astype(precise)
    if np.isinf(vectors).any():
        raise InvalidSearchError(
            f"The query vector contains a number that is infinite or too large for {column.value_type}",
            column=column.name,
        )
    return Query(column, metric, vectors, is_batch)


def matrix_of(vectors: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any] | None:
    """Lists of numbers as rows; None if they are not lists of equal length without nulls."""
    array = vectors.combine_chunks() if isinstance(vectors, pa.ChunkedArray) else vectors
    kind = array.type
    if not (at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind)):
        return None
    values = array.flatten()
    if array.null_count or values.null_count or not len(array):
        return None
    if at.is_decimal(values.type):
        values = values.cast(pa.float64())
    if not (at.is_floating(values.type) or at.is_integer(values.type)):
        return None
    if not at.is_fixed_size_list(kind):
        lengths = pc.min_max(pc.list_value_length(array))
        if lengths["min"] != lengths["max"]:
            return None
    return values.to_numpy(zero_copy_only=False).reshape(len(array), -1) if len(values) else None


def _matrix(query: Any, column: VectorColumn) -> npt.NDArray[Any]:
    """One vector, or vectors in rows."""
    if isinstance(query, pa.Scalar):
        query = query.as_py()
    elif isinstance(query, (pa.Array, pa.ChunkedArray)):
        matrix = matrix_of(query) if at.is_nested(query.type) else query.to_numpy(zero_copy_only=False)
        query = query.to_pylist() if matrix is None else matrix
    if query is None:
        raise InvalidSearchError("The query vector is null", column=column.name)
    try:
        vectors = np.asarray(query)
        if vectors.dtype.kind == "c":
            raise TypeError("a complex number has no order")
        if vectors.dtype == object or vectors.dtype.kind not in "fiub":
            vectors = vectors.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidSearchError(
            f"The query must be a vector of {column.dim} numbers, or a list of such vectors",
            column=column.name,
        ) from error
    if vectors.ndim == 1 and column.is_multi and len(vectors) % column.dim == 0 and len(vectors):
        return vectors.reshape(-1, column.dim)
    if vectors.ndim not in (1, 2):
        raise InvalidSearchError(
            f"The query array has {vectors.ndim} dimensions; pass one vector or a list of vectors",
            column=column.name,
        )
    return vectors


def _as_bytes(vectors: npt.NDArray[Any], column: VectorColumn) -> npt.NDArray[np.uint8]:
    whole = vectors.astype(column.dtype)
    if (whole != vectors).any():
        raise InvalidSearchError(
            f"The query contains values that are not {column.value_type}", column=column.name
        )
    return np.ascontiguousarray(whole).view(np.uint8)
