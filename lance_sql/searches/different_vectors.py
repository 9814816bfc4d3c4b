"""The distinct vectors in a column that another table searches for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
from lance_engine.errors import InvalidSearchError
from lance_engine.search import matrix_of


def different(vectors: pa.ChunkedArray, column: str) -> pa.Array:
    """The distinct vectors in order; rows with a null, or with a null in the vector, find nothing."""
    kind = vectors.type
    if not (at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind)):
        raise InvalidSearchError(f"The query has type {kind}, expected a vector for each row", column=column)
    array = vectors.combine_chunks().drop_null()
    values = array.flatten()
    if values.null_count:
        parents = pc.list_parent_indices(array).filter(values.is_null())
        array = array.filter(pc.invert(pc.is_in(pa.array(range(len(array))), parents)))
    if not len(array):
        return array
    matrix = matrix_of(array)
    if matrix is None:
        raise InvalidSearchError(f"The query has type {kind}, expected vectors of one length", column=column)
    # Both zeros are equal numbers, but differ in their bytes.
    rows = np.ascontiguousarray(matrix + matrix.dtype.type(0))
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).reshape(-1)
    _, first = np.unique(keys, return_index=True)
    return array.take(pa.array(np.sort(first)))
