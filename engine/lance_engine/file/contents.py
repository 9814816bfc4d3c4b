"""The bytes of a data file: mapped if it is local, otherwise fetched by range."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lance_engine import kernels
from lance_engine.encodings.faults import fault_of
from lance_engine.errors import CorruptFileError, LanceError, Placed, StorageError
from lance_engine.fetch import Fetcher, FileBuffers, planned_for
from lance_engine.file.lasting import LASTING, LastingRanges
from lance_engine.io.coalesce import coalesce
from lance_engine.io.store import Buffer, checked_range
from lance_engine.metrics import count_read, count_wait
from lance_engine.tasks import Task

if TYPE_CHECKING:
    from lance_engine.io.store import Store

# The end of a remote file is read in one request of this size, which includes most files' footer and column
# metadata.
TAIL_SIZE = 64 << 10


class FileContents:
    """A data file, opened.

    Local files are mapped into memory. For remote files, only the needed byte ranges are fetched: the
    metadata of columns once, when they are first used, and the data of a batch with each batch.
    """

    def __init__(self, store: Store, path: str, *, size: int | None = None) -> None:
        """Open `path`; passing `size` in bytes saves a request."""
        self.path = path
        self._fetcher = Fetcher(store)
        self._segments: kernels.SegmentSource | None = None
        self._lasting: LastingRanges | None = None
        with self.placed():
            local = store.local_path(path)
            self.source: kernels.Source
            if local is not None:
                self.source = _mapped(store, path, local)
            else:
                known = store.size(path) if size is None else size
                store.expect_size(path, known)
                self._lasting = LASTING.of_file(store, path, known)
                self.source = self._segments = self._lasting.source
            actual = self.source.size
            if size is not None and size != actual:
                raise CorruptFileError(
                    f"The file has {actual} bytes, but the manifest records {size}",
                    remedy="Restore the file from a backup, or use a version that does not need it",
                )
            self.size = actual

    @property
    def fetcher(self) -> Fetcher:
        """Fetches the ranges of the file."""
        return self._fetcher

    @property
    def is_local(self) -> bool:
        """Whether the file is mapped, so that nothing needs to be fetched."""
        return self._segments is None

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the file; fetched and kept if the file is remote."""
        checked_range(self.path, self.size, offset, length)
        if self._segments is not None and not self._segments.holds(offset, length):
            self._fetch(self._segments, [(offset, length)])
        elif self._segments is None:
            count_read(0, length)
        return self.source.read(offset, length)

    def read_tail(self, local_length: int) -> bytes:
        """The end of the file: `local_length` bytes, or for remote files all that was fetched with it."""
        length = min(self.size, local_length if self._segments is None else TAIL_SIZE)
        return self.read(self.size - length, length)

    def overlay(
        self, leaves: Sequence[kernels.LeafColumn], rows: npt.NDArray[np.int64]
    ) -> tuple[kernels.Source, kernels.Source]:
        """Fetch the data for decoding `rows` of `leaves`: ascending ranges, shape (n, 2).

        Returns the source of the file and the one to read instead. Bytes whose position depends on the data
        are not included: a decoder that misses them reports it.
        """
        if self._segments is None:
            return self.source, self.source
        self._fetch(self._segments, [span for leaf in leaves for span in leaf.metadata_ranges(rows)])
        batch = kernels.SegmentSource(self._segments)
        self._fetch(batch, [span for leaf in leaves for span in leaf.data_ranges(rows)])
        return self._segments, batch

    def fetch(self, target: kernels.Source, offset: int, length: int) -> None:
        """Fetch a range that a decoder missed into the source created by `overlay`."""
        if isinstance(target, kernels.SegmentSource):
            self._fetch(target, [(offset, length)])

    def holds(self, offset: int, length: int) -> bool:
        """Whether a range is already available; CorruptFileError if it exceeds the file."""
        checked_range(self.path, self.size, offset, length)
        return self._segments is None or self._segments.holds(offset, length)

    def fetch_lasting(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Fetch ranges of a remote file, until it is closed."""
        if self._segments is not None:
            self._fetch(self._segments, ranges)

    def _fetch(self, target: kernels.SegmentSource, ranges: Sequence[tuple[int, int]]) -> None:
        for span in ranges:  # numbers of the file itself: nothing is planned, joined or cut before
            checked_range(self.path, self.size, *span)
        wanted = [span for span in ranges if not target.holds(*span)]
        if wanted and self._lasting is not None and target is self._segments:
            # Threads that read parts of a page begin with the same description of it.
            self._lasting.fetch(wanted, partial(self._fetch_missing, target))
        elif wanted:
            self._fetch_missing(target, wanted)

    def _fetch_missing(self, target: kernels.SegmentSource, wanted: Sequence[tuple[int, int]]) -> None:
        planned = planned_for(self)
        if planned is not None:
            wanted = [span for span in wanted if not self._add_planned(target, planned, span)]
        missing = self._fetcher.joined(wanted)
        holes = sum(length for _, length in missing) - sum(length for _, length in coalesce(wanted, 0))
        answers = self._fetcher.read(self.path, missing, holes)
        for (offset, length), data in zip(missing, answers, strict=True):
            self._add_whole(target, offset, length, data)

    def _add_planned(
        self, target: kernels.SegmentSource, planned: FileBuffers, span: tuple[int, int]
    ) -> bool:
        """Whether a range was planned, and is now in the target."""
        data = planned.find(*span)
        if data is None:
            return False
        if target is self._segments and len(data) < self.size:
            data = memoryview(bytes(data))  # it must not keep all data that was fetched with it
        self._add(target, span[0], data)
        return True

    def _add_whole(self, target: kernels.SegmentSource, offset: int, length: int, data: Buffer) -> None:
        if len(data) != length:
            raise CorruptFileError(f"Received {len(data)} of {length} bytes", path=self.path)
        self._add(target, offset, data)

    @property
    def segments(self) -> kernels.SegmentSource:
        """The cached data of a remote file."""
        assert self._segments is not None
        return self._segments

    def begin_end(self) -> tuple[int, Task[Buffer]] | None:
        """Start to fetch the end of a remote file, unless available; returns its offset."""
        length = min(self.size, TAIL_SIZE)
        offset = self.size - length
        if self._segments is None or self._segments.holds(offset, length):
            return None
        count_read(1, length)
        return offset, self._fetcher.submit(self.path, offset, length)

    def add_lasting(self, offset: int, data: Buffer) -> None:
        """Cache fetched data of a remote file."""
        self._add(self.segments, offset, data)

    def begin_whole(self) -> Task[Buffer] | None:
        """Start to fetch a whole remote file, unless available or planned; `end_whole` waits for it."""
        if self.segments.holds(0, self.size):
            return None
        planned = planned_for(self)
        if planned is not None and planned.covers(0, self.size):
            return None
        count_read(1, self.size)
        return self._fetcher.submit(self.path, 0, self.size)

    def end_whole(self, answer: Task[Buffer] | None) -> None:
        """Wait for what `begin_whole` started."""
        if answer is None:
            self.fetch_lasting([(0, self.size)])
            return
        begin = time.perf_counter()
        data = answer.result()
        count_wait(time.perf_counter() - begin)
        self._add_whole(self.segments, 0, self.size, data)

    def _add(self, target: kernels.SegmentSource, offset: int, data: Buffer) -> None:
        target.share(offset, data)
        if self._lasting is not None and target is self._segments:
            LASTING.grew(self._lasting, len(data))

    def placed(self, **place: object) -> Placed:
        """A context manager that converts errors of the kernels to ours and adds their place."""
        return Placed(self._place_error, **place)

    def _place_error(self, error: BaseException, **place: object) -> LanceError | None:
        if isinstance(error, FileNotFoundError):
            return CorruptFileError(
                "A data file of the dataset is missing",
                path=self.path,
                remedy="Restore the file from a backup, or use a version that does not need it",
            ).at(**place)
        if isinstance(error, LanceError):
            return error.at(path=self.path, **place)
        fault = fault_of(error, path=self.path)
        return None if fault is None else fault.at(**place)


def fetched_whole(files: Sequence[FileContents]) -> list[kernels.SegmentSource]:
    """The bytes of remote files, each of which is cached as a whole; missing ones are fetched together."""
    under_way = [file.begin_whole() for file in files]
    for file, answer in zip(files, under_way, strict=True):
        file.end_whole(answer)
    return [file.segments for file in files]


def fetch_ends(files: Sequence[FileContents]) -> None:
    """Fetch the ends of remote files together. Errors are left to the code that opens the files."""
    under_way = [(file, begun) for file in files if (begun := file.begin_end()) is not None]
    for file, (offset, answer) in under_way:
        with suppress(FileNotFoundError, CorruptFileError):
            file.add_lasting(offset, answer.result())


def _mapped(store: Store, path: str, local: str) -> kernels.MappedSource:
    try:
        return kernels.MappedSource.open(local)
    except RuntimeError as error:
        store.size(path)  # raises an error if the file is missing or is not a file
        raise StorageError(str(error)) from error
