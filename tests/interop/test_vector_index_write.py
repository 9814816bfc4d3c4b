"""pylance opens, searches, extends and merges the vector indices that are written here."""

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import UnsupportedTypeError
from vector_tables import (
    DIM,
    clustered,
    estimated_by_pylance,
    found_by_pylance,
    same_rows,
    vector_array,
    vector_table,
)

import lance_sql

ROWS = 2600

KINDS = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 16},
    "IVF_PQ 4 bits": {"num_sub_vectors": 32, "num_bits": 4},
    "IVF_SQ": {},
    "IVF_HNSW_FLAT": {},
    "IVF_HNSW_SQ": {},
}


def create(path, kind, metric="l2", dtype=np.float32, partitions=4, **options):
    nulls = np.arange(ROWS) % 97 == 13
    ds = lance_sql.write(
        vector_table(clustered(ROWS, dtype=dtype), nulls=nulls), path, max_rows_per_file=1000, **options
    )
    return ds.create_index("v", kind.split()[0], num_partitions=partitions, metric=metric, **KINDS[kind])


def probing(kind, **options):
    return {"nprobes": 4, **({"ef": 400} if "HNSW" in kind else {}), **options}


def agree(path, kind, k=15, filters=(None, "id % 11 <> 1"), **options):
    """pylance and we find the same rows with the index, and most of those of an exact search."""
    ours, theirs = lance_sql.open(path), lance.dataset(path)
    for query in clustered(3, seed=21):
        for filter in filters:
            asked = probing(kind, **options)
            found = ours.nearest("v", query, k, filter=filter, columns=["id"], estimates=not options, **asked)
            same_rows(found, found_by_pylance(theirs, query, k, filter, **asked), missing=1)
            exact = ours.nearest("v", query, k, filter=filter, columns=["id"], use_index=False)
            if options.get("refine_factor"):
                assert len({*exact["id"].to_pylist()} & {*found["id"].to_pylist()}) >= 0.8 * k


@pytest.mark.sampled(8)
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_and_metric(tmp_path, kind, metric):
    path = str(tmp_path / "t")
    ds = create(path, kind, metric)
    theirs = lance.dataset(path)
    for query in clustered(3, seed=21):
        for options in ({}, {"refine_factor": 4}):
            estimates = "FLAT" not in kind and not options
            asked = probing(kind, **options)
            found = ds.nearest("v", query, 15, columns=["id"], estimates=estimates, **asked)
            by_pylance = estimated_by_pylance if estimates else found_by_pylance
            expected = by_pylance(theirs, query, 15, metric=metric, **asked)
            same_rows(found, expected, 1e-4, missing=1)
            exact = ds.nearest("v", query, 15, metric=metric, columns=["id"], use_index=False)
            if options:
                common = {*exact["id"].to_pylist()} & {*found["id"].to_pylist()}
                assert len(common) >= 12
    statistics = theirs.stats.index_stats("v_idx")
    assert statistics["num_indexed_rows"] == ROWS
    assert statistics["num_unindexed_rows"] == 0
    assert statistics["indices"][0]["index_type"] == kind.split()[0]
    assert statistics["indices"][0]["metric_type"] == metric
    assert theirs.describe_indices()[0].index_type.upper().startswith("IVF")


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_HNSW_SQ"])
def test_other_types(tmp_path, kind, dtype):
    path = str(tmp_path / "t")
    ds = create(path, kind, dtype=dtype)
    theirs = lance.dataset(path)
    for query in clustered(2, dtype=dtype, seed=21):
        found = ds.nearest("v", query, columns=["id"], **probing(kind, refine_factor=4))
        same_rows(found, found_by_pylance(theirs, query, **probing(kind, refine_factor=4)), 2e-3, 1)


def test_bytes_by_their_bits(tmp_path):
    values = np.random.default_rng(2).integers(0, 255, (ROWS, DIM), dtype=np.uint8)
    ds = lance_sql.write(vector_table(values), str(tmp_path / "t"))
    ds = ds.create_index("v", "IVF_FLAT", num_partitions=4)
    theirs = lance.dataset(tmp_path / "t")
    for query in values[:3] ^ 5:
        found = ds.nearest("v", query, columns=["id"], nprobes=4)
        exact = ds.nearest("v", query, columns=["id"], use_index=False)
        assert found["_distance"].equals(exact["_distance"])
        expected = found_by_pylance(theirs, query, nprobes=4)
        assert found["_distance"].to_pylist() == expected["_distance"].to_pylist()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_HNSW_SQ"])
