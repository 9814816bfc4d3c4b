"""The search functions of Spark SQL return what the searches of datasets return, or say what is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.errors import ColumnNotFoundError, InvalidSearchError, LanceError, UnsupportedFeatureError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lance_sql
from lance_sql.spark.search_table import AskedSearch

VECTORS = [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [3.0, 3.0]]
TITLES = ["red shoes", "blue shoes", "green hat", "red hat"]


@pytest.fixture
def dataset(tmp_path: Path) -> lance_sql.Dataset:
    vectors = pa.array(VECTORS, pa.list_(pa.float32(), 2))
    return lance_sql.write(pa.table({"id": range(4), "title": TITLES, "v": vectors}), tmp_path / "t.lance")


def asked(dataset: lance_sql.Dataset, function: str, *positional: Any, **named: Any) -> AskedSearch:
    return AskedSearch(dataset, {"function": function, "positional": positional, "named": named})


def found(search: AskedSearch) -> list[dict[str, Any]]:
    table = search.rows(search.schema.names)
    assert table.schema.names == search.schema.names
    assert [field.type for field in table.schema] == [field.type for field in search.schema]
    return table.to_pylist()


def test_vectors(dataset: lance_sql.Dataset) -> None:
    rows = dataset.nearest("v", [0, 0], 2).to_pylist()
    assert found(asked(dataset, "vector_search", [0, 0], 2)) == rows
    for count in ("num_results", "limit", "k"):
        assert (
            found(asked(dataset, "vector_search", query_vector=[0, 0], vector_column="v", **{count: 2}))
            == rows
        )
    given = {"columns": ["id"], "filter": "id > 0", "offset": 1, "distance_type": "Euclidean"}
    assert found(asked(dataset, "vector_search", [0, 0], **given)) == [
        {"id": 2, "_distance": 4.0}, {"id": 3, "_distance": 18.0}
    ]  # fmt: skip
    bounds = {"lower_bound": 0.5, "upper_bound": 5, "bypass_vector_index": True, "with_row_id": True}
    ids = dataset.scan(["_rowid"], "id IN (1, 2)").to_table()["_rowid"].to_pylist()
    expected = [
        {"id": n, "_distance": d, "_rowid": i} for n, d, i in zip((1, 2), (1.0, 4.0), ids, strict=True)
    ]
    assert found(asked(dataset, "vector_search", [0, 0], columns=["id"], **bounds)) == expected
    several = found(asked(dataset, "vector_search", [[0, 0], [3, 3]], 1, columns=["id", "_distance"]))
    assert several == [
        {"query_index": 0, "id": 0, "_distance": 0.0}, {"query_index": 1, "id": 3, "_distance": 0.0}
    ]  # fmt: skip


def test_words_and_both(dataset: lance_sql.Dataset) -> None:
    rows = dataset.search("hat", "title", 5).to_pylist()
    assert found(asked(dataset, "search", "hat", 5, search_columns=["title"])) == rows
    assert [
        row["id"] for row in found(asked(dataset, "search", search_query="hat", offset=1, filter="id > 0"))
    ] == [3]
    both = found(asked(dataset, "hybrid_search", [0, 0], "hat", 2, search_columns=["title"], candidates=4))
    expected = dataset.hybrid("v", [0, 0], "hat", "title", 2, oversample=2).to_pylist()
    assert [row.pop("_relevance_score") for row in both] == [row.pop("_hybrid_score") for row in expected]
    assert both == expected


@pytest.mark.parametrize(
    ("function", "positional", "named", "error", "message"),
    [
        ("vector_search", [[0, 0]], {"num_result": 3}, InvalidSearchError, r"Did you mean 'num_results'\?"),
        ("vector_search", [[0, 0], 2], {"k": 3}, InvalidSearchError, r"gets the argument 'k' twice"),
        (
            "vector_search",
            [[0, 0], 2, 3],
            {},
            InvalidSearchError,
            r"query_vector, num_results by position, not more",
        ),
        ("vector_search", [], {}, InvalidSearchError, r"VECTOR_SEARCH needs the argument 'query_vector'"),
        ("vector_search", [[0, 0], 0], {}, InvalidSearchError, r"needs a positive number of results"),
        ("vector_search", [[0, 0, 0]], {}, InvalidSearchError, r"3 dimensions"),
        ("vector_search", [[0, 0]], {"vector_column": "w"}, ColumnNotFoundError, r"'w' not found"),
        ("vector_search", [[0, 0]], {"columns": ["w"]}, ColumnNotFoundError, r"'w' not found"),
        ("vector_search", [[0, 0]], {"prefilter": False}, UnsupportedFeatureError, r"in WHERE"),
        ("vector_search", [[[0, 0]]], {"offset": 1}, InvalidSearchError, r"offset"),
        ("search", [], {}, InvalidSearchError, r"SEARCH needs the argument 'query'"),
        ("search", ["x"], {"nprobes": 1}, InvalidSearchError, r"SEARCH has no argument 'nprobes'"),
        ("hybrid_search", [[0, 0]], {}, InvalidSearchError, r"needs the argument 'query'"),
        ("hybrid_search", [[0, 0], "x"], {"rrf_k": 10}, UnsupportedFeatureError, r"rank fusion is 60"),
    ],
)
def test_what_does_not_fit(
    dataset: lance_sql.Dataset, function: str, positional: list[Any], named: dict[str, Any],
    error: type[LanceError], message: str,
) -> None:  # fmt: skip
    with pytest.raises(error, match=message):
        asked(dataset, function, *positional, **named)


@pytest.mark.skipif(shutil.which("javac") is None, reason="the catalog is built where there is a JDK (javac)")
def test_in_sql(spark: SparkSession, dataset: lance_sql.Dataset) -> None:
    spark.conf.set("spark.sql.catalog.found", "lancesql.spark.LanceCatalog")
    spark.conf.set("spark.sql.catalog.found.path", str(Path(dataset.uri).parent))
    query = (
        "SELECT t.title FROM VECTOR_SEARCH(table => 'found.t', query_vector => array(0, 0.5), limit => 2) s "
        "JOIN found.t USING (id) WHERE s._distance > 1"
    )
    assert [row.title for row in spark.sql(query).collect()] == ["blue shoes"]
    with pytest.raises(PySparkException, match=r"No such column|'w' not found"):
        spark.sql("SELECT * FROM VECTOR_SEARCH('found.t', array(0, 0), vector_column => 'w')")
    version = dataset.version
    spark.sql(
        "REPLACE found.t WHERE title IN ('red hat', 'a AS (') "
        "AS SELECT 9L, 'cap', v FROM found.t WHERE id = 1"
    )
    changed = lance_sql.open(dataset.uri)
    assert changed.version == version + 1
    assert sorted(changed.to_table(["id"])["id"].to_pylist()) == [0, 1, 2, 9]
