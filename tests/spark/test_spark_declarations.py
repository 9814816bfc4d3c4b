"""CREATE and REPLACE TABLE in a catalog of Lance tables: what they declare is obeyed or refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest
from lance_engine.errors import LanceError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, datasource
from pyspark.sql.types import StructType

import lance_sql
from lance_sql.spark.table_properties import declaration

pytestmark = pytest.mark.skipif(
    shutil.which("javac") is None, reason="the catalog is built where there is a JDK (javac)"
)

Ask = Callable[[str], list[Any]]


@pytest.fixture(scope="module")
def root(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("declared")
    spark.conf.set("spark.sql.catalog.dec", "lancesql.spark.LanceCatalog")
    spark.conf.set("spark.sql.catalog.dec.path", str(folder))
    return folder


@pytest.fixture
def ask(spark: SparkSession, root: Path) -> Ask:
    return lambda text: [tuple(row) for row in spark.sql(text).collect()]


def test_all_rows_are_deleted(ask: Ask) -> None:
    for where in ("", " WHERE true"):
        ask("CREATE OR REPLACE TABLE dec.every AS SELECT id FROM range(10)")
        ask(f"DELETE FROM dec.every{where}")
        assert ask("SELECT count(*) FROM dec.every") == [(0,)]
    assert ask("SELECT count(*) FROM dec.every VERSION AS OF 1") == [(10,)]


REFUSED = {
    "USING delta": "format lance, not delta",
    "USING parquet": "Leave out USING",
    "LOCATION '/tmp/elsewhere'": "LOCATION",
    "OPTIONS ('max_rows_per_file' = '5')": "no options of their own",
    "PARTITIONED BY (id)": "sort the rows",
    "TBLPROPERTIES ('s.lance.compression' = 'zip')": "must be one of",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("clause", REFUSED)
def test_what_cannot_be_obeyed_is_refused_and_changes_nothing(ask: Ask, root: Path, clause: str) -> None:
    if not (root / "kept.lance").exists():
        ask("CREATE TABLE dec.kept AS SELECT 7 AS seven")
    columns, query = "(id BIGINT, s STRING)", "AS SELECT 1L AS id, 'a' AS s"
    for text in (
        f"CREATE TABLE dec.absent {columns} {clause}",
        f"REPLACE TABLE dec.kept {columns} {clause}",
        f"CREATE OR REPLACE TABLE dec.kept {clause} {query}",
    ):
        with pytest.raises(PySparkException, match=REFUSED[clause]):
            ask(text)
    assert lance_sql.open(root / "kept.lance").to_table().to_pylist() == [{"seven": 7}]
    assert lance_sql.open(root / "kept.lance").version == 1
    assert not (root / "absent.lance").exists()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("provider", "iceberg", "format lance, not iceberg"),
        ("hive.stored-as", "PARQUET", "STORED AS"),
        ("external", "true", "EXTERNAL"),
        ("collation", "UNICODE_CI", "collation UNICODE_CI"),
        ("max_row_per_file", "5", "option of a read or a write"),
        ("topN_push_down", "true", "option of a read or a write"),
        ("lance.profile", "size", "'lance.profile' is unknown"),
        ("lance.auto_cleanup.interval", "3", "is unknown"),
        ("file_format_version", "LEGACY", "can only be read"),
        ("enable_stable_row_ids", "maybe", "true or false"),
        ("nothing.lance.compression", "zstd", "a column 'nothing'"),
        ("s.lance.rle-threshold", "2", "at most 1"),
        ("s.lance.compression-level", "-1", "at least"),
        ("s.lance.encoding", "blob", "needs a column of type BINARY"),
        ("id.arrow.fixed-size-list.size", "4", "Only arrays"),
        ("v.arrow.float16", "true", "half floats"),
        ("s.lance.nothing", "x", "is unknown"),
    ],
)
def test_properties_that_would_be_ignored_are_refused(key: str, value: str, message: str) -> None:
    columns = StructType.fromDDL("id BIGINT, s STRING, v ARRAY<FLOAT>")
    with pytest.raises(LanceError, match=message):
        declaration(columns, {key: value})
    assert declaration(columns, {"provider": "LANCE", "owner": "me", "team": "data"}).config == {
        "team": "data"
    }


def test_a_format_of_frames_is_checked_too(spark: SparkSession, root: Path) -> None:
    with pytest.raises(PySparkException, match=r"df\.writeTo\(table\)\.create\(\)"):
        spark.range(3).write.saveAsTable("dec.framed")
    assert not (root / "framed.lance").exists()


def test_properties_of_lance_spark_are_obeyed(ask: Ask, root: Path) -> None:
    properties = """TBLPROPERTIES ('file_format_version' = '2.0', 'enable_stable_row_ids' = 'true',
        'v.arrow.fixed-size-list.size' = '2', 's.arrow.large_var_char' = 'true', 'b.lance.encoding' = 'blob',
        'ID.lance.compression' = 'zstd', 'team' = 'data')"""
    columns = "(id BIGINT, v ARRAY<FLOAT>, s STRING, b BINARY)"
    ask(f"CREATE TABLE dec.made {columns} {properties}")
    ask("INSERT INTO dec.made VALUES (1, array(1, 2), 'x', X'0102')")
    ask(f"CREATE TABLE dec.selected {properties} AS SELECT * FROM dec.made")
    for name in ("made", "selected"):
        ds = lance_sql.open(root / f"{name}.lance")
        kinds = {field.name: str(field.type) for field in ds.storage_schema}
        assert kinds["v"] == "fixed_size_list<item: float>[2]"
        assert (kinds["s"], kinds["b"]) == ("large_string", "large_binary")
        assert ds.storage_schema.field("id").metadata == {b"lance-encoding:compression": b"zstd"}
        assert ds.storage_schema.field("b").metadata == {b"lance-encoding:blob": b"true"}
        official = lance.dataset(str(root / f"{name}.lance"))
        assert (official.has_stable_row_ids, official.data_storage_version) == (True, "2.0")
        assert official.config() == {"team": "data"}
        assert ask(f"SELECT * FROM dec.{name}") == [(1, [1.0, 2.0], "x", b"\x01\x02")]
    ask("ALTER TABLE dec.made SET TBLPROPERTIES ('id.lance.compression' = 'none', 'team' = 'web')")
    ds = lance_sql.open(root / "made.lance")
    assert ds.storage_schema.field("id").metadata == {b"lance-encoding:compression": b"none"}
    for text, message in (
        ("SET TBLPROPERTIES ('enable_stable_row_ids' = 'false')", "decided when a table is created"),
        ("SET TBLPROPERTIES ('v.arrow.fixed-size-list.size' = '3')", "decided when a table is created"),
        ("SET TBLPROPERTIES ('lance.auto_cleanup.interval' = '3')", "is unknown"),
        ("SET LOCATION '/tmp/x'", "LOCATION"),
        ("ADD COLUMN more INT NOT NULL", "without NOT NULL"),
    ):
        with pytest.raises(PySparkException, match=message):
            ask(f"ALTER TABLE dec.made {text}")
    assert lance_sql.open(root / "made.lance").version == ds.version


def test_comments_and_not_null_are_kept(ask: Ask, root: Path) -> None:
    ask("CREATE TABLE dec.told (id BIGINT NOT NULL COMMENT 'key', st STRUCT<a: INT>) COMMENT 'all of it'")
    ask("ALTER TABLE dec.told ADD COLUMN price DOUBLE COMMENT 'net'")
    ask("ALTER TABLE dec.told ALTER COLUMN st COMMENT 'parts'")
    described = ask("DESCRIBE EXTENDED dec.told")
    assert described[:3] == [
        ("id", "bigint", "key"),
        ("st", "struct<a:int>", "parts"),
        ("price", "double", "net"),
    ]
    shown = {name: value for name, value, _ in described}
    assert (shown["Comment"], shown["Provider"]) == ("all of it", "lance")
    assert shown["Location"] == str(root / "told.lance")
    with pytest.raises(PySparkException, match="NOT_NULL_ASSERT_VIOLATION"):
        ask("INSERT INTO dec.told VALUES (null, null, 1)")
    assert lance_sql.open(root / "told.lance").count_rows() == 0
    assert lance.dataset(str(root / "told.lance")).schema.field("id").nullable is False


def test_replacing_a_table_is_one_version(ask: Ask, root: Path) -> None:
    ask("CREATE TABLE dec.swapped TBLPROPERTIES ('a' = '1') AS SELECT id FROM range(5)")
    before = lance_sql.open(root / "swapped.lance").version
    for text in ("SELECT id / 0 AS x FROM dec.swapped", "SELECT assert_true(id < 3) AS x FROM dec.swapped"):
        with pytest.raises(PySparkException):
            ask(f"CREATE OR REPLACE TABLE dec.swapped AS {text}")
        assert lance_sql.open(root / "swapped.lance").version == before
    ask("CREATE OR REPLACE TABLE dec.swapped AS SELECT id + 1 AS next FROM dec.swapped")
    assert ask("SELECT sum(next) FROM dec.swapped") == [(15,)]
    assert ask(f"SELECT sum(id) FROM dec.swapped VERSION AS OF {before}") == [(10,)]
    assert ask("SHOW TBLPROPERTIES dec.swapped") == []
    ask("REPLACE TABLE dec.swapped (s STRING)")
    assert ask("SELECT * FROM dec.swapped") == []


def test_new_columns_of_a_merge_are_added_or_refused(ask: Ask) -> None:
    ask("CREATE TABLE dec.grown AS SELECT 1L AS id")
    merge = """MERGE {} INTO dec.grown t USING (SELECT 2L AS id, 'x' AS more) s ON t.id = s.id
        WHEN NOT MATCHED THEN INSERT *"""
    if not hasattr(datasource, "DataSourceStreamArrowWriter"):
        pytest.skip("schema evolution needs Spark 4.1")
    ask(merge.format("WITH SCHEMA EVOLUTION"))
    assert sorted(ask("SELECT * FROM dec.grown")) == [(1, None), (2, "x")]
