"""Plans of single conditions joined: the rows of the conjunction, without looking anything up again."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.expr.build import conjunction
from lance_engine.expr.from_sql import parse_sql
from lance_engine.index import search
from lance_engine.scan.plan import FilterPlan
from lance_engine.write.dataset import write_dataset

ROWS = 30_000
CONDITIONS = [
    "n >= 14000",
    "n < 14200",
    "key = 7",
    "key IN (7, 8)",
    "kind = 'b'",
    "word LIKE '%3%'",
    "_rowid >= 13000",
    "_rowid < 14150",
    "n IS NULL",
]


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable ids"])
def dataset(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> DatasetVersion:
    """Three fragments; the index on `n` does not cover the last one, rows of the first are deleted."""
    path = str(tmp_path_factory.mktemp("joined") / "x.lance")
    table = pa.table(
        {
            "n": [None if row % 1000 == 999 else row for row in range(ROWS)],
            "key": [row % 97 for row in range(ROWS)],
            "kind": ["abc"[row // 64 % 3] for row in range(ROWS)],
            "word": [str(row * 7 % 1009) for row in range(ROWS)],
        }
    )
    options = {"max_rows_per_file": 10_000, "zone_rows": 512, "stable_row_ids": request.param}
    written = DatasetVersion(write_dataset(table.slice(0, 20_000), path, **options))
    written = written.create_index("n").create_index("key", "bitmap").create_index("kind", "zonemap")
    written = written.delete("n < 100 OR n = 14100")
    write_dataset(table.slice(20_000), path, "append", max_rows_per_file=10_000, zone_rows=512)
    return DatasetVersion.open(path).create_index("key", "bitmap", replace=True)


@pytest.mark.parametrize(("count", "step"), [(2, 1), (3, 5)])
def test_the_same_rows_as_the_conjunction(dataset: DatasetVersion, count: int, step: int) -> None:
    schema = dataset.schema.append(pa.field("_rowid", pa.uint64()))
    for conditions in list(itertools.combinations(CONDITIONS, count))[::step]:
        trees = [parse_sql(condition, schema) for condition in conditions]
        parts = [FilterPlan(tree, dataset.snapshot) for tree in trees]
        joined = FilterPlan(conjunction(trees), dataset.snapshot, parts=parts)
        expected = dataset.scan(["_rowid"], conjunction(trees), zone_maps=False, indices=False).to_table()
        assert dataset.scan(["_rowid"], joined).to_table().equals(expected), conditions


def test_nothing_is_sought_again(dataset: DatasetVersion, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = dataset.schema
    trees = [parse_sql(text, schema) for text in ("key = 7", "n = 14233", "word LIKE '%3%'")]
    parts = [FilterPlan(tree, dataset.snapshot) for tree in trees]

    def sought(*arguments: Any) -> None:
        raise AssertionError(f"Sought again: {arguments}")

    monkeypatch.setattr(search, "search", sought)
    joined = FilterPlan(conjunction(trees), dataset.snapshot, parts=parts)
    assert joined.indexed is not None
    assert [use.filter for use in joined.indexed.uses] == ["key = 7", "n = 14233"]


def test_conditions_that_only_together_are_worth_an_index(dataset: DatasetVersion) -> None:
    trees = [parse_sql(text, dataset.schema) for text in ("n >= 9998", "n < 10004")]
    parts = [FilterPlan(tree, dataset.snapshot) for tree in trees]
    assert [part.indexed for part in parts] == [None, None]
    joined = FilterPlan(conjunction(trees), dataset.snapshot, parts=parts)
    assert joined.indexed is not None
    assert dataset.scan(["n"], joined).to_table()["n"].to_pylist() == [9998, 10000, 10001, 10002, 10003]
