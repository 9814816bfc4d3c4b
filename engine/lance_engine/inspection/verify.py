"""Checks that a version is complete: every file that it names exists and agrees with the manifest."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_engine.errors import CorruptFileError, LanceError
from lance_engine.file.lasting import LASTING
from lance_engine.file.legacy import LegacyFile
from lance_engine.file.reader import FileReader
from lance_engine.format.fragment import Fragment
from lance_engine.format.index_section import IndexSegment, parse_index_section
from lance_engine.format.manifest import parse_manifest_file
from lance_engine.index.files import SegmentFiles
from lance_engine.index.kind import is_usable
from lance_engine.index.registry import readable_kind
from lance_engine.io.listed_files import LISTED
from lance_engine.scan.fragment import FragmentReader
from lance_engine.scan.pool import num_threads, ordered_map
from lance_engine.scan.scanner import Scanner
from lance_engine.scan.splits import ScanSplit
from lance_engine.schema_tree import Field
from lance_engine.table.row_counts import stored_rows
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import find_latest

FINDINGS_SCHEMA: Final = pa.schema(
    [
        pa.field("check", pa.string(), nullable=False),
        pa.field("problem", pa.string(), nullable=False),
        ("path", pa.string()),
        ("fragment_id", pa.uint32()),
        ("column", pa.string()),
        ("remedy", pa.string()),
    ]
)


_COPY: Final = "What can be read is right as far as it goes: write it to a new dataset"


def verify(snapshot: Snapshot, *, values: bool = False) -> pa.Table:
    """One row per problem of this version; no rows if it is sound.

    Looks at the manifest, at the end and the column metadata of every data file, at all deletion files, row
    ids and row versions, and at the files of indices. `values` also decodes every value, which takes as long
    as reading the dataset. Problems are reported, not raised; the checks then continue with the rest.
    """
    LISTED.clear()
    LASTING.clear()  # what is checked is what is there now
    findings = _Findings()
    _check_manifest(snapshot, findings)

    def check(fragments: tuple[Fragment, Fragment]) -> _Findings:
        findings_oft = _Findings()
        _check_fragment(snapshot, *fragments, findings_oft)
        return findings_oft

    pairs = zip(snapshot.fragments, snapshot.recorded_fragments, strict=True)
    for findings_of in ordered_map(check, pairs, 2 * num_threads()):
        findings.rows += findings_of.rows
    if snapshot.has_stable_row_ids and not any(row["check"] == "row ids" for row in findings.rows):
        with findings.collected("row ids"):
            # Building the index of row ids finds ids that two live rows share.
            snapshot.resolve_row_ids(np.empty(0, dtype=np.uint64))
    _check_indices(snapshot, findings)
    if values:
        _check_values(snapshot, findings)
    return pa.Table.from_pylist(findings.rows, schema=FINDINGS_SCHEMA)


class _Findings:
    """Problems, as rows of the answer."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    @contextmanager
    def collected(self, check: str, **place: Any) -> Iterator[None]:
        """Turn an error of the block into a finding."""
        try:
            yield
        except LanceError as error:
            self.add(check, error.message, remedy=error.remedy, **(error.place | place))
        except OSError as error:
            self.add(check, f"{type(error).__name__}: {error}", **place)

    def add(self, check: str, problem: str, *, remedy: str = "", **place: Any) -> None:
        self.rows.append(
            {
                "check": check,
                "problem": _storable(problem),
                "path": _storable(place.get("path")),
                "fragment_id": place.get("fragment"),
                "column": _storable(place.get("column")),
                "remedy": _storable(remedy or None),
            }
        )


def _storable(text: str | None) -> str | None:
    """`text` with escapes for halves of characters, which damaged files contain and Arrow does not store."""
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()


