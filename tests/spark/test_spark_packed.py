"""How rows reach the planner in the JVM: packed batches, read in place."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_engine.errors import CorruptFileError
from pyspark.sql import SparkSession

import lance_sql
from lance_sql.spark import packed, table, write
from lance_sql.spark.packed import pack, unpack

TARGET = pa.schema([pa.field("packed", pa.binary(), nullable=False)])
ROWS = 1500

needs_planner = pytest.mark.skipif(
    shutil.which("javac") is None, reason="the planner is built where there is a JDK (javac)"
)


def unpacked(value: bytes, batch: pa.RecordBatch) -> dict[str, list[Any]]:
    """Integers and texts of a packed value, by the description of its form."""
    head = np.frombuffer(value, np.int64, 1 + 3 * batch.num_columns)
    columns = {}
    for number, field in enumerate(batch.schema):
        validity, values, data = head[1 + 3 * number :][:3]
        cells: list[Any] = []
        for row in range(head[0]):
            if validity and not value[validity + row // 8] >> row % 8 & 1:
                cells.append(None)
            elif field.type == pa.int64():
                cells.append(int(np.frombuffer(value, np.int64, 1, values + 8 * row)[0]))
            else:
                start, stop = np.frombuffer(value, np.int32, 2, values + 4 * row)
                cells.append(value[data + start : data + stop].decode())
        columns[field.name] = cells
    return columns


def values_of(batch: pa.RecordBatch) -> list[bytes]:
    return [part.column(0)[0].as_py() for part in pack(batch, TARGET)]


@pytest.mark.parametrize(("start", "rows"), [(0, 100), (3, 50), (8, 1), (99, 1), (100, 0)])
def test_slices_are_packed_from_their_first_row(start: int, rows: int) -> None:
    numbers = pa.array([None if i % 7 == 3 else i for i in range(100)], pa.int64())
    texts = pa.array([None if i % 5 == 4 else "ü" * (i % 4) for i in range(100)], pa.string())
    batch = pa.RecordBatch.from_arrays([numbers, texts], ["n", "t"]).slice(start, rows)
    got = [unpacked(value, batch) for value in values_of(batch)]
    assert got == ([batch.to_pydict()] if rows else [])


def test_large_batches_are_packed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_MAX_BYTES", 1000)
    batch = pa.RecordBatch.from_arrays([pa.array(range(1000)), pa.array(["x" * 9] * 1000)], ["n", "t"])
    parts = values_of(batch)
    assert len(parts) > 10
    assert [n for part in parts for n in unpacked(part, batch)["n"]] == list(range(1000))


@pytest.mark.parametrize(("piece", "pieces"), [(8, 1), (64, 1000), (4096, 3), (1 << 20, 10)])
def test_packed_rows_that_come_in_pieces(piece: int, pieces: int) -> None:
    """Spark cuts the stream of packed rows anywhere."""
    numbers = pa.array([None if i % 7 == 3 else i for i in range(1000)], pa.int64())
    columns = {
        "n": numbers,
        "small": numbers.cast(pa.int16()),
        "text": pa.array([None if i % 5 == 4 else "ü" * (i % 40) for i in range(1000)]),
        "flag": pa.array([None if i % 3 == 0 else i % 2 == 0 for i in range(1000)]),
        "price": pc.negate(numbers.cast(pa.decimal128(19, 0)).cast(pa.decimal128(18, 0))),
        "large": pc.negate(numbers.cast(pa.decimal128(38, 0))),
    }
    table = pa.table(columns)
    parts = [pa.record_batch(part.to_pydict(), table.schema) for part in table.to_batches(max_chunksize=300)]
    values = [value for part in parts for value in values_of(part)]
    stream = b"".join(len(value).to_bytes(8, "little") + value for value in values)
    cut = [stream[i : i + piece] for i in range(0, len(stream), piece)]
    batches = [
        pa.record_batch([pa.array(cut[i : i + pieces], pa.binary())], ["packed"])
        for i in range(0, len(cut), pieces)
    ]
    assert pa.Table.from_batches(unpack(iter(batches), table.schema)) == table
    short = pa.record_batch([pa.array([stream[:-1]], pa.binary())], ["packed"])
    with pytest.raises(CorruptFileError, match="incomplete rows"):
        list(unpack([short], table.schema))


#: Types with values of them.
KINDS = {
    "boolean": "id % 2 = 0",
    "tinyint": "id % 100 - 50",
    "smallint": "-id",
    "int": "id * 100000",
    "bigint": "-id * 10000000000",
    "float": "id / 3",
    "double": "-id / 7",
    "decimal(7,2)": "-id * 1.01",
    "decimal(18,6)": "id * 123456.789012",
    "decimal(19,0)": "-id * 1000000000000000",
    "decimal(38,10)": "-id * 1234567890123456789.25",
    "string": "concat('ä', repeat('x', int(id % 30)))",
    "binary": "concat('b', id)",
    "date": "date_add(DATE'1900-01-01', int(id * 20))",
    "timestamp": "timestamp_seconds(-id * 100003)",
    "timestamp_ntz": "timestamp_ntz'1960-01-01 00:00:00.000001' + make_dt_interval(int(id))",
    "interval day to second": "make_dt_interval(0, int(-id), 1)",
}


@needs_planner
def test_columns_of_all_types_with_nulls_between(spark: SparkSession, tmp_path: Path) -> None:
    columns = ["id", "array(id) AS nested"]
    for number, (kind, value) in enumerate(KINDS.items()):
        typed = f"cast({value} AS {kind})"
        columns += [f"{typed} AS c{number}", f"if(id % {number + 2} = 1, null, {typed}) AS n{number}"]
    frame = spark.range(ROWS).coalesce(1).selectExpr(*columns)
    write(frame, tmp_path / "t.lance", max_rows_per_file=500)
    back = table(spark, str(tmp_path / "t.lance"), batch_size=133)
    flat = [name for name in frame.columns if name != "nested"]
    text = io.StringIO()
    with redirect_stdout(text):
        back.select(flat).explain()
    assert "ColumnarToRow" in text.getvalue()
    assert back.select(flat).orderBy("id").collect() == frame.select(flat).orderBy("id").collect()
    condition = "id % 1000 < 3 OR n7 IS NULL"
    some = back.where(condition).select(flat).orderBy("id").collect()
    assert some == frame.where(condition).select(flat).orderBy("id").collect()
    # Nested columns come as rows.
    assert back.orderBy("id").collect() == frame.orderBy("id").collect()


@needs_planner
@pytest.mark.parametrize("batch", [1, 10_000])
def test_all_types_are_written_packed(spark: SparkSession, tmp_path: Path, batch: int) -> None:
    columns = ["id"]
    for number, (kind, value) in enumerate(KINDS.items()):
        typed = f"cast({value} AS {kind})"
        columns += [f"{typed} AS c{number}", f"if(id % {number + 2} = 1, null, {typed}) AS n{number}"]
    frame = spark.range(ROWS).coalesce(1).selectExpr(*columns, "cast(null AS string) AS nothing")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", batch)
    try:
        write(frame, tmp_path / "t.lance")
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    got = lance_sql.open(tmp_path / "t.lance").scan().to_table().sort_by("id")
    wanted = frame.orderBy("id").toArrow()
    assert got.cast(wanted.schema) == wanted


@needs_planner
def test_small_tables_are_read_in_shares(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    rows = 140_000
    wide = {f"text{n}": ["x"] * rows for n in range(6)}
    lance_sql.write(
        pa.table({"i": range(rows), "k": [i % 100 for i in range(rows)], **wide}),
        path,
        max_rows_per_file=50_000,
    )
    lance_sql.open(path).delete("k = 7 OR i < 10")
    frame = table(spark, str(path))
    left = [i for i in range(10, rows) if i % 100 != 7]
    assert frame.rdd.getNumPartitions() == 2
    assert frame.where("k = 9").rdd.getNumPartitions() == 2
    # Few bytes are tested in one task.
    assert frame.where("k = 9").select("i").rdd.getNumPartitions() == 1
    for condition in ("i > 0", "i >= 70000 AND k < 5", "i = 139999", "i < 0", "i % 7 = 0 AND k = 3"):
        tested = compile(condition.replace("AND", "and").replace(" = ", " == "), "condition", "eval")
        wanted = [i for i in left if eval(tested, {"i": i, "k": i % 100})]
        assert sorted(row.i for row in frame.where(condition).select("i").collect()) == wanted
        assert sorted(frame.where(condition).toArrow().column("i").to_pylist()) == wanted
    assert frame.count() == len(left)
    assert [row.i for row in frame.select("i").limit(3).collect()] == [10, 11, 12]
    assert frame.where("k = 9").limit(5).count() == 5
    # Pinned to its version, whatever happens to the table.
    lance_sql.open(path).delete("k = 8")
    assert frame.where("k = 8").count() == sum(i % 100 == 8 for i in left)
    assert table(spark, str(path)).where("k = 8").count() == 0


@needs_planner
def test_equal_scans_are_done_once(spark: SparkSession, tmp_path: Path) -> None:
    lance_sql.write(
        pa.table({"k": [i % 10 for i in range(1000)], "v": list(range(1000))}), tmp_path / "t.lance"
    )
    frame = table(spark, str(tmp_path / "t.lance"))
    sums = frame.groupBy("k").sum("v")
    text = io.StringIO()
    with redirect_stdout(text):
        both = sums.unionAll(sums)
        assert len(both.collect()) == 20
        both.explain()
    assert "ReusedExchange" in text.getvalue() or text.getvalue().count("BatchScan") == 1


WORKER = """
import gc, os
from lance_sql.spark.workers import settle
settle()
assert gc.get_freeze_count() == 0
os.environ["SPARK_REUSE_WORKER"] = "1"
settle()
settled = gc.get_freeze_count()
assert settled > 1000
more = [[] for _ in range(1000)]
settle()
assert gc.get_freeze_count() <= settled
"""


def test_workers_settle_once() -> None:
    subprocess.run([sys.executable, "-c", WORKER], check=True)
