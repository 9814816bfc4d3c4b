"""Which encoding is chosen for data for which one is clearly the cheapest."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.write.dataset import write_dataset

ROWS = 40_000
RNG = np.random.default_rng(1)


def few(values: list[object], kind: pa.DataType) -> pa.Array:
    """`ROWS` values, at random out of a few."""
    return pa.array(values, kind).take(pa.array(RNG.integers(0, len(values), ROWS)))


LONG = [RNG.bytes(2500).hex() for _ in range(4)]
DATA = {
    "short strings": (few(["a" * 6, "b" * 6, "c" * 6], pa.string()), "dictionary[3]"),
    "strings of 300 bytes": (few([text[:300] for text in LONG], pa.string()), "dictionary[4]"),
    "strings of 5000 bytes": (few(LONG, pa.large_string()).slice(0, 1000), "dictionary[4]"),
    "binary": (few([b"\xff" * 40, b"\x00" * 40], pa.binary()), "dictionary[2]"),
    "decimals": (
        few([Decimal(int(x)) * 10**15 for x in RNG.integers(0, 2**60, 30)], pa.decimal128(38, 0)),
        "dictionary[30]",
    ),
    "64-bit integers": (few(RNG.integers(0, 2**62, 20).tolist(), pa.int64()), "dictionary[20]"),
    "32-bit integers": (few(RNG.integers(0, 2**31, 20).tolist(), pa.int32()), "dictionary[20]"),
    "floats": (few(RNG.normal(size=8).tolist(), pa.float64()), "dictionary[8]"),
    "runs": (pa.array(np.repeat(RNG.integers(0, 2**40, ROWS // 100), 100)), "rle(flat64)"),
    "small integers": (pa.array(RNG.integers(0, 100, ROWS)), "bitpacked64"),
    "random integers": (pa.array(RNG.integers(-(2**63), 2**63 - 1, ROWS)), "flat64"),
    "text": (pa.array([f"customer number {row} of {row % 17}" for row in range(ROWS)]), "fsst(variable)"),
}


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_the_cheapest_encoding(tmp_path: Path, version: str) -> None:
    for name, (array, expected) in DATA.items():
        uri = str(tmp_path / name)
        write_dataset(pa.table({"c": array}), uri, data_storage_version=version)
        dataset = DatasetVersion.open(uri)
        assert all(expected in text for text in dataset.inspect.pages()["encoding"].to_pylist()), name
        assert dataset.scan().to_table()["c"].equals(pa.chunked_array([array])), name
