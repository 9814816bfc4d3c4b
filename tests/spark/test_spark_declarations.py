"""CREATE and REPLACE TABLE in a catalog of Lance tables: what they declare is obeyed or refused."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_engine.errors import LanceError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession, datasource
from pyspark.sql.types import StructType

import lance_sql
from lance_sql.catalog.defaults import DEFAULT_KEY
from lance_sql.spark.defaults import with_stored_defaults
from lance_sql.spark.table_properties import declaration
from lance_sql.spark.versions import arrow_schema

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


def test_properties_of_columns_are_shown_and_declare_the_same_table(ask: Ask, root: Path) -> None:
    properties = {
        "v.arrow.fixed-size-list.size": "2",
        "s.arrow.large_var_char": "true",
        "b.lance.encoding": "blob",
        "id.lance.compression": "zstd",
        "lance.stable_row_ids": "true",
        "team": "data",
    }
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    columns = "(id BIGINT DEFAULT 7, v ARRAY<FLOAT>, s STRING, b BINARY)"
    ask(f"CREATE TABLE dec.shown {columns} TBLPROPERTIES ({listed})")
    assert dict(ask("SHOW TBLPROPERTIES dec.shown")) == properties
    ((text,),) = ask("SHOW CREATE TABLE dec.shown")
    ask(text.replace("dec.shown", "dec.again").replace("shown.lance", "again.lance"))
    schemas = [lance_sql.open(root / f"{name}.lance").storage_schema for name in ("shown", "again")]
    assert schemas[0].equals(schemas[1], check_metadata=True)
    with pytest.raises(PySparkException, match="LOCATION"):
        ask(text.replace("dec.shown", "dec.elsewhere"))


def test_defaults_are_those_of_sessions(ask: Ask, root: Path) -> None:
    declared = r"""n INT DEFAULT 5, s STRING DEFAULT 'it\'s \\', day DATE DEFAULT DATE'2024-01-01',
        l ARRAY<INT> DEFAULT array(1, 2)"""
    ask(f"CREATE TABLE dec.filled (id BIGINT, {declared})")
    ask("INSERT INTO dec.filled (id) VALUES (1)")
    lance_sql.sql(f"INSERT INTO '{root}/filled.lance' (id) VALUES (2)")
    lance_sql.sql(f"ALTER TABLE '{root}/filled.lance' ALTER COLUMN n SET DEFAULT 1 + 5")
    ask(
        "MERGE INTO dec.filled t USING (SELECT 3L AS id) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    day = datetime.date(2024, 1, 1)
    rows = [(number, n, "it's \\", day, [1, 2]) for number, n in ((1, 5), (2, 5), (3, 6))]
    assert ask("SELECT * FROM dec.filled ORDER BY id") == rows
    ask("UPDATE dec.filled SET n = DEFAULT WHERE id = 1")
    ask("ALTER TABLE dec.filled ADD COLUMN more INT DEFAULT 9")
    ask("ALTER TABLE dec.filled ALTER COLUMN n DROP DEFAULT")
    ask("INSERT INTO dec.filled (id) VALUES (4)")
    assert ask("SELECT id, n, more FROM dec.filled ORDER BY id") == [
        (1, 6, 9),
        (2, 5, 9),
        (3, 6, 9),
        (4, None, 9),
    ]
    ask("CREATE TABLE dec.plain AS SELECT * FROM dec.filled")
    assert all(field.metadata is None for field in lance_sql.open(root / "plain.lance").storage_schema)


def test_a_default_that_is_no_constant_is_an_error_of_inserts_alone() -> None:
    stored = pa.schema([with_metadata_default("a", "getenv('HOME')"), with_metadata_default("b", "[1, 2]")])
    found = with_stored_defaults(StructType.fromDDL("a INT, b ARRAY<INT>"), stored)
    texts = [field.metadata["CURRENT_DEFAULT"] for field in found.fields]
    assert texts[0].startswith("raise_error('The stored default")
    assert texts[1] == "ARRAY(1, 2)"


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("-5", "INT", "-5"),
        ("1 + 5", "INT", "1 + 5"),
        ("'a' || 'b'", "STRING", "'a' || 'b'"),
        ("2.5", "DOUBLE", "2.5"),
        ("CAST('2024-01-01' AS DATE)", "DATE", "CAST('2024-01-01' AS DATE)"),
        # DuckDB rounds, Spark cuts off
        ("2.5", "INT", None),
        ("CAST(2.5 AS INTEGER)", "INT", None),
        ("CAST('2.5' AS INTEGER)", "INT", None),
        # null in Spark
        ("concat('a', NULL)", "STRING", None),
        # other bytes
        (r"CAST('\\x41' AS BLOB)", "BINARY", None),
        ("7 // -2", "INT", None),
        ("1 / 2", "DOUBLE", None),
    ],
)
def test_defaults_that_engines_compute_differently_are_errors_of_inserts(
    text: str, kind: str, found: str | None
) -> None:
    schema = StructType.fromDDL(f"a {kind}")
    stored = arrow_schema(schema).field(0).with_metadata({DEFAULT_KEY: text.encode()})
    shown = with_stored_defaults(schema, pa.schema([stored])).fields[0].metadata["CURRENT_DEFAULT"]
    assert shown == found if found is not None else shown.startswith("raise_error('The default")


def with_metadata_default(name: str, text: str) -> pa.Field:
    return pa.field(name, pa.int32(), metadata={DEFAULT_KEY: text.encode()})


def test_a_table_like_another(ask: Ask, root: Path) -> None:
    ask("CREATE TABLE dec.model (id BIGINT NOT NULL COMMENT 'key', v ARRAY<FLOAT>, n INT DEFAULT 5) "
        "TBLPROPERTIES ('v.arrow.fixed-size-list.size' = '2', 'lance.stable_row_ids' = 'true')")  # fmt: skip
    ask("CREATE TABLE dec.liked LIKE dec.model TBLPROPERTIES ('team' = 'data')")
    ask("CREATE TABLE IF NOT EXISTS dec.liked LIKE dec.model")
    model, liked = (lance_sql.open(root / f"{name}.lance") for name in ("model", "liked"))
    assert liked.storage_schema.equals(model.storage_schema, check_metadata=True)
    assert (liked.snapshot.has_stable_row_ids, liked.snapshot.manifest.config) == (True, {"team": "data"})
    with pytest.raises(PySparkException, match=r"'liked' already exists"):
        ask("CREATE TABLE dec.liked LIKE dec.model")
    ask("CREATE OR REPLACE TEMPORARY VIEW seen AS SELECT 1 AS a, 'x' AS b")
    ask("CREATE TABLE dec.viewed LIKE seen")
    assert ask("SELECT * FROM dec.viewed") == []


REFUSED_CHANGES = {
    "ADD COLUMNS (a INT, b CHAR(3))": "char",
    "SET TBLPROPERTIES ('p' = '1', 'lance.nothing' = '2')": "unknown",
    "REPLACE COLUMNS (x INT)": "lose the values",
    "ADD COLUMN m INT FIRST": "New columns come last",
    "ALTER COLUMN seven FIRST": "New columns come last",
    "CLUSTER BY (seven)": "sorted",
}


def test_a_change_that_is_refused_changes_nothing(ask: Ask, root: Path) -> None:
    ask("CREATE TABLE dec.same AS SELECT 7 AS seven")
    for change, message in REFUSED_CHANGES.items():
        with pytest.raises(PySparkException, match=message):
            ask(f"ALTER TABLE dec.same {change}")
    assert lance_sql.open(root / "same.lance").version == 1
    for declared, message in (
        ("(a INT GENERATED ALWAYS AS (1))", "generated"),
        ("(a BIGINT GENERATED ALWAYS AS IDENTITY)", "identity"),
        ("(a INT PRIMARY KEY)", "add_key"),
    ):
        if hasattr(datasource, "DataSourceStreamArrowWriter"):  # older versions do not know them all
            with pytest.raises(PySparkException, match=message):
                ask(f"CREATE TABLE dec.absent {declared}")
    assert not (root / "absent.lance").exists()
