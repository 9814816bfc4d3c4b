"""Tables of vectors for tests of vector indices, and what pylance finds in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from lance_engine.search.choice import OpenIndex, choose_index, metric_of
from lance_engine.search.column import vector_column

DIM = 32
#: The kinds of vector indices, with options for small tables.
KINDS: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 4},
    "IVF_SQ": {},
    "IVF_RQ": {},
    "IVF_HNSW_FLAT": {},
    "IVF_HNSW_PQ": {"num_sub_vectors": 4},
    "IVF_HNSW_SQ": {},
}
#: Those that pylance builds and we only read.
ONLY_READ = ("IVF_RQ", "IVF_HNSW_PQ")
METRICS = ("l2", "cosine", "dot")


def clustered(rows: int, dim: int = DIM, dtype: type = np.float32, seed: int = 0) -> np.ndarray:
    """Vectors around a few centres."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(12, dim)) * 2
    return (centres[random.integers(0, 12, rows)] + random.normal(size=(rows, dim))).astype(dtype)


def vector_array(values: np.ndarray, nulls: np.ndarray | None = None) -> pa.FixedSizeListArray:
    items = pa.array(np.ascontiguousarray(values).reshape(-1))
    array = pa.FixedSizeListArray.from_arrays(items, values.shape[1])
    if nulls is None:
        return array
    return pa.FixedSizeListArray.from_arrays(array.values, values.shape[1], mask=pa.array(nulls))


def vector_table(values: np.ndarray, first: int = 0, nulls: np.ndarray | None = None) -> pa.Table:
    return pa.table({"id": range(first, first + len(values)), "v": vector_array(values, nulls)})


def found_by_pylance(ds, query, k=10, filter=None, metric=None, **options) -> pa.Table:
    nearest = {"column": "v", "q": pa.array(query), "k": k, **options}
    if metric:
        nearest["metric"] = metric
    return ds.to_table(
        columns=["id", "_distance"], nearest=nearest, filter=filter, prefilter=True, with_row_id=True
    )


def same_rows(found: pa.Table, expected: pa.Table, rounding: float = 1e-3, missing: int = 0) -> None:
    """The same rows at the same distances; `missing` rows may be others where distances are estimates."""
    ours = dict(zip(found["id"].to_pylist(), found["_distance"].to_pylist(), strict=True))
    theirs = dict(zip(expected["id"].to_pylist(), expected["_distance"].to_pylist(), strict=True))
    assert len(ours) == found.num_rows, "a row was found twice"
    assert len(ours) == len(theirs)
    common = ours.keys() & theirs.keys()
    assert len(common) >= len(theirs) - missing, (found, expected)
    for row in common:
        assert abs(ours[row] - theirs[row]) <= rounding * max(1, abs(theirs[row])), row
    assert found["_distance"].to_pylist() == sorted(found["_distance"].to_pylist())


def index_of(ds) -> OpenIndex | None:
    """The index that a search uses which does not ask for a metric."""
    column = vector_column(ds.snapshot, "v")
    return choose_index(ds.snapshot, column, metric_of(ds.snapshot, column, None))


def estimated_by_pylance(ds, query, k=10, filter=None, metric="l2", **options) -> pa.Table:
    """The distances that pylance estimates from codes: for cosine, it returns twice those."""
    found = found_by_pylance(ds, query, k, filter, metric, **options)
    if metric != "cosine":
        return found
    halves = pa.array(found["_distance"].to_numpy() / 2)
    return found.set_column(found.schema.get_field_index("_distance"), "_distance", halves)
