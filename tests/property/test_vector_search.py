"""Index searches over all partitions return the same rows as an exact search and as numpy."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from vector_tables import clustered, vector_array

import lance_sql

DIM, K = 16, 12
KINDS = ("IVF_FLAT", "IVF_PQ", "IVF_SQ")
METRICS = ("l2", "cosine", "dot")
TYPES = (np.float32, np.float16, np.float64)
FILTERS = (None, "part = 1", "id < 40 OR id > 690", "id IN (3, 5, 800)", "part > 5")
#: Stable row ids, a second segment for what comes later, compaction.
LIVES = tuple(itertools.product((False, True), repeat=3))


def rows(first: int, count: int, dtype: type, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    values = clustered(count, DIM, dtype, seed)
    ids = np.arange(first, first + count)
    return pa.table(
        {
            "id": ids,
            "part": random.integers(0, 6, count),
            "v": vector_array(values, random.random(count) < 0.05),
        }
    )


def by_numpy(ds: lance_sql.Dataset, query: np.ndarray, metric: str, filter: str | None) -> np.ndarray:
    """The distances of the nearest rows."""
    table = ds.to_table(filter=filter)
    vectors = [row for row in table["v"].to_pylist() if row is not None]
    matrix = np.array(vectors, dtype=np.float64).reshape(-1, DIM)
    wanted = query.astype(np.float64)
    if metric == "l2":
        distances = ((matrix - wanted) ** 2).sum(axis=1)
    elif metric == "dot":
        distances = 1 - matrix @ wanted
    else:
        distances = 1 - matrix @ wanted / (np.linalg.norm(matrix, axis=1) * np.linalg.norm(wanted))
    return np.sort(distances)[:K]


@pytest.mark.parametrize("number", range(len(LIVES) + 1))
def test_an_index_that_looks_everywhere_is_exact(tmp_path: Path, number: int) -> None:
    kind, metric, dtype = KINDS[number % 3], METRICS[number // 3], TYPES[(number + number // 3) % 3]
    stable, extends, compacts = LIVES[number % len(LIVES)]
    path = str(tmp_path / "t.lance")
    lance_sql.write(rows(0, 700, dtype, number), path, max_rows_per_file=250, stable_row_ids=stable)
    options = {"num_sub_vectors": 4} if kind == "IVF_PQ" else {}
    lance_sql.open(path).create_index("v", kind, num_partitions=2, metric=metric, **options)
    lance_sql.write(rows(700, 110, dtype, number + 50), path, mode="append")
    if extends:
        lance_sql.open(path).optimize_indices()
    lance_sql.open(path).delete("id % 7 = 3")
    if compacts:
        lance_sql.open(path).compact()
    ds = lance_sql.open(path)
    query = clustered(1, DIM, dtype, number + 99)[0]
    for filter in FILTERS:
        exact = ds.nearest("v", query, K, metric, filter=filter, columns=["id", "part"], use_index=False)
        found = ds.nearest(
            "v", query, K, metric, filter=filter, columns=["id", "part"], nprobes=2, refine_factor=100
        )
        assert found.equals(exact), filter
        expected = by_numpy(ds, query, metric, filter)
        assert len(expected) == found.num_rows
        np.testing.assert_allclose(found["_distance"].to_numpy(), expected, rtol=2e-3, atol=2e-3)
        assert all(row % 7 != 3 for row in found["id"].to_pylist())
        assert set(found["id"].to_pylist()) <= set(
            ds.to_table(columns=["id"], filter=filter)["id"].to_pylist()
        )


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["IVF_HNSW_FLAT", "IVF_HNSW_SQ"])
def test_a_graph_that_is_followed_everywhere_is_exact(tmp_path: Path, kind: str, metric: str) -> None:
    path = str(tmp_path / "t.lance")
    # So many rows that those of a filter are looked for in the graph.
    lance_sql.write(rows(0, 3000, np.float32, 3), path, max_rows_per_file=1700)
    ds = lance_sql.open(path).create_index("v", kind, num_partitions=2, metric=metric).delete("id % 7 = 3")
    query = clustered(1, DIM, np.float32, 99)[0]
    for filter in (None, "id % 11 <> 4", "part <> 1", *FILTERS[1:]):
        exact = ds.nearest("v", query, K, metric, filter=filter, columns=["id"], use_index=False)
        found = ds.nearest(
            "v", query, K, metric, filter=filter, columns=["id"], nprobes=2, ef=3000, refine_factor=250
        )
        assert found.equals(exact), filter


@pytest.mark.parametrize(
    ("dtype", "metric"),
    [*itertools.product((np.uint8, np.int8), METRICS), (np.uint8, "hamming"), (np.int8, "hamming")],
)
def test_bytes_are_exact(tmp_path: Path, dtype: type, metric: str) -> None:
    """The nearest rows of those that pass a filter, by numpy in whole numbers, with an index and without."""
    random = np.random.default_rng(5)
    limits = np.iinfo(dtype)
    values = random.integers(limits.min, limits.max + 1, (2600, DIM)).astype(dtype)
    nulls = random.random(len(values)) < 0.05
    table = pa.table({"id": range(2600), "part": np.arange(2600) % 6, "v": vector_array(values, nulls)})
    path = str(tmp_path / "t.lance")
    ds = lance_sql.write(table, path, max_rows_per_file=900)
    if metric == "hamming" and dtype is np.uint8:
        ds = ds.create_index("v", "IVF_FLAT", num_partitions=3)
    ds = ds.delete("id % 7 = 3")
    query = values[11] ^ dtype(9)
    wide, wanted = values.astype(np.int64), query.astype(np.int64)
    if metric == "hamming":
        distances = np.bitwise_count((values ^ query).view(np.uint8)).sum(axis=1).astype(np.float64)
    elif metric == "l2":
        distances = ((wide - wanted) ** 2).sum(axis=1).astype(np.float64)
    else:
        distances = 1.0 - wide @ wanted
        if metric == "cosine":
            norms = np.linalg.norm(wide.astype(np.float64), axis=1) * np.linalg.norm(
                wanted.astype(np.float64)
            )
            distances = 1 - (wide @ wanted) / norms
    for filter in (None, "part = 1", "id < 40 OR id > 2500", "part > 5"):
        ids = ds.to_table(columns=["id"], filter=filter)["id"].to_numpy()
        ids = ids[~nulls[ids]]
        expected = np.sort(distances[ids])[:K]
        for use_index in (False, True):
            found = ds.nearest(
                "v", query, K, metric, filter=filter, columns=["id"], nprobes=3, use_index=use_index
            )
            assert set(found["id"].to_pylist()) <= set(ids.tolist())
            np.testing.assert_allclose(found["_distance"].to_numpy(), expected, rtol=1e-5, atol=1e-5)
