"""``df.write.format("lance")``: it stores all rows of the DataFrame, or none."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lance_sql.spark.options import Options
from lance_sql.spark.types import spark_schema
from lance_sql.spark.writer import LanceWriter

EVERY_TYPE = """
    flag boolean, i8 tinyint, i16 smallint, i32 int, i64 bigint, f float, d double, dec decimal(20, 3),
    s string, b binary, day date, at timestamp, local timestamp_ntz, span interval day to second,
    numbers array<int>, nested struct<a: int, b: array<struct<c: string>>>
"""
EVERY_VALUE = (
    True,
    -128,
    -32768,
    -(2**31),
    2**63 - 1,
    1.5,
    float("nan"),
    Decimal("12345678901234567.125"),
    "Grüße",
    bytearray(b"\x00\xff"),
    datetime.date(1969, 12, 31),
    datetime.datetime(2024, 2, 29, 12, 0, 0, 1),
    datetime.datetime(1900, 1, 1),
    datetime.timedelta(days=-1, microseconds=1),
    [1, None, 3],
    {"a": None, "b": [{"c": "x"}, None]},
)


def save(frame: DataFrame, path: Path, mode: str = "append", **options: object) -> None:
    frame.write.format("lance").options(**options).mode(mode).save(str(path))


def files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


def test_every_type_and_nulls_of_every_type_come_back(spark: SparkSession, tmp_path: Path) -> None:
    nothing = (None,) * len(EVERY_VALUE)
    empty = (*nothing[:8], "", bytearray(), *nothing[10:14], [], {"a": 1, "b": []})
    frame = spark.createDataFrame([EVERY_VALUE, nothing, empty], EVERY_TYPE).coalesce(1)
    save(frame, tmp_path / "t.lance")
    back = spark.read.format("lance").load(str(tmp_path / "t.lance"))
    assert back.schema == frame.schema
    assert repr(back.collect()) == repr(frame.collect())  # NaN equals NaN as text
    stored = lance.dataset(tmp_path / "t.lance").to_table()
    assert stored.schema == frame.toArrow().schema
    assert repr(stored.to_pylist()) == repr(frame.toArrow().to_pylist())


def test_several_tasks_make_one_version(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(0, 50_000, numPartitions=4).selectExpr(
        "id", "id % 10 = 0 AS tenth", "concat('s', id) AS s"
    )
    save(frame, tmp_path / "t.lance")
    written = lance.dataset(tmp_path / "t.lance")
    assert (written.version, written.count_rows(), len(written.get_fragments())) == (1, 50_000, 4)
    assert written.to_table().equals(frame.toArrow().cast(written.schema))


def test_append_adds_and_overwrite_replaces(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    save(spark.range(3), path)
    save(spark.range(3, 5), path)
    assert lance.dataset(path).to_table()["id"].to_pylist() == [0, 1, 2, 3, 4]
    save(spark.range(1).selectExpr("'new' AS text"), path, mode="overwrite")
    assert lance.dataset(path).to_table().to_pylist() == [{"text": "new"}]
    assert lance.dataset(path, version=2).count_rows() == 5


def test_appended_columns_take_the_types_of_the_dataset(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    schema = pa.schema([("u", pa.uint8()), ("t", pa.timestamp("ms")), ("v", pa.list_(pa.float32(), 2))])
    lance.write_dataset(schema.empty_table(), path, data_storage_version="2.1")
    save(spark.sql("SELECT array(1.5F, 2.5F) AS v, 200 AS u"), path)
    assert lance.dataset(path).to_table().to_pylist() == [{"u": 200, "t": None, "v": [1.5, 2.5]}]


def test_an_empty_data_frame(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    save(spark.range(0), path)
    assert lance.dataset(path).to_table().equals(pa.table({"id": pa.array([], pa.int64())}))
    assert spark.read.format("lance").load(str(path)).collect() == []
    save(spark.range(0), path)
    assert lance.dataset(path).version == 1


def test_insert_into_a_temporary_view(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    save(spark.range(2), path)
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW target USING lance OPTIONS (path '{path}')")
    spark.sql("INSERT INTO target SELECT id + 10 AS id FROM target")
    assert lance.dataset(path).to_table()["id"].to_pylist() == [0, 1, 10, 11]


def test_limits_on_files_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    save(spark.range(0, 1000, numPartitions=1), tmp_path / "t.lance", max_rows_per_file=300)
    assert [fragment.count_rows() for fragment in lance.dataset(tmp_path / "t.lance").get_fragments()] == [
        300,
        300,
        300,
        100,
    ]


def test_a_failing_job_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    failing = spark.range(0, 40_000, numPartitions=4).selectExpr(
        "if(id = 39999, raise_error('boom'), id) AS id"
    )
    with pytest.raises(PySparkException, match="boom"):
        save(failing, path)
    assert files(path) == set()

    save(spark.range(10), path)
    before = files(path)
    with pytest.raises(PySparkException, match="boom"):
        save(failing, path, mode="overwrite")
    assert files(path) == before
    assert lance.dataset(path).version == 1


def test_values_that_do_not_fit_leave_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"u": pa.array([1], pa.uint8())}), path, data_storage_version="2.1")
    before = files(path)
    with pytest.raises(PySparkException, match="column: u"):
        save(spark.range(0, 1000, numPartitions=2).selectExpr("id AS u"), path)
    assert files(path) == before


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT INTERVAL '2' MONTH AS i", r"'i'|column: i"),
        ("SELECT 1 AS `a.b`", r"a\.b"),
        ("SELECT 1 AS a, 2 AS a", "'a'"),
    ],
)
def test_a_schema_that_cannot_be_stored_is_refused_before_any_task(
    spark: SparkSession, tmp_path: Path, query: str, message: str
) -> None:
    with pytest.raises(PySparkException, match=message):
        save(spark.sql(query), tmp_path / "t.lance")
    assert files(tmp_path) == set()


def test_an_unknown_column_names_the_known_ones(spark: SparkSession, tmp_path: Path) -> None:
    save(spark.range(1), tmp_path / "t.lance")
    with pytest.raises(PySparkException, match=r"[Cc]olumn 'other' not found.*id"):
        save(spark.range(1).selectExpr("id AS other"), tmp_path / "t.lance")


def a_writer(path: Path, *, overwrite: bool = False) -> LanceWriter:
    return LanceWriter(Options(str(path)), spark_schema(pa.schema([("a", pa.int64())])), overwrite)


def test_aborting_removes_the_files_of_finished_tasks(tmp_path: Path) -> None:
    writer = a_writer(tmp_path / "t.lance")
    message = writer.write(iter([pa.record_batch({"a": [1, 2]})]))
    assert len(files(tmp_path)) == 1
    writer.abort([message, None])
    assert files(tmp_path) == set()


def test_aborting_after_the_commit_took_place_keeps_the_data(tmp_path: Path) -> None:
    writer = a_writer(tmp_path / "t.lance")
    message = writer.write(iter([pa.record_batch({"a": [1, 2]})]))
    writer.commit([message])
    writer.abort([message])
    assert lance.dataset(tmp_path / "t.lance").to_table()["a"].to_pylist() == [1, 2]
