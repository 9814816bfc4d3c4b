"""`df.write.save` in every mode, and tables of Spark's own catalog: what the planner in the JVM adds."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import lance_sql

pytestmark = pytest.mark.skipif(
    shutil.which("javac") is None, reason="the planner is built where there is a JDK (javac)"
)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A name for a table of Spark's own catalog, in a database below this test's directory."""
    spark.sql(f"CREATE DATABASE save_modes LOCATION '{tmp_path / 'warehouse'}'")
    yield "save_modes.t"
    spark.sql("DROP DATABASE save_modes CASCADE")


def _found(path: Path) -> tuple[int, int]:
    dataset = lance.dataset(str(path))
    return dataset.count_rows(), dataset.version


def test_every_mode_is_one_commit(spark: SparkSession, tmp_path: Path) -> None:
    path, rows = tmp_path / "t.lance", spark.range(3)
    rows.write.format("lance").save(str(path))
    assert _found(path) == (3, 1)
    with pytest.raises(PySparkException, match=r't\.lance\]\. Use the mode "append" or "overwrite"'):
        rows.write.format("lance").save(str(path))
    rows.write.format("lance").mode("ignore").save(str(path))
    assert _found(path) == (3, 1)
    rows.write.format("lance").mode("append").option("maxRowsPerFile", 1).save(str(path))
    assert _found(path) == (6, 2)
    wider = rows.withColumn("name", sf.lit("x"))
    wider.write.format("lance").mode("overwrite").option("path", str(path)).save()
    assert _found(path) == (3, 3)
    rows.write.format("lance").mode("ignore").save(str(tmp_path / "new.lance"))
    assert _found(tmp_path / "new.lance") == (3, 1)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "mode",
    ["errorifexists", *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("ignore", "overwrite"))],
)
def test_a_job_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    failing = spark.range(100).selectExpr("if(id = 99, raise_error('boom'), id) AS id")
    with pytest.raises(PySparkException, match="boom"):
        failing.write.format("lance").mode(mode).save(str(tmp_path / "t.lance"))
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_partitions_are_refused_with_what_to_do(spark: SparkSession, tmp_path: Path, table: str) -> None:
    writer = spark.range(3).write.format("lance").partitionBy("id")
    refused: list[Callable[[], object]] = [
        lambda: writer.save(str(tmp_path / "t.lance")),
        lambda: writer.mode("append").save(str(tmp_path / "t.lance")),
        lambda: writer.mode("errorifexists").saveAsTable(table),
        lambda: spark.range(3).writeTo(table).using("lance").partitionedBy(sf.col("id")).create(),
    ]
    for save in refused:
        with pytest.raises(PySparkException, match=r"no partitions.*repartitionByRange"):
            save()
    assert not spark.catalog.tableExists(table)


def test_tables_of_the_catalog_of_spark(spark: SparkSession, tmp_path: Path, table: str) -> None:
    rows = spark.range(3)

    def counted(save: Callable[[], object]) -> int:
        save()
        return spark.table(table).count()

    def saved(mode: str, rows: DataFrame = rows) -> int:
        return counted(lambda: rows.write.format("lance").mode(mode).saveAsTable(table))

    assert saved("errorifexists") == 3
    assert saved("append") == 6
    assert saved("ignore") == 6
    assert counted(lambda: rows.write.insertInto(table)) == 9
    assert counted(lambda: spark.sql(f"INSERT INTO {table} SELECT max(id) FROM {table}")) == 10
    assert counted(lambda: rows.writeTo(table).append()) == 13
    assert spark.table(table).where("id = 2").count() == 5
    assert _found(tmp_path / "warehouse" / "t") == (13, 5)
    assert counted(lambda: rows.writeTo(table).overwrite(sf.lit(True))) == 3
    assert saved("overwrite", rows.selectExpr("id", "'x' AS name")) == 3
    assert counted(lambda: rows.writeTo(table).using("lance").createOrReplace()) == 3
    with pytest.raises(PySparkException, match="already exists"):
        saved("errorifexists")


@pytest.mark.slow
def test_a_table_at_a_path(spark: SparkSession, tmp_path: Path, table: str) -> None:
    path = tmp_path / "t.lance"
    lance_sql.spark.write(spark.range(3), path)
    spark.sql(f"CREATE TABLE {table} USING lance LOCATION '{path}'")
    spark.sql(f"INSERT INTO {table} VALUES (7)")
    assert _found(path) == (4, 2)
    assert spark.table(table).count() == 4
    spark.sql(f"CREATE TEMPORARY VIEW with_columns (id BIGINT) USING lance OPTIONS (path '{path}')")
    spark.sql(f"INSERT INTO with_columns SELECT id FROM {table} WHERE id IN (SELECT max(id) FROM {table})")
    assert spark.table("with_columns").where("id = 7").count() == 2
    spark.sql("INSERT OVERWRITE with_columns VALUES (8)")
    assert [row.id for row in spark.table("with_columns").collect()] == [8]
    assert _found(path) == (1, 4)
    spark.sql("DROP VIEW with_columns")


def test_a_table_that_cannot_be_written_is_not_created(spark: SparkSession, table: str) -> None:
    with pytest.raises(PySparkException, match="boom"):
        spark.sql("SELECT raise_error('boom') AS x").write.format("lance").saveAsTable(table)
    assert not spark.catalog.tableExists(table)


def test_partitions_of_tables_of_a_lance_catalog(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.catalog.savemodes", "lancesql.spark.LanceCatalog")
    spark.conf.set("spark.sql.catalog.savemodes.path", str(tmp_path))
    spark.range(3).writeTo("savemodes.t").create()
    with pytest.raises(PySparkException, match=r"no partitions to overwrite.*MERGE INTO"):
        spark.range(1).writeTo("savemodes.t").overwritePartitions()
    spark.range(1).writeTo("savemodes.t").overwrite(sf.lit(True))
    assert spark.table("savemodes.t").count() == 1
