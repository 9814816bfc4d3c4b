"""Rows that a filter leaves of a selection: found among its ranges, without numbering all its rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.scan import selection as module
from lance_engine.scan.selection import Selection, offsets_of
from lance_engine.write.dataset import write_dataset


def _ranges(made: np.random.Generator, rows: int) -> np.ndarray:
    return np.sort(made.choice(3 * rows + 10, 8, replace=False)).reshape(-1, 2).astype(np.int64)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("share", [0.0, 0.002, 0.02, 0.3, 1.0])
@pytest.mark.parametrize("rows", [1, 63, 64, 65, 4_097])
@pytest.mark.parametrize("cut", [0, 1, 8])
def test_rows_of_masks(rows: int, share: float, cut: int) -> None:
    made = np.random.default_rng(7)
    for ranges in ([[5, 5 + rows]], _ranges(made, rows)):
        ranges = np.array(ranges, np.int64)
        every = np.concatenate([np.arange(*found) for found in ranges])
        assert offsets_of(ranges).tolist() == every.tolist()
        passing = made.random(len(every)) < share
        passing[made.integers(len(every))] = True
        # What surrounds the mask in its buffer must not count.
        mask = pa.array([True] * cut + passing.tolist() + [True] * 9).slice(cut, len(every))
        wanted = every[passing].tolist()
        assert Selection.of_ranges(ranges).where(mask).offsets.tolist() == wanted
        assert Selection.of_offsets(every.astype(np.uint32)).where(mask).offsets.tolist() == wanted


def test_a_value_is_found_without_numbering_the_rows_of_other_zones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbered: list[int] = []

    def counting(ranges: np.ndarray) -> np.ndarray:
        numbered.append(int((ranges[:, 1] - ranges[:, 0]).sum()))
        return offsets_of(ranges)

    # The second of three runs of rows cannot have the value, which leaves two ranges.
    values = [*range(0, 120_000, 2), *range(500_000, 560_000), *range(1, 120_001, 2)]
    dataset = DatasetVersion(write_dataset(pa.table({"value": values}), str(tmp_path / "t.lance")))
    monkeypatch.setattr(module, "offsets_of", counting)
    scanner = dataset.scan(["value", "_rowid"], "value IN (10, 11)")
    assert scanner.to_table().to_pylist() == [{"value": 10, "_rowid": 5}, {"value": 11, "_rowid": 120_005}]
    assert scanner.metrics.zones_read < scanner.metrics.zones
    assert sum(numbered) < 1_000
