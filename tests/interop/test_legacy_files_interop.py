"""Datasets of the first file version: refused where rows are read, not answered with nulls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_engine.errors import UnsupportedFeatureError

import lance_sql


@pytest.fixture
def path(tmp_path: Path) -> str:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"id": range(10), "s": ["x"] * 10}), uri, data_storage_version="legacy")
    return uri


@pytest.mark.parametrize(
    "use",
    [
        lambda dataset: dataset.scan().to_table(),
        lambda dataset: dataset.count_rows("id = 1"),
        lambda dataset: dataset.take([0]),
        lambda dataset: dataset.delete("id < 5"),
        lambda dataset: dataset.update({"id": "1"}),
        lambda dataset: dataset.add_columns({"n": "id"}),
        lambda dataset: dataset.compact(deleted_share=-1),
    ],
)
def test_reading_rows_is_refused(path: str, use: Callable[[lance_sql.Dataset], object]) -> None:
    dataset = lance_sql.open(path)
    with pytest.raises(UnsupportedFeatureError, match=r"version 0\.1"):
        use(dataset)
    assert lance_sql.open(path).version == 1


def test_what_reads_no_rows_works(path: str) -> None:
    dataset = lance_sql.open(path)
    assert dataset.count_rows() == 10
    dataset.rename_column("s", "t").delete(row_ids=[3]).update_config({"a": "b"}).tags.create("x")
    assert lance.dataset(path).to_table()["id"].to_pylist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]
