"""`Dataset.nearest` without an index against plain numpy."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import ColumnNotFoundError, InvalidSearchError
from memory_peak import peak_memory

import lance_sql

DIM, ROWS = 19, 700


def vectors(dtype=np.float32, rows=ROWS, dim=DIM):
    random = np.random.default_rng(7)
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, (rows, dim), dtype=dtype, endpoint=True)
    return random.normal(size=(rows, dim)).astype(dtype)


def fixed(values):
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])


def expected_distances(values, query, metric):
    if metric == "hamming":
        return np.bitwise_count(values.view(np.uint8) ^ query.view(np.uint8)).sum(axis=1).astype(np.float64)
    values, query = values.astype(np.float64), query.astype(np.float64)
    if metric == "l2":
        return ((values - query) ** 2).sum(axis=1)
    dot = values @ query
    if metric == "dot":
        return 1 - dot
    return 1 - dot / np.linalg.norm(values, axis=1) / np.linalg.norm(query)


def in_order(distances, k):
    return np.lexsort((np.arange(len(distances)), distances))[:k]


@pytest.fixture
def write(tmp_path):
    def write(columns, **options):
        return lance_sql.write(pa.table(columns), str(tmp_path / "t.lance"), **options)

    return write


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint8])
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot", "hamming"])
def test_distances_of_every_type_and_metric(write, dtype, metric):
    values = vectors(dtype)
    ds = write({"id": range(ROWS), "v": fixed(values)}, max_rows_per_file=300)
    if metric == "hamming" and not np.issubdtype(dtype, np.integer):
        with pytest.raises(InvalidSearchError, match="Hamming"):
            ds.nearest("v", values[0], metric=metric)
        return
    query = vectors(dtype, 5)[3]
    found = ds.nearest("v", query, 25, metric, columns=["id"])
    expected = expected_distances(values, query, metric)
    rounding = 2e-3 if dtype == np.float16 else 1e-5
    assert found.column_names == ["id", "_distance"]
    ids = found["id"].to_numpy()
    assert np.allclose(found["_distance"].to_numpy(), expected[ids], rtol=rounding, atol=rounding)
    assert np.allclose(expected[ids], expected[in_order(expected, 25)], rtol=rounding, atol=rounding)


def test_nothing_is_found_twice_and_ties_go_by_row_id(write):
    values = np.zeros((ROWS, 4), np.float32)
    ds = write({"id": range(ROWS), "v": fixed(values)}, max_rows_per_file=50)
    assert ds.nearest("v", [0, 0, 0, 1], 60)["id"].to_pylist() == list(range(60))


def test_nulls_and_values_without_a_distance_are_left_out(write):
    values = vectors(rows=8, dim=3)
    values[1] = 0
    values[2, 1] = np.nan
    values[3, 0] = np.inf
    items = pa.array(values.reshape(-1), mask=np.arange(24) == 13)  # in row 4
    array = pa.FixedSizeListArray.from_arrays(items, 3, mask=pa.array([i == 5 for i in range(8)]))
    ds = write({"id": range(8), "v": array})
    assert sorted(ds.nearest("v", [1, 2, 3])["id"].to_pylist()) == [0, 1, 3, 6, 7]
    assert ds.nearest("v", [1, 2, 3])["_distance"].to_pylist()[-1] == float("inf")
    assert sorted(ds.nearest("v", [1, 2, 3], metric="cosine")["id"].to_pylist()) == [0, 6, 7]
    assert ds.nearest("v", [0, 0, 0], metric="cosine").num_rows == 0


def test_filters_deletions_and_bounds_come_before_the_k_nearest(write):
    values = vectors()
    ds = write({"id": range(ROWS), "v": fixed(values)}, max_rows_per_file=200)
    ds = ds.delete("id % 3 = 0")
    expected = expected_distances(values, values[1], "l2")
    expected[np.arange(ROWS) % 3 == 0] = np.nan
    expected[np.arange(ROWS) < 100] = np.nan
    found = ds.nearest("v", values[1], 30, filter="id >= 100", columns=["id"])
    assert found["id"].to_pylist() == in_order(expected, 30).tolist()
    lower, upper = found["_distance"].to_pylist()[4], found["_distance"].to_pylist()[9]
    bounded = ds.nearest("v", values[1], 30, filter="id >= 100", lower=lower, upper=upper)
    assert bounded["id"].to_pylist() == found["id"].to_pylist()[4:9]


def test_many_queries_are_answered_apart(write):
    values = vectors()
    ds = write({"id": range(ROWS), "v": fixed(values)}, max_rows_per_file=200)
    queries = vectors(rows=300)[::-1]
    found = ds.nearest("v", queries, 3, columns=["id"])
    assert found.column_names == ["query_index", "id", "_distance"]
    assert found["query_index"].to_pylist() == np.repeat(np.arange(300), 3).tolist()
    for number in (0, 1, 137, 299):
        alone = ds.nearest("v", queries[number], 3, columns=["id"])
        assert found.slice(number * 3, 3).drop_columns("query_index").equals(alone)


def test_the_table_has_the_columns_that_are_asked_for(write):
    ds = write({"id": range(ROWS), "v": fixed(vectors())})
    assert ds.nearest("v", vectors()[0], 1).column_names == ["id", "v", "_distance"]
    assert ds.nearest("v", vectors()[0], 1, columns=[]).column_names == ["_distance"]
    named = ds.nearest("v", vectors()[0], 1, columns=["_distance", "_rowid", "id"])
    assert named.column_names == ["_distance", "_rowid", "id"]
    assert ds.nearest("v", vectors()[0], 1, columns=["id"], with_row_id=True).column_names == [
        "id",
        "_distance",
        "_rowid",
    ]
    with pytest.raises(ColumnNotFoundError):
        ds.nearest("v", vectors()[0], columns=["query_index"])
    with pytest.raises(ColumnNotFoundError):
        ds.nearest("v", vectors()[0], columns=["other"])


def test_lists_of_vectors_sum_the_nearest_of_each_query_vector(write):
    random = np.random.default_rng(3)
    lengths = random.integers(0, 5, 90)
    flat = vectors(rows=int(lengths.sum()), dim=6)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    array = pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), fixed(flat), mask=pa.array(np.arange(90) % 10 == 4)
    )
    ds = write({"id": range(90), "v": array}, max_rows_per_file=40)
    query = vectors(rows=3, dim=6)
    for metric in ("l2", "cosine", "dot"):
        expected = np.full(90, np.nan)
        for row, (begin, end) in enumerate(itertools.pairwise(offsets)):
            if begin < end and row % 10 != 4:
                expected[row] = sum(expected_distances(flat[begin:end], q, metric).min() for q in query)
        found = ds.nearest("v", query, 20, metric, columns=["id"])
        assert found["id"].to_pylist() == in_order(expected, 20).tolist()
        assert np.allclose(found["_distance"].to_numpy(), expected[found["id"].to_numpy()], atol=1e-5)


def test_vectors_inside_of_structs(write):
    values = vectors(rows=50)
    ds = write({"id": range(50), "s": pa.StructArray.from_arrays([fixed(values)], ["v"])})
    assert ds.nearest("s.v", values[17], 1, columns=["id"])["id"].to_pylist() == [17]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("id", [1.0]), "expected vectors"),
        (("v", [1.0, 2.0]), "2 dimensions, but the vectors have 19"),
        (("v", [float("nan")] * DIM), "NaN"),
        (("v", "words"), "must be a vector"),
        (("v", [[1.0], [1.0, 2.0]]), "must be a vector"),
        (("v", np.zeros((0, DIM))), "No query vector"),
        (("v", np.zeros((2, 2, DIM))), "array has 3 dimensions"),
        (("v", [1.0] * DIM, 0), "k must be"),
        (("v", [1.0] * DIM, 5, "manhattan"), "Unknown metric 'manhattan'"),
    ],
)
def test_searches_that_make_no_sense(write, arguments, message):
    ds = write({"id": range(ROWS), "v": fixed(vectors())})
    with pytest.raises(InvalidSearchError, match=message):
        ds.nearest(*arguments)


@pytest.mark.parametrize(
    "options",
    [{"nprobes": 0}, {"refine_factor": -1}, {"ef": 3}, {"minimum_nprobes": 5, "maximum_nprobes": 2}],
)
def test_options_that_make_no_sense(write, options):
    ds = write({"id": range(ROWS), "v": fixed(vectors())})
    with pytest.raises(InvalidSearchError, match=next(iter(options))):
        ds.nearest("v", [1.0] * DIM, **options)


def test_queries_in_every_form(write):
    values = vectors()
    ds = write({"id": range(ROWS), "v": fixed(values)})
    one = ds.nearest("v", values[3], columns=["id"])
    for form in (values[3].tolist(), pa.array(values[3]), fixed(values)[3], values[3].astype(np.float64)):
        assert ds.nearest("v", form, columns=["id"]).equals(one)
    two = ds.nearest("v", values[3:5], columns=["id"])
    for form in (values[3:5].tolist(), fixed(values).slice(3, 2), pa.chunked_array([fixed(values[3:5])])):
        assert ds.nearest("v", form, columns=["id"]).equals(two)


def test_an_empty_table_has_no_nearest_rows(write):
    ds = write({"id": pa.array([], pa.int64()), "v": fixed(np.zeros((0, 4), np.float32))})
    assert ds.nearest("v", [0.0] * 4).num_rows == 0


_SEARCH = """
import numpy as np
import lance_sql

def work(path):
    return lance_sql.open(path).nearest("v", np.zeros(128), columns=[]).num_rows
"""


@pytest.mark.slow
def test_memory_holds_a_few_batches_only(write):
    ds = write({"v": fixed(vectors(rows=250_000, dim=128))})  # 128 MB
    rows, peak = peak_memory(_SEARCH, ds.uri)
    assert rows == "10"
    assert peak < 64 << 20
