"""A damaged file among many, and the rows before it; datasets that are released."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CorruptFileError
from lance_engine.write.dataset import write_dataset

ROWS = 50
DAMAGED = 23


def test_rows_before_a_damaged_file_are_read(tmp_path: Path) -> None:
    uri = tmp_path / "damaged.lance"
    table = pa.table({"at": range(40 * ROWS)})
    snapshot = write_dataset(table, str(uri), max_rows_per_file=ROWS)
    (uri / "data" / snapshot.fragments[DAMAGED].files[0].path).unlink()
    dataset = DatasetVersion.open(str(uri))
    before = dataset.scan(limit=DAMAGED * ROWS).to_table()
    assert before["at"].to_pylist() == list(range(DAMAGED * ROWS))
    with pytest.raises(CorruptFileError) as caught:
        dataset.scan().to_table()
    assert caught.value.place["fragment"] == DAMAGED


def test_a_lookup_leaves_nothing_to_the_collector(tmp_path: Path) -> None:
    uri = str(tmp_path / "looked-up.lance")
    write_dataset(pa.table({"at": range(ROWS)}), uri)
    dataset = DatasetVersion.open(uri)
    gone = weakref.ref(dataset)
    gc.collect()
    gc.disable()
    try:
        assert dataset.take([7])["at"].to_pylist() == [7]
        del dataset
        assert gone() is None
    finally:
        gc.enable()
