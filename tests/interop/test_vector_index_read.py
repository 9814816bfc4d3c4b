"""Searches in the vector indices of pylance find what pylance finds."""

import lance
import numpy as np
import pytest
from vector_tables import (
    DIM,
    clustered,
    estimated_by_pylance,
    found_by_pylance,
    index_of,
    same_rows,
    vector_table,
)

import lance_sql

ROWS = 3000

KINDS = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 8},
    "IVF_PQ 4 bits": {"num_sub_vectors": 16, "num_bits": 4},
    "IVF_SQ": {},
    "IVF_RQ": {},
    "IVF_RQ 1 bit": {"num_bits": 1},
    "IVF_RQ 7 bits": {"num_bits": 7},
    "IVF_HNSW_FLAT": {},
    "IVF_HNSW_PQ": {"num_sub_vectors": 8},
    "IVF_HNSW_SQ": {},
}


def is_estimate(kind):
    return "RQ" in kind


def probing(kind, **options):
    """All partitions, and so many candidates that a graph leaves nothing to chance."""
    return {"nprobes": 3, **({"ef": 400} if "HNSW" in kind else {}), **options}


@pytest.fixture
def tables(tmp_path):
    def make(kind, metric="l2", dtype=np.float32, rows=ROWS, partitions=3, **options):
        nulls = np.arange(rows) % 97 == 13
        theirs = lance.write_dataset(
            vector_table(clustered(rows, dtype=dtype), nulls=nulls),
            tmp_path / "t",
            max_rows_per_file=1100,
            **options,
        )
        theirs = theirs.create_index(
            "v", kind.split()[0], num_partitions=partitions, metric=metric, **KINDS[kind]
        )
        return lance_sql.open(str(tmp_path / "t")), theirs

    return make


@pytest.mark.sampled(12)
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_and_metric(tables, kind, metric):
    ours, theirs = tables(kind, metric)
    assert index_of(ours) is not None
    queries = clustered(3, seed=5)
    for query in queries:
        for filter in (None, "id % 5 <> 1"):
            # Candidates of one bit a dimension are chance: few of them are among the nearest rows.
            for options in ({}, {"refine_factor": 10 if is_estimate(kind) else 2}):
                arguments = probing(kind, **options)
                estimates = "FLAT" not in kind and not options
                found = ours.nearest(
                    "v", query, 20, filter=filter, columns=["id"], estimates=estimates, **arguments
                )
                by_pylance = estimated_by_pylance if estimates else found_by_pylance
                rounded = is_estimate(kind) and estimates
                expected = by_pylance(theirs, query, 20, filter, metric, **arguments)
                # pylance estimates from rounded tables. It builds graphs on several threads, each time
                # another one, in which rounding may decide whether a search reaches the last row.
                same_rows(
                    found,
                    expected,
                    0.5 if rounded else 2e-4,
                    (10 if rounded else 0) or is_estimate(kind) * 8 or ("HNSW" in kind) * 1,
                )


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_HNSW_SQ", "IVF_RQ"])
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_types(tables, kind, dtype):
    ours, theirs = tables(kind, dtype=dtype)
    for query in clustered(2, dtype=dtype, seed=6):
        found = ours.nearest("v", query, columns=["id"], **probing(kind, refine_factor=3))
        same_rows(found, found_by_pylance(theirs, query, **probing(kind, refine_factor=3)), 2e-3, 1)


def test_bytes_by_their_bits(tmp_path):
    values = np.random.default_rng(2).integers(0, 255, (ROWS, DIM), dtype=np.uint8)
    theirs = lance.write_dataset(vector_table(values), tmp_path / "t")
    theirs = theirs.create_index("v", "IVF_FLAT", num_partitions=4, metric="hamming")
    ours = lance_sql.open(str(tmp_path / "t"))
    assert index_of(ours) is not None
    for query in values[:3] ^ 5:
        found = ours.nearest("v", query, columns=["id"], nprobes=4)
        exact = ours.nearest("v", query, columns=["id"], use_index=False)
        assert found["_distance"].equals(exact["_distance"])
        assert (
            found["_distance"].to_pylist()
            == found_by_pylance(theirs, query, nprobes=4)["_distance"].to_pylist()
        )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_HNSW_SQ"])
