"""What a scan did, in numbers: what it skipped, what it read, and where its time went."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from lance_engine.events import emit, is_observed
from lance_engine.public import Public


class IndexMetrics(NamedTuple):
    """An index that a scan used: the part of the filter it answered, and how many fragments it covers."""

    name: str
    kind: str
    columns: tuple[str, ...]
    filter: str
    covered: int
    fragments: int


#: A column of a file: what identifies it, how many pages it has, and the numbers of those that were read.
Touched = tuple[Hashable, int, Iterable[int]]


@dataclass(slots=True)
class ScanMetrics(Public):
    """One run of a scan. Threads may add to it."""

    _ours: ClassVar[frozenset[str]] = frozenset(
        {
            "add", "add_read", "add_time", "count_pages", "counts", "end", "filtered_by", "phase",
            "reported_for", "touch", "wait_for_end",
        }
    )  # fmt: skip

    fragments: int = 0
    fragments_read: int = 0
    zones: int = 0
    """Zones whose statistics were looked at; 0 where no column of the filter has any."""
    zones_read: int = 0
    pages: int = 0
    """Pages of the columns of which something was read, in their files."""
    pages_read: int = 0
    rows: int = 0
    """Physical rows, deleted ones included, of what the scan covers."""
    rows_planned: int = 0
    """Of these, rows of which it is known whether they will be read: in the end all."""
    rows_left: int = 0
    """Physical rows that row ids, indices and zones left to be read."""
    rows_untested: int = 0
    """Of these, rows on which the filter did not have to be tested."""
    rows_decoded: int = 0
    """Physical rows of which some column was decoded."""
    rows_out: int = 0
    batches: int = 0
    bytes_read: int = 0
    """Bytes of the files: of local ones those that were decoded, of others those that were fetched."""
    requests: int = 0
    """Ranges fetched; none for local files, which are mapped into memory."""
    cache_hits: int = 0
    """Of these, ranges that the cache on disk held."""
    cache_bytes: int = 0
    """The bytes that the cache on disk held."""
    bytes_over_read: int = 0
    """The read bytes that were fetched only because a request for all is cheaper than two."""
    indices: list[IndexMetrics] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    """Per phase: `plan`, `filter` and `read`, which sum over threads, and `total`, by the clock.

    `wait` is the part of the others, also summed over threads, in which bytes had not arrived yet.
    """
    _source: tuple[str, int] | None = field(default=None, repr=False, compare=False)
    _pushed: Callable[[], str] | None = field(default=None, repr=False, compare=False)
    _touched: list[Callable[[], Iterable[Touched]]] = field(default_factory=list, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    _ended: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)

    @property
    def pushed(self) -> list[str]:
        """The filter. Its text, which may be long, is only made for those who ask."""
        return [] if self._pushed is None else [self._pushed()]

    def filtered_by(self, text: Callable[[], str]) -> None:
        """Note the filter, by what makes its text."""
        self._pushed = text

    def add(self, **counts: int) -> None:
        with self._lock:
            for name, count in counts.items():
                setattr(self, name, getattr(self, name) + count)

    def add_read(self, requests: int, read: int, over: int = 0) -> None:
        """Add ranges fetched, and bytes read, of which `over` were not wanted."""
        with self._lock:
            self.requests += requests
            self.bytes_read += read
            self.bytes_over_read += over

    def counts(self, *names: str) -> list[int]:
        """Counts as they are at one moment of a scan that may go on."""
        with self._lock:
            return [getattr(self, name) for name in names]

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time that the block takes to a phase."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.add_time(name, time.perf_counter() - begin)

    def add_time(self, phase: str, seconds: float) -> None:
        with self._lock:
            self.seconds[phase] = self.seconds.get(phase, 0.0) + seconds

    def end(self, seconds: float) -> None:
        """Note that the scan has ended, after this time by the clock: the numbers are complete."""
        self.add_time("total", seconds)
        self._ended.set()
        if self._source is not None:
            path, version = self._source
            emit(
                "scan", seconds, path=path, version=version, rows=self.rows_out, bytes_read=self.bytes_read,
                requests=self.requests, cache_hits=self.cache_hits, cache_bytes=self.cache_bytes,
                rows_decoded=self.rows_decoded, fragments=self.fragments_read,
            )  # fmt: skip

    def reported_for(self, path: str, version: int) -> None:
        """Report the scan of a version when it ends, if anyone observes scans."""
        if is_observed("scan"):
            self._source = path, version

    def wait_for_end(self, timeout: float) -> None:
        """Wait until the scan has ended, at most `timeout` seconds."""
        self._ended.wait(timeout)

    def touch(self, pages: Callable[[], Iterable[Touched]]) -> None:
        """Note that pages were read; which ones is found out by `count_pages`, not while the scan runs."""
        self._touched.append(pages)

    def count_pages(self) -> None:
        """Count the pages that were read, each once however often."""
        totals: dict[Hashable, int] = {}
        read: dict[Hashable, set[int]] = {}
        for touched in self._touched:
            for column, total, pages in touched():
                totals[column] = total
                read.setdefault(column, set()).update(pages)
        self.pages, self.pages_read = sum(totals.values()), sum(map(len, read.values()))

    def as_dict(self) -> dict[str, Any]:
        """All numbers under the names of the fields; indices as dictionaries."""
        counts = {name: getattr(self, name) for name in self.__slots__ if not name.startswith("_")}
        metrics: dict[str, Any] = {"pushed": self.pushed, **counts}
        metrics["indices"] = [use._asdict() for use in self.indices]
        metrics["seconds"] = dict(self.seconds)
        return metrics


_current = threading.local()


class counting:  # noqa: N801 - a block, used like a function
    """Count what this thread reads in the block towards `metrics`; with None it is not counted."""

    __slots__ = ("_metrics", "_outer")

    def __init__(self, metrics: ScanMetrics | None) -> None:
        self._metrics = metrics

    def __enter__(self) -> None:
        self._outer: ScanMetrics | None = getattr(_current, "metrics", None)
        _current.metrics = self._metrics

    def __exit__(self, *_: object) -> None:
        _current.metrics = self._outer


def count_read(requests: int, read: int, over: int = 0) -> None:
    """Report to the running scan, if any, `requests` fetched ranges of `read` bytes in total.

    `over` of these were not wanted.
    """
    metrics: ScanMetrics | None = getattr(_current, "metrics", None)
    if metrics is not None:
        metrics.add_read(requests, read, over)


def count_wait(seconds: float) -> None:
    """Report to the running scan, if any, time spent waiting for bytes to arrive."""
    metrics: ScanMetrics | None = getattr(_current, "metrics", None)
    if metrics is not None:
        metrics.add_time("wait", seconds)


def count_cached(hits: int, read: int) -> None:
    """Report to the running scan, if any, `hits` ranges of `read` bytes from the cache on disk."""
    metrics: ScanMetrics | None = getattr(_current, "metrics", None)
    if metrics is not None:
        metrics.add(cache_hits=hits, cache_bytes=read)


def current_metrics() -> ScanMetrics | None:
    """What this thread counts towards, for those who read in other threads."""
    metrics: ScanMetrics | None = getattr(_current, "metrics", None)
    return metrics


def note_pages(pages: Callable[[], Iterable[Touched]]) -> None:
    """Report to the running scan, if any, that pages were read; see `ScanMetrics.touch`."""
    metrics: ScanMetrics | None = getattr(_current, "metrics", None)
    if metrics is not None:
        metrics.touch(pages)
