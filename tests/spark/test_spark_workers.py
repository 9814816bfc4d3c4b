"""Spark's Python workers: what they keep, and how many batches they hand over."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lance_sql
from lance_sql.spark import packed
from lance_sql.spark.options import Options
from lance_sql.spark.packed import gathered
from lance_sql.spark.version_cache import open_cached
from lance_sql.spark.workers import has_one_processor


def test_a_task_of_one_processor_decodes_on_its_own_thread(spark: SparkSession) -> None:
    def told(threads: int | None) -> bool:
        with pytest.MonkeyPatch.context() as patch:
            if threads is None:
                patch.delenv("LANCE_SQL_THREADS", raising=False)
            else:
                patch.setenv("LANCE_SQL_THREADS", str(threads))
            return has_one_processor()

    assert not has_one_processor()
    asked = spark.sparkContext.parallelize([None, 1, 3], 1).map(told).collect()
    assert asked == [True, False, False]


def test_a_version_is_kept_while_it_is_the_same(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    lance_sql.write(pa.table({"a": [1, 2]}), path)
    options = Options.parse({"path": path, "version": "1"})
    first = open_cached(options)
    assert open_cached(options) is first
    other = Options.parse({"path": path, "version": "1", "storage_options": '{"a": "b"}'})
    assert open_cached(other) is not first
    dataset = lance_sql.open(path).create_index("a")
    newest = open_cached(Options.parse({"path": path}))
    assert (newest.version, first.version) == (dataset.version, 1)
    assert open_cached(options) is first

    shutil.rmtree(path)
    lance_sql.write(pa.table({"a": [3, 4]}), path)
    again = open_cached(options)
    assert again is not first
    assert again.scan().to_table()["a"].to_pylist() == [3, 4]


def test_few_versions_are_kept(tmp_path: Path) -> None:
    asked = []
    for number in range(12):
        path = str(tmp_path / f"{number}.lance")
        lance_sql.write(pa.table({"a": [number]}), path)
        asked.append(Options.parse({"path": path}))
    versions = [open_cached(options) for options in asked]
    assert open_cached(asked[11]) is versions[11]
    assert open_cached(asked[0]) is not versions[0]


def batch(start: int, rows: int) -> pa.RecordBatch:
    schema = pa.schema({"a": pa.int64(), "t": pa.string()})
    return pa.RecordBatch.from_pydict({"a": range(start, start + rows), "t": ["x"] * rows}, schema)


def test_small_batches_are_handed_over_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_LONGEST_WAIT", 1e9)
    sizes = [1, 8000, 500, 8192, 0, 3, 20_000, 7]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    got = list(gathered(map(batch, starts, sizes)))
    assert [part.num_rows for part in got] == [8501, 8192, 20_003, 7]
    assert [value for part in got for value in part.column(0).to_pylist()] == list(range(sum(sizes)))
    assert list(gathered([])) == []


def test_few_rows_do_not_wait_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_LONGEST_WAIT", -1.0)
    assert [part.num_rows for part in gathered(batch(i, 1) for i in range(3))] == [1, 1, 1]