def test_life_of_an_index(tmp_path, kind, stable):
    path = str(tmp_path / "t")
    ds = create(path, kind, stable_row_ids=stable)
    ds = ds.delete("id % 7 < 2")
    agree(path, kind, refine_factor=4)
    lance_sql.write(vector_table(clustered(400, seed=31), first=10_000), path, mode="append")
    agree(path, kind, refine_factor=4)
    ds = lance_sql.open(path).optimize_indices()
    assert ds.index_statistics("v_idx")["uncovered_rows"] == 0
    agree(path, kind)
    ds = ds.update({"id": "id + 50000"}, "id % 5 = 3")
    agree(path, kind, refine_factor=4)
    ds = ds.optimize_indices()
    fragments = len(ds.snapshot.fragments)
    ds = ds.compact()
    assert ds.index_statistics("v_idx")["uncovered_rows"] == 0
    assert len(ds.snapshot.fragments) < fragments
    agree(path, kind)
    # Now pylance goes on.
    theirs = lance.write_dataset(vector_table(clustered(300, seed=32), first=20_000), path, mode="append")
    theirs.optimize.optimize_indices()
    assert lance_sql.open(path).index_statistics("v_idx")["uncovered_rows"] == 0
    agree(path, kind, refine_factor=4)


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_HNSW_FLAT"])
def test_we_extend_and_move_what_pylance_built(tmp_path, kind):
    path = str(tmp_path / "t")
    theirs = lance.write_dataset(vector_table(clustered(ROWS)), path, max_rows_per_file=1000)
    theirs.create_index("v", kind, num_partitions=4, metric="cosine", **KINDS[kind])
    theirs.delete("id % 3 = 1")
    lance_sql.write(vector_table(clustered(400, seed=31), first=10_000), path, mode="append")
    ds = lance_sql.open(path).optimize_indices()
    assert len(ds.index_statistics("v_idx")["segments"]) == 2
    for _ in range(2):
        assert ds.index_statistics("v_idx")["uncovered_rows"] == 0
        for query in clustered(3, seed=21):
            estimates = "FLAT" not in kind
            by_pylance = estimated_by_pylance if estimates else found_by_pylance
            found = ds.nearest("v", query, 15, columns=["id"], estimates=estimates, **probing(kind))
            expected = by_pylance(lance.dataset(path), query, 15, metric="cosine", **probing(kind))
            same_rows(found, expected, missing=1)
        ds = ds.compact()


def test_many_segments_are_merged(tmp_path):
    path = str(tmp_path / "t")
    ds = create(path, "IVF_PQ")
    for number in range(9):
        lance_sql.write(
            vector_table(clustered(30, seed=number), first=10_000 * (number + 1)), path, mode="append"
        )
        ds = lance_sql.open(path).optimize_indices()
    numbers = ds.index_statistics("v_idx")
    assert len(numbers["segments"]) < 9
    assert numbers["uncovered_rows"] == 0
    agree(path, "IVF_PQ")


def test_all_partitions_and_full_refinement_are_exact(tmp_path):
    ds = create(str(tmp_path / "t"), "IVF_PQ")
    for query in clustered(5, seed=22):
        found = ds.nearest("v", query, 10, columns=["id"], nprobes=4, refine_factor=ROWS // 10)
        assert found.equals(ds.nearest("v", query, 10, columns=["id"], use_index=False))


def test_indices_on_lists_of_vectors_are_left_alone(tmp_path):
    path = str(tmp_path / "t")
    offsets = pa.array(range(0, 1801, 3), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, vector_array(clustered(1800)))
    theirs = lance.write_dataset(pa.table({"id": range(600), "v": lists}), path)
    theirs.create_index("v", "IVF_FLAT", num_partitions=2, metric="cosine")
    lance_sql.write(pa.table({"id": range(600, 700), "v": lists.slice(0, 100)}), path, mode="append")
    ds = lance_sql.open(path)
    assert ds.optimize_indices().version == ds.version
    found = ds.nearest("v", clustered(2, seed=4), 5, "cosine", columns=["id"])
    assert found.equals(ds.nearest("v", clustered(2, seed=4), 5, "cosine", columns=["id"], use_index=False))
    with pytest.raises(UnsupportedTypeError):
        ds.create_index("v", "IVF_FLAT", name="other")


@pytest.mark.parametrize("kind", ["IVF_HNSW_FLAT", "IVF_HNSW_SQ"])
@pytest.mark.parametrize("values", ["equal", "few", "on a line"])
def test_graphs_lead_to_every_row(tmp_path, kind, values):
    """Copies of a vector link to each other and nothing else unless more is done for the others."""
    path = str(tmp_path / "t")
    rows = 1500
    number = {"equal": np.zeros(rows), "few": np.arange(rows) % 3, "on a line": np.arange(rows)}[values]
    vectors = np.repeat(number[:, None], 8, axis=1).astype(np.float32)
    ds = lance_sql.write(vector_table(vectors), path).create_index("v", kind, num_partitions=1)
    query = vectors[7]
    found = ds.nearest("v", query, rows, columns=["id"], nprobes=1, ef=rows)
    assert sorted(found["id"].to_pylist()) == [*range(rows)]
    theirs = found_by_pylance(lance.dataset(path), query, rows, nprobes=1, ef=rows)
    assert sorted(theirs["id"].to_pylist()) == [*range(rows)]
