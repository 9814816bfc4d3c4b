"""Asking a store for ranges: all at once, as many in flight as it takes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lance_engine.fetch.model import LEAST_GAP, MOST_GAP, TransferModel
from lance_engine.fetch.pool import RequestPool, request_pool, requests_in_flight
from lance_engine.io.coalesce import coalesce
from lance_engine.io.store import Buffer, max_in_flight_of, read_buffer
from lance_engine.metrics import ScanMetrics, count_read, count_wait, counting, current_metrics

if TYPE_CHECKING:
    from lance_engine.io.store import Store


# What is known of the stores below a root.
_models: dict[str, TransferModel] = {}


class Fetcher:
    """Reads ranges of the files of a store; threads may share it.

    Stores below the same root share threads, limits and measurements.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    @cached_property
    def _given(self) -> int | None:
        return max_in_flight_of(self._store)

    @cached_property
    def _root(self) -> str:
        parts = urlsplit(self._store.uri)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def _pool(self) -> RequestPool:
        return request_pool(os.getpid(), self._root, self._given or requests_in_flight())

    @property
    def most(self) -> int:
        """How many requests are in flight at most."""
        return self._pool.most

    @cached_property
    def model(self) -> TransferModel:
        """What requests to this store cost."""
        return _models.setdefault(self._root, TransferModel())

    def submit(self, path: str, offset: int, length: int) -> Future[Buffer]:
        """Begin to read a range."""
        pool = self._pool
        return pool.executor.submit(self._read, pool, current_metrics(), path, offset, length)

    def joined(self, ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Ranges that cover some of a file, joined as far as makes them arrive sooner."""
        best = coalesce(ranges, max_request=self.model.joined)
        gap = LEAST_GAP
        while len(best) > self.most and gap < MOST_GAP:  # more than can be under way at a time
            gap *= 2
            fewer = coalesce(ranges, gap, self.model.joined)
            if self._seconds(fewer) < self._seconds(best):
                best = fewer
        return best

    def _seconds(self, ranges: Sequence[tuple[int, int]]) -> float:
        return self.model.seconds(len(ranges), sum(length for _, length in ranges), self.most)

    def read(self, path: str, ranges: Sequence[tuple[int, int]], holes: int = 0) -> list[Buffer]:
        """Several ranges of a file, in the order asked; counted towards the scan at work.

        `holes` of the bytes are only read because they lie between others.
        """
        if not ranges:
            return []
        # Long ones arrive sooner in parts, side by side.
        parts = [list(_parts(*span, 2 * self.model.joined)) for span in ranges]
        requests = list(chain.from_iterable(parts))
        count_read(len(requests), sum(length for _, length in ranges), holes)
        begin = time.perf_counter()
        # The calling thread has nothing else to do: it makes one of the requests itself.
        under_way = [self.submit(path, *span) for span in requests[1:]]
        try:
            first = self._read(self._pool, current_metrics(), path, *requests[0])
            arrived = iter([first, *map(Future.result, under_way)])
        finally:
            for future in under_way:
                future.cancel()
            count_wait(time.perf_counter() - begin)
        return [
            next(arrived) if len(found) == 1 else b"".join(islice(arrived, len(found))) for found in parts
        ]

    def _read(
        self, pool: RequestPool, metrics: ScanMetrics | None, path: str, offset: int, length: int
    ) -> Buffer:
        with pool.slots, counting(metrics):
            begin = time.perf_counter()
            data = read_buffer(self._store, path, offset, length)
            self.model.observe(length, time.perf_counter() - begin)
        return data


def _parts(offset: int, length: int, most: int) -> Iterator[tuple[int, int]]:
    """A range in parts of about the same length."""
    count = max(1, -(-length // most))
    edges = [length * part // count for part in range(count + 1)]
    for begin, end in pairwise(edges):
        yield offset + begin, end - begin
