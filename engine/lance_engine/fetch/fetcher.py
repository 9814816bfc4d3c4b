"""Asking a store for ranges: all at once, as many in flight as it takes."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import Future
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lance_engine.fetch.model import TransferModel
from lance_engine.fetch.pool import RequestPool, request_pool, requests_in_flight
from lance_engine.metrics import count_read, count_wait

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
    def _root(self) -> str:
        parts = urlsplit(self._store.uri)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def _pool(self) -> RequestPool:
        return request_pool(os.getpid(), self._root, requests_in_flight())

    @property
    def most(self) -> int:
        """How many requests are in flight at most."""
        return self._pool.most

    @cached_property
    def model(self) -> TransferModel:
        """What requests to this store cost."""
        return _models.setdefault(self._root, TransferModel())

    def submit(self, path: str, offset: int, length: int) -> Future[bytes]:
        """Begin to read a range."""
        pool = self._pool
        return pool.executor.submit(self._read, pool, path, offset, length)

    def read(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Several ranges of a file, in the order asked; counted towards the scan at work."""
        if not ranges:
            return []
        count_read(len(ranges), sum(length for _, length in ranges))
        begin = time.perf_counter()
        # The calling thread has nothing else to do: it makes one of the requests itself.
        under_way = [self.submit(path, *span) for span in ranges[1:]]
        try:
            found = [self._read(self._pool, path, *ranges[0])]
            found += [future.result() for future in under_way]
        finally:
            for future in under_way:
                future.cancel()
            count_wait(time.perf_counter() - begin)
        return found

    def _read(self, pool: RequestPool, path: str, offset: int, length: int) -> bytes:
        with pool.slots:
            begin = time.perf_counter()
            data = self._store.read(path, offset, length)
            self.model.observe(length, time.perf_counter() - begin)
        return data
