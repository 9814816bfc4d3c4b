"""Pages of one value and of nothing but levels, as version 2.2 stores them."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from corpus import difference
from lance_engine.dataset import DatasetVersion
from lance_engine.write.dataset import write_dataset

VALUES = [
    pa.scalar(True),
    pa.scalar(False),
    pa.scalar(42, pa.int32()),
    pa.scalar(-0.0),
    pa.scalar(float("inf"), pa.float32()),
    pa.scalar(12345, pa.decimal128(30, 2)),
    pa.scalar(77, pa.decimal256(60, 1)),
    pa.scalar("hi"),
    pa.scalar(""),
    pa.scalar("x" * 5000, pa.large_string()),
    pa.scalar(b"\0\1", pa.binary()),
    pa.scalar(b"w" * 40, pa.binary(40)),
    pa.scalar(0, pa.timestamp("us")),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: str(value.type))
def test_constants(value: pa.Scalar, tmp_path: Path) -> None:
    plain = pa.array([value.as_py()] * 3000, value.type)
    valid = pa.array([number % 5 > 0 for number in range(3000)])
    nulls = pa.array([value.as_py() if flag.as_py() else None for flag in valid], value.type)
    offsets = pa.array(np.sort(np.random.default_rng(1).integers(0, 3001, 999)).astype(np.int32))
    table = pa.table(
        {
            "plain": plain.slice(0, 998),
            "nulls": nulls.slice(1, 998),
            "struct": pa.StructArray.from_arrays(
                [nulls], ["x"], mask=pa.array([n % 7 == 0 for n in range(3000)])
            )[:998],
            "list": pa.ListArray.from_arrays(offsets, nulls),
        }
    )
    write_dataset(table, tmp_path / "d", data_storage_version="2.2", zone_maps=False)
    dataset, rows = lance.dataset(tmp_path / "d"), [997, 0, 3, 500]
    for read in (dataset.to_table(), DatasetVersion.open(str(tmp_path / "d")).scan().to_table()):
        assert not difference(read, table)
    assert not difference(dataset.take(rows), table.take(pa.array(rows)))
    size = sum(file.stat().st_size for file in (tmp_path / "d" / "data").iterdir())
    assert size < 40_000


def test_zeros_of_both_signs_are_no_constant(tmp_path: Path) -> None:
    array = pa.array([0.0, -0.0] * 100)
    write_dataset(pa.table({"x": array}), tmp_path / "d", data_storage_version="2.2")
    read = lance.dataset(tmp_path / "d").to_table().column("x").to_numpy()
    assert np.signbit(read).tolist() == [False, True] * 100


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_many_empty_lists(version: str, tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([[], None, []] * 5000, pa.list_(pa.int32()))})
    write_dataset(table, tmp_path / "d", data_storage_version=version)
    assert not difference(lance.dataset(tmp_path / "d").to_table(), table)
    assert not difference(DatasetVersion.open(str(tmp_path / "d")).scan().to_table(), table)
    (file,) = (tmp_path / "d" / "data").iterdir()
    assert (file.stat().st_size > 60_000) == (version == "2.1")
