"""Requesting ranges from a store: all at once, with enough of them in flight."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from lance_engine.fetch.model import LEAST_GAP, MOST_GAP, TransferModel
from lance_engine.fetch.pool import RequestPool, request_pool, requests_in_flight
from lance_engine.io.coalesce import coalesce
from lance_engine.io.store import Buffer, max_in_flight_of, ranges_at_once, read_buffer
from lance_engine.metrics import ScanMetrics, count_read, count_wait, counting, current_metrics
from lance_engine.tasks import Task

if TYPE_CHECKING:
    from lance_engine.io.store import Store


# The maximum number of bytes of the requests that one call makes.
_GROUP_BYTES: Final = 16 << 20

# State shared by the stores below a root.
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
        """The maximum number of requests in flight."""
        return self._pool.most

    @cached_property
    def model(self) -> TransferModel:
        """What requests to this store cost."""
        return _models.setdefault(self._root, TransferModel())

    def submit(
        self,
        path: str,
        offset: int,
        length: int,
        ended: Callable[[], None] | None = None,
        *,
        reused: bool = True,
    ) -> Task[Buffer]:
        """Start to read a range; `ended` is called when it has ended, unless it is cancelled.

        About `reused` see `lance_engine.io.store.read_buffer`.
        """
        pool, metrics = self._pool, current_metrics()

        def read() -> Buffer:
            try:
                return self._read(pool, metrics, path, offset, length, reused)
            finally:
                if ended is not None:
                    ended()

        return pool.threads.submit(read)

    def joined(self, ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Ranges that cover some ranges of a file, joined if they then arrive sooner.

        This reads at most twice as many bytes as joining near neighbours only: bytes cost money.
        """
        best = coalesce(ranges, max_request=self.model.joined)
        most_bytes = 2 * _bytes_of(best)
        gap = LEAST_GAP
        while len(best) > self.most and gap < MOST_GAP:  # more than can be in flight at a time
            gap *= 2
            fewer = coalesce(ranges, gap, self.model.joined)
            if _bytes_of(fewer) > most_bytes:
                break
            if self._seconds(fewer) < self._seconds(best):
                best = fewer
        return best

    def _seconds(self, ranges: Sequence[tuple[int, int]]) -> float:
        return self.model.seconds(len(ranges), _bytes_of(ranges), self.most)

    def read(self, path: str, ranges: Sequence[tuple[int, int]], holes: int = 0) -> list[Buffer]:
        """Several ranges of a file, in the requested order; counted towards the running scan.

        `holes` of the bytes are only read because they are between others.
        """
        if not ranges:
            return []
        # Long ones arrive sooner in parallel parts.
        parts = [list(_parts(*span, 2 * self.model.joined)) for span in ranges]
        requests = list(chain.from_iterable(parts))
        count_read(len(requests), sum(length for _, length in ranges), holes)
        begin = time.perf_counter()
        # The calling thread has nothing else to do: it makes one of the requests itself.
        first, *others = self._grouped(requests)
        pool, metrics = self._pool, current_metrics()
        under_way = [pool.threads.submit(self._read_group, pool, metrics, path, group) for group in others]
        try:
            begun = self._read_group(pool, metrics, path, first)
            arrived = chain(begun, chain.from_iterable([future.result() for future in under_way]))
        finally:
            for future in under_way:
                future.cancel()
            count_wait(time.perf_counter() - begin)
        return [
            next(arrived) if len(pieces) == 1 else b"".join(islice(arrived, len(pieces))) for pieces in parts
        ]

    def _grouped(self, requests: Sequence[tuple[int, int]]) -> list[Sequence[tuple[int, int]]]:
        """Consecutive requests in one call, if the store supports it: each call costs processor time.

        If one of a group finally fails, the whole group is read again: it has few bytes, or is one request.
        """
        most = min(ranges_at_once(self._store), self.most // 4)
        if most < 2:
            return [[request] for request in requests]
        groups: list[list[tuple[int, int]]] = []
        in_group = 0
        for request in requests:
            in_group += request[1]
            if groups and len(groups[-1]) < most and in_group <= _GROUP_BYTES:
                groups[-1].append(request)
            else:
                groups.append([request])
                in_group = request[1]
        return list(groups)

    def _read_group(
        self, pool: RequestPool, metrics: ScanMetrics | None, path: str, group: Sequence[tuple[int, int]]
    ) -> Sequence[Buffer]:
        if len(group) == 1:
            return [self._read(pool, metrics, path, *group[0], reused=False)]
        with pool.slots.held(len(group)), counting(metrics):
            begin = time.perf_counter()
            buffers = self._store.read_ranges(path, group)
            self.model.observe(max(length for _, length in group), time.perf_counter() - begin)
        return buffers

    def _read(
        self,
        pool: RequestPool,
        metrics: ScanMetrics | None,
        path: str,
        offset: int,
        length: int,
        reused: bool,
    ) -> Buffer:
        with pool.slots.held(), counting(metrics):
            begin = time.perf_counter()
            data = read_buffer(self._store, path, offset, length, reused=reused)
            self.model.observe(length, time.perf_counter() - begin)
        return data


def _bytes_of(ranges: Sequence[tuple[int, int]]) -> int:
    return sum(length for _, length in ranges)


def _parts(offset: int, length: int, most: int) -> Iterator[tuple[int, int]]:
    """A range in parts of about the same length."""
    count = max(1, -(-length // most))
    edges = [length * part // count for part in range(count + 1)]
    for begin, end in pairwise(edges):
        yield offset + begin, end - begin
