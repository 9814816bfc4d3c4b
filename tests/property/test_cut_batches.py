"""Batches that are cut for an engine's cache hold the same rows in the same order."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

import lance_sql
from lance_sql.engines.partitions import partitions, within_cache
from lance_sql.engines.table import EngineTable


def rows(count: int, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    null = random.random(count) < 0.1
    numbers = random.integers(0, 1000, count)
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(int(n)) for n in numbers]
    return pa.table(
        {
            "id": np.arange(count),
            "flag": pa.array(numbers % 2 == 0, mask=null),
            "text": pa.array([f"text {n}" * (n % 5) for n in numbers], mask=null),
            "view": pa.array([f"a longer text {n}" for n in numbers], pa.string_view()),
            "code": pa.array([f"code {n % 3}" for n in numbers], mask=null).dictionary_encode(),
            "price": pa.array(numbers, mask=null).cast(pa.decimal128(22, 2)),
            "day": pa.array(days, mask=null),
            "nothing": pa.nulls(count),
        }
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_same_rows(seed):
    table = rows(30_000, seed)
    random = np.random.default_rng(seed)
    names = [name for name in table.column_names if random.random() < 0.6] or ["text"]
    table = table.select(names)
    whole = [
        *table.to_batches(max_chunksize=int(random.integers(1, 30_001))),
        table.to_batches()[0].slice(7, 3),
    ]
    cut = list(within_cache(whole))
    assert pa.Table.from_batches(cut) == pa.Table.from_batches(whole)


def test_what_stays_whole():
    empty = pa.RecordBatch.from_arrays([pa.array([], pa.int64())], ["a"])
    nested = pa.record_batch({"st": [{"a": "x" * 100}] * 20_000})
    without_columns = pa.record_batch({"a": range(100_000)}).select([])
    for batch in (empty, nested, without_columns):
        assert [found is batch for found in within_cache([batch])] == [True]


def test_datafusion_computes_the_same(tmp_path):
    table = rows(100_000, 9).drop_columns(["view", "nothing"])
    lance_sql.write(table, tmp_path / "t.lance")
    with lance_sql.connect(tmp_path, engine="datafusion") as connection:
        for batches in (
            "SELECT * FROM t ORDER BY id",
            "SELECT * FROM t WHERE id % 3 = 1 AND text > 'text 2' ORDER BY id",
        ):
            found = connection.sql(batches).arrow()
            wanted = table.cast(table.schema.set(3, pa.field("code", pa.string())))
            wanted = (
                wanted
                if "WHERE" not in batches
                else wanted.filter(
                    [
                        n % 3 == 1 and t is not None and t > "text 2"
                        for n, t in zip(*(table[c].to_pylist() for c in ("id", "text")), strict=True)
                    ]
                )
            )
            assert found.cast(wanted.schema).to_pylist() == wanted.to_pylist()


def test_partitions_give_small_batches(tmp_path):
    table = rows(100_000, 5).select(["id", "text", "price", "flag"])
    lance_sql.write(table, tmp_path / "t.lance")
    (part,) = partitions(EngineTable(lance_sql.open(tmp_path / "t.lance")), 1)
    batches = list(part.scanner().to_batches())
    assert pa.Table.from_batches(batches).to_pylist() == table.to_pylist()
    assert max(batch.num_rows for batch in batches) <= 16_384
