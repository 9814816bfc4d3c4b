"""Corrects wrong or missing row counts and ids of fragments in manifests."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from lance_engine.errors import CorruptFileError, LanceError
from lance_engine.fetch import ordered_ahead
from lance_engine.format.fragment import LEGACY, Fragment
from lance_engine.format.fragment_list import FragmentList, fragment_ids
from lance_engine.table.snapshot import Snapshot

# The ids of fragments are half of the addresses of rows.
_MOST_IDS: Final = 2**32


def with_row_counts(snapshot: Snapshot) -> Snapshot:
    """The snapshot itself, or one in which every fragment has its number of rows and its own id.

    Deleted rows are counted too: pylance refuses some changes after a commit that leaves them uncounted.
    """
    snapshot = _with_own_ids(snapshot)
    fragments = snapshot.fragments
    # Early writers, which did not record their name, wrote wrong numbers.
    trusted = snapshot.manifest.writer_version is not None
    if trusted and _all_rows_known(fragments) and not _is_legacy(snapshot):
        _check_doubtful(snapshot)
        return snapshot

    def count(fragment: Fragment) -> Fragment:
        return _counted(snapshot, fragment, trusted=trusted)

    if snapshot.is_local:
        counted = tuple(map(count, fragments))
    else:
        counted = tuple(new for _, new in ordered_ahead(count, iter(fragments)))
    if all(new is old for new, old in zip(counted, fragments, strict=True)):
        return snapshot
    return snapshot.with_fragments(counted)


def _check_doubtful(snapshot: Snapshot) -> None:
    """CorruptFileError if a fragment claims far more rows than its small files can contain."""
    fragments = snapshot.fragments
    for place in fragments.doubtful_rows() if isinstance(fragments, FragmentList) else ():
        fragment = fragments[place]
        try:
            rows = stored_rows(snapshot, fragment)
        except (LanceError, OSError):
            continue  # reading it will report what is wrong with its files
        if rows is not None and rows < fragment.physical_rows:
            raise CorruptFileError(
                f"The manifest says that a fragment has {fragment.physical_rows} rows; its files have {rows}",
                path=snapshot.uri,
                version=snapshot.version,
                fragment=fragment.id,
                remedy="Open an earlier version, or restore one",
            )


def _is_legacy(snapshot: Snapshot) -> bool:
    """Whether the files have version 0.1, in which all rows count, whatever the manifest says."""
    if snapshot.manifest.storage_version not in (None, LEGACY):
        return False
    first = snapshot.fragments[:1]
    return any(file.storage_version == LEGACY for fragment in first for file in fragment.files)


def _all_rows_known(fragments: Sequence[Fragment]) -> bool:
    if isinstance(fragments, FragmentList):
        return fragments.all_rows_known() and fragments.all_deletions_counted()
    return all(
        (fragment.physical_rows or not fragment.files) and fragment.num_deleted_rows is not None
        for fragment in fragments
    )


def _counted(snapshot: Snapshot, fragment: Fragment, *, trusted: bool) -> Fragment:
    fragment = _with_rows(snapshot, fragment, trusted=trusted)
    if fragment.num_deleted_rows is None or (fragment.deletion_file is not None and not trusted):
        return _with_counted_deletions(snapshot, fragment)
    return fragment


def _with_rows(snapshot: Snapshot, fragment: Fragment, *, trusted: bool) -> Fragment:
    legacy = any(file.storage_version == LEGACY for file in fragment.files)
    if not fragment.files or (trusted and fragment.physical_rows and not legacy):
        return fragment
    try:
        rows = stored_rows(snapshot, fragment)
    except (LanceError, OSError):
        if not fragment.physical_rows:
            raise
        return fragment  # reading it will report what is wrong with its files
    if rows is None:
        raise CorruptFileError(
            "Neither the manifest nor a data file records the number of rows of a fragment",
            path=snapshot.uri,
            version=snapshot.version,
            fragment=fragment.id,
        )
    return fragment if rows == fragment.physical_rows else dataclasses.replace(fragment, physical_rows=rows)


def _with_counted_deletions(snapshot: Snapshot, fragment: Fragment) -> Fragment:
    """The fragment with the number of its deleted rows; itself if its deletion file is damaged."""
    assert fragment.deletion_file is not None
    try:
        deletions = snapshot.read_deletions(fragment)
    except (LanceError, OSError):
        return fragment  # reading it will report what is wrong with the file
    if deletions.beyond is not None or len(deletions.within) == fragment.num_deleted_rows:
        return fragment
    deletion = dataclasses.replace(fragment.deletion_file, num_deleted_rows=len(deletions.within))
    return dataclasses.replace(fragment, deletion_file=deletion)


def stored_rows(snapshot: Snapshot, fragment: Fragment) -> int | None:
    """The number of rows in the data files of a fragment; None if unknown."""
    # Rare, so that opening a dataset need not load what reads files.
    from lance_engine.file.legacy import LegacyFile
    from lance_engine.file.reader import FileReader

    for file in fragment.files:
        store, path = snapshot.data_file_location(file)
        if file.storage_version == LEGACY:
            return LegacyFile(store, path, file.fields).metadata.rows
        # The first column of a file belongs to a top-level field: its items are the rows.
        if 0 in file.column_indices:
            return FileReader(store, path, size=file.file_size).column_metadata(0).rows
    return None


def check_ids(fragments: Sequence[Fragment], version: int) -> None:
    """CorruptFileError if fragments are indistinguishable for changes."""
    if isinstance(fragments, FragmentList) and fragments.repeats_ids():
        raise CorruptFileError(
            "Several fragments have the same id, so changes cannot distinguish them",
            version=version,
            remedy="Reading still works: write the rows to a new dataset",
        )


def _with_own_ids(snapshot: Snapshot) -> Snapshot:
    """The snapshot, in which fragments with the id of an earlier one have new ids, above all others."""
    fragments = snapshot.fragments
    if not isinstance(fragments, FragmentList) or not fragments.repeats_ids():
        return snapshot
    renamed = snapshot.with_fragments(tuple(_renamed(snapshot)))
    renamed.index_section = None  # its indices cannot tell the rows of such fragments apart
    for before, after in zip(fragments, renamed.fragments, strict=True):
        if before.deletion_file is not None and before.id != after.id:
            # The names of deletion files contain the id that the fragment had.
            renamed.know_deletions(after, snapshot.read_deletions(before))
    return renamed


def _renamed(snapshot: Snapshot) -> Iterator[Fragment]:
    seen: set[int] = set()
    free = itertools.count(int(fragment_ids(snapshot.fragments).max()) + 1)
    for fragment in snapshot.fragments:
        if fragment.id in seen:
            number = next(free)
            if number >= _MOST_IDS:
                check_ids(snapshot.fragments, snapshot.version)
            yield dataclasses.replace(fragment, id=number)
        else:
            seen.add(fragment.id)
            yield fragment
