"""Manifests that do not record how many rows a fragment has: the data files know."""

from __future__ import annotations

import dataclasses
from typing import Final

from lance_engine.errors import CorruptFileError
from lance_engine.format.fragment import Fragment
from lance_engine.format.fragment_list import FragmentList
from lance_engine.table.snapshot import Snapshot

# Offsets of rows are half of their addresses.
_MOST_ROWS: Final = 2**32


def with_row_counts(snapshot: Snapshot) -> Snapshot:
    """The snapshot itself, or one in which every fragment has its number of rows.

    CorruptFileError for more rows than the addresses of rows can tell apart.
    """
    fragments = snapshot.fragments
    if isinstance(fragments, FragmentList) and fragments.most_rows() > _MOST_ROWS:
        raise CorruptFileError(
            f"A fragment says that it has {fragments.most_rows():,} rows",
            path=snapshot.uri,
            version=snapshot.version,
        )
    if isinstance(fragments, FragmentList) and fragments.all_rows_known():
        return snapshot
    counted = tuple(_counted(snapshot, fragment) for fragment in fragments)
    return snapshot.with_manifest(dataclasses.replace(snapshot.manifest, fragments=counted))


def _counted(snapshot: Snapshot, fragment: Fragment) -> Fragment:
    if fragment.physical_rows or not fragment.files:
        return fragment
    # Rare, so that opening a dataset need not load what reads files.
    from lance_engine.file.legacy import LegacyFile
    from lance_engine.file.reader import FileReader

    for file in fragment.files:
        if file.storage_version == "0.1":
            store, path = snapshot.data_file_location(file)
            rows = LegacyFile(store, path, file.fields).metadata.rows
            return dataclasses.replace(fragment, physical_rows=rows)
        # The first column of a file belongs to a top-level field: its items are the rows.
        if 0 in file.column_indices:
            store, path = snapshot.data_file_location(file)
            rows = FileReader(store, path, size=file.file_size).column_metadata(0).rows
            return dataclasses.replace(fragment, physical_rows=rows)
    raise CorruptFileError(
        "Neither the manifest nor a data file tells how many rows a fragment has",
        path=snapshot.uri,
        version=snapshot.version,
        fragment=fragment.id,
    )
