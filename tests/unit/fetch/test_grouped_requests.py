"""Requests are made together where the store can do that, within the limit of requests in flight."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from lance_engine.fetch import Fetcher, fetcher
from lance_engine.io.memory import MemoryStore
from lance_engine.metrics import ScanMetrics, counting

DATA = bytes(range(256)) * 4096


class GroupingStore(MemoryStore):
    """Notes the ranges asked for together, and how many were under way at most."""

    ranges_at_once = 8

    def __init__(self) -> None:
        super().__init__("grouping")
        self.put("file", DATA)
        self.groups: list[int] = []
        self.under_way = self.most_under_way = 0
        self.max_in_flight = 32
        self._counting = threading.Lock()

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        with self._counting:
            self.groups.append(len(ranges))
            self.under_way += len(ranges)
            self.most_under_way = max(self.most_under_way, self.under_way)
        found = super().read_ranges(path, ranges)
        with self._counting:
            self.under_way -= len(ranges)
        return found


def test_many_ranges_are_asked_for_in_groups() -> None:
    store = GroupingStore()
    ranges = [(n * 1000, 100 + n) for n in range(203)]
    metrics = ScanMetrics()
    with counting(metrics):
        found = Fetcher(store).read("file", ranges)
    assert [bytes(data) for data in found] == [DATA[begin : begin + length] for begin, length in ranges]
    # The last three are a group of their own.
    assert sorted(store.groups) == [3] + 25 * [8]
    assert metrics.requests == 203
    assert store.most_under_way <= store.max_in_flight


def test_few_ranges_are_asked_for_in_one_call_and_long_ones_alone() -> None:
    store = GroupingStore()
    few = [(n * 1000, 100) for n in range(8)]
    assert Fetcher(store).read("file", few) == [DATA[begin : begin + 100] for begin, _ in few]
    assert store.groups == [8]
    store.groups.clear()
    Fetcher(store).read("file", [(0, 100)])
    assert not store.groups


def test_what_has_to_be_read_again_after_a_failure_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """If one range of a group fails, all are read again."""
    monkeypatch.setattr(fetcher, "_GROUP_BYTES", 200 << 10)
    store = GroupingStore()
    ranges = [(n * 70_000, 65 << 10) for n in range(12)]
    found = Fetcher(store).read("file", ranges)
    assert found == [DATA[begin : begin + length] for begin, length in ranges]
    assert sorted(store.groups) == 4 * [3]


def test_no_more_than_twice_the_bytes_are_read_to_save_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher, "_models", {})
    reader = Fetcher(GroupingStore())
    reader.model.latency = 10.0  # whatever requests cost
    scattered = [(n * (200 << 10), 1000) for n in range(400)]
    assert reader.joined(scattered) == scattered
    dense = [(n * (70 << 10), 60 << 10) for n in range(400)]
    assert len(reader.joined(dense)) < len(dense)
