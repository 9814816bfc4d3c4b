"""Which rows each task reads: all rows once, in tasks of similar size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_sql
from lance_sql.spark.options import Options
from lance_sql.spark.partitions import PlannedSplits, plan_splits, share_of_rows
from lance_sql.spark.reader import LanceReader, SplitPartition
from lance_sql.spark.types import spark_schema

LARGE, SMALL, SMALL_FRAGMENTS = 100_000, 5_000, 8


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One large fragment and then eight small ones, of numbers that do not compress: 8 bytes a row."""
    path = tmp_path_factory.mktemp("partitions") / "t.lance"
    values = np.random.default_rng(1).integers(0, 1 << 62, LARGE + SMALL * SMALL_FRAGMENTS)
    table = pa.table({"i": range(len(values)), "x": values})
    lance_sql.write(table[:LARGE], path)
    lance_sql.write(table[LARGE:], path, mode="append", max_rows_per_file=SMALL)
    return path


def planned(path: Path, **options: object) -> PlannedSplits:
    return plan_splits(lance_sql.open(path), Options(str(path), **options))


def rows(plan: PlannedSplits) -> list[int]:
    return [sum(split.stop - split.start for split in splits) for splits in plan.partitions]


def test_partition_bytes_cut_large_fragments_and_group_small_ones(mixed: Path) -> None:
    plan = planned(mixed, partition_bytes=200_000)
    fragments = [{split.fragment_id for split in splits} for splits in plan.partitions]
    assert sum(0 in ids for ids in fragments) >= 4
    assert any(len(ids - {0}) >= 3 for ids in fragments)
    assert max(rows(plan)) < 1.5 * np.mean(rows(plan))
    assert len(plan.partitions) > len(planned(mixed, partition_bytes=400_000).partitions) > 1


@pytest.mark.parametrize(
    "options", [{"partition_bytes": 50_000}, {"partitions": 3}, {"partition_bytes": 1 << 30}]
)
def test_every_row_is_read_once_and_in_order(mixed: Path, options: dict[str, int]) -> None:
    plan = planned(mixed, **options)
    schema = spark_schema(pa.schema([("i", pa.int64())]))
    reader = LanceReader(Options(str(mixed), **options), schema)
    batches = [
        batch for splits in plan.partitions for batch in reader.read(SplitPartition(splits, version=2))
    ]
    assert pa.Table.from_batches(batches)["i"].to_pylist() == list(range(LARGE + SMALL * SMALL_FRAGMENTS))
    assert sum(rows(plan)) == plan.rows == plan.all_rows


def test_a_filter_leaves_out_what_zones_rule_out(mixed: Path) -> None:
    plan = planned(mixed, filter=f"i >= {LARGE + SMALL} AND i < {LARGE + 3 * SMALL}")
    assert str(plan) == "1 task for 10,000 of 140,000 rows in 2 of 9 fragments"
    assert planned(mixed, filter="i < 0").partitions == []


@pytest.mark.parametrize("shares", [1, 2, 3, 4, 50])
def test_shares_hold_every_row_once_and_in_order(mixed: Path, shares: int) -> None:
    dataset = lance_sql.open(mixed)
    splits = [share_of_rows(dataset.snapshot, share, shares) for share in range(shares)]
    read = [dataset.scan(columns=["i"], splits=part).to_table()["i"].to_pylist() for part in splits]
    assert [i for part in read for i in part] == list(range(LARGE + SMALL * SMALL_FRAGMENTS))
    if shares < 5:
        assert max(map(len, read)) - min(map(len, read)) <= 8192


def test_few_rows_are_one_task_and_none_is_none(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    lance_sql.write(pa.table({"i": range(1000)}), path, max_rows_per_file=10)
    assert len(planned(path).partitions) == 1
    lance_sql.write(pa.table({"i": pa.array([], pa.int64())}), path, mode="overwrite")
    assert planned(path).partitions == []
