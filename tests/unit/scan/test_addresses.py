"""The addresses of the rows that pass a filter, without the rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.write.dataset import write_dataset


def test_addresses_are_those_of_the_rows_that_pass(tmp_path: Path) -> None:
    write_dataset(pa.table({"id": range(5000), "s": ["x"] * 5000}), tmp_path / "t", max_rows_per_file=2000)
    dataset = DatasetVersion.open(tmp_path / "t").delete("id % 1000 = 7")
    for filter in ("id % 10 = 7", "id >= 1990 AND id < 4100", "id = 7", "s = 'x'", None):
        scanner = dataset.scan(columns=[], filter=filter)
        found = np.concatenate([*scanner.addresses(), np.empty(0, np.uint64)])
        expected = dataset.scan(columns=["_rowaddr"], filter=filter).to_table()["_rowaddr"].to_numpy()
        assert np.array_equal(found, expected), filter
        metrics = scanner.metrics
        assert metrics is not None
        assert metrics.rows_out == len(expected)
    with pytest.raises(ValueError, match="limit"):
        next(dataset.scan(limit=3).addresses())