def _check_manifest(snapshot: Snapshot, findings: _Findings) -> None:
    manifest = snapshot.manifest
    ids = [fragment.id for fragment in snapshot.recorded_fragments]
    for number, times in Counter(ids).items():
        if times > 1:
            findings.add(
                "manifest", f"{times} fragments have the id {number}", path=snapshot.uri, remedy=_COPY
            )
    if any(after < before for before, after in itertools.pairwise(ids)):
        findings.add("manifest", "The fragments are not in ascending order of their ids", path=snapshot.uri)
    with findings.collected("manifest", path=snapshot.uri):
        recorded = _recorded_max_fragment_id(snapshot)
        if ids and recorded is not None and max(ids) > recorded:
            findings.add(
                "manifest",
                f"Fragment id {max(ids)} is above the highest fragment id so far, {recorded}",
                path=snapshot.uri,
                remedy="Any change by this library records the right one; others could number two "
                "fragments alike",
            )
    fields = [field.id for field in manifest.schema.walk()]
    if len(set(fields)) < len(fields):
        findings.add("manifest", "Two fields of the schema have the same id", path=snapshot.uri)


def _recorded_max_fragment_id(snapshot: Snapshot) -> int | None:
    """As in the file: an opened manifest has at least the id of its fragments, see `with_defaults`."""
    latest = find_latest(snapshot.store)
    if latest is None:
        return None
    try:
        content = snapshot.store.read(latest[1].path(snapshot.version))
    except FileNotFoundError:  # removed meanwhile
        return None
    return parse_manifest_file(content)[0].max_fragment_id


# ---- fragments -------------------------------------------------------------------------------------------


def _check_fragment(snapshot: Snapshot, fragment: Fragment, recorded: Fragment, findings: _Findings) -> None:
    readable = True
    for file in fragment.files:
        before = len(findings.rows)
        with findings.collected("data file", fragment=fragment.id):
            store, path = snapshot.data_file_location(file)
            with findings.collected("data file", fragment=fragment.id, path=f"{store.uri}/{path}"):
                if file.storage_version == "0.1":
                    LegacyFile(store, path, file.fields)
                    continue
                reader = FileReader(store, path, size=file.file_size)
                if reader.version != file.storage_version:
                    raise CorruptFileError(
                        f"The file has version {reader.version}, but the manifest records "
                        f"{file.storage_version}"
                    )
                for column in range(reader.num_columns):
                    reader.column_metadata(column)
        readable &= len(findings.rows) == before
    with findings.collected("deletion file", fragment=fragment.id):
        _check_deletions(snapshot, fragment, recorded)
    if snapshot.has_stable_row_ids:
        _check_lineage(snapshot, fragment, findings)
    if not readable:
        return
    with findings.collected("manifest", fragment=fragment.id):
        _check_row_count(snapshot, fragment, recorded)
    with findings.collected("data file", fragment=fragment.id):
        columns = FragmentReader(snapshot, fragment)
        for field in snapshot.schema.fields:
            with findings.collected("column", fragment=fragment.id, column=field.name):
                _check_column(snapshot, columns, field)


def _check_row_count(snapshot: Snapshot, fragment: Fragment, recorded: Fragment) -> None:
    """The rows of the files; a writer that does not know them records 0.

    If such a file misses rows, the checks of columns report it.
    """
    rows = stored_rows(snapshot, fragment)
    if rows is None or not recorded.physical_rows or rows < fragment.physical_rows:
        return
    if rows != recorded.physical_rows:
        raise CorruptFileError(
            f"The files of the fragment have {rows} rows, the manifest says {recorded.physical_rows}",
            path=snapshot.uri,
            remedy=_COPY,
        )


def _check_deletions(snapshot: Snapshot, fragment: Fragment, recorded: Fragment) -> None:
    deleted = snapshot.deleted_rows(fragment)
    said, counted = recorded.num_deleted_rows, 0 if deleted is None else len(deleted)
    if said is not None and said != counted:
        raise CorruptFileError(
            f"The deletion file has {counted} rows, but the manifest records {said}",
            path=snapshot.uri,
            remedy=_COPY,
        )
    if deleted is not None and counted == fragment.physical_rows:
        raise CorruptFileError(
            "A fragment with only deleted rows is still listed", remedy="Compact the dataset"
        )


