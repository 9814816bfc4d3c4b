"""Fetches what a scan will need before it needs it: in the same order, with a limit on bytes in memory."""

from __future__ import annotations

import heapq
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from typing import Final

from lance_engine.fetch.fetcher import Fetcher
from lance_engine.fetch.ranges import Span
from lance_engine.io.store import Buffer
from lance_engine.metrics import ScanMetrics, count_wait
from lance_engine.tasks import Task

# What the client of a store buffers for a long request that is in flight.
_CLIENT_BYTES: Final = 512 << 10
_LONG_REQUEST: Final = 1 << 20
# The part of what may be held that is passed on in the memory in which it arrives. What a long scan reads
# later is copied to memory that is used again.
_PASSED_ON: Final = 1 / 4


class PlannedRequest:
    """A range of a file that will be needed, is in flight, or has arrived."""

    __slots__ = ("_fetcher", "_future", "_path", "dropped", "span")

    def __init__(self, fetcher: Fetcher, path: str, span: Span) -> None:
        self._fetcher = fetcher
        self._path = path
        self.span = span
        self._future: Task[Buffer] | None = None
        #: no longer needed
        self.dropped = False

    @property
    def most_in_flight(self) -> int:
        """The number of concurrent requests that its store supports."""
        return self._fetcher.most

    @property
    def client_bytes(self) -> int:
        """The memory it takes besides its own bytes while in flight."""
        return _CLIENT_BYTES if self.span.length >= _LONG_REQUEST else 0

    @property
    def is_begun(self) -> bool:
        return self._future is not None

    def begin(self, ended: Callable[[], None], *, reused: bool) -> Task[Buffer]:
        """Submit the request; the caller holds the lock of its `ReadAhead`, which `ended` waits for."""
        self._future = self._fetcher.submit(
            self._path, self.span.offset, self.span.length, ended, reused=reused
        )
        return self._future

    @property
    def future(self) -> Task[Buffer]:
        """What was submitted."""
        assert self._future is not None
        return self._future

    def drop(self) -> Task[Buffer] | None:
        """Drop the bytes; returns what was submitted."""
        self.dropped = True
        future, self._future = self._future, None
        return future


class ReadAhead:
    """The planned requests of one scan; threads may share it.

    At most `budget` bytes are in flight or wait for their decoder, except what a decoder waits for: that
    is fetched at once.
    """

    def __init__(self, budget: int, metrics: ScanMetrics) -> None:
        self.budget = budget
        self._metrics = metrics
        self._lock = threading.Lock()
        self._waiting: list[tuple[int, int, int, PlannedRequest]] = []
        self._numbers = count()
        self._held = 0
        self._passed_on = 0
        self._in_flight = 0
        self._closed = False
        self._going_on = False

    def add(self, turn: int, requests: Iterable[PlannedRequest]) -> None:
        """Plan requests; those of an earlier `turn`, then for earlier rows, are made first."""
        with self._lock:
            if self._closed:
                return
            for request in requests:
                entry = (turn, request.span.first_row, next(self._numbers), request)
                heapq.heappush(self._waiting, entry)
        self._go_on()

    def bytes_of(self, request: PlannedRequest) -> Buffer | None:
        """The bytes of a request, which is made now if it was not made before; None if it was dropped."""
        with self._lock:
            if request.dropped or self._closed:
                return None
            future = request.future if request.is_begun else self._begin(request)
        begin = time.perf_counter()
        try:
            return future.result()
        finally:
            count_wait(time.perf_counter() - begin)

    def drop(self, requests: Iterable[PlannedRequest]) -> None:
        """Release bytes that are no longer needed."""
        futures = []
        with self._lock:
            for request in requests:
                if not request.dropped:
                    self._held -= request.span.length if request.is_begun else 0
                    futures.append((request, request.drop()))
        for request, future in futures:
            if future is not None and future.cancel():
                self._ended(request)
        self._go_on()

    def close(self) -> None:
        """Make no more requests: the scan is over."""
        with self._lock:
            self._closed = True
            self._waiting.clear()

    def _go_on(self) -> None:
        """Make the next requests, as many as there is room for."""
        with self._lock:
            if self._going_on:
                return  # who does will see what has changed
            self._going_on = True
        while True:
            with self._lock:
                request = self._next()
                if request is None:
                    self._going_on = False
                    return
                self._begin(request)

    def _next(self) -> PlannedRequest | None:
        """The next request, if there is room for it."""
        while self._waiting and not self._closed:
            request = self._waiting[0][-1]
            if not request.dropped and not request.is_begun:
                if self._held and self._held + request.span.length + request.client_bytes > self.budget:
                    return None
                if self._in_flight >= request.most_in_flight:
                    return None
                heapq.heappop(self._waiting)
                return request
            heapq.heappop(self._waiting)
        return None

    def _begin(self, request: PlannedRequest) -> Task[Buffer]:
        self._held += request.span.length + request.client_bytes
        self._in_flight += 1
        self._metrics.add_read(1, request.span.length, request.span.holes)
        reused = self._passed_on + request.span.length > self.budget * _PASSED_ON
        self._passed_on += 0 if reused else request.span.length
        return request.begin(partial(self._ended, request), reused=reused)

    def _ended(self, request: PlannedRequest) -> None:
        with self._lock:
            self._in_flight -= 1
            self._held -= request.client_bytes
        self._go_on()


class FileBuffers:
    """The planned requests for one file, by place."""

    def __init__(self, read_ahead: ReadAhead, requests: Iterable[PlannedRequest]) -> None:
        self._read_ahead = read_ahead
        self.requests = sorted(requests, key=lambda request: request.span.offset)
        self._offsets = [request.span.offset for request in self.requests]

    def find(self, offset: int, length: int) -> memoryview | None:
        """A range, once it has arrived, if all of it was planned and is still in memory."""
        parts = list(self._covering(offset, length))
        if not parts:
            return None
        views = []
        for request, begin, end in parts:
            data = self._read_ahead.bytes_of(request)
            if data is None:
                return None
            views.append(memoryview(data)[begin:end])
        return views[0] if len(views) == 1 else memoryview(b"".join(views))

    def covers(self, offset: int, length: int) -> bool:
        """Whether all of a range was planned and is still needed."""
        parts = list(self._covering(offset, length))
        return bool(parts) and not any(request.dropped for request, *_ in parts)

    def _covering(self, offset: int, length: int) -> Iterator[tuple[PlannedRequest, int, int]]:
        """The requests that together hold a range, with their part of it; nothing if a part is missing."""
        covering = []
        at, end = offset, offset + length
        place = bisect_right(self._offsets, at) - 1
        while 0 <= place < len(self.requests) and at < end:
            request = self.requests[place]
            if not request.span.offset <= at < request.span.end:
                return
            stop = min(end, request.span.end)
            covering.append((request, at - request.span.offset, stop - request.span.offset))
            at, place = stop, place + 1
        if at == end:
            yield from covering
