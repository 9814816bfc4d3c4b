"""Searches by tasks return the same rows as searches on one machine."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import InvalidSearchError
from pyspark.sql import SparkSession

import lance_sql
import lance_sql.spark
from lance_sql.full_text import Phrase

VECTORS = np.random.default_rng(7).normal(size=(900, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three fragments, some deleted rows."""
    found = tmp_path_factory.mktemp("searching") / "t.lance"
    table = pa.table(
        {
            "id": range(900),
            "text": [f"{'quick ' * (i % 4)}fox" if i % 3 else "slow dog" for i in range(900)],
            "v": pa.FixedSizeListArray.from_arrays(VECTORS.ravel(), 8),
        }
    )
    lance_sql.write(table, found, max_rows_per_file=300).delete("id % 10 = 3")
    return str(found)


def test_vectors_and_words(spark: SparkSession, path: str) -> None:
    dataset = lance_sql.open(path)
    for query in (VECTORS[5], VECTORS[:2]):
        found = lance_sql.spark.vector_search(spark, path, "v", query, 7, filter="id > 20", metric="cosine")
        expected = dataset.nearest("v", query, 7, "cosine", filter="id > 20")
        assert found.columns == expected.schema.names
        assert [row.id for row in found.collect()] == expected["id"].to_pylist()
    words = lance_sql.spark.search(spark, path, "quick", "text", 5, columns=["id"])
    expected = dataset.search("quick", "text", 5, columns=["id"])
    assert [tuple(row) for row in words.collect()] == [tuple(row.values()) for row in expected.to_pylist()]


def test_the_vectors_of_a_frame(spark: SparkSession, path: str) -> None:
    rows = [(number, VECTORS[number].tolist() if number % 5 else None) for number in range(12)]
    left = spark.createDataFrame(rows, "query int, q array<float>").repartition(3)
    joined = lance_sql.spark.nearest_join(left, path, "v", "q", 2, columns=["id"])
    assert joined.columns == ["query", "q", "id", "_distance"]
    dataset = lance_sql.open(path)
    expected = {
        (number, row)
        for number in range(12)
        if number % 5
        for row in dataset.nearest("v", VECTORS[number], 2)["id"].to_pylist()
    }
    assert {(row.query, row.id) for row in joined.collect()} == expected
    with pytest.raises(InvalidSearchError, match="Both sides"):
        lance_sql.spark.nearest_join(left.withColumnRenamed("query", "id"), path, "v", "q")


def test_the_metric_of_the_index(spark: SparkSession, tmp_path: Path) -> None:
    lists = pa.FixedSizeListArray.from_arrays((VECTORS * np.arange(1, 901)[:, None]).ravel(), 8)
    dataset = lance_sql.write(pa.table({"id": range(900), "v": lists}), tmp_path / "t", max_rows_per_file=300)
    dataset = dataset.create_index("v", "IVF_SQ", num_partitions=2, metric="cosine")
    for options in ({}, {"use_index": False, "with_row_id": True}):
        found = lance_sql.spark.vector_search(spark, dataset.uri, "v", VECTORS[5], 5, **options)
        expected = dataset.nearest("v", VECTORS[5], 5, "cosine", **options)
        assert found.columns == expected.schema.names
        rows = [(row.id, row._distance) for row in found.collect()]
        assert rows == list(zip(expected["id"].to_pylist(), expected["_distance"].to_pylist(), strict=True))
    with pytest.raises(InvalidSearchError, match="nprobes"):
        lance_sql.spark.vector_search(spark, dataset.uri, "v", VECTORS[5], use_index=False, nprobes=0)


def test_an_index_by_tasks(spark: SparkSession, path: str) -> None:
    lance_sql.spark.build_index(spark, path, "v", "ivf_sq", num_partitions=3)
    dataset = lance_sql.open(path)
    (health,) = dataset.inspect.index_health().to_pylist()
    assert (health["kind"], health["segments"], health["unindexed_rows"]) == ("IVF_SQ", 3, 0)
    exact = dataset.nearest("v", VECTORS[5], 5, use_index=False)["id"].to_pylist()
    found = lance_sql.spark.vector_search(spark, path, "v", VECTORS[5], 5, nprobes=3, refine_factor=10)
    assert [row.id for row in found.collect()] == exact
    official = lance.dataset(path).to_table(
        columns=["id"],
        nearest={"column": "v", "q": VECTORS[5], "k": 5, "nprobes": 3, "refine_factor": 10},
    )
    assert official["id"].to_pylist() == exact


def test_an_index_on_texts_by_tasks(spark: SparkSession, path: str) -> None:
    flat = lance_sql.open(path).search("quick", "text", 900, columns=["id"], use_index=False)
    lance_sql.spark.build_index(spark, path, "text", "INVERTED", name="words", with_position=True)
    dataset = lance_sql.open(path)
    (health,) = [row for row in dataset.inspect.index_health().to_pylist() if row["name"] == "words"]
    assert (health["segments"], health["unindexed_rows"]) == (3, 0)
    found = dataset.search("quick", "text", 900, columns=["id"])
    assert sorted(found["id"].to_pylist()) == sorted(flat["id"].to_pylist())
    np.testing.assert_allclose(np.sort(found["_score"]), np.sort(flat["_score"]), rtol=1e-5)
    official = lance.dataset(path).to_table(columns=["id"], full_text_query="quick", limit=900)
    assert sorted(official["id"].to_pylist()) == sorted(found["id"].to_pylist())
    threes = dataset.search(Phrase("quick quick quick"), "text", 900)
    assert threes.num_rows == sum(i % 4 == 3 and i % 3 > 0 and i % 10 != 3 for i in range(900))
    with pytest.raises(lance_sql.LanceError, match="already exists"):
        lance_sql.spark.build_index(spark, path, "text", "fts", name="words")
    with pytest.raises(InvalidSearchError, match="column: id"):
        lance_sql.spark.build_index(spark, path, "id", "inverted")
