"""Pages that the file stores in Arrow's layout are referenced instead of copied."""

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance_engine import kernels
from lance_engine.dataset import DatasetVersion


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_vectors_are_not_copied(tmp_path: Path, version: str) -> None:
    items = pa.array(np.arange(64 * 5000, dtype=np.float32))
    table = pa.table({"vector": pa.FixedSizeListArray.from_arrays(items, 64)})
    lance.write_dataset(table, tmp_path / "d.lance", data_storage_version=version)
    dataset = DatasetVersion.open(str(tmp_path / "d.lance"))
    before = kernels.cached_bytes()
    scanned = dataset.scan().to_table()
    assert scanned.equals(table)
    mapped = _mapped_ranges(str(tmp_path))
    for chunk in scanned["vector"].chunks:
        address = chunk.values.buffers()[1].address
        assert any(start <= address < end for start, end in mapped)
    del scanned
    assert kernels.cached_bytes() == before


def _mapped_ranges(folder: str) -> list[tuple[int, int]]:
    ranges = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        if folder in line:
            start, end = line.split()[0].split("-")
            ranges.append((int(start, 16), int(end, 16)))
    return ranges
