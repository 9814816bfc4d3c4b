"""Extension types keep their storage and their name, written by either side and read by the other."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import lance
import lance.arrow
import pyarrow as pa
import pytest

import lance_sql

TENSORS = pa.fixed_shape_tensor(pa.float32(), [2, 2])
ARRAYS = {
    "uuid": pa.array([uuid.UUID(int=5).bytes, None], pa.uuid()),
    "bool8": pa.array([1, None], pa.bool8()),
    "tensor": pa.ExtensionArray.from_storage(TENSORS, pa.array([[1, 2, 3, 4], None], TENSORS.storage_type)),
    "bfloat16": lance.arrow.bfloat16_array([1.5, None]),
    "bfloat16 vectors": pa.FixedSizeListArray.from_arrays(
        lance.arrow.bfloat16_array([7.0, 7.0, 1.0, 2.0, 3.0, 4.0]), 2
    ).slice(1),
}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("writer", [lance.write_dataset, lance_sql.write])
def test_both_directions(tmp_path: Path, version: str, writer: Any) -> None:
    uri = str(tmp_path / "t.lance")
    table = pa.table(ARRAYS)
    writer(table, uri, data_storage_version=version)
    for read in (lance.dataset(uri).to_table(), lance_sql.open(uri).scan().to_table()):
        assert read.schema.types == table.schema.types
        assert read.to_pylist() == table.to_pylist()
    lance_sql.write(table, uri, mode="append")
    assert lance.dataset(uri).to_table().to_pylist() == table.to_pylist() * 2
