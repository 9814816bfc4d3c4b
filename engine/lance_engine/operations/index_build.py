"""Builds segments of indices from the rows of fragments, and from the entries of existing segments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lance_engine.arrow_values import stored
from lance_engine.format.fragment import Fragment
from lance_engine.format.index_section import IndexSegment
from lance_engine.index.kind import ROW, IndexKind, RowFinder, RowFinderKind, ZoneFinder, ZoneSource
from lance_engine.index.live_zones import ROWS_OPTION, live_zones
from lance_engine.index.order import SORT_BYTES, ExternalSorter, merged
from lance_engine.index.segments import CoveringSegment, holds_addresses
from lance_engine.operations.index_files import IndexFolder, index_folder
from lance_engine.progress import Reporter
from lance_engine.scan.partial import scan
from lance_engine.scan.system import ROW_ADDRESS, ROW_ID
from lance_engine.table.snapshot import Snapshot, U64Array

#: Maps row ids or addresses to the ids for the new segment, and a mask of the entries to keep.
Relocate = Callable[[U64Array], tuple[U64Array, npt.NDArray[np.bool_]]]


@dataclass(frozen=True, slots=True)
class Target:
    """The parameters of a segment to build."""

    name: str
    kind: IndexKind
    field_id: int
    parts: tuple[str, ...]
    column_type: pa.DataType
    options: Mapping[str, int]


def build_segment(
    snapshot: Snapshot,
    target: Target,
    fragments: Sequence[Fragment],
    carried: Sequence[CoveringSegment],
    reporter: Reporter,
    *,
    memory: int = SORT_BYTES,
) -> tuple[IndexSegment, list[str]]:
    """A segment over the rows of `fragments` and over the remaining entries of the segments `carried`.

    Returns it with the paths of its files, which are not committed yet. Sorting uses about `memory` bytes,
    and temporary files beyond that.
    """
    with index_folder(snapshot, reporter) as folder:
        if isinstance(target.kind, RowFinderKind):
            details = _build_rows(snapshot, target, fragments, carried, folder, reporter, memory)
        else:
            details = _build_zones(snapshot, target, fragments, carried, folder, reporter)
    covered = BitMap([fragment.id for fragment in fragments]).union(
        *(segment.fragments for segment in carried)
    )
    segment = folder.segment(
        target.name,
        target.kind.message,
        (target.field_id,),
        snapshot.version,
        covered,
        details,
        new_version(snapshot, target.kind),
    )
    return segment, folder.paths()


def rebuild_moved(
    snapshot: Snapshot,
    segment: CoveringSegment,
    kind: RowFinderKind,
    relocate: Relocate,
    covered: BitMap,
    reporter: Reporter,
) -> tuple[IndexSegment, list[str]]:
    """The segment with its entries moved to other rows by `relocate`; entries keep their order."""
    finder = cast(RowFinder, segment.open(kind))
    old = segment.segment
    with index_folder(snapshot, reporter) as folder:
        entries = _relocated(finder.entries(), relocate)
        details = kind.build(entries, finder.value_type, folder, {**kind.options, **kind.built_with(finder)})
    new = folder.segment(
        old.name, kind.message, old.fields, old.dataset_version, covered, details, old.index_version
    )
    return new, folder.paths()


def new_version(snapshot: Snapshot, kind: IndexKind) -> int:
    """The version of new segments of a kind."""
    if not isinstance(kind, RowFinderKind):
        return 0
    return kind.stable_version if snapshot.has_stable_row_ids else kind.version


def _build_rows(
    snapshot: Snapshot,
    target: Target,
    fragments: Sequence[Fragment],
    carried: Sequence[CoveringSegment],
    folder: IndexFolder,
    reporter: Reporter,
    memory: int,
) -> bytes:
    kind = cast(RowFinderKind, target.kind)
    by_address = kind.holds_addresses(new_version(snapshot, kind))
    identifier = ROW_ADDRESS if by_address else ROW_ID
    with ExternalSorter(memory) as sorter:
        for ids, values in _rows(snapshot, target, fragments, identifier, reporter):
            sorter.add(kind.entries_of(ids, values))
        runs = [sorter.sorted()]
        for segment in carried:
            finder = cast(RowFinder, segment.open(kind))
            runs.append(_relocated(finder.entries(), _still_there(snapshot, kind, segment)))
        reporter.begin("writing the index")
        entry_type = kind.entry_type(target.column_type)
        return kind.build(_counted(merged(runs), reporter), entry_type, folder, target.options)


def _build_zones(
    snapshot: Snapshot,
    target: Target,
    fragments: Sequence[Fragment],
    carried: Sequence[CoveringSegment],
    folder: IndexFolder,
    reporter: Reporter,
) -> bytes:
    assert not isinstance(target.kind, RowFinderKind)
    rows = _rows(snapshot, target, fragments, ROW_ADDRESS, reporter)
    rows_per_zone = int(target.options[ROWS_OPTION])
    held = [
        (cast(ZoneFinder, segment.open(target.kind)), frozenset(segment.fragments)) for segment in carried
    ]
    source = ZoneSource(live_zones(rows, rows_per_zone), held, target.column_type, rows_per_zone)
    return target.kind.build(source, folder)


def _rows(
    snapshot: Snapshot, target: Target, fragments: Sequence[Fragment], identifier: str, reporter: Reporter
) -> Iterator[tuple[U64Array, pa.Array]]:
    """Identifier and value of the live rows of some fragments."""
    reporter.begin("reading the column", sum(snapshot.live_rows(fragment) for fragment in fragments))
    if fragments:
        for batch in scan(snapshot, [target.parts[0], identifier], fragments=fragments).to_batches():
            values = batch.column(0)
            if len(target.parts) > 1:
                values = pc.struct_field(values, list(target.parts[1:]))
            yield batch.column(1).to_numpy(), stored(values)
            reporter.advance(batch.num_rows)
    reporter.end()


def _relocated(entries: Iterable[pa.RecordBatch], relocate: Relocate) -> Iterator[pa.RecordBatch]:
    for batch in entries:
        ids, kept = relocate(batch.column(1).to_numpy())
        moved = batch.set_column(1, ROW, pa.array(ids))
        yield moved if kept.all() else moved.filter(pa.array(kept))


def _still_there(snapshot: Snapshot, kind: RowFinderKind, segment: CoveringSegment) -> Relocate:
    """Keeps the rows in the fragments for which the segment is used, with their new ids."""
    covered = np.array(segment.fragments, dtype=np.uint64)
    by_address = holds_addresses(snapshot, kind, segment.segment)
    to_address = not snapshot.has_stable_row_ids or kind.holds_addresses(new_version(snapshot, kind))

    def relocate(ids: U64Array) -> tuple[U64Array, npt.NDArray[np.bool_]]:
        if by_address:
            addresses, exists = ids, snapshot.is_live(ids)
        else:
            addresses, exists = snapshot.locate_row_ids(ids)
        kept = exists & np.isin(addresses >> np.uint64(32), covered)
        if to_address:
            return addresses, kept
        if by_address:
            ids = ids.copy()
            ids[kept] = _stable_ids(snapshot, addresses[kept])
        return ids, kept

    return relocate


def _stable_ids(snapshot: Snapshot, addresses: U64Array) -> U64Array:
    row_ids = np.empty(len(addresses), dtype=np.uint64)
    fragments = addresses >> np.uint64(32)
    for number in np.unique(fragments).tolist():
        here = fragments == number
        offsets = addresses[here] & np.uint64(2**32 - 1)
        row_ids[here] = snapshot.row_ids(snapshot.fragment(number), offsets)
    return row_ids


def _counted(batches: Iterable[pa.RecordBatch], reporter: Reporter) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        reporter.advance(batch.num_rows)
    reporter.end()