def _check_lineage(snapshot: Snapshot, fragment: Fragment, findings: _Findings) -> None:
    place = {"fragment": fragment.id}
    with findings.collected("row ids", **place):
        ids = snapshot.row_ids(fragment)
        if len(ids) and int(ids.max()) >= snapshot.manifest.next_row_id:
            raise CorruptFileError(
                f"The row id {int(ids.max())} is in use, but the next row id is "
                f"{snapshot.manifest.next_row_id}",
                path=snapshot.uri,
            )
    for read in (snapshot.created_at_versions, snapshot.last_updated_at_versions):
        with findings.collected("row versions", **place):
            versions = read(fragment)
            if len(versions) and int(versions.max()) > snapshot.version:
                raise CorruptFileError(
                    f"A row has version {int(versions.max())}, but this is version {snapshot.version}",
                    path=snapshot.uri,
                )


def _check_column(snapshot: Snapshot, reader: FragmentReader, field: Field) -> None:
    reader.projection((field.name,)).check_rows()
    if not reader.is_stored(field):
        if not field.nullable and reader.rows:
            raise CorruptFileError("A column that must not be null is not stored", path=snapshot.uri)
        return
    with reader.placed():
        for path, leaf in _leaves_outside_lists(field, field.name):
            if reader.holds(leaf):
                reader.zone_map(leaf, path)


def _check_values(snapshot: Snapshot, findings: _Findings) -> None:
    """Decode everything, by fragment and column, except those that already have a finding."""
    known = {(row["fragment_id"], row["column"]) for row in findings.rows if row["fragment_id"] is not None}
    for fragment in snapshot.fragments:
        if (fragment.id, None) in known:
            continue
        split = ScanSplit(fragment.id, 0, fragment.physical_rows)
        with findings.collected("data file", fragment=fragment.id):
            reader = FragmentReader(snapshot, fragment)
            for name in snapshot.schema.names:
                if (fragment.id, name) in known:
                    continue
                with findings.collected("values", fragment=fragment.id, column=name):
                    _check_batches(
                        Scanner(snapshot, {fragment.id: reader}.__getitem__, columns=[name], splits=[split])
                    )


def _check_batches(scanner: Scanner) -> None:
    for batch in scanner.to_batches():
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid as error:
            raise CorruptFileError(f"Invalid values: {error}") from error


def _leaves_outside_lists(field: Field, path: str) -> Iterator[tuple[str, Field]]:
    if field.is_leaf:
        yield path, field
    elif field.logical_type == "struct":
        for child in field.children:
            yield from _leaves_outside_lists(child, f"{path}.{child.name}")


# ---- indices ---------------------------------------------------------------------------------------------


def _check_indices(snapshot: Snapshot, findings: _Findings) -> None:
    segments: tuple[IndexSegment, ...] = ()
    with findings.collected("index", path=snapshot.uri):
        segments = parse_index_section(snapshot.index_section or b"")
    paths = snapshot.schema.paths_by_id()
    for segment in segments:
        remedy = f"Drop the index '{segment.name}' and create it again"
        lost = [field for field in segment.fields if field not in paths]
        if lost:
            problem = f"The index '{segment.name}' is on field {lost[0]}, which the schema does not have"
            findings.add("index", problem, path=snapshot.uri, remedy=remedy)
        column = paths.get(segment.fields[0]) if segment.fields and not lost else None
        before = len(findings.rows)
        for name, size in segment.files:
            with findings.collected("index", column=column):
                store, path = snapshot.index_file_location(segment, name)
                _check_index_file(store.size(path) if store.exists(path) else None, size, path, remedy)
        kind = readable_kind(segment.kind)
        if kind is not None and is_usable(segment, kind) and len(findings.rows) == before:
            with findings.collected("index", column=column):
                kind.open(SegmentFiles(snapshot, segment))


def _check_index_file(size: int | None, recorded: int, path: str, remedy: str) -> None:
    if size is None:
        raise CorruptFileError("A file of an index is missing", path=path, remedy=remedy)
    if recorded and size != recorded:
        raise CorruptFileError(
            f"A file of an index has {size} bytes, but the manifest records {recorded}",
            path=path,
            remedy=remedy,
        )
