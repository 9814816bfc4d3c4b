"""Maintenance by tasks has the same result as the operations on one machine."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_engine.errors import AmbiguousMergeError, IndexExistsError, SchemaMismatchError
from lance_engine.progress import ProgressEvent
from pyspark.sql import SparkSession

import lance_sql
import lance_sql.spark

ROWS = 1000


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"], scope="module")
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten fragments, some with deleted rows."""
    path = tmp_path_factory.mktemp("maintenance") / "t.lance"
    for start in range(0, ROWS, 100):
        table = pa.table(
            {
                "id": pa.array(range(start, start + 100), pa.int64()),
                "s": [None if i % 9 == 0 else f"s{i % 50}" for i in range(start, start + 100)],
                "v": pa.array([[i, 0.5] for i in range(start, start + 100)], pa.list_(pa.float32(), 2)),
            }
        )
        if start:
            lance_sql.write(table, path, mode="append")
        else:
            lance.write_dataset(table, path, enable_stable_row_ids=request.param, data_storage_version="2.1")
    lance_sql.open(path).delete("id % 100 < 30 AND id < 500")
    return path


@pytest.fixture
def twins(original: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Two copies of it."""
    paths = (tmp_path / "one.lance", tmp_path / "cluster.lance")
    for path in paths:
        shutil.copytree(original, path)
    return paths


def content(dataset: lance_sql.Dataset, *, ordered: bool = True) -> pa.Table:
    columns = dataset.schema.names
    if dataset.snapshot.has_stable_row_ids:
        columns = [*columns, "_rowid"]
    table = dataset.scan(columns=columns).to_table()
    return table if ordered else table.sort_by("id")


def assert_same(one: lance_sql.Dataset, cluster: lance_sql.Dataset, *, ordered: bool = True) -> None:
    assert content(cluster, ordered=ordered).equals(content(one, ordered=ordered))
    assert cluster.version == one.version
    assert cluster.verify(values=True).num_rows == 0
    assert lance.dataset(cluster.uri).count_rows() == one.count_rows()


@pytest.mark.sampled(1)
def test_compact(spark: SparkSession, twins: tuple[Path, Path]) -> None:
    events: list[ProgressEvent] = []
    for path in twins:
        lance_sql.open(path).create_index("id")
    one = lance_sql.open(twins[0]).compact(target_rows=250)
    cluster = lance_sql.spark.compact(spark, twins[1], target_rows=250, progress=events.append)
    assert_same(one, cluster)
    rows = [fragment.physical_rows for fragment in cluster.snapshot.fragments]
    assert rows == [fragment.physical_rows for fragment in one.snapshot.fragments] == [250, 250, 250, 100]
    last = [event for event in events if event.stage == "compacting"][-1]
    assert last.rows == last.total_rows == ROWS
    assert cluster.scan(filter="id = 777").to_table()["s"].to_pylist() == ["s27"]
    assert lance_sql.spark.compact(spark, twins[1], target_rows=250).version == cluster.version


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "kind", ["btree", pytest.param("zonemap"), pytest.param("bitmap", marks=pytest.mark.slow)]
)
def test_build_index(spark: SparkSession, twins: tuple[Path, Path], kind: str) -> None:
    one = lance_sql.open(twins[0]).create_index("s", kind)
    cluster = lance_sql.spark.build_index(spark, twins[1], "s", kind)
    assert_same(one, cluster)
    for filter in ("s = 's7'", "s IS NULL", "s > 's45'", "s = 'none'"):
        assert cluster.scan(filter=filter).to_table().equals(one.scan(filter=filter).to_table())
        assert lance.dataset(twins[1]).count_rows(filter) == one.count_rows(filter)
    for dataset in (one, cluster):
        assert dataset.index_statistics("s_idx")["uncovered_rows"] == 0
    with pytest.raises(IndexExistsError):
        lance_sql.spark.build_index(spark, twins[1], "s", kind)
    cluster = lance_sql.spark.build_index(spark, twins[1], "s", kind, replace=True)
    assert cluster.optimize_indices().count_rows("s = 's7'") == one.count_rows("s = 's7'")


@pytest.mark.sampled(1)
def test_delete_and_update(spark: SparkSession, twins: tuple[Path, Path]) -> None:
    one = lance_sql.open(twins[0]).delete("s = 's7' OR id >= 900")
    lance_sql.spark.delete(spark, twins[1], "s = 's7' OR id >= 900")
    values = {"s": "concat(s, '!')", "id": "id + 5000"}
    one = one.update(values, "id < 250")
    cluster = lance_sql.spark.update(spark, twins[1], values, "id < 250")
    assert_same(one, cluster)


@pytest.mark.sampled(1)
def test_merge(spark: SparkSession, twins: tuple[Path, Path]) -> None:
    source = spark.range(950, 1050).selectExpr("id", "concat('new', id) AS s")
    source = source.unionAll(spark.sql("SELECT null, 'no key'"))
    rows = pa.Table.from_pylist([row.asDict() for row in source.collect()])
    merged = lance_sql.open(twins[0]).merge(rows, "id")
    one = merged.when_matched_update_all().when_not_matched_insert_all().execute()
    cluster = lance_sql.spark.merge(spark, source, twins[1], "id")
    # In which order new rows come, and so which ids they get, is not said.
    columns = ["id", "s", "v"]
    assert (
        cluster.scan(columns=columns)
        .to_table()
        .sort_by("id")
        .equals(one.scan(columns=columns).to_table().sort_by("id"))
    )
    assert (cluster.version, cluster.verify(values=True).num_rows) == (one.version, 0)
    if one.snapshot.has_stable_row_ids:
        old = "id < 1000"
        assert (
            content(cluster)
            .filter(pa.compute.field("id") < 1000)
            .sort_by("id")
            .equals(content(one).filter(pa.compute.field("id") < 1000).sort_by("id"))
        ), old
    files = set((twins[1] / "data").iterdir())
    twice = spark.sql("SELECT 999 AS id, 'a' AS s UNION ALL SELECT 999, 'b'")
    with pytest.raises((AmbiguousMergeError, Exception), match="Several source rows match"):
        lance_sql.spark.merge(spark, twice, twins[1], "id")
    with pytest.raises(SchemaMismatchError, match="Column 'nope' not found"):
        lance_sql.spark.merge(spark, source.withColumnRenamed("s", "nope"), twins[1], "id")
    assert set((twins[1] / "data").iterdir()) == files
    gone = lance_sql.spark.merge(spark, source, twins[1], "id", matched="delete", not_matched="ignore")
    assert gone.count_rows() == 950 - 150 + 1


@pytest.mark.sampled(1)
def test_progress_cancels(spark: SparkSession, twins: tuple[Path, Path]) -> None:
    before = set(twins[1].rglob("*"))

    def stop(event: ProgressEvent) -> None:
        if event.rows:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lance_sql.spark.compact(spark, twins[1], target_rows=250, progress=stop)
    assert set(twins[1].rglob("*")) == before
