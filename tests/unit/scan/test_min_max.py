"""The min and max of columns: exact, and only from zone maps if these are exact."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion, known_extremes
from lance_engine.errors import ColumnNotFoundError, UnsupportedTypeError
from lance_engine.scan.scanner import Scanner
from lance_engine.write.dataset import write_dataset

VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int16(), [-(2**15), -3, 0, 7, 2**15 - 1]),
    "u": (pa.uint64(), [0, 5, 2**64 - 1]),
    "f": (pa.float64(), [math.nan, -math.inf, -1.5, 0.0, 2.5, math.inf]),
    "h": (pa.float16(), [math.nan, -1.5, 0.0, 2.5]),
    "t": (pa.string(), ["", "a", "b" * 40, "b" * 39 + "a", "zz"]),
    "b": (pa.binary(), [b"", b"\xff" * 50, b"a"]),
    "flag": (pa.bool_(), [False, True]),
}


def _expected(values: list[Any]) -> tuple[Any, Any]:
    held = sorted(
        (value for value in values if value is not None), key=lambda v: (v != v, 0 if v != v else v)
    )
    return (held[0], held[-1]) if held else (None, None)


@pytest.mark.parametrize("seed", range(25))
def test_against_all_rows(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)

    def table(rows: int) -> pa.Table:
        arrays = {"n": pa.array(range(rows))}
        for name, (kind, values) in VALUES.items():
            some, nulls = rng.sample(values, rng.randint(1, len(values))), rng.choice([0, 0.3, 1])
            arrays[name] = pa.array(
                [None if rng.random() < nulls else rng.choice(some) for _ in range(rows)], kind
            )
        return pa.table(arrays)

    uri = str(tmp_path)
    write_dataset(table(50), uri, max_rows_per_file=20, zone_rows=4)
    write_dataset(table(9), uri, "append", zone_maps=rng.random() < 0.5)
    dataset = DatasetVersion.open(uri).delete(f"n % {rng.choice([3, 20, 100])} = 1")
    for name in VALUES:
        found = dataset.min_max(name)
        expected = _expected(dataset.scan([name]).to_table()[name].to_pylist())
        assert [str(bound.as_py()) for bound in found] == [str(bound) for bound in expected], name
        known = known_extremes(dataset, name)
        if known is not None:
            assert str(known.extremes) == str(found), name
            nulls = dataset.scan([name]).to_table()[name].null_count
            assert known.nulls in (None, nulls), name


def test_zone_maps_alone_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"x": range(100_000), "t": [f"t{row:06}" for row in range(100_000)]})
    dataset = DatasetVersion(write_dataset(table, str(tmp_path))).delete("x = 50000")
    monkeypatch.setattr("lance_engine.scan.scanner.Scanner.to_batches", None)
    assert [bound.as_py() for bound in dataset.min_max("x")] == [0, 99_999]
    assert [bound.as_py() for bound in dataset.min_max("t")] == ["t000000", "t099999"]


def test_errors(tmp_path: Path) -> None:
    dataset = DatasetVersion(write_dataset(pa.table({"s": pa.array([[1]])}), str(tmp_path)))
    with pytest.raises(UnsupportedTypeError, match="cannot be ordered"):
        dataset.min_max("s")
    with pytest.raises(ColumnNotFoundError):
        dataset.min_max("x")


def test_rows_are_read_once(tmp_path: Path) -> None:
    write_dataset(pa.table({"x": range(1000)}), str(tmp_path), zone_maps=False)
    dataset = DatasetVersion.open(str(tmp_path))
    scans = []
    with pytest.MonkeyPatch.context() as patch:
        to_batches = Scanner.to_batches
        patch.setattr(Scanner, "to_batches", lambda scan: scans.append(scan) or to_batches(scan))
        for _ in range(2):
            assert [bound.as_py() for bound in dataset.min_max("x")] == [0, 999]
        assert len(scans) == 1
        # Another version has values of its own.
        other = dataset.delete("x = 999")
        assert [bound.as_py() for bound in other.min_max("x")] == [0, 998]
        assert [bound.as_py() for bound in dataset.min_max("x")] == [0, 999]
