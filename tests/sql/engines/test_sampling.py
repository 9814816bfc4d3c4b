"""What training loops read: shards are disjoint and complete, seed and epoch decide the order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_sql
from lance_sql.sampling import arrays, batches_of_shard, blocks_of_shard

ROWS = 5_000


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance_sql.Dataset:
    table = pa.table(
        {
            "id": range(ROWS),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(ROWS * 4, dtype="float32")), 4),
            "name": [f"n{number}" for number in range(ROWS)],
            "flag": [number % 2 == 0 for number in range(ROWS)],
            "holes": [None if number % 10 == 0 else number for number in range(ROWS)],
        }
    )
    uri = str(tmp_path_factory.mktemp("sampling") / "x.lance")
    return lance_sql.write(table, uri, max_rows_per_file=1_700).delete("id % 100 = 3")


def ids(dataset: lance_sql.Dataset, **options: Any) -> list[list[int]]:
    given = {
        "batch_size": 64,
        "block_rows": 100,
        "mixed_blocks": 3,
        "shard": 0,
        "shards": 1,
        "shuffle": True,
        "seed": 7,
        "epoch": 0,
    }
    batches = batches_of_shard(dataset, ["id"], options.pop("filter", None), **{**given, **options})
    return [np.asarray(batch["id"]).tolist() for batch in batches]


def flat(batches: list[list[int]]) -> list[int]:
    return [number for batch in batches for number in batch]


LIVE = [number for number in range(ROWS) if number % 100 != 3]


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("shards", [1, 2, 6, 100])
def test_shards_are_disjoint_and_complete(dataset: lance_sql.Dataset, shards: int, shuffle: bool) -> None:
    parts = [flat(ids(dataset, shard=shard, shards=shards, shuffle=shuffle)) for shard in range(shards)]
    assert sorted(flat(parts)) == LIVE


def test_without_shuffling_rows_come_in_order_and_batches_are_full(dataset: lance_sql.Dataset) -> None:
    batches = ids(dataset, shuffle=False)
    assert flat(batches) == LIVE
    assert {len(batch) for batch in batches[:-1]} == {64}


def test_rows_stay_together_when_shuffled_and_batches_are_full(dataset: lance_sql.Dataset) -> None:
    options = {"block_rows": 100, "mixed_blocks": 3, "shard": 0, "shards": 1, "seed": 7, "epoch": 0}
    columns = ["id", "vector", "name"]
    found = list(batches_of_shard(dataset, columns, None, batch_size=64, shuffle=True, **options))
    assert {len(batch["id"]) for batch in found[:-1]} == {64}
    for batch in found:
        numbers = np.asarray(batch["id"])
        assert batch["name"] == [f"n{number}" for number in numbers]
        np.testing.assert_array_equal(batch["vector"], numbers[:, None] * 4 + np.arange(4))
        assert all(values.flags.writeable for values in batch.values() if isinstance(values, np.ndarray))


def test_batches_stay_as_they_were_while_others_are_read(dataset: lance_sql.Dataset) -> None:
    options = {"block_rows": 100, "mixed_blocks": 3, "shard": 0, "shards": 1, "seed": 7, "epoch": 0}
    held, copies = [], []
    for batch in batches_of_shard(dataset, ["id", "vector"], None, batch_size=70, shuffle=True, **options):
        held.append(batch)
        copies.append({name: np.array(values) for name, values in batch.items()})
    for batch, copied in zip(held, copies, strict=True):
        for name, values in copied.items():
            np.testing.assert_array_equal(batch[name], values)
    held[0]["id"][:] = -1
    assert [batch["id"].tolist() for batch in held[1:]] == [batch["id"].tolist() for batch in copies[1:]]


def test_seed_and_epoch_decide_the_order(dataset: lance_sql.Dataset) -> None:
    first = ids(dataset)
    assert first == ids(dataset)
    assert flat(first) != LIVE
    assert first != ids(dataset, epoch=1)
    assert first != ids(dataset, seed=8)


def test_shards_agree_on_the_blocks_of_an_epoch() -> None:
    parts = [blocks_of_shard(50, shard, 4, shuffle=True, seed=1, epoch=2) for shard in range(4)]
    assert sorted(np.concatenate(parts)) == list(range(50))
    assert not np.array_equal(parts[0], np.arange(0, 50, 4))


def test_a_filter_leaves_rows_out(dataset: lance_sql.Dataset) -> None:
    assert sorted(flat(ids(dataset, filter="id < 500"))) == [number for number in LIVE if number < 500]


def test_columns_become_arrays_that_can_be_written_to(dataset: lance_sql.Dataset) -> None:
    found = arrays(dataset.scan(["id", "vector", "name", "flag"], limit=3).to_table())
    assert found["name"] == ["n0", "n1", "n2"]
    np.testing.assert_array_equal(found["vector"], np.arange(12, dtype="float32").reshape(3, 4))
    np.testing.assert_array_equal(found["flag"], [True, False, True])
    assert all(values.flags.writeable for values in found.values() if isinstance(values, np.ndarray))


def test_nulls_are_an_error_that_names_the_column(dataset: lance_sql.Dataset) -> None:
    table = dataset.scan(["holes"]).to_table()
    with pytest.raises(lance_sql.LanceError, match=r"cannot hold nulls.*holes.*IS NOT NULL"):
        arrays(table)
    assert len(arrays(table.slice(1, 5))["holes"]) == 5


def test_no_rows_are_empty_arrays(dataset: lance_sql.Dataset) -> None:
    found = arrays(dataset.scan(["id", "vector"], limit=0).to_table())
    assert np.shape(found["id"]) == (0,)
    assert np.shape(found["vector"]) == (0, 4)
