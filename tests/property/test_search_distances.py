"""Every ``_distance`` is the distance of its row in the metric of the search, whatever found the row.

Indices of all kinds, of both writers; filters that leave many rows or few; rows that the index covers, or
not; deleted rows. numpy computes the distances.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.search import indexed
from vector_tables import KINDS, METRICS, ONLY_READ, clustered, index_of, vector_array

import lance_sql

ROWS, DIM, K = 700, 16, 10
TYPES: tuple[Any, ...] = (np.float32, np.float64, np.float16, np.float32)
#: None, one that many rows pass, and one after which rows are compared without the index.
FILTERS = (None, "id % 10 <> 3", "id % 20 = 1")
QUICK = [
    "IVF_FLAT-l2",
    "IVF_PQ-cosine",
    "IVF_PQ-dot",
    "IVF_SQ-cosine",
    "IVF_RQ-l2",
    "IVF_RQ-cosine",
    "IVF_HNSW_FLAT-dot",
    "IVF_HNSW_PQ-l2",
    "IVF_HNSW_SQ-cosine",
]
CASES = [
    pytest.param(
        kind,
        metric,
        TYPES[number % 4],
        number % 2 == 1,
        id=f"{kind}-{metric}",
        marks=[] if f"{kind}-{metric}" in QUICK else [pytest.mark.slow],
    )
    for number, (kind, metric) in enumerate(itertools.product(KINDS, METRICS))
]


def rows(first: int, count: int, dtype: Any) -> pa.Table:
    # Lengths differ, so that metrics differ.
    values = clustered(count, DIM, np.float32, first) * np.random.default_rng(first).uniform(
        0.5, 2, (count, 1)
    )
    nulls = np.random.default_rng(first).random(count) < 0.05
    return pa.table({"id": range(first, first + count), "v": vector_array(values.astype(dtype), nulls)})


class Reference:
    """The rows of a dataset, and their distances by numpy in double precision."""

    def __init__(self, ds: lance_sql.Dataset, filter: str | None, metric: str, query: np.ndarray) -> None:
        table = ds.to_table(columns=["id", "v"], filter=filter).drop_null()
        ids = table["id"].to_numpy()
        matrix = np.array(table["v"].to_pylist(), dtype=np.float64).reshape(-1, DIM)
        wanted = query.astype(np.float64)
        if metric == "l2":
            distances = ((matrix - wanted) ** 2).sum(axis=1)
        elif metric == "dot":
            distances = 1 - matrix @ wanted
        else:
            distances = 1 - matrix @ wanted / (np.linalg.norm(matrix, axis=1) * np.linalg.norm(wanted))
        self.of = dict(zip(ids.tolist(), distances.tolist(), strict=True))
        self.sorted = np.sort(distances)

    def check(self, found: pa.Table, rounding: float) -> np.ndarray:
        """The distances found, which are those of their rows, in ascending order."""
        distances = found["_distance"].to_numpy()
        expected = [self.of[row] for row in found["id"].to_pylist()]
        np.testing.assert_allclose(distances, expected, rtol=rounding, atol=rounding)
        assert (np.diff(distances) >= 0).all()
        assert len(set(found["id"].to_pylist())) == found.num_rows
        return distances


def check(ds: lance_sql.Dataset, metric: str, query: np.ndarray, rounding: float, graph: bool) -> None:
    others = [other for other in METRICS if other != metric]
    everywhere: dict[str, Any] = {"nprobes": 2, "refine_factor": 120}
    if graph:
        everywhere["ef"] = 2 * ROWS
    for filter in FILTERS:

        def nearest(filter: str | None = filter, **options: Any) -> pa.Table:
            return ds.nearest("v", query, K, filter=filter, columns=["id"], **options)

        reference = Reference(ds, filter, metric, query)
        found = nearest()
        distances = reference.check(found, rounding)
        assert len(distances) == K

        exact = nearest(use_index=False)
        np.testing.assert_allclose(reference.check(exact, rounding), reference.sorted[:K], rounding, rounding)
        assert exact.equals(nearest(use_index=False, metric=metric))
        assert nearest(**everywhere).equals(exact)
        other = Reference(ds, filter, others[0], query)
        np.testing.assert_allclose(
            other.check(nearest(metric=others[0]), rounding), other.sorted[:K], rounding, rounding
        )

        # Bounds are of exact distances: they leave out rows of the same search, or let it go on.
        upper, lower = float(distances[6]), float(exact["_distance"][4].as_py())
        assert nearest(upper=upper).equals(found.slice(0, int((distances < upper).sum())))
        later = reference.check(nearest(lower=lower), rounding)
        assert len(later) == K
        assert (later >= lower).all()
        far = float(reference.sorted[len(reference.sorted) // 2])
        expected = reference.sorted[reference.sorted >= far + 4 * rounding][:K]
        beyond = reference.check(nearest(lower=far + 4 * rounding, **everywhere), rounding)
        np.testing.assert_allclose(beyond, expected, rounding, rounding)

        # Estimates have the same scale.
        estimated = nearest(estimates=True)
        assert (np.diff(estimated["_distance"].to_numpy()) >= 0).all()
        expected = np.array([reference.of[row] for row in estimated["id"].to_pylist()])
        errors = np.abs(estimated["_distance"].to_numpy() - expected)
        assert np.median(errors) <= 0.35 * np.median(np.abs(expected)) + rounding


@pytest.mark.parametrize(("kind", "metric", "dtype", "stable"), CASES)
def test_distances_of_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, metric: str, dtype: Any, stable: bool
) -> None:
    monkeypatch.setattr(indexed, "_FEW_ROWS", 60)
    path = str(tmp_path / "t")
    lance_sql.write(rows(0, ROWS, dtype), path, max_rows_per_file=300, stable_row_ids=stable)
    options = {"num_partitions": 2, "metric": metric, **KINDS[kind]}
    by_pylance = kind in ONLY_READ or stable
    index_on: Any = lance.dataset(path) if by_pylance else lance_sql.open(path)
    index_on.create_index("v", kind, **options)
    rounding = 4e-3 if dtype is np.float16 else 2e-5
    query = rows(0, ROWS, dtype)["v"][5].as_py()
    stored, near = (np.array(vector, dtype) for vector in (query, clustered(1, DIM, dtype, 99)[0]))
    graph = "HNSW" in kind
    for vector in (stored, near):
        check(lance_sql.open(path), metric, vector, rounding, graph)
    lance_sql.open(path).delete("id % 7 = 3")
    check(lance_sql.open(path), metric, near, rounding, graph)
    lance_sql.write(rows(1000, 60, dtype), path, mode="append")
    ds = lance_sql.open(path)
    assert index_of(ds) is not None
    check(ds, metric, near, rounding, graph)
    several = ds.nearest("v", np.stack([stored, near]), K, columns=["id"])
    for number, vector in enumerate((stored, near)):
        mine = several.filter(pa.array(several["query_index"].to_numpy() == number))
        assert mine.select(["id", "_distance"]).equals(ds.nearest("v", vector, K, columns=["id"]))