def test_deleted_updated_appended_and_compacted_rows(tables, tmp_path, kind, stable):
    _, theirs = tables(kind, enable_stable_row_ids=stable)
    queries = clustered(4, seed=7)
    # Codes that were trained at random lose no row when enough of them are compared exactly.
    options = probing(kind, refine_factor=60 if kind == "IVF_PQ" else 5)

    def check():
        ours = lance_sql.open(str(tmp_path / "t"))
        for query in queries:
            for filter in (None, "id >= 100"):
                found = ours.nearest(
                    "v", query, 15, filter=filter, columns=["id"], with_row_id=True, **options
                )
                exact = ours.nearest("v", query, 15, filter=filter, columns=["id"], use_index=False)
                expected = found_by_pylance(theirs, query, 15, filter, **options)
                missing = 3 if kind == "IVF_PQ" else 0
                same_rows(found, expected, missing=missing)
                same_rows(found, exact, missing=2 * missing)

    theirs.delete("id % 7 < 3")
    check()
    theirs.update({"id": "id + 100000"}, where="id % 11 = 5")
    check()
    theirs = lance.write_dataset(
        vector_table(clustered(300, seed=9), first=5000), tmp_path / "t", mode="append"
    )
    check()
    theirs.optimize.optimize_indices(num_indices_to_merge=0)
    theirs = lance.dataset(tmp_path / "t")
    check()
    theirs = lance.write_dataset(
        vector_table(clustered(200, seed=10), first=9000), tmp_path / "t", mode="append"
    )
    check()
    theirs.optimize.compact_files()
    check()


def test_rows_that_no_segment_covers(tables, tmp_path):
    tables("IVF_FLAT")
    query = clustered(1, seed=3)[0]
    new = np.tile(query, (3, 1)) + np.float32(0.01)
    lance.write_dataset(vector_table(new, first=70_000), tmp_path / "t", mode="append")
    ours = lance_sql.open(str(tmp_path / "t"))
    assert set(ours.nearest("v", query, 3)["id"].to_pylist()) == {70_000, 70_001, 70_002}
    assert max(ours.nearest("v", query, 3, fast_search=True)["id"].to_pylist()) < 70_000


def test_filters_that_leave_few_rows_find_all_of_them(tables):
    ours, _ = tables("IVF_PQ", partitions=8)
    query = clustered(1, seed=3)[0]
    found = ours.nearest("v", query, 30, filter="id BETWEEN 100 AND 140", columns=["id"], nprobes=1)
    exact = ours.nearest("v", query, 30, filter="id BETWEEN 100 AND 140", columns=["id"], use_index=False)
    assert found.equals(exact)
    assert found.num_rows == 30


def test_another_metric_than_that_of_the_index_is_exact(tables):
    ours, _ = tables("IVF_PQ", "cosine")
    query = clustered(1, seed=3)[0]
    found = ours.nearest("v", query, metric="l2", columns=["id"])
    assert found.equals(ours.nearest("v", query, metric="l2", columns=["id"], use_index=False))
    without = ours.nearest("v", query, columns=["id"], refine_factor=200, nprobes=64)
    assert without.equals(ours.nearest("v", query, metric="cosine", columns=["id"], use_index=False))


def test_kinds_that_are_not_read_are_scanned(tables):
    ours, _ = tables("IVF_RQ")
    query = clustered(1, seed=3)[0]
    exact = ours.nearest("v", query, columns=["id"], use_index=False)
    lance.dataset(ours.uri).create_index("v", "IVF_RQ", num_bits=9, num_partitions=3, replace=True)
    again = lance_sql.open(ours.uri)
    assert index_of(again) is None
    assert again.nearest("v", query, columns=["id"]).equals(exact)


def test_many_queries_are_answered_as_each_alone(tables):
    ours, _ = tables("IVF_PQ", partitions=6)
    queries = clustered(20, seed=8)
    found = ours.nearest("v", queries, 5, columns=["id"], nprobes=2)
    for number, query in enumerate(queries):
        alone = ours.nearest("v", query, 5, columns=["id"], nprobes=2)
        assert found.slice(5 * number, 5).drop_columns("query_index").equals(alone)


def test_bounds_hold_for_what_the_index_finds(tables):
    ours, _ = tables("IVF_FLAT")
    query = clustered(1, seed=3)[0]
    found = ours.nearest("v", query, 30, columns=["id"], nprobes=3)
    lower, upper = (found["_distance"][place].as_py() for place in (5, 20))
    bounded = ours.nearest("v", query, 30, columns=["id"], nprobes=3, lower=lower, upper=upper)
    assert bounded["id"].to_pylist() == found["id"].to_pylist()[5:20]


def test_statistics_and_listings(tables):
    ours, _ = tables("IVF_PQ", partitions=4)
    numbers = ours.index_statistics("v_idx")
    assert numbers["kind"] == "Vector"
    assert numbers["segments"][0]["partitions"] == 4
    assert numbers["segments"][0]["indexed_rows"] == ROWS - len(range(13, ROWS, 97))
    assert "v_idx" in ours.inspect.indices()["name"].to_pylist()
