"""Vector indices over nulls, NaN, zeros and empty partitions, built by one side, continued by the other.

After each step, a search of every partition that computes the distances again finds what a search without
the index finds. A quick share has every kind of index; the slow tests have the whole product.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from vector_tables import KINDS, METRICS, ONLY_READ, found_by_pylance, same_rows, vector_table

import lance_sql

#: Elements of a vector, rows of a fragment, rows of a short answer.
DIM, SIZE, FEW = 8, 400, 7
SHAPES = ("edges", "nulls, then edges", "one vector", "nulls")


class Case(NamedTuple):
    """The index, what the rows of the first fragments are, the kind of row ids, and who builds it."""

    kind: str
    metric: str
    first: str
    stable: bool
    begins: str

    def __str__(self) -> str:
        return "-".join([*self[:3], "stable" if self.stable else "moving", self.begins])


def rows(shape: str, first: int) -> pa.Table:
    """Two fragments around two centres, those of even and of odd numbers."""
    count = 2 * SIZE
    random = np.random.default_rng(first)
    sides = np.where(np.arange(count) % 2, 3.0, -3.0)[:, None]
    vectors = (random.normal(size=(count, DIM)) + sides).astype(np.float32)
    nulls = np.arange(count) % 11 == 4
    if shape == "one vector":
        vectors[:] = 1.5
    for number, value in enumerate((np.nan, 0.0, -0.0, 1e-10, 1e10)):
        vectors[number::31] = value
    vectors[7::31, 3] = np.nan
    if shape == "nulls":
        nulls[:] = True
    if shape == "nulls, then edges":
        nulls[:SIZE] = True
    return vector_table(vectors, first, nulls)


QUERIES = {
    "one of them": (np.full(DIM, 2.75, np.float32), None),
    "zeros": (np.zeros(DIM, np.float32), "id % 3 <> 1"),
    "the other side": (np.linspace(-4, 1, DIM, dtype=np.float32), "id % 2 = 1"),
}


def compare(place: str, case: Case, step: str) -> list[str]:
    ours, theirs = lance_sql.open(place), lance.dataset(place)
    everything = ours.count_rows() + FEW
    wrong = []

    def check(name: str, search: Callable[[], pa.Table], exact: pa.Table, may_miss: bool = False) -> None:
        try:
            found = search()
            # Of rows at the same distance, a short answer has some.
            missing = FEW if len(exact) == FEW else 0
            if may_miss:
                exact, missing = whole.filter(pc.is_in(whole["id"], found["id"].combine_chunks())), 0
            same_rows(found, exact, missing=missing)
            np.testing.assert_allclose(found["_distance"], exact["_distance"], 1e-3, 1e-4)
        except BaseException as error:  # pylance panics
            wrong.append(f"{step}: {name}: {error!r:.300}")

    for (name, (query, where)), count in zip(
        [*QUERIES.items(), *list(QUERIES.items())[:1]], [everything] * len(QUERIES) + [FEW], strict=True
    ):
        options = {"nprobes": 8, "refine_factor": everything // count + 1}
        if "HNSW" in case.kind:
            options["ef"] = 3 * everything
        exactly = partial(ours.nearest, filter=where, columns=["id"], use_index=False)
        exact, whole = (exactly("v", query, k, case.metric) for k in (count, everything))
        check(
            f"ours, {name}",
            partial(ours.nearest, "v", query, count, case.metric, filter=where, columns=["id"], **options),
            exact,
            # Graphs that pylance compacted do not lead to each row.
            may_miss="HNSW" in case.kind and case.begins == "pylance",
        )
        check(
            f"pylance, {name}",
            partial(found_by_pylance, theirs, query, count, where, case.metric, **options),
            exact,
            # It does not come to each row of a graph, and counts rows that are gone: whoever built the index.
            may_miss="HNSW" in case.kind or (case.stable and where is None),
        )
    return wrong + [f"{step}: {row}" for row in ours.verify().to_pylist()]


def live(path: Path, case: Case) -> list[str]:
    place = str(path / "t.lance")
    other = "pylance" if case.begins == "ours" else "ours"
    options = {"num_partitions": 2, "metric": case.metric, **KINDS[case.kind]}

    def build() -> None:
        if case.begins == "ours":
            lance_sql.open(place).create_index("v", case.kind, **options)
        else:
            lance.dataset(place).create_index("v", case.kind, **options)

    def append(shape: str, first: int) -> None:
        lance.write_dataset(rows(shape, first), place, mode="append", max_rows_per_file=SIZE)

    def optimize(side: str, merged: int | None = None) -> None:
        if side == "ours" and case.kind not in ONLY_READ:
            lance_sql.open(place).optimize_indices()
        else:
            options = {} if merged is None else {"num_indices_to_merge": merged}
            lance.dataset(place).optimize.optimize_indices(**options)

    def compact(side: str) -> None:
        if side == "ours" and case.kind not in ONLY_READ:
            lance_sql.open(place).compact()
        else:
            lance.dataset(place).optimize.compact_files()

    def delete(side: str, where: str) -> None:
        if side == "ours":
            lance_sql.open(place).delete(where)
        else:
            lance.dataset(place).delete(where)

    lance.write_dataset(rows(case.first, 0), place, max_rows_per_file=SIZE, enable_stable_row_ids=case.stable)
    steps: list[tuple[str, Callable[[], object]]] = [
        ("build", build),
        ("delete", lambda: delete(other, "id % 5 = 0")),
        ("delete one side", lambda: delete(case.begins, "id % 2 = 1")),
        ("compact", lambda: compact(case.begins)),
        ("append nulls", lambda: append("nulls", 1000)),
        ("extend", lambda: optimize(other, 0)),
        ("append edges", lambda: append("edges", 2000)),
        ("merge by the other", lambda: optimize(other)),
        ("append edges again", lambda: append("nulls, then edges", 4000)),
        ("merge", lambda: optimize(case.begins)),
        ("delete all but nulls", lambda: delete(case.begins, "v IS NOT NULL")),
        ("compact by the other", lambda: compact(other)),
        ("merge nulls", lambda: optimize(other)),
        ("delete everything", lambda: delete(other, "id >= 0")),
        ("append after all", lambda: append("edges", 6000)),
        ("merge after all", lambda: optimize(case.begins)),
        ("compact at last", lambda: compact(case.begins)),
    ]
    wrong = []
    for name, step in steps:
        try:
            step()
        except BaseException as error:  # pylance panics
            wrong.append(f"{name} fails: {error!r:.400}")
            break
        wrong += compare(place, case, name)
    return wrong


PRODUCT = [
    Case(kind, metric, first, stable, begins)
    for kind, metric, first, stable, begins in itertools.product(
        KINDS, METRICS, SHAPES, (False, True), ("ours", "pylance")
    )
    if begins == "pylance" or kind not in ONLY_READ
    # pylance refuses to build others of nothing, and describes these only.
    if first != "nulls" or begins == "ours" or kind in ("IVF_PQ", "IVF_HNSW_PQ")
]
QUICK = [
    Case("IVF_PQ", "cosine", "nulls", False, "pylance"),
    Case("IVF_SQ", "dot", "nulls, then edges", False, "pylance"),
    Case("IVF_HNSW_SQ", "l2", "one vector", True, "ours"),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", QUICK, ids=str)
def test_edges(tmp_path: Path, case: Case) -> None:
    assert live(tmp_path, case) == []


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in PRODUCT if case not in QUICK], ids=str)
def test_all_edges(tmp_path: Path, case: Case) -> None:
    assert live(tmp_path, case) == []


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind == "IVF_SQ" else pytest.mark.slow) for kind in KINDS]
)
def test_an_index_that_is_only_described(tmp_path: Path, kind: str) -> None:
    """pylance writes no files until the first rows are added; `optimize_indices` builds it."""
    place = str(tmp_path / "t.lance")
    lance.write_dataset(rows("edges", 0), place)
    options = {"num_partitions": 2, "metric": "cosine", **KINDS[kind]}
    lance.dataset(place).create_index("v", kind, train=False, **options)
    case = Case(kind, "cosine", "edges", False, "pylance")
    query, _ = QUERIES["one of them"]
    assert compare(place, case, "described") == []
    ours = lance_sql.open(place)
    assert ours.nearest("v", query, 9, columns=["id"]).equals(
        ours.nearest("v", query, 9, "cosine", columns=["id"], use_index=False)
    )
    assert ours.index_statistics("v_idx")["uncovered_rows"] == 2 * SIZE
    (waiting,) = ours.inspect.index_health().to_pylist()
    if kind not in ONLY_READ:
        assert (waiting["advice"], waiting["stale_segments"]) == ("optimize_indices", 0)
    ours = ours.delete("id % 7 = 3").compact().optimize_indices()
    (built,) = ours.inspect.index_health().to_pylist()
    is_built = built["kind"] == kind and built["unindexed_rows"] == 0
    assert is_built == (kind not in ONLY_READ)
    assert compare(place, case, "built") == []
