"""Planned requests: their order, how many are in flight, and how many bytes are held."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from lance_engine.fetch import (
    Fetcher,
    FileBuffers,
    PlannedRequest,
    ReadAhead,
    Span,
    set_requests_in_flight,
)
from lance_engine.metrics import ScanMetrics
from remote_store import RemoteStore

DATA = bytes(range(256)) * 40


@pytest.fixture
def store() -> RemoteStore:
    store = RemoteStore("planned")
    store.put("file", DATA)
    return store


@pytest.fixture
def four_in_flight() -> Iterator[None]:
    set_requests_in_flight(4)
    yield
    set_requests_in_flight(None)


def planned(store: RemoteStore, count: int, length: int = 100) -> list[PlannedRequest]:
    fetcher = Fetcher(store)
    return [
        PlannedRequest(fetcher, "file", Span(length * n, length, 10 * n, 10 * n + 10)) for n in range(count)
    ]


def settled(store: RemoteStore, expected: int) -> int:
    """The number of requests: the expected ones, and those that follow soon after."""
    deadline = time.monotonic() + 30
    while (store.requests < expected or store.in_flight) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    return store.requests


def test_no_more_is_held_than_the_budget(store: RemoteStore) -> None:
    read_ahead = ReadAhead(350, ScanMetrics())
    requests = planned(store, 20)
    read_ahead.add(0, reversed(requests))
    assert settled(store, 3) == 3
    assert [offset for _, offset, _ in sorted(store.ranges)] == [0, 100, 200]
    read_ahead.drop(requests[:2])
    assert settled(store, 5) == 5


def test_what_a_long_scan_reads_after_its_beginning_is_in_memory_that_is_used_again(
    store: RemoteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[int] = []

    def read_buffer(path: str, offset: int, length: int) -> bytes:
        copied.append(offset)
        return DATA[offset : offset + length]

    monkeypatch.setattr(store, "read_buffer", read_buffer, raising=False)
    read_ahead = ReadAhead(1000, ScanMetrics())
    requests = planned(store, 6)
    read_ahead.add(0, requests)
    for request in requests:
        assert read_ahead.bytes_of(request) == DATA[request.span.offset : request.span.end]
    assert sorted(copied) == [200, 300, 400, 500]


def test_what_a_decoder_asks_for_is_fetched_at_once(store: RemoteStore) -> None:
    read_ahead = ReadAhead(100, ScanMetrics())
    requests = planned(store, 5)
    read_ahead.add(0, requests)
    assert read_ahead.bytes_of(requests[4]) == DATA[400:500]


def test_at_most_so_many_are_in_flight(store: RemoteStore, four_in_flight: None) -> None:
    store.latency = 0.005
    read_ahead = ReadAhead(1 << 20, ScanMetrics())
    requests = planned(store, 30)
    read_ahead.add(0, requests)
    assert [read_ahead.bytes_of(request) for request in requests] == [
        DATA[request.span.offset : request.span.end] for request in requests
    ]
    assert store.requests == 30
    assert 2 <= store.most_in_flight <= 4


def test_a_closed_one_makes_no_more(store: RemoteStore) -> None:
    read_ahead = ReadAhead(100, ScanMetrics())
    requests = planned(store, 20)
    read_ahead.add(0, requests)
    read_ahead.close()
    read_ahead.drop(requests)
    assert settled(store, 0) <= 1
    assert read_ahead.bytes_of(requests[7]) is None


def test_ranges_across_requests_are_put_together(store: RemoteStore) -> None:
    read_ahead = ReadAhead(1 << 20, ScanMetrics())
    buffers = FileBuffers(read_ahead, planned(store, 3))
    read_ahead.add(0, buffers.requests)
    for begin, end in ((0, 300), (50, 150), (99, 101), (120, 130), (250, 300)):
        found = buffers.find(begin, end - begin)
        assert found is not None
        assert bytes(found) == DATA[begin:end]
    assert buffers.find(250, 51) is None
    assert store.requests == 3


def test_errors_reach_whoever_needs_the_bytes(store: RemoteStore) -> None:
    read_ahead = ReadAhead(1 << 20, ScanMetrics())
    request = PlannedRequest(Fetcher(store), "missing", Span(0, 10, 0, 1))
    read_ahead.add(0, [request])
    with pytest.raises(FileNotFoundError):
        read_ahead.bytes_of(request)


def test_threads_may_share_one(store: RemoteStore, four_in_flight: None) -> None:
    read_ahead = ReadAhead(1000, ScanMetrics())
    requests = planned(store, 60)
    read_ahead.add(0, requests)
    wrong: list[int] = []

    def decode(numbers: range) -> None:
        for number in numbers:
            request = requests[number]
            if read_ahead.bytes_of(request) != DATA[request.span.offset : request.span.end]:
                wrong.append(number)
            read_ahead.drop([request])

    threads = [threading.Thread(target=decode, args=(range(first, 60, 3),)) for first in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not wrong
    assert store.requests == 60
