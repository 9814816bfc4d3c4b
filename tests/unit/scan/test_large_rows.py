"""Rows that are too large for a batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance_engine import kernels
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.scan.projection import Projection
from lance_engine.write.dataset import write_dataset


@pytest.fixture(params=[100, 4], ids=["one fragment", "small fragments"])
def dataset(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> DatasetVersion:
    """A dataset whose row 7 counts as larger than any batch."""
    write_dataset(pa.table({"a": range(20), "t": ["x"] * 20}), str(tmp_path), max_rows_per_file=request.param)
    read, read_rows = Projection.read, Projection.read_rows

    def checked(batch: pa.RecordBatch) -> pa.RecordBatch:
        if "a" in batch.schema.names and 7 in batch.column("a").to_pylist():
            raise kernels.BatchTooLargeError("too many bytes")
        return batch

    monkeypatch.setattr(Projection, "read", lambda self, rows: checked(read(self, rows)))
    monkeypatch.setattr(Projection, "read_rows", lambda self, rows: checked(read_rows(self, rows)))
    return DatasetVersion.open(str(tmp_path))


def test_the_error_of_a_single_row_says_where_it_is(dataset: DatasetVersion) -> None:
    with pytest.raises(
        UnsupportedFeatureError, match="A row is too large for a batch: too many bytes"
    ) as found:
        dataset.scan(filter="a + 0 < 15").to_table()
    assert found.value.place["path"] == dataset.uri
    assert {"version", "fragment"} <= set(found.value.place)
    ids = dataset.scan(columns=["_rowid", "t"]).to_table()["_rowid"].to_numpy()
    with pytest.raises(UnsupportedFeatureError, match="too large"):
        dataset.take(ids)
    assert dataset.take(np.delete(ids, 7)).num_rows == 19
