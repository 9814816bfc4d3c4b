"""A change is not committed to another dataset that was created at the same path meanwhile."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import IncompatibleChangeError

import lance_sql

OLD = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})
NEW = pa.table({"id": [7, 8], "v": ["g", "h"]})


def written(path: Path, rows: pa.Table, *, transaction_files: bool) -> DatasetVersion:
    shutil.rmtree(path, ignore_errors=True)
    dataset = lance_sql.write(rows, path)
    if not transaction_files:
        shutil.rmtree(path / "_transactions")
    return dataset


@pytest.mark.parametrize("transaction_files", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        lambda dataset: dataset.drop_columns(["v"]),
        lambda dataset: dataset.rename_column("v", "w"),
        lambda dataset: dataset.update_config({"x": "1"}),
    ],
    ids=["drop", "rename", "config"],
)
def test_changes_of_the_old_dataset_leave_the_new_one(
    tmp_path: Path, change: Callable[[DatasetVersion], DatasetVersion], transaction_files: bool
) -> None:
    path = tmp_path / "t.lance"
    old = written(path, OLD, transaction_files=transaction_files)
    written(path, NEW, transaction_files=transaction_files)
    with pytest.raises(IncompatibleChangeError, match="replaced the dataset"):
        change(old)
    assert lance_sql.open(path).version == 1
    assert lance_sql.open(path).to_table() == NEW


def test_a_dataset_without_transaction_files_is_the_same_one(tmp_path: Path) -> None:
    dataset = written(tmp_path / "t.lance", OLD, transaction_files=False)
    dataset = dataset.delete("id = 1")
    shutil.rmtree(tmp_path / "t.lance" / "_transactions")
    assert dataset.drop_columns(["v"]).to_table().to_pydict() == {"id": [2, 3]}
