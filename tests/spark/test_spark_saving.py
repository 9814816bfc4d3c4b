"""`lance_sql.spark.write`: all modes of saving, options of files, columns that are added."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_engine.errors import DatasetExistsError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lance_sql
from lance_sql.spark import write


def test_modes(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    write(spark.range(3), path)
    write(spark.range(100), path, mode="ignore")
    with pytest.raises(DatasetExistsError, match=r't\.lance.*mode="append"'):
        write(spark.range(100), path)
    assert lance_sql.open(path).version == 1
    write(spark.range(3, 5), path, mode="append")
    assert lance_sql.open(path).to_table()["id"].to_pylist() == [0, 1, 2, 3, 4]
    write(spark.range(1), path, mode="overwrite")
    assert lance_sql.open(path).count_rows() == 1
    with pytest.raises(ValueError, match="mode must be one of"):
        write(spark.range(1), path, mode="replace")  # type: ignore[arg-type]


def test_what_else_creates_the_dataset_first_wins(spark: SparkSession, tmp_path: Path) -> None:
    """The option behind the modes that only create is checked at the commit, too."""
    path = tmp_path / "t.lance"
    write(spark.range(3), path)
    with pytest.raises(PySparkException, match="DatasetExistsError"):
        spark.range(1).write.format("lance").option("create", "true").mode("append").save(str(path))
    assert lance_sql.open(path).count_rows() == 3


def test_options_of_files(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    frame = spark.range(0, 1000, numPartitions=1).selectExpr(
        "id", "array(float(id), 0.5f) AS vector", "map('k', id) AS m", "named_struct('s', 'x') AS st"
    )
    write(
        frame,
        path,
        data_storage_version="2.2",
        fixed_size_lists={"vector": 2},
        compression="zstd",
        profile="size",
        stable_row_ids=True,
        zone_rows=100,
        max_rows_per_file=400,
    )
    written = lance_sql.open(path)
    assert written.schema.field("vector").type == pa.list_(pa.float32(), 2)
    assert written.schema.field("id").metadata == {b"lance-encoding:compression": b"zstd"}
    assert written.schema.field("st").type.field("s").metadata == {b"lance-encoding:compression": b"zstd"}
    assert [fragment.physical_rows for fragment in written.snapshot.fragments] == [400, 400, 200]
    assert written.snapshot.has_stable_row_ids
    scan = written.scan(columns=["id"], filter="id = 250")
    assert scan.to_table().num_rows == 1
    assert scan.metrics is not None
    assert (scan.metrics.zones, scan.metrics.zones_read) == (10, 1)
    assert spark.read.format("lance").load(str(path)).sort("id").collect() == frame.collect()
    assert lance.dataset(path).to_table(columns=["id", "vector"])["vector"].to_pylist()[999] == [999.0, 0.5]
    plain = tmp_path / "plain.lance"
    write(spark.range(1000), plain, zone_maps=False)
    scan = lance_sql.open(plain).scan(filter="id = 250")
    scan.to_table()
    assert scan.metrics is not None
    assert scan.metrics.zones == 0


def test_arrays_of_another_length_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT array(1.5f) AS v UNION ALL SELECT array(1f, 2f)")
    with pytest.raises(PySparkException, match="column: v"):
        write(frame, tmp_path / "t.lance", fixed_size_lists={"v": 2})
    with pytest.raises(PySparkException, match=r"[Cc]olumn 'w'"):
        write(frame, tmp_path / "t.lance", fixed_size_lists={"w": 2})
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_columns_that_the_dataset_lacks(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    write(spark.range(2), path)
    wider = spark.sql("SELECT 'x' AS name, 7 AS id, array(1.5) AS more")
    with pytest.raises(PySparkException, match=r"[Cc]olumn 'name' not found"):
        write(wider, path, mode="append")
    failing = wider.selectExpr("raise_error('boom') AS name", "id")
    with pytest.raises(PySparkException, match="boom"):
        write(failing, path, mode="append", mergeSchema=True)
    assert lance_sql.open(path).schema.names == ["id"]
    write(wider, path, mode="append", mergeSchema=True)
    assert lance.dataset(path).to_table().to_pylist() == [
        {"id": 0, "name": None, "more": None},
        {"id": 1, "name": None, "more": None},
        {"id": 7, "name": "x", "more": [1.5]},
    ]


def test_types_that_do_not_fit_are_refused_before_any_task(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    write(spark.range(2), path)
    failing = spark.range(2).selectExpr("raise_error('a task ran') AS id")
    with pytest.raises(PySparkException, match=r"The data has type string.*column: id"):
        write(failing.selectExpr("string(id) AS id"), path, mode="append")
    with pytest.raises(PySparkException, match="decided when a dataset is created"):
        write(spark.range(2), path, mode="append", stable_row_ids=True)


def test_a_branch(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    write(spark.range(2), path)
    lance_sql.open(path).branches.create("dev")
    write(spark.range(3), path, mode="append", branch="dev")
    assert lance_sql.spark.table(spark, path, branch="dev").count() == 5
    assert lance_sql.spark.table(spark, path).count() == 2
