"""The hand-over of rows to the planner in the JVM: packed batches, read in place."""

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
import pytest
from pyspark.sql import SparkSession

import lance_sql
from lance_sql.spark import packed, table, write
from lance_sql.spark.packed import pack

TARGET = pa.schema([pa.field("packed", pa.binary(), nullable=False)])
ROWS = 5000

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


@needs_planner
def test_columns_of_all_types_with_nulls_between(spark: SparkSession, tmp_path: Path) -> None:
    kinds = {
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
    columns = ["id", "array(id) AS nested"]
    for number, (kind, value) in enumerate(kinds.items()):
        typed = f"cast({value} AS {kind})"
        columns += [f"{typed} AS c{number}", f"if(id % {number + 2} = 1, null, {typed}) AS n{number}"]
    frame = spark.range(ROWS).coalesce(1).selectExpr(*columns)
    write(frame, tmp_path / "t.lance", max_rows_per_file=1500)
    back = table(spark, str(tmp_path / "t.lance"), batch_size=333)
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
