"""Requests, bytes, and how many requests are planned together, of each kind of reading a remote dataset.

Nothing here depends on time: what is counted is what is asked for, whether or not it was under way at the
same moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.fetch import Fetcher, PlannedRequest, ReadAhead, TransferModel, fetcher
from lance_engine.write.dataset import write_dataset
from remote_store import RemoteStore

ROWS, FRAGMENTS = 200_000, 50
SIZES = {"id": 8, "price": 8, "amount": 8, "flag": 1}


def rows(count: int) -> pa.Table:
    rng = np.random.default_rng(6)
    return pa.table(
        {
            "id": np.arange(count),
            "price": rng.random(count),
            "amount": rng.integers(0, 1 << 60, count),
            "flag": rng.integers(0, 120, count).astype(np.int8),
        }
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("cases")
    write_dataset(rows(ROWS), str(root / "one"), data_storage_version="2.1")
    write_dataset(
        rows(FRAGMENTS * 200), str(root / "many"), max_rows_per_file=200, data_storage_version="2.1"
    )
    return {name: root / name for name in ("one", "many")}


@dataclass
class Planned:
    """How many requests were planned before anybody waited for one, at most."""

    together: int = 0


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Planned:
    # What requests cost is not measured: it decides what is joined.
    monkeypatch.setattr(fetcher, "_models", {})
    monkeypatch.setattr(TransferModel, "observe", lambda *_: None)
    found = Planned()
    read, add = Fetcher.read, ReadAhead.add
    of_scan: dict[int, int] = {}

    def counted_read(self: Fetcher, path: str, ranges: list[tuple[int, int]], holes: int = 0) -> list[bytes]:
        found.together = max(found.together, len(ranges))
        return read(self, path, ranges, holes)

    def counted_add(self: ReadAhead, turn: int, requests: list[PlannedRequest]) -> None:
        of_scan[id(self)] = of_scan.get(id(self), 0) + len(requests)
        found.together = max(found.together, of_scan[id(self)])
        add(self, turn, requests)

    monkeypatch.setattr(Fetcher, "read", counted_read)
    monkeypatch.setattr(ReadAhead, "add", counted_add)
    return found


def scanned(**options: Any) -> Callable[[DatasetVersion], object]:
    return lambda dataset: dataset.scan(**options).to_table()


def taken(count: int) -> Callable[[DatasetVersion], object]:
    return lambda dataset: dataset.take(np.random.default_rng(count).integers(0, ROWS, count))


def whole(*columns: str, rows: int = ROWS) -> int:
    """The bytes of columns, whose values cannot be compressed much."""
    return rows * sum(SIZES[name] for name in columns)


@dataclass(frozen=True)
class Case:
    """What reading a table does at most, and how many requests it plans together at least."""

    table: str
    run: Callable[[DatasetVersion], object]
    requests: int
    read: int
    together: int = 1


TAIL, OVER = 64 << 10, 1.1
CASES = {
    "count": Case("one", DatasetVersion.count_rows, 0, 0, 0),
    "count of many": Case("many", DatasetVersion.count_rows, 0, 0, 0),
    "limit": Case("one", scanned(limit=10), 1 + 4, TAIL + 4 * (40 << 10), 4),
    "limit of many": Case("many", scanned(limit=10), 2, 2 * TAIL),
    "scan": Case("one", scanned(), 1 + 4, TAIL + int(OVER * whole(*SIZES)), 2),
    "scan of a column": Case("one", scanned(columns=["price"]), 3, TAIL + int(OVER * whole("price"))),
    "scan of many": Case("many", scanned(columns=["price"]), FRAGMENTS, FRAGMENTS * 10_000, FRAGMENTS),
    "filter of many": Case("many", scanned(filter="flag = 3"), FRAGMENTS, FRAGMENTS * 10_000, FRAGMENTS),
    "point": Case("one", scanned(filter="id = 77777"), 10, TAIL + (640 << 10)),
    "range": Case("one", scanned(filter="id >= 50000 AND id < 60000"), 10, TAIL + (1 << 20), 2),
    "take 1": Case("one", taken(1), 1 + 2 * 4, TAIL + (200 << 10), 4),
    "take 10": Case("one", taken(10), 25, TAIL + (1 << 20), 8),
    "take 100": Case("one", taken(100), 10, TAIL + int(OVER * whole(*SIZES))),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_case_asks_for(folders: dict[str, Path], planned: Planned, name: str) -> None:
    case = CASES[name]
    store = RemoteStore.of_folder(folders[case.table])
    dataset = DatasetVersion.open(store)  # type: ignore[arg-type]
    store.reset_counters()
    case.run(dataset)
    assert store.requests <= case.requests
    assert store.bytes_read <= case.read
    assert planned.together >= case.together
    # Of the descriptions nothing is asked for again, whoever opens the dataset.
    first = store.requests
    again = DatasetVersion.open(store)  # type: ignore[arg-type]
    store.reset_counters()
    case.run(again)
    assert store.requests <= max(0, first - 1)
