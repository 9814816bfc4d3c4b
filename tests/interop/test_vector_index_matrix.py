"""Every kind of vector index, type and metric through a life of changes, begun by us and by pylance.

Each step is compared with pylance on the same files, and with a search of all rows. A quick share has every
kind with every type, every metric and both kinds of row ids; the slow tests have the whole product.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.index.vector.kind import VECTORS
from vector_tables import (
    KINDS,
    METRICS,
    ONLY_READ,
    clustered,
    estimated_by_pylance,
    found_by_pylance,
    index_of,
    same_rows,
    vector_table,
)

import lance_sql

ROWS, DIM, K = 800, 16, 10
TYPES = {"float16": np.float16, "float32": np.float32, "float64": np.float64}


class Case(NamedTuple):
    """The index, its column, and the side that starts."""

    kind: str
    dtype: str
    metric: str
    stable: bool
    begins: str

    def __str__(self) -> str:
        return "-".join(
            [self.kind, self.dtype, self.metric, "stable" if self.stable else "moving", self.begins]
        )


PRODUCT = [
    Case(kind, dtype, metric, stable, begins)
    for kind, dtype, metric, stable, begins in itertools.product(
        KINDS, TYPES, METRICS, (False, True), ("ours", "pylance")
    )
    if begins == "pylance" or kind not in ONLY_READ
]
BITS = [
    Case("IVF_FLAT", "uint8", "hamming", stable, begins)
    for stable, begins in itertools.product((False, True), ("ours", "pylance"))
]


def _quick() -> list[Case]:
    cases = []
    for (number, kind), (other, dtype) in itertools.product(enumerate(KINDS), enumerate(TYPES)):
        begins = "pylance" if kind in ONLY_READ or (number + other) % 2 else "ours"
        cases.append(Case(kind, dtype, METRICS[(number + other) % 3], (number + other // 2) % 2 == 1, begins))
    return cases


QUICK = _quick()


def vectors(case: Case, rows: int, seed: int) -> np.ndarray:
    if case.metric == "hamming":
        return np.random.default_rng(seed).integers(0, 256, (rows, DIM), dtype=np.uint8)
    return clustered(rows, DIM, TYPES[case.dtype], seed)


def table(case: Case, rows: int, first: int, seed: int) -> pa.Table:
    return vector_table(vectors(case, rows, seed), first, np.arange(rows) % 31 == 7)


def compare(path: str, case: Case, *, refined: bool = True, most_segments: int = 9) -> None:
    """The same rows and distances as pylance; when distances are computed again, as a search of all rows."""
    ours, theirs = lance_sql.open(path), lance.dataset(path)
    (index,) = VECTORS.indices(ours.snapshot)
    assert index_of(ours) is not None
    assert len(index.segments) <= most_segments
    bits = case.metric == "hamming"
    options: dict[str, Any] = {"nprobes": 4}
    if "HNSW" in case.kind:
        options["ef"] = 2 * ROWS
    if refined and not bits:
        options["refine_factor"] = 2 * ROWS // K
    rounding = 5e-3 if case.dtype == "float16" else 1e-3
    for query, filter in zip(vectors(case, 3, 77), (None, "id % 3 <> 1", "id < 60"), strict=True):
        if filter and not refined:
            continue  # few rows are compared exactly here, which pylance does not do
        estimates = not refined and "FLAT" not in case.kind
        by_pylance = estimated_by_pylance if estimates else found_by_pylance
        found = ours.nearest(
            "v", query, K, case.metric, filter=filter, columns=["id"], estimates=estimates, **options
        )
        expected = by_pylance(theirs, query, K, filter, case.metric, **options)
        if bits:
            assert found["_distance"].to_pylist() == expected["_distance"].to_pylist()  # there are many ties
        else:
            same_rows(found, expected, rounding, missing=0 if refined else 1)
        if refined:
            exact = ours.nearest("v", query, K, case.metric, filter=filter, columns=["id"], use_index=False)
            assert found.equals(exact)


def live(path: Path, case: Case) -> None:
    """Build, delete, append, extend and compact; then the other side continues."""
    place = str(path / "t")
    options = {"num_partitions": 2, "metric": case.metric, **KINDS[case.kind]}
    first = table(case, ROWS, 0, 0)
    if case.begins == "ours":
        lance_sql.write(first, place, max_rows_per_file=300, stable_row_ids=case.stable)
        lance_sql.open(place).create_index("v", case.kind, **options)
    else:
        ds = lance.write_dataset(first, place, max_rows_per_file=300, enable_stable_row_ids=case.stable)
        ds.create_index("v", case.kind, **options)
    if case.kind != "IVF_RQ":  # pylance estimates from rounded tables
        compare(place, case, refined=False, most_segments=1)
    compare(place, case)
    lance_sql.open(place).delete("id % 7 = 3")
    compare(place, case)
    lance.write_dataset(table(case, 120, 10_000, 1), place, mode="append")
    compare(place, case)
    builds = case.kind not in ONLY_READ
    if builds and case.begins == "ours":
        lance_sql.open(place).optimize_indices()
    else:
        lance.dataset(place).optimize.optimize_indices(num_indices_to_merge=0)
    compare(place, case, most_segments=2)
    lance.dataset(place).update({"id": "id + 100000"}, where="id % 11 = 5")
    compare(place, case)
    if builds:
        lance_sql.open(place).compact()
        compare(place, case)
    lance_sql.write(table(case, 90, 20_000, 2), place, mode="append")
    if builds and case.begins == "pylance":
        lance_sql.open(place).optimize_indices()
    else:
        lance.dataset(place).optimize.optimize_indices()
    assert lance_sql.open(place).index_statistics("v_idx")["uncovered_rows"] == 0
    compare(place, case)
    lance.dataset(place).optimize.compact_files()
    compare(place, case)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("case", [*QUICK, BITS[0], BITS[-1]], ids=str)
def test_a_life(tmp_path: Path, case: Case) -> None:
    live(tmp_path, case)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in [*PRODUCT, *BITS] if case not in QUICK], ids=str)
def test_every_life(tmp_path: Path, case: Case) -> None:
    live(tmp_path, case)
