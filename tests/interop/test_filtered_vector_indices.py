"""Filters as masks of every kind of vector index: with all partitions and a full refine, the exact answer.

Few rows that pass a filter are compared without the index; here this is turned off, so that small tables show
what the index does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.search import indexed
from vector_tables import KINDS, METRICS, ONLY_READ, clustered, vector_array

import lance_sql

ROWS, DIM, K = 600, 16, 12
TYPES: tuple[Any, ...] = (np.float16, np.float32, np.float64)
FILTERS = (
    None,
    "id % 5 <> 2",
    "id % 3 = 1",
    "id % 40 = 7",
    "id > 550 OR id < 9",
    "id IN (3, 4, 700)",
    "id < 0",
)
CASES = [
    pytest.param(
        kind,
        TYPES[(number + turn) % 3],
        METRICS[(number + 2 * turn) % 3],
        (number + turn) % 2 == 1,
        id=f"{kind}-{turn}",
        marks=[pytest.mark.slow] if turn else [],
    )
    for number, kind in enumerate(KINDS)
    for turn in range(2)
]


def check(ds: lance_sql.Dataset, query: np.ndarray, metric: str, options: dict[str, Any]) -> None:
    live = set(ds.to_table(columns=["id"])["id"].to_pylist())
    for filter in FILTERS:
        found = ds.nearest("v", query, K, metric, filter=filter, columns=["id"], **options)
        exact = ds.nearest("v", query, K, metric, filter=filter, columns=["id"], use_index=False)
        assert found.equals(exact), filter
        passing = ds.to_table(columns=["id", "v"], filter=filter)
        kept = [row for row in passing.to_pylist() if row["v"] is not None]
        assert found.num_rows == min(K, len(kept)), filter
        assert set(found["id"].to_pylist()) <= live & {row["id"] for row in kept}, filter
        if not kept:
            continue
        # The same rows in a table of their own, which has neither an index nor other rows.
        alone = pa.table({"id": [row["id"] for row in kept], "v": passing["v"].drop_null()})
        alone_found = lance_sql.write(alone, f"{ds.uri}-alone", "overwrite").nearest("v", query, K, metric)
        assert alone_found["_distance"].to_pylist() == found["_distance"].to_pylist(), filter


@pytest.mark.parametrize(("kind", "dtype", "metric", "stable"), CASES)
def test_filters_of_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, dtype: Any, metric: str, stable: bool
) -> None:
    monkeypatch.setattr(indexed, "_FEW_ROWS", 0)
    path = str(tmp_path / "t")
    random = np.random.default_rng(3)

    def rows(first: int, count: int) -> pa.Table:
        values = vector_array(clustered(count, DIM, dtype, first), random.random(count) < 0.05)
        return pa.table({"id": range(first, first + count), "v": values})

    lance_sql.write(rows(0, ROWS), path, max_rows_per_file=250, stable_row_ids=stable)
    options = {"num_partitions": 2, "metric": metric, **KINDS[kind]}
    if kind in ONLY_READ:
        lance.dataset(path).create_index("v", kind, **options)
    else:
        lance_sql.open(path).create_index("v", kind, **options)
    lance_sql.open(path).delete("id % 7 = 3")
    wide: dict[str, Any] = {"nprobes": 2, "refine_factor": ROWS // K}
    if "HNSW" in kind:
        wide["ef"] = 2 * ROWS
    query = clustered(1, DIM, dtype, 99)[0]
    check(lance_sql.open(path), query, metric, wide)
    lance_sql.write(rows(700, 60), path, mode="append").update({"id": "id + 1000"}, "id % 50 = 8")
    check(lance_sql.open(path), query, metric, wide)


@pytest.mark.parametrize("stable", [False, True])
def test_filters_of_an_index_on_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stable: bool) -> None:
    monkeypatch.setattr(indexed, "_FEW_ROWS", 0)
    values = np.random.default_rng(1).integers(0, 256, (ROWS, DIM), dtype=np.uint8)
    table = pa.table({"id": range(ROWS), "v": vector_array(values, np.arange(ROWS) % 31 == 7)})
    ds = lance_sql.write(table, str(tmp_path / "t"), max_rows_per_file=250, stable_row_ids=stable)
    ds = ds.create_index("v", "IVF_FLAT", num_partitions=2).delete("id % 7 = 3")
    check(ds, values[11] ^ np.uint8(9), "hamming", {"nprobes": 2})


@pytest.mark.sampled(10)
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("dtype", [*TYPES, np.int8, np.uint8])
@pytest.mark.parametrize("metric", METRICS)
def test_filters_of_lists_of_vectors(tmp_path: Path, dtype: Any, metric: str, stable: bool) -> None:
    random = np.random.default_rng(2)
    counts = random.integers(1, 4, 120)
    flat = random.integers(0, 100, (counts.sum(), 8)).astype(dtype)
    lists = pa.ListArray.from_arrays(pa.array([0, *np.cumsum(counts)], pa.int32()), vector_array(flat))
    ds = lance_sql.write(
        pa.table({"id": range(120), "v": lists}),
        str(tmp_path / "t"),
        max_rows_per_file=50,
        stable_row_ids=stable,
    ).delete("id % 7 = 3")
    query = random.integers(0, 100, (2, 8)).astype(dtype)
    wide, wanted = flat.astype(np.float64), query.astype(np.float64)
    if metric == "l2":
        distances = ((wanted[:, None] - wide[None]) ** 2).sum(axis=2)
    else:
        distances = 1 - wanted @ wide.T
        if metric == "cosine":
            norms = np.linalg.norm(wanted, axis=1)[:, None] * np.linalg.norm(wide, axis=1)
            distances = 1 - wanted @ wide.T / norms
    best = np.add.reduce(np.minimum.reduceat(distances, np.cumsum([0, *counts[:-1]]), axis=1), axis=0)
    for filter in (None, "id % 5 <> 2", "id < 9", "id < 0"):
        ids = ds.to_table(columns=["id"], filter=filter)["id"].to_numpy()
        found = ds.nearest("v", query, K, metric, filter=filter, columns=["id"])
        assert set(found["id"].to_pylist()) <= set(ids.tolist())
        expected = np.sort(best[ids])[:K]
        np.testing.assert_allclose(found["_distance"].to_numpy(), expected, rtol=2e-3, atol=2e-3)
