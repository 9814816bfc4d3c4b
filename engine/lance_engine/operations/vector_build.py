"""Builds segments of vector indices from the rows of fragments, and from existing segments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lance_engine.format.fragment import Fragment
from lance_engine.format.index_section import IndexSegment
from lance_engine.index.vector.encoder import Encoder, train, usable
from lance_engine.index.vector.kind import VECTORS
from lance_engine.index.vector.options import VectorOptions
from lance_engine.index.vector.writer import EncodedRows, write_segment
from lance_engine.operations.index_build import Relocate
from lance_engine.operations.index_files import index_folder
from lance_engine.operations.rows import read_rows
from lance_engine.progress import Reporter
from lance_engine.scan.partial import scan, shared_readers
from lance_engine.scan.system import ROW_ID
from lance_engine.search.column import VectorColumn, vectors_in
from lance_engine.table.snapshot import Snapshot, U64Array

# The version of the segments that are written.
_VERSION: Final = 1
# Larger shares of the rows are sampled with a scan.
_SCANNED_SHARE: Final = 1 / 4
# Rows of a sample that are looked up at once.
_LOOKED_UP: Final = 8192
# Number of lookups after which files are reopened. While they are open, the touched pages of local files
# count as memory of the process.
# touched count as memory of the process.
_LOOKUPS: Final = 4
# Maximum size of the vectors in files that are open at once, unless a single one is larger.
_OPEN_BYTES: Final = 256 << 20


def train_encoder(
    snapshot: Snapshot, column: VectorColumn, options: VectorOptions, reporter: Reporter
) -> Encoder:
    """The encoder for a new index over all rows."""
    sample = _sample(snapshot, column, options, reporter)
    return train(options, sample, reporter)


def build_vectors(
    snapshot: Snapshot,
    name: str,
    column: VectorColumn,
    encoder: Encoder,
    fragments: Sequence[Fragment],
    reporter: Reporter,
    carried: Sequence[tuple[EncodedPartitions, Relocate]] = (),
    carried_fragments: BitMap | None = None,
) -> tuple[IndexSegment, list[str]]:
    """A segment over the rows of `fragments`, and over rows of other segments with the same codes.

    Returns it with the paths of its files, which are not committed yet.
    """
    options = encoder.options
    with EncodedRows(encoder.coder.width) as rows, index_folder(snapshot, reporter) as folder:
        for partitions, relocate in carried:
            for label, (ids, codes) in enumerate(partitions):
                moved, kept = relocate(ids)
                labels = np.full(int(kept.sum()), label, dtype=np.uint32)
                rows.add(moved[kept], labels, codes[kept])
        reporter.begin("reading the column", sum(snapshot.live_rows(fragment) for fragment in fragments))
        for ids, vectors, read in _vectors(snapshot, column, fragments, options):
            labels, codes = encoder.encode(vectors)
            rows.add(ids, labels, codes)
            reporter.advance(read)
        reporter.end()
        write_segment(encoder, rows, folder, reporter)
    segment = folder.segment(
        name,
        VECTORS.message,
        (column.field_id,),
        snapshot.version,
        BitMap([fragment.id for fragment in fragments]) | (carried_fragments or BitMap()),
        options.details(),
        _VERSION,
    )
    return segment, folder.paths()


EncodedPartitions = Iterator[tuple[U64Array, npt.NDArray[np.uint8]]]


def _vectors(
    snapshot: Snapshot, column: VectorColumn, fragments: Sequence[Fragment], options: VectorOptions
) -> Iterator[tuple[U64Array, npt.NDArray[Any], int]]:
    """Row ids and vectors of the live rows that can be indexed, and the number of rows that were read."""
    for group in _groups(fragments, _OPEN_BYTES // column.vector_bytes):
        for batch in scan(snapshot, [column.parts[0], ROW_ID], fragments=group).to_batches():
            values, valid = vectors_in(column.of(batch), column)
            matrix = values.view(column.dtype).reshape(batch.num_rows, column.dim)
            vectors, kept = usable(matrix, valid, options.metric)
            yield batch.column(1).to_numpy()[kept], vectors, batch.num_rows


def _groups(fragments: Sequence[Fragment], rows: int) -> Iterator[list[Fragment]]:
    """Fragments that are read together: up to this many rows, or a single fragment."""
    group: list[Fragment] = []
    held = 0
    for fragment in fragments:
        if group and held + fragment.physical_rows > rows:
            yield group
            group, held = [], 0
        group.append(fragment)
        held += fragment.physical_rows
    if group:
        yield group


def _sample(
    snapshot: Snapshot, column: VectorColumn, options: VectorOptions, reporter: Reporter
) -> npt.NDArray[Any]:
    wanted = options.sample_rows
    reporter.begin("reading a sample", min(wanted, snapshot.num_rows))
    parts: list[npt.NDArray[Any]] = [np.empty((0, column.dim), dtype=column.dtype)]
    random = np.random.default_rng(0)
    if wanted >= _SCANNED_SHARE * snapshot.num_rows:
        share = min(1.0, 1.1 * wanted / max(1, snapshot.num_rows))
        for _, vectors, read in _vectors(snapshot, column, list(snapshot.fragments), options):
            parts.append(vectors[random.random(len(vectors)) < share] if share < 1 else vectors)
            reporter.advance(read)
    else:
        readers = shared_readers(snapshot)
        for number, addresses in enumerate(_random_rows(snapshot, wanted, random), 1):
            if number % _LOOKUPS == 0:
                readers = shared_readers(snapshot)
            batch = read_rows(snapshot, addresses, [column.parts[0]], readers)
            values, valid = vectors_in(column.of(batch), column)
            matrix = values.view(column.dtype).reshape(batch.num_rows, column.dim)
            parts.append(usable(matrix, valid, options.metric)[0])
            reporter.advance(len(addresses))
    reporter.end()
    return np.concatenate(parts)


def _random_rows(snapshot: Snapshot, count: int, random: np.random.Generator) -> Iterator[U64Array]:
    """Ascending addresses of live rows of all fragments, in parts."""
    fragments = list(snapshot.fragments)
    ends = np.cumsum([fragment.physical_rows for fragment in fragments])
    chosen = np.sort(random.choice(int(ends[-1]), count, replace=False))
    places = np.searchsorted(ends, chosen, "right")
    firsts = ends - [fragment.physical_rows for fragment in fragments]
    numbers = np.array([fragment.id for fragment in fragments], dtype=np.uint64)
    addresses = numbers[places] << np.uint64(32) | (chosen - firsts[places]).astype(np.uint64)
    addresses = addresses[snapshot.is_live(addresses)]
    for begin in range(0, len(addresses), _LOOKED_UP):
        yield addresses[begin : begin + _LOOKED_UP]
