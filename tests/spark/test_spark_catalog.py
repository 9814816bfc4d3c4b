"""Datasets below a directory as tables of Spark SQL."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import lance_sql

pytestmark = pytest.mark.skipif(
    shutil.which("javac") is None, reason="the catalog is built where there is a JDK (javac)"
)

Ask = Callable[[str], list[Any]]


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("catalog")
    spark.conf.set("spark.sql.catalog.shelf", "lancesql.spark.LanceCatalog")
    spark.conf.set("spark.sql.catalog.shelf.path", str(folder))
    spark.sql("CREATE NAMESPACE shelf.db")
    return folder


@pytest.fixture
def ask(spark: SparkSession, root: Path) -> Ask:
    return lambda text: [tuple(row) for row in spark.sql(text).collect()]


def test_a_table_from_creation_to_drop(ask: Ask, root: Path) -> None:
    ask("CREATE TABLE shelf.db.t (id BIGINT, name STRING, price DOUBLE) TBLPROPERTIES ('color' = 'red')")
    assert lance.dataset(str(root / "db" / "t.lance")).count_rows() == 0
    assert ask("SHOW TBLPROPERTIES shelf.db.t ('color')") == [("color", "red")]
    ask("ALTER TABLE shelf.db.t SET TBLPROPERTIES ('color' = 'blue')")
    assert lance.dataset(str(root / "db" / "t.lance")).config()["color"] == "blue"
    ask("INSERT INTO shelf.db.t SELECT id, concat('n', id), id * 1.5 FROM range(1000)")
    assert ask("SELECT count(*), sum(id) FROM shelf.db.t") == [(1000, 499_500)]
    assert ("db", "t", False) in ask("SHOW TABLES IN shelf.db")
    ask("DELETE FROM shelf.db.t WHERE id >= 990")
    assert ask("SELECT count(*), max(id) FROM shelf.db.t WHERE id > 5") == [(984, 989)]
    assert lance.dataset(str(root / "db" / "t.lance")).count_rows() == 990
    version = lance_sql.open(root / "db" / "t.lance").version
    assert ask(f"SELECT count(*) FROM shelf.db.t VERSION AS OF {version - 1}") == [(1000,)]
    assert ask("SELECT max(version) FROM shelf.db.t.versions") == [(version,)]
    assert ask("SELECT sum(CAST(rows AS INT)) FROM shelf.db.t.fragments") == [(990,)]
    ask("INSERT OVERWRITE shelf.db.t SELECT id, 'x', 0D FROM range(3)")
    assert ask("SELECT count(*), max(name) FROM shelf.db.t") == [(3, "x")]
    ask("TRUNCATE TABLE shelf.db.t")
    assert ask("SELECT * FROM shelf.db.t") == []
    ask("DROP TABLE shelf.db.t")
    assert not (root / "db" / "t.lance").exists()


def test_columns_are_altered(ask: Ask, root: Path) -> None:
    ask("CREATE TABLE shelf.db.u AS SELECT id FROM range(10)")
    ask("ALTER TABLE shelf.db.u ADD COLUMN x INT")
    ask("ALTER TABLE shelf.db.u RENAME COLUMN id TO number")
    ask("ALTER TABLE shelf.db.u ALTER COLUMN x TYPE BIGINT")
    assert ask("DESCRIBE TABLE shelf.db.u")[:2] == [("number", "bigint", None), ("x", "bigint", None)]
    ask("ALTER TABLE shelf.db.u DROP COLUMN x")
    ask("ALTER TABLE shelf.db.u RENAME TO db.v")
    assert ask("SELECT sum(number) FROM shelf.db.v") == [(45,)]
    ask("CREATE OR REPLACE TABLE shelf.db.v AS SELECT 'a' AS s")
    assert ask("SELECT * FROM shelf.db.v") == [("a",)]
    ask("DROP TABLE shelf.db.v")


def test_names_that_are_missing_or_taken(ask: Ask, root: Path) -> None:
    ask("CREATE TABLE shelf.db.taken (a INT)")
    for text, error in (
        ("SELECT * FROM shelf.db.missing", "TABLE_OR_VIEW_NOT_FOUND"),
        ("DROP TABLE shelf.db.missing", "TABLE_OR_VIEW_NOT_FOUND"),
        ("CREATE TABLE shelf.db.taken (a INT)", "TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE NAMESPACE shelf.db", "SCHEMA_ALREADY_EXISTS"),
        ("CREATE TABLE shelf.nowhere.t (a INT)", "SCHEMA_NOT_FOUND"),
        ("DROP NAMESPACE shelf.db", "SCHEMA_NOT_EMPTY"),
    ):
        with pytest.raises(AnalysisException, match=error):
            ask(text)
    ask("CREATE TABLE IF NOT EXISTS shelf.db.taken (b INT)")
    ask("DROP TABLE IF EXISTS shelf.db.missing")
    ask("DROP TABLE shelf.db.taken")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("statement", "remedy"),
    [
        ("CREATE TABLE shelf.db.parts (a INT, b INT) PARTITIONED BY (a)", "sort the rows"),
        ("ALTER TABLE shelf.db.kept ADD COLUMN b INT FIRST", "come last"),
        ("CREATE TABLE shelf.db.`../out` (a INT)", "cannot be the name"),
    ],
)
def test_what_is_refused_changes_nothing(ask: Ask, root: Path, statement: str, remedy: str) -> None:
    ask("CREATE OR REPLACE TABLE shelf.db.kept AS SELECT CAST(id AS INT) AS a FROM range(4)")
    version = lance_sql.open(root / "db" / "kept.lance").version
    with pytest.raises(Exception, match=remedy):
        ask(statement)
    assert lance_sql.open(root / "db" / "kept.lance").version == version
    assert sorted(path.name for path in root.iterdir()) == ["db"]
    ask("DROP TABLE shelf.db.kept")


def test_frames_are_saved_as_tables(spark: SparkSession, ask: Ask, root: Path) -> None:
    frame = spark.range(5)
    frame.write.format("lance").saveAsTable("shelf.db.saved")
    frame.writeTo("shelf.db.saved").append()
    frame.writeTo("shelf.db.other").create()
    assert ask("SELECT count(*) FROM shelf.db.saved") == [(10,)]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        frame.write.format("lance").saveAsTable("shelf.db.saved")
    frame.write.mode("ignore").saveAsTable("shelf.db.saved")
    assert ask("SELECT count(*) FROM shelf.db.saved") == [(10,)]
    ask("DROP TABLE shelf.db.saved")
    ask("DROP TABLE shelf.db.other")
