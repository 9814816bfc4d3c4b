"""Scans as Arrow C streams: decoded ahead by native threads, and read without the interpreter.

A stream holds at most `Scanner.read_ahead` bytes of batches in addition to the next one. Rows that only need
decoding are processed without the interpreter; filtered rows, computed columns and remote files are read by
the scanner, called from the same threads.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_engine import kernels
from lance_engine.scan.selection import Selection
from lance_engine.scan.whole_structs import from_the_start, has_inner_structs

if TYPE_CHECKING:
    from lance_engine.scan.plan import Piece
    from lance_engine.scan.scanner import Scanner

# Threads must not acquire the GIL when the interpreter is about to exit.
atexit.register(kernels.stop_streams)

Convert = Callable[[pa.RecordBatch], pa.RecordBatch]
_Task = tuple[int, int, int, kernels.Columns | None, bool, Sequence[int]]

#: Number of pieces requested at first, which then doubles: a small limit should not open many files.
_FIRST_PIECES = 2
_MOST_PIECES = 64


def native_stream(scanner: Scanner) -> object:
    """The rows of a scan as a capsule of an Arrow C stream, in row order; every call scans again.

    Nothing is read before the first batch is requested. Releasing the stream stops decoding after the current
    batches. Errors have the text of our errors.
    """
    return ScanStream(scanner).capsule()


class ScanStream:
    """One run of a scan, as the native stream sees it.

    `convert`, which converts every batch to the types of `schema`, needs the interpreter for all batches.
    Decimals of the columns `narrowed` are 64 bits wide in `schema`; `convert` does not get these.
    `failed` receives the error that ends the stream; the consumer only gets its text.
    """

    def __init__(
        self,
        scanner: Scanner,
        schema: pa.Schema | None = None,
        convert: Convert | None = None,
        failed: Callable[[Exception], None] | None = None,
        narrowed: Collection[str] = (),
    ) -> None:
        self.schema = scanner.schema if schema is None else schema
        #: the error that ended the stream
        self.failure: Exception | None = None
        #: what ended the stream without an error, such as Ctrl-C; set by the native side
        self.interruption: BaseException | None = None
        #: whether an external consumer reads the batches, and only sees the text of errors
        self.handed_over = True
        self._failed = failed
        self._scanner = scanner
        self._convert = convert
        self._reader = scanner.reader.narrowed(narrowed) if narrowed else scanner.reader
        self._narrowed = [i for i, name in enumerate(self.schema.names) if name in narrowed]
        self._metrics = scanner.start()
        self._begin = time.perf_counter()
        self._coming = scanner.pieces(self._metrics)
        self._known: list[Piece] = []
        self._wanted = _FIRST_PIECES
        self._stopped_by: Exception | None = None

    def capsule(self) -> object:
        """The stream, to be called once."""
        if self._scanner.skipped and has_inner_structs(self.schema):
            # The native side skips rows by slicing.
            native = pa.RecordBatchReader._import_from_c_capsule(self._native())
            batches = map(from_the_start, native)
            return pa.RecordBatchReader.from_batches(self.schema, batches).__arrow_c_stream__()
        return self._native()

    def _native(self) -> object:
        scanner = self._scanner
        return kernels.batch_stream(
            self,
            self.schema,
            scanner.batch_rows,
            scanner.row_bytes,
            scanner.read_ahead,
            scanner.threads,
            scanner.skipped,
            scanner.limit,
        )

    def reader(self) -> pa.RecordBatchReader:
        """The stream as pyarrow reads it, instead of `capsule`."""
        return pa.RecordBatchReader._import_from_c_capsule(self.capsule())

    @contextmanager
    def _read(self) -> Iterator[pa.RecordBatchReader]:
        """The stream for internal use; exceptions are raised unchanged."""
        self.handed_over = False
        try:
            with self.reader() as reader:
                yield reader
        except pa.ArrowInvalid as error:
            raise (self.interruption or self.failure or error) from None
        if self.interruption is not None:
            raise self.interruption

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The batches; our errors are raised unchanged."""
        with self._read() as reader:
            while True:
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    break
                yield batch

    def table(self) -> pa.Table:
        """All batches; our errors are raised unchanged."""
        with self._read() as reader:
            return self._scanner.with_metadata(reader.read_all())

    # Called by the native side: `more` one call at a time, `read` concurrently.

    def more(self) -> tuple[list[_Task], bool]:
        """The next pieces, and whether there are more after them.

        Each is (number, begin, end, decoders or None where only `read` will do, whether a part of it can be
        read, columns that must not hold nulls).
        """
        tasks: list[_Task] = []
        try:
            if self._stopped_by is not None:
                raise self._stopped_by
            for piece in islice(self._coming, self._wanted):
                number, selection, projection = len(self._known), piece.selection, piece.projection
                self._known.append(piece)
                if projection is None or self._convert is not None:
                    tasks.append((number, selection.begin, selection.end, None, selection.is_range, ()))
                    continue
                self._metrics.touch(partial(projection.page_map.touched, selection))
                decoders = projection.native
                if self._narrowed and decoders is not None:
                    decoders = decoders.narrowed(self._narrowed)
                tasks.append((number, selection.begin, selection.end, decoders, True, projection.required))
        except Exception as error:
            if not tasks:
                self._fail(error)
                raise
            self._stopped_by = error  # earlier pieces may be sufficient
            return tasks, True
        left = len(tasks) == self._wanted
        self._wanted = min(2 * self._wanted, _MOST_PIECES)
        return tasks, left

    def read(self, number: int, begin: int, end: int) -> list[pa.RecordBatch]:
        """The rows [begin, end) of a piece, by the scanner."""
        piece = self._known[number]
        if (begin, end) != (piece.selection.begin, piece.selection.end):
            piece = piece._replace(selection=Selection.of_range(begin, end))
        try:
            batches: list[pa.RecordBatch] = []
            # A piece that was to be decoded natively is larger than a batch.
            for part in piece.cut(self._scanner.batch_rows) if piece.projection else [piece]:
                batches += self._reader.read(part, self._metrics)
            if self._convert is not None:
                batches = [self._convert(batch) for batch in batches]
            return [from_the_start(batch) for batch in batches]
        except Exception as error:
            self._fail(error)
            raise

    def report(
        self, batches: int, rows_out: int, rows_decoded: int, bytes_read: int, seconds: float, last: bool
    ) -> None:
        """What was handed out, and decoded without the scanner, since the last call."""
        self._metrics.add(
            batches=batches, rows_out=rows_out, rows_decoded=rows_decoded, bytes_read=bytes_read
        )
        if seconds:
            self._metrics.add_time("read", seconds)
        if last:
            self._scanner.stop_fetching()
            self._metrics.end(time.perf_counter() - self._begin)

    def _fail(self, error: Exception) -> None:
        if self.failure is None:
            self.failure = error
            if self._failed is not None:
                self._failed(error)
