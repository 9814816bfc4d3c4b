"""Rows before an offset are not read: where they end is known from the manifest."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

import lance_sql

ROWS = 600


@pytest.fixture(params=[[], ["id % 7 = 3"], ["id < 130", "id % 7 = 3"]], ids=["whole", "deleted", "gaps"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> lance_sql.Dataset:
    table = pa.table({"id": range(ROWS), "s": [f"row {number}" for number in range(ROWS)]})
    found = lance_sql.write(table, str(tmp_path / "t.lance"), max_rows_per_file=50)
    for where in request.param:
        found = found.delete(where)
    return found


def test_any_offset_and_limit(dataset: lance_sql.Dataset) -> None:
    expected = dataset.scan().to_table().to_pylist()
    chance = random.Random(1)
    for _ in range(60):
        offset = chance.choice([0, 49, 50, 51, 100, len(expected), chance.randrange(ROWS + 20)])
        limit = chance.choice([None, 0, 1, 49, 50, 51, chance.randrange(ROWS)])
        stop = None if limit is None else offset + limit
        scan = dataset.scan(offset=offset, limit=limit, batch_size=chance.choice([None, 7]))
        assert scan.to_table().to_pylist() == expected[offset:stop], (offset, limit)
        assert scan.count() == len(expected[offset:stop]), (offset, limit)


def test_offsets_count_rows_that_pass(dataset: lance_sql.Dataset) -> None:
    where = "id % 3 = 1"
    expected = dataset.scan(["id"], where).to_table()
    assert dataset.scan(["id"], where, offset=80, limit=9).to_table().equals(expected.slice(80, 9))
    splits = dataset.splits(20)[3:6]
    some = dataset.scan(["id"], splits=splits).to_table()
    assert dataset.scan(["id"], splits=splits, offset=20, limit=30).to_table().equals(some.slice(20, 30))


def test_only_the_rows_from_the_offset_on_are_read(dataset: lance_sql.Dataset) -> None:
    scan = dataset.scan(["id"], offset=dataset.count_rows() - 15, limit=10)
    assert scan.to_table().num_rows == 10
    assert scan.metrics is not None
    assert scan.metrics.fragments_read == 1
    assert scan.metrics.rows_decoded <= 50


def test_rows_within_a_large_fragment(tmp_path: Path) -> None:
    found = lance_sql.write(pa.table({"id": range(100_000)}), str(tmp_path / "t.lance"))
    scan = found.scan(["id"], offset=70_001, limit=3, batch_size=100)
    assert scan.to_table()["id"].to_pylist() == [70_001, 70_002, 70_003]
    assert scan.metrics is not None
    assert scan.metrics.rows <= 100_000 - 8 * 8192
    assert found.scan(["id"], offset=99_999).to_table()["id"].to_pylist() == [99_999]
