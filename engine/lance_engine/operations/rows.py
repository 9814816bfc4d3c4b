"""Reads rows of a version, and removes rows from its fragments."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine.distinct import union
from lance_engine.format.fragment import DeletionFile, Fragment
from lance_engine.format.row_ids import encode_row_ids, encode_versions
from lance_engine.io.store import delete_quietly
from lance_engine.scan.partial import Filter, ReaderFor, scan
from lance_engine.scan.splits import ScanSplit
from lance_engine.table.deletions import deletion_path, of_fragments, write_deletions
from lance_engine.table.features import check_writable
from lance_engine.table.rebase import TakenRows
from lance_engine.table.snapshot import Snapshot

U32Array = npt.NDArray[np.uint32]
U64Array = npt.NDArray[np.uint64]

_OFFSET_BITS = np.uint64(32)


def matching_addresses(
    snapshot: Snapshot, filter: Filter, splits: Sequence[ScanSplit] | None = None
) -> U64Array:
    """The addresses of the rows that pass, ascending; reads the columns of the filter only.

    `splits` restricts this to some ranges of rows, also ascending.
    """
    return joined(scan(snapshot, [], filter, splits=splits).addresses())


def read_rows(
    snapshot: Snapshot, addresses: U64Array, columns: Sequence[str], reader_for: ReaderFor
) -> pa.RecordBatch:
    """The rows at ascending addresses."""
    parts = [
        reader_for(number).projection(tuple(columns)).read_rows(offsets)
        for number, offsets in rows_by_fragment(snapshot, addresses).offsets.items()
    ]
    return parts[0] if len(parts) == 1 else pa.concat_batches(parts)


def live_offsets(snapshot: Snapshot, fragment: Fragment) -> npt.NDArray[np.int64]:
    """The offsets of the rows of a fragment that are not deleted, ascending."""
    offsets = np.arange(fragment.physical_rows)
    deleted = snapshot.deleted_rows(fragment)
    return offsets if deleted is None else np.delete(offsets, deleted)


def joined(parts: Iterable[U64Array]) -> U64Array:
    """Addresses of several batches as one array."""
    held = list(parts)
    return np.concatenate(held) if held else np.empty(0, dtype=np.uint64)


def rows_by_fragment(snapshot: Snapshot, addresses: U64Array) -> TakenRows:
    """Ascending, distinct addresses of live rows, by fragment."""
    if not len(addresses):
        return TakenRows({}, {})
    owners = addresses >> _OFFSET_BITS
    starts = np.flatnonzero(owners[1:] != owners[:-1]) + 1
    parts = np.split(addresses.astype(np.uint32), starts)
    offsets = dict(zip([int(owners[0]), *owners[starts].tolist()], parts, strict=True))
    return TakenRows({number: snapshot.fragment(number) for number in offsets}, offsets)


@dataclasses.dataclass(frozen=True)
class Removal:
    """Fragments after rows were removed: the contents of a Delete or an Update.

    The deletion files already exist, but are not committed yet.
    """

    taken: TakenRows
    updated: tuple[Fragment, ...]
    removed_ids: tuple[int, ...]

    def paths(self) -> list[str]:
        """The locations of the deletion files."""
        return [
            deletion_path(fragment.id, fragment.deletion_file)
            for fragment in self.updated
            if fragment.deletion_file is not None
        ]


def take_out(snapshot: Snapshot, taken: TakenRows) -> Removal:
    """Write the deletion files for removed rows; on failure, all of them are deleted.

    Remote files are written concurrently.
    """
    check_writable(snapshot.manifest)
    # In the order in which any thread writes them.
    written: deque[Fragment] = deque()

    def without_rows(fragment_id: int) -> Fragment | None:
        fragment, offsets = taken.fragments[fragment_id], taken.offsets[fragment_id]
        before = snapshot.deleted_rows(fragment)
        deleted = offsets if before is None else union(before, offsets)
        if len(deleted) == fragment.physical_rows:
            return None
        deletion = write_deletions(snapshot.store, fragment_id, deleted, snapshot.version)
        changed = dataclasses.replace(fragment, deletion_file=deletion)
        written.append(changed)
        return changed

    try:
        left = of_fragments(without_rows, taken.offsets, is_local=snapshot.is_local)
    except BaseException:
        delete_quietly(snapshot.store, Removal(taken, tuple(written), ()).paths())
        raise
    updated = tuple(fragment for fragment in left if fragment is not None)
    removed = (offsets for offsets, fragment in zip(taken.offsets, left, strict=True) if fragment is None)
    return Removal(taken, updated, tuple(removed))


def drop_unused(committed: Snapshot, removal: Removal) -> None:
    """Remove the deletion files that were replaced when the commit met concurrent deletions."""
    unused = [
        deletion_path(fragment.id, fragment.deletion_file)
        for fragment in removal.updated
        if fragment.deletion_file is not None
        and fragment.deletion_file != _deletion_file(committed, fragment.id)
    ]
    delete_quietly(committed.store, unused)


def _deletion_file(snapshot: Snapshot, fragment_id: int) -> DeletionFile | None:
    try:
        return snapshot.fragment(fragment_id).deletion_file
    except KeyError:
        return None


@dataclasses.dataclass(frozen=True)
class Lineage:
    """Stable row ids and creation versions of rows, parallel; both None where row ids are addresses."""

    row_ids: U64Array | None
    created_at: U64Array | None

    def part(self, start: int, stop: int) -> tuple[bytes | None, bytes | None]:
        """The serialised sequences of the rows [start, stop), as fragments carry them."""
        if self.row_ids is None or self.created_at is None:
            return None, None
        return encode_row_ids(self.row_ids[start:stop]), encode_versions(self.created_at[start:stop])


def lineage(snapshot: Snapshot, addresses: U64Array) -> Lineage:
    """The lineage of rows at ascending addresses that are rewritten."""
    if not snapshot.has_stable_row_ids:
        return Lineage(None, None)
    taken = rows_by_fragment(snapshot, addresses)
    ids, created = [], []
    for fragment_id, offsets in taken.offsets.items():
        fragment = taken.fragments[fragment_id]
        ids.append(snapshot.row_ids(fragment, offsets))
        created.append(snapshot.created_at_versions(fragment)[offsets])
    return Lineage(joined(ids), joined(created))


def joined_lineage(snapshot: Snapshot, parts: Sequence[U64Array]) -> Lineage:
    """As `lineage`, for addresses that ascend within each part only."""
    if not snapshot.has_stable_row_ids:
        return Lineage(None, None)
    lineages = [lineage(snapshot, part) for part in parts]
    return Lineage(
        joined(part.row_ids for part in lineages if part.row_ids is not None),
        joined(part.created_at for part in lineages if part.created_at is not None),
    )


def with_lineage(fragments: Iterable[Fragment], moved: Lineage) -> list[Fragment]:
    """New fragments with the moved rows, in order, followed by new rows."""
    if moved.row_ids is None:
        return list(fragments)
    start, total = 0, len(moved.row_ids)
    placed = []
    for fragment in fragments:
        stop = min(start + fragment.physical_rows, total)
        row_ids, created = moved.part(start, stop)
        placed.append(dataclasses.replace(fragment, row_ids=row_ids, created_at_versions=created))
        start = stop
    return placed
