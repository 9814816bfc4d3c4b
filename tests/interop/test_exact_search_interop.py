"""Exact search gives the rows and distances of pylance's."""

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_sql

DIM, ROWS = 24, 900


def table(dtype):
    random = np.random.default_rng(11)
    if dtype == np.uint8:
        values = random.integers(0, 255, (ROWS, DIM), dtype=dtype)
    else:
        values = random.normal(size=(ROWS, DIM)).astype(dtype)
    array = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIM)
    array = pa.FixedSizeListArray.from_arrays(array.values, DIM, mask=pa.array(np.arange(ROWS) % 50 == 7))
    return pa.table({"id": range(ROWS), "v": array}), values


@pytest.mark.parametrize(
    ("dtype", "metric"),
    [(dtype, metric) for dtype in (np.float16, np.float32, np.float64) for metric in ("l2", "cosine", "dot")]
    + [(np.uint8, "hamming")],
)
@pytest.mark.parametrize("stable", [False, True])
def test_same_rows_and_distances(tmp_path, dtype, metric, stable):
    data, values = table(dtype)
    theirs = lance.write_dataset(data, tmp_path / "t", max_rows_per_file=400, enable_stable_row_ids=stable)
    theirs.delete("id % 9 = 1")
    ours = lance_sql.open(str(tmp_path / "t"))
    for filter in (None, "id > 250 and id % 2 = 0"):
        for query in (values[3], values[7] // 2):
            expected = theirs.to_table(
                columns=["id", "_distance"],
                filter=filter,
                nearest={"column": "v", "q": pa.array(query), "k": 20, "metric": metric},
                prefilter=True,
                with_row_id=True,
            )
            found = ours.nearest("v", query, 20, metric, filter=filter, columns=["id"], with_row_id=True)
            assert found.column_names == expected.column_names
            assert np.allclose(found["_distance"], expected["_distance"], rtol=1e-3, atol=2e-3)
            if dtype != np.float16:
                assert found["id"].to_pylist() == expected["id"].to_pylist()
                assert found["_rowid"].to_pylist() == expected["_rowid"].to_pylist()


def test_many_queries(tmp_path):
    data, values = table(np.float32)
    theirs = lance.write_dataset(data, tmp_path / "t")
    queries = values[:7]
    expected = theirs.to_table(
        columns=["id", "_distance"],
        nearest={"column": "v", "q": queries, "k": 4},
    )
    found = lance_sql.open(str(tmp_path / "t")).nearest("v", queries, 4, columns=["id"])
    assert found.schema.field("query_index") == expected.schema.field("query_index")
    order = [("query_index", "ascending"), ("_distance", "ascending")]
    expected, found = expected.sort_by(order), found.sort_by(order)
    assert found["id"].to_pylist() == expected["id"].to_pylist()
    assert np.allclose(found["_distance"], expected["_distance"], atol=1e-4)


def test_lists_of_vectors(tmp_path):
    random = np.random.default_rng(5)
    values = random.normal(size=(300, 8)).astype(np.float32)
    offsets = pa.array(range(0, 301, 3), pa.int32())
    array = pa.ListArray.from_arrays(offsets, pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 8))
    theirs = lance.write_dataset(pa.table({"id": range(100), "v": array}), tmp_path / "t")
    query = random.normal(size=(2, 8)).astype(np.float32)
    for metric in ("l2", "cosine"):
        expected = theirs.to_table(
            columns=["id", "_distance"], nearest={"column": "v", "q": query, "k": 9, "metric": metric}
        )
        found = lance_sql.open(str(tmp_path / "t")).nearest("v", query, 9, metric, columns=["id"])
        assert found["id"].to_pylist() == expected["id"].to_pylist()
        assert np.allclose(found["_distance"], expected["_distance"], atol=1e-4)
