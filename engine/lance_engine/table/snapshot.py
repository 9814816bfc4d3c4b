"""One version of one dataset: immutable, with lazily read deletions and row ids."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from lance_engine.errors import CorruptFileError, LanceError, RowNotFoundError
from lance_engine.fetch import ordered_ahead
from lance_engine.format.deletion import DeletedOffsets
from lance_engine.format.fragment import SPILLED_CREATED_AT, SPILLED_LAST_UPDATED_AT, SPILLED_ROW_IDS
from lance_engine.format.fragment_list import fragment_ids
from lance_engine.format.manifest import BasePath, DataFile, DeletionFile, Fragment, FragmentList, Manifest
from lance_engine.io.external_access import external_access, is_below, local_folder
from lance_engine.io.resolve import open_store
from lance_engine.io.staged_store import StagedStore
from lance_engine.io.store import Store
from lance_engine.io.substore import SubStore, files_uri
from lance_engine.schema_tree import Schema
from lance_engine.table.deletions import DELETIONS, read_deletions
from lance_engine.table.features import STABLE_ROW_IDS

if TYPE_CHECKING:
    from lance_engine.format.index_section import IndexSegment
    from lance_engine.format.row_ids import Segment
    from lance_engine.table.row_id_index import PlacedSegment, RowIdIndex

DATA: Final = "data"
INDICES: Final = "_indices"
TRANSACTIONS: Final = "_transactions"
_OFFSET_BITS: Final = 32
_OFFSET_MASK: Final = np.uint64(2**_OFFSET_BITS - 1)
_MISSING_SHOWN: Final = 10

_NONE_DELETED: Final = np.empty(0, dtype=np.uint32)

U32Array = npt.NDArray[np.uint32]
U64Array = npt.NDArray[np.uint64]


class Snapshot:
    """A version of a dataset. Deletions and row ids are read when first needed; threads may share it."""

    def __init__(
        self,
        store: Store,
        manifest: Manifest,
        *,
        index_section: bytes | None = None,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.store = store
        self.manifest = manifest
        self.index_section = index_section
        self.storage_options = storage_options
        self._deleted: dict[int, DeletedOffsets] = {}
        self._segments: dict[int, list[Segment]] = {}
        self._base_stores: dict[int, Store] = {}
        #: the fragments as stored in the manifest, which may be wrong
        self.recorded_fragments: Sequence[Fragment] = manifest.fragments

    def with_manifest(self, manifest: Manifest) -> Snapshot:
        """The same dataset with another manifest."""
        return Snapshot(
            self.store, manifest, index_section=self.index_section, storage_options=self.storage_options
        )

    def with_fragments(self, fragments: tuple[Fragment, ...]) -> Snapshot:
        """The same dataset with corrected descriptions of its fragments."""
        mended = self.with_manifest(dataclasses.replace(self.manifest, fragments=fragments))
        mended.recorded_fragments = self.recorded_fragments
        mended._deleted.update(self._deleted)
        return mended

    def __repr__(self) -> str:
        return f"Snapshot({self.uri!r}, version={self.version})"

    @property
    def uri(self) -> str:
        """The location of the dataset."""
        return self.store.uri

    @cached_property
    def is_local(self) -> bool:
        """Whether files are mapped, so that nothing is fetched; the store answers with a system call."""
        return self.store.local_path("data") is not None

    @property
    def version(self) -> int:
        return self.manifest.version

    @property
    def schema(self) -> Schema:
        """The schema tree."""
        return self.manifest.schema

    @property
    def fragments(self) -> Sequence[Fragment]:
        """All fragments, in the order of their rows: ascending by id, unless the manifest is damaged."""
        return self.manifest.fragments

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether row ids are independent of row positions; otherwise a row id is a row address."""
        return bool(
            (self.manifest.reader_feature_flags | self.manifest.writer_feature_flags) & STABLE_ROW_IDS
        )

    @cached_property
    def num_rows(self) -> int:
        """The number of rows that are not deleted."""
        if isinstance(self.fragments, FragmentList):
            total = self.fragments.live_rows()
            if total is not None:
                return total
        uncounted = (fragment for fragment in self.fragments if fragment.num_deleted_rows is None)
        self.fetch_deletions(uncounted)
        return sum(self.live_rows(fragment) for fragment in self.fragments)

    @cached_property
    def physical_rows(self) -> int:
        """The number of rows, including deleted ones."""
        if isinstance(self.fragments, FragmentList):
            return self.fragments.physical_rows()
        return sum(fragment.physical_rows for fragment in self.fragments)

    def live_rows(self, fragment: Fragment) -> int:
        """The number of rows of a fragment that are not deleted."""
        deleted = fragment.num_deleted_rows
        if deleted is None:
            deleted = len(self._deleted_offsets(fragment))
        if deleted > fragment.physical_rows:
            raise CorruptFileError(
                f"{deleted} of {fragment.physical_rows} rows are deleted", path=self.uri, fragment=fragment.id
            )
        return fragment.physical_rows - deleted

    def fragment(self, fragment_id: int) -> Fragment:
        """The fragment with this id, else KeyError."""
        index = int(np.searchsorted(self._fragment_ids, np.uint64(fragment_id)))
        if index == len(self._fragment_ids) or int(self._fragment_ids[index]) != fragment_id:
            raise KeyError(fragment_id)
        return self._fragment_at(index)

    # ---- deletions ---------------------------------------------------------------------------------------

    def deleted_rows(self, fragment: Fragment) -> U32Array | None:
        """The physical offsets of the deleted rows, ascending, or None.

        CorruptFileError if the deletion file contains rows that the fragment does not have: either may be
        wrong. Look-ups of single rows do not read them.
        """
        if fragment.deletion_file is None:
            return None
        offsets = self._deleted_offsets(fragment)
        beyond = self.deletions(fragment).beyond
        if beyond is not None:
            store, path = self.deletion_file_location(fragment, fragment.deletion_file)
            raise CorruptFileError(
                f"The deletion file contains row {beyond}, but the fragment has {fragment.physical_rows} "
                f"rows",
                path=f"{store.uri}/{path}",
                fragment=fragment.id,
                remedy="Look up single rows by their ids, or go back to an older version",
            )
        return offsets

    def fetch_deletions(self, fragments: Iterable[Fragment]) -> None:
        """Read the deletion files of some fragments together, if they are remote."""
        if self.is_local:
            return
        missing = [
            fragment
            for fragment in fragments
            if fragment.deletion_file is not None and fragment.id not in self._deleted
        ]
        for _ in ordered_ahead(self._deleted_offsets, iter(missing)):
            pass

    def _deleted_offsets(self, fragment: Fragment) -> U32Array:
        return _NONE_DELETED if fragment.deletion_file is None else self.deletions(fragment).within

    def deletions(self, fragment: Fragment) -> DeletedOffsets:
        """The contents of the deletion file of a fragment, which must have one."""
        known = self._deleted.get(fragment.id)
        if known is None:
            known = self.read_deletions(fragment)
            self.know_deletions(fragment, known)
        return known

    def read_deletions(self, fragment: Fragment) -> DeletedOffsets:
        """The content of the deletion file of a fragment, which has one, read from storage."""
        assert fragment.deletion_file is not None
        store, path = self.deletion_file_location(fragment, fragment.deletion_file)
        return read_deletions(store, path, fragment, fragment.deletion_file)

    def know_deletions(self, fragment: Fragment, deletions: DeletedOffsets) -> None:
        """Cache the contents of the deletion file of a fragment."""
        deletions.within.flags.writeable = False
        self._deleted[fragment.id] = deletions

    # ---- row ids -----------------------------------------------------------------------------------------

    def row_ids(self, fragment: Fragment, offsets: npt.NDArray[np.integer[Any]] | None = None) -> U64Array:
        """The row ids of the rows at these physical offsets, None meaning all: addresses, or stable ids."""
        if offsets is None:
            offsets = np.arange(fragment.physical_rows, dtype=np.uint64)
        if not self.has_stable_row_ids:
            return np.uint64(fragment.id << _OFFSET_BITS) + offsets.astype(np.uint64)
        from lance_engine.format.row_ids import row_ids_at  # few queries need ids

        return row_ids_at(self._row_id_segments(fragment), offsets)

    def created_at_versions(self, fragment: Fragment) -> U64Array:
        """The version in which each physical row was created; 1 where that is not recorded."""
        return self._row_versions(fragment, fragment.created_at_versions, SPILLED_CREATED_AT)

    def last_updated_at_versions(self, fragment: Fragment) -> U64Array:
        """The version in which each physical row was last changed; 1 where that is not recorded."""
        return self._row_versions(fragment, fragment.last_updated_at_versions, SPILLED_LAST_UPDATED_AT)

    def find_row_ids(self, ids: npt.ArrayLike) -> U64Array:
        """The address of each existing row id, in order, including duplicates."""
        addresses, exists = self.locate_row_ids(np.asarray(ids, dtype=np.uint64))
        return addresses if exists.all() else addresses[exists]

    def row_id_range(self, low: int, high: int) -> npt.NDArray[np.int64]:
        """Ranges of row addresses, shape (n, 2), with the rows whose stable ids are in [low, high).

        In no order; some of the rows may be deleted.
        """
        return self._row_id_index.find_range(low, high)

    def locate_row_ids(self, wanted: U64Array) -> tuple[U64Array, npt.NDArray[np.bool_]]:
        """The address of each row id, and whether its row exists; other addresses are undefined."""
        if self.has_stable_row_ids:
            return self._row_id_index.find(wanted)
        return wanted, self.is_live(wanted)

    def resolve_row_ids(self, ids: npt.ArrayLike) -> U64Array:
        """The address of each row id, in order, with duplicates; RowNotFoundError lists the missing ones."""
        wanted = np.asarray(ids, dtype=np.uint64)
        addresses, exists = self.locate_row_ids(wanted)
        if not exists.all():
            missing = np.unique(wanted[~exists])
            shown = ", ".join(str(row) for row in missing[:_MISSING_SHOWN].tolist())
            more = ", ..." if len(missing) > _MISSING_SHOWN else ""
            raise RowNotFoundError(
                f"{len(missing):,} row {'id' if len(missing) == 1 else 'ids'} not found, or deleted: "
                f"{shown}{more}",
                path=self.uri,
                version=self.version,
                remedy="Row ids are values of the column _rowid; take_positions() reads rows by position",
            )
        return addresses

    @cached_property
    def _fragment_ids(self) -> U64Array:
        """The ids of the fragments, ascending."""
        ids = fragment_ids(self.fragments)
        return ids if self._id_order is None else ids[self._id_order]

    @cached_property
    def _id_order(self) -> npt.NDArray[np.int64] | None:
        """The numbers of the fragments in the order of their ids; None if they are in that order already."""
        ids = fragment_ids(self.fragments)
        return None if (ids[1:] > ids[:-1]).all() else np.argsort(ids, kind="stable")

    def _fragment_at(self, index: int) -> Fragment:
        """The fragment at a place among the ascending ids."""
        return self.fragments[index if self._id_order is None else int(self._id_order[index])]

    @cached_property
    def _row_id_index(self) -> RowIdIndex:
        from lance_engine.table.row_id_index import RowIdIndex

        return RowIdIndex(self._placed_segments(), self.is_live)

    def _placed_segments(self) -> Iterator[PlacedSegment]:
        from lance_engine.table.row_id_index import PlacedSegment

        for fragment in self.fragments:
            address = fragment.id << _OFFSET_BITS
            # Those that nobody has requested are not kept: the index holds the same in less memory.
            for segment in self._segments.get(fragment.id) or self._parse_row_ids(fragment):
                yield PlacedSegment(segment, address)
                address += len(segment)

    def _row_id_segments(self, fragment: Fragment) -> list[Segment]:
        known = self._segments.get(fragment.id)
        if known is None:
            known = self._segments[fragment.id] = self._parse_row_ids(fragment)
        return known

    def _parse_row_ids(self, fragment: Fragment) -> list[Segment]:
        from lance_engine.format.row_ids import IdArray, parse_row_ids

        with self._placed(fragment):
            if fragment.row_ids is not None:
                return parse_row_ids(fragment.row_ids, fragment.physical_rows)
            if fragment.has_spilled_lineage:
                return [IdArray(self._spilled(fragment, SPILLED_ROW_IDS))]
            raise CorruptFileError("A fragment of a dataset with stable row ids has no row ids")

    def _row_versions(self, fragment: Fragment, sequence: bytes | None, spilled: int) -> U64Array:
        with self._placed(fragment):
            if self.has_stable_row_ids:
                if sequence is not None:
                    from lance_engine.format.row_ids import decode_versions

                    return decode_versions(sequence, fragment.physical_rows)
                if fragment.has_spilled_lineage:
                    return self._spilled(fragment, spilled)
            return np.ones(fragment.physical_rows, dtype=np.uint64)

    def _spilled(self, fragment: Fragment, column: int) -> U64Array:
        from lance_engine.table.spilled_lineage import read_spilled  # rare, and needs all that reads files

        locations = [self.data_file_location(file) for file in fragment.files]
        return read_spilled(fragment, column, locations)

    @contextmanager
    def _placed(self, fragment: Fragment) -> Iterator[None]:
        try:
            yield
        except LanceError as error:
            raise error.at(path=self.uri, version=self.version, fragment=fragment.id) from None

    def is_live(self, addresses: U64Array) -> npt.NDArray[np.bool_]:
        """Whether each address is that of a row that exists and is not deleted."""
        if not len(self._fragment_ids):
            return np.zeros(len(addresses), dtype=np.bool_)
        fragment_ids = addresses >> np.uint64(_OFFSET_BITS)
        offsets = addresses & _OFFSET_MASK
        positions = np.minimum(np.searchsorted(self._fragment_ids, fragment_ids), len(self._fragment_ids) - 1)
        live: npt.NDArray[np.bool_] = self._fragment_ids[positions] == fragment_ids
        if (
            len(live) and live.all() and (positions == positions[0]).all()
        ):  # as for every look-up of a single row
            return self._is_live_in(self._fragment_at(int(positions[0])), offsets)
        # Grouped by fragment: each group is a slice of `order`.
        order = np.flatnonzero(live)
        order = order[np.argsort(positions[order], kind="stable")]
        touched, starts = np.unique(positions[order], return_index=True)
        bounds = [*starts.tolist(), len(order)]
        self.fetch_deletions(map(self._fragment_at, touched.tolist()))
        for position, start, end in zip(touched.tolist(), bounds[:-1], bounds[1:], strict=True):
            here = order[start:end]
            live[here] = self._is_live_in(self._fragment_at(position), offsets[here])
        return live

    def _is_live_in(self, fragment: Fragment, offsets: U64Array) -> npt.NDArray[np.bool_]:
        live: npt.NDArray[np.bool_] = offsets < fragment.physical_rows
        deleted = self._deleted_offsets(fragment)
        if len(deleted):
            index = np.minimum(np.searchsorted(deleted, offsets), len(deleted) - 1)
            live &= deleted[index] != offsets
        return live

    # ---- files -------------------------------------------------------------------------------------------

    def data_file_location(self, data_file: DataFile) -> tuple[Store, str]:
        """The store of a data file, and its path there."""
        return self._location(data_file.base_id, DATA, data_file.path)

    def deletion_file_location(self, fragment: Fragment, deletion: DeletionFile) -> tuple[Store, str]:
        """The store of a deletion file, and its path there."""
        return self._location(deletion.base_id, DELETIONS, deletion.file_name(fragment.id))

    def index_file_location(self, segment: IndexSegment, name: str = "") -> tuple[Store, str]:
        """The store and path of an index file; without a name, of the index folder."""
        store, path = self._location(segment.base_id, INDICES, f"{segment.uuid}/{name}")
        return store, path.rstrip("/")

    def base_store(self, base_id: int) -> Store:
        """The store of another location for files; CorruptFileError if the manifest does not list it."""
        store = self._base_stores.get(base_id)
        if store is None:
            base = self._base(base_id)
            store = self._base_stores[base_id] = self._open_base(base.path)
        return store

    def _location(self, base_id: int | None, folder: str, name: str) -> tuple[Store, str]:
        if base_id is None:
            return self.store, f"{folder}/{name}"
        base = self._base(base_id)
        return self.base_store(base_id), f"{folder}/{name}" if base.is_dataset_root else name

    def _base(self, base_id: int) -> BasePath:
        base = next((base for base in self.manifest.base_paths if base.id == base_id), None)
        if base is None:
            raise CorruptFileError(
                f"A file refers to the base path {base_id}, which does not exist",
                path=self.uri,
                version=self.version,
            )
        return base

    def external_blob(self, base_id: int | None, uri: str) -> tuple[Store, str]:
        """The store and the path in it of a blob that is anywhere, or by its path below a base path.

        ExternalAccessError unless the caller allows that place, or it is in the dataset itself.
        """
        place = uri if base_id is None else f"{self._base(base_id).path.rstrip('/')}/{uri}"
        folder, separator, name = place.rpartition("/")
        if not separator or not name or "\0" in place:
            raise CorruptFileError(f"Invalid location of a blob: {place!r}", path=self.uri)
        root, location = self._root()
        options = external_access(self.storage_options).options_for(
            location, place, self.storage_options, blob=True
        )
        inside = local_folder(place)
        if inside is not None and is_below(location, place):
            within = os.path.relpath(os.path.realpath(inside), os.path.realpath(location))
            return root, within.replace(os.sep, "/")
        return open_store(folder or "/", options), name

    def _open_base(self, path: str) -> Store:
        # Branches refer to the dataset that they are in, and to one another.
        root, location = self._root()
        path = path.rstrip("/")
        if path == location:
            return root
        if path.startswith(f"{location}/"):
            return SubStore(root, path.removeprefix(f"{location}/"))
        options = external_access(self.storage_options).options_for(location, path, self.storage_options)
        return open_store(path, options)

    def _root(self) -> tuple[Store, str]:
        """The store of the whole dataset, and where its files are."""
        files = self.store.base if isinstance(self.store, StagedStore) else self.store
        root = files.base if isinstance(files, SubStore) else files
        return root, files_uri(root).rstrip("/")
