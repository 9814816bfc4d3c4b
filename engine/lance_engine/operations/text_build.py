"""Builds segments of inverted indices from the rows of fragments, and from existing segments."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lance_engine import kernels
from lance_engine.format.fragment import Fragment
from lance_engine.format.index_section import IndexSegment
from lance_engine.index.inverted.analysis import Analysis
from lance_engine.index.inverted.json_documents import Analyzer, analyzer_of
from lance_engine.index.inverted.kind import INVERTED
from lance_engine.index.inverted.layout import details
from lance_engine.index.inverted.partition import TextPartition
from lance_engine.index.inverted.segment import TextSegment
from lance_engine.index.inverted.writer import write_metadata, write_partition
from lance_engine.operations.index_build import Relocate
from lance_engine.operations.index_files import IndexFolder, index_folder
from lance_engine.progress import Reporter
from lance_engine.scan.partial import scan
from lance_engine.scan.system import ROW_ID
from lance_engine.search.text.column import TextColumn
from lance_engine.table.snapshot import Snapshot, U64Array

# The version of the segments that are written.
_VERSION: Final = 2
# A partition is written when it exceeds this size in memory.
_PARTITION_BYTES: Final = 256 << 20
# Maximum size of the distinct words that are kept.
_WORD_BYTES: Final = 64 << 20


class TextOptions(NamedTuple):
    """The parameters of an index."""

    analysis: Analysis
    with_position: bool


Carried = Sequence[tuple[TextSegment, Relocate]]


def build_texts(
    snapshot: Snapshot,
    name: str,
    column: TextColumn,
    options: TextOptions,
    fragments: Sequence[Fragment],
    reporter: Reporter,
    carried: Carried = (),
    carried_fragments: BitMap | None = None,
    *,
    partition_bytes: int = _PARTITION_BYTES,
) -> tuple[IndexSegment, list[str]]:
    """A segment over the rows of `fragments`, and over rows of other segments with the same tokenization.

    Returns it with the paths of its files, which are not committed yet.
    """
    with index_folder(snapshot, reporter) as folder:
        parts = _Partitions(options, folder, partition_bytes)
        for opened, relocate in carried:
            _carry(opened, relocate, parts)
        _read(snapshot, column, fragments, parts, reporter)
        reporter.begin("writing the index")
        parts.finish()
        write_metadata(
            folder, options.analysis, with_position=options.with_position, partitions=parts.written
        )
        reporter.end()
    segment = folder.segment(
        name,
        INVERTED.message,
        (column.field_id,),
        snapshot.version,
        BitMap([fragment.id for fragment in fragments]) | (carried_fragments or BitMap()),
        details(options.analysis, with_position=options.with_position),
        _VERSION,
    )
    return segment, folder.paths()


class _Partitions:
    """Partitions of a new segment: each thread fills one; large ones are written immediately."""

    def __init__(self, options: TextOptions, folder: IndexFolder, limit: int) -> None:
        self.options, self._folder, self._limit = options, folder, limit
        self._lock = threading.Lock()
        self._idle: deque[kernels.IndexBuilder] = deque()
        self.written = 0

    def fill(self, work: Callable[[kernels.IndexBuilder], None]) -> None:
        """Let `work` add to a partition that no other thread fills."""
        try:
            builder = self._idle.pop()
        except IndexError:
            builder = kernels.IndexBuilder(self.options.with_position)
        work(builder)
        if builder.nbytes > self._limit:
            self._write(builder)
        else:
            self._idle.append(builder)

    def finish(self) -> None:
        """Write the rest, in one partition unless it is too large."""
        left = list(self._idle)
        while left:
            whole = left.pop()
            while left and whole.nbytes + left[-1].nbytes <= self._limit:
                whole.take(left.pop())
            self._write(whole)
        if not self.written:
            self._write(kernels.IndexBuilder(self.options.with_position))

    def _write(self, builder: kernels.IndexBuilder) -> None:
        with self._lock:
            write_partition(builder, self.written, self._folder, with_position=self.options.with_position)
            self.written += 1


def _read(
    snapshot: Snapshot,
    column: TextColumn,
    fragments: Sequence[Fragment],
    parts: _Partitions,
    reporter: Reporter,
) -> None:
    """Add the live rows of fragments, on all threads."""
    if not fragments:
        return
    reporter.begin("reading the column", sum(snapshot.live_rows(fragment) for fragment in fragments))
    analysis = parts.options.analysis
    idle: deque[Analyzer] = deque()
    lock = threading.Lock()

    def work(batch: pa.RecordBatch) -> None:
        try:
            analyzer = idle.pop()
        except IndexError:
            analyzer = analyzer_of(analysis)
        tokens = analyzer.split(column.of(batch))
        rows = batch.column(1).to_numpy()
        parts.fill(lambda builder: builder.add(analyzer.native, tokens, rows))
        if analyzer.native.nbytes < _WORD_BYTES:
            idle.append(analyzer)
        with lock:
            reporter.advance(batch.num_rows)

    scan(snapshot, [column.parts[0], ROW_ID], fragments=fragments).reduce(work)
    reporter.end()


def _carry(segment: TextSegment, relocate: Relocate, parts: _Partitions) -> None:
    """Add the documents of a segment whose rows still exist."""
    positions = parts.options.with_position
    for number in segment.partitions:
        partition = segment.partition(number)
        ids, kept = relocate(partition.rows)
        parts.fill(partial(_add, partition, ids[kept], kept, positions))


def _add(
    partition: TextPartition,
    ids: U64Array,
    kept: npt.NDArray[np.bool_],
    positions: bool,
    builder: kernels.IndexBuilder,
) -> None:
    first = builder.add_documents(np.ascontiguousarray(ids), np.ascontiguousarray(partition.lengths[kept]))
    places = np.full(len(kept), 2**32 - 1, dtype=np.uint32)
    places[kept] = np.arange(first, first + len(ids), dtype=np.uint32)
    for token, postings in partition.all_postings(positions=positions):
        builder.add_postings(token, postings, places)
