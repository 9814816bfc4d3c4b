"""Removes old versions, and the files that only they use."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final
from urllib.parse import unquote, urlsplit

from lance_engine.errors import DatasetNotFoundError, InvalidArgumentError
from lance_engine.format.index_section import parse_index_section
from lance_engine.format.manifest import parse_manifest_file
from lance_engine.io.manifest_names import ENDING, VERSIONS
from lance_engine.io.store import Store
from lance_engine.io.substore import files_uri, is_externally_committed
from lance_engine.progress import ProgressOption, Reporter
from lance_engine.table.branches import branch_names, damaged_branches, list_branches
from lance_engine.table.deletions import DELETIONS
from lance_engine.table.durations import moment_before
from lance_engine.table.refs import REFS, branch_store, root_store
from lance_engine.table.restores import versions_being_restored
from lance_engine.table.snapshot import DATA, INDICES, TRANSACTIONS, Snapshot
from lance_engine.table.tags import damaged_tags, list_tags
from lance_engine.table.versions import StoredVersion, VersionList, list_versions, read_version

#: Minimum age at which a file without a version cannot belong to an active writer any more.
UNVERIFIED_AGE: Final = datetime.timedelta(days=7)


@dataclasses.dataclass(frozen=True)
class CleanupReport:
    """The result of a cleanup, or of a dry run. Counts are of files.

    `damaged_references` are the paths of tags and branches that cannot be read. It is unknown to which
    versions they refer, so no version is removed, nor any file that one of them needs.
    """

    versions: tuple[int, ...]
    data_files: int
    deletion_files: int
    transaction_files: int
    index_files: int
    bytes_removed: int
    dry_run: bool
    damaged_references: tuple[str, ...] = ()


def cleanup(
    snapshot: Snapshot,
    older_than: datetime.timedelta,
    *,
    retain_versions: int = 1,
    dry_run: bool = False,
    delete_unverified: bool = False,
    progress: ProgressOption = None,
) -> CleanupReport:
    """Remove versions committed longer ago than `older_than`, and the files that only they use.

    The newest `retain_versions` versions, tagged versions and the first versions of branches are kept, and so
    are files that a branch uses. Files without a version may belong to an active writer: they are removed
    when they are older than `UNVERIFIED_AGE`, or immediately with `delete_unverified`, which is only safe if
    there is no writer.
    Readers of a removed version fail. An exception in `progress` stops the cleanup: the remaining versions
    are complete, and remaining files without a version count as unverified. While a tag or branch is damaged,
    every version is kept: it may refer to any of them.
    """
    if not isinstance(older_than, datetime.timedelta):
        raise InvalidArgumentError(
            f"older_than must be a timedelta, not {older_than!r}",
            remedy="Pass for example datetime.timedelta(days=7)",
        )
    if isinstance(retain_versions, bool) or not isinstance(retain_versions, int) or retain_versions < 1:
        raise InvalidArgumentError(
            f"retain_versions must be a whole number from 1 on, not {retain_versions!r}",
            remedy="The newest version is always kept: pass 1 to keep only that",
        )
    store, reporter = snapshot.store, Reporter(progress)
    versions = list_versions(store)
    if versions is None:
        raise DatasetNotFoundError("No Lance dataset at this path", path=store.uri)
    location = _location(store)
    now = datetime.datetime.now(datetime.UTC)
    cutoff = moment_before(older_than)
    damaged = (*damaged_tags(root_store(snapshot)), *damaged_branches(root_store(snapshot)))
    newest = sorted(versions.versions)[-retain_versions:]
    protected = {versions.latest, *newest, *(versions.versions if damaged else _named_versions(snapshot))}
    needed, known = _Files(), _Files()
    removed: list[int] = []
    reporter.begin("reading versions", len(versions.versions), "versions")
    for version in versions.versions:
        stored = _read(store, versions, version)
        reporter.advance(1)
        if stored is None:
            continue
        old = stored.manifest.committed_at < cutoff and version not in protected
        files = _files_of(stored, location, location)
        known.add(files)
        if old:
            removed.append(version)
        else:
            needed.add(files)
    for files in _files_of_branches(snapshot):
        known.add(files)
        needed.add(files)
    for path in _detached(store):
        detached = StoredVersion(*parse_manifest_file(store.read(path)))
        files = _files_of(detached, location, location)
        known.add(files)
        needed.add(files)
    unused = known.without(needed)
    oldest = None if delete_unverified else now - UNVERIFIED_AGE
    paths: list[str] = []
    for folder in _FOLDERS:
        paths += [
            path
            for path in store.list(folder)
            if path in unused or (path not in known and _is_abandoned(store, path, oldest))
        ]
    paths += [path for path in _leftovers(store) if _is_abandoned(store, path, oldest)]
    reporter.begin("sizing files" if dry_run else "removing files", len(removed) + len(paths), "files")
    # Manifests first: an interruption may leave files without a version, but no version without its files.
    removal = _Removal(store, dry_run, reporter)
    kept = removal.versions(snapshot, versions, removed)
    if not kept:
        # The files of a version that was named in the meantime are among these; the next cleanup knows it.
        # A version that was restored in the meantime is the content of a newer one.
        newer = _files_of_newer(store, versions.latest, location) if paths else _Files()
        removal.files([path for path in paths if path not in newer])
    reporter.end()
    counts = removal.counts
    return CleanupReport(
        versions=tuple(version for version in removed if version not in kept),
        data_files=counts[DATA],
        deletion_files=counts[DELETIONS],
        transaction_files=counts[TRANSACTIONS],
        index_files=counts[INDICES],
        bytes_removed=removal.bytes,
        dry_run=dry_run,
        damaged_references=damaged,
    )


_FOLDERS: Final = (DATA, DELETIONS, TRANSACTIONS, INDICES)


@dataclasses.dataclass
class _Files:
    """Files by path; files of indices and blobs are grouped by folder."""

    paths: set[str] = dataclasses.field(default_factory=set)

    def add(self, other: _Files) -> None:
        self.paths |= other.paths

    def without(self, other: _Files) -> _Files:
        return _Files(self.paths - other.paths)

    def __contains__(self, path: str) -> bool:
        # _indices/<uuid>/... belongs to _indices/<uuid>, data/<stem>/... to data/<stem>.lance.
        owner = "/".join(path.split("/")[:2])
        return path in self.paths or owner in self.paths or f"{owner}.lance" in self.paths


def _files_of(stored: StoredVersion, home: str, location: str) -> _Files:
    """The files in the dataset or branch at `location` that a version of the one at `home` uses."""
    bases = {base.id: base for base in stored.manifest.base_paths}
    places: dict[tuple[int | None, str], str | None] = {}

    def place(base_id: int | None, folder: str) -> str | None:
        """The folder of files below `location`, with a slash at the end; None if they are elsewhere."""
        if (base_id, folder) not in places:
            root, inside = home, f"{folder}/"
            if base_id is not None:
                base = bases.get(base_id)
                root = "" if base is None else _plain(base.path)
                inside = f"{folder}/" if base is None or base.is_dataset_root else ""
            path = f"{root}/{inside}"
            here = path.startswith(f"{location}/")
            places[base_id, folder] = path.removeprefix(f"{location}/") if here else None
        return places[base_id, folder]

    files = _Files()
    for fragment in stored.manifest.fragments:
        for file in fragment.files:
            if (folder := place(file.base_id, DATA)) is not None:
                files.paths.add(folder + file.path)
        deletion = fragment.deletion_file
        if deletion is not None and (folder := place(deletion.base_id, DELETIONS)) is not None:
            files.paths.add(folder + deletion.file_name(fragment.id))
    if stored.manifest.transaction_file and home == location:
        files.paths.add(f"{TRANSACTIONS}/{stored.manifest.transaction_file}")
    if stored.index_section is not None:
        for index in parse_index_section(stored.index_section):
            if (folder := place(index.base_id, INDICES)) is not None:
                files.paths.add(f"{folder}{index.uuid}")
    return files


def _location(store: Store) -> str:
    return files_uri(store).rstrip("/")


def _plain(path: str) -> str:
    """A base path in the spelling of `_location`."""
    if path.startswith("file://"):
        path = unquote(urlsplit(path).path)
    return path.rstrip("/")


def _read(store: Store, versions: VersionList, version: int) -> StoredVersion | None:
    try:
        return read_version(store, versions.path(version), version)
    except FileNotFoundError:
        return None  # another cleanup has already removed it


def _named_versions(snapshot: Snapshot) -> set[int]:
    """Versions of this branch with a tag, from which a branch was created, or that are being restored."""
    root, branch = root_store(snapshot), snapshot.manifest.branch
    named = versions_being_restored(snapshot.store)
    named |= {tag.version for tag in list_tags(root) if tag.branch == branch}
    return named | {other.parent_version for other in list_branches(root) if other.parent == branch}


def _files_of_branches(snapshot: Snapshot) -> Iterator[_Files]:
    """Files of this branch that other branches use, even if the version from which they started is gone."""
    root, location = root_store(snapshot), _location(snapshot.store)
    # Including branches with a damaged file: the files they use are kept.
    for branch in (None, *branch_names(root)):
        if branch == snapshot.manifest.branch:
            continue
        store = branch_store(root, branch)
        versions = list_versions(store)
        if versions is None:
            continue
        for version in versions.versions:
            stored = _read(store, versions, version)
            if stored is not None:
                yield _files_of(stored, _location(store), location)


def _files_of_newer(store: Store, seen: int, location: str) -> _Files:
    """The files of versions after `seen`."""
    files, versions = _Files(), list_versions(store)
    if versions is not None:
        for version in (number for number in versions.versions if number > seen):
            if (stored := _read(store, versions, version)) is not None:
                files.add(_files_of(stored, location, location))
    return files


def _is_abandoned(store: Store, path: str, oldest: datetime.datetime | None) -> bool:
    """Whether a file without a version was written by a writer before `oldest` (None: at any time)."""
    folder, name = path.split("/")[0], path.rpartition("/")[2]
    # Other files in the data folder belong to the user. Hidden files are incomplete ones.
    if folder == DATA and not name.startswith(".") and not name.endswith(_OF_WRITERS):
        return False
    if oldest is None:
        return True
    try:
        written = store.modified(path)
    except FileNotFoundError:
        return False
    return written is not None and written < oldest


_OF_WRITERS: Final = (".lance", ".blob")


def _leftovers(store: Store) -> list[str]:
    """Files that killed writers left next to manifests and references, under names that readers ignore."""
    names = [*store.list(VERSIONS), *store.list(REFS)]
    left = [path for path in names if not path.endswith((ENDING, ".json"))]
    if is_externally_committed(store):
        return left
    # A manifest that is still staged may be a version that only the database knows.
    return [path for path in left if f"{ENDING}-" not in path]


def _detached(store: Store) -> list[str]:
    paths = store.list(VERSIONS)
    return [path for path in paths if path.startswith(f"{VERSIONS}/d") and path.endswith(ENDING)]


#: Manifests that are kept in memory until no tag or branch can refer to them any more, in bytes.
_MANIFEST_BYTES: Final = 64 << 20


class _Removal:
    """Removes manifests and files, or only counts them."""

    def __init__(self, store: Store, dry_run: bool, reporter: Reporter) -> None:
        self._store = store
        self._dry_run = dry_run
        self._reporter = reporter
        self.counts = dict.fromkeys(_FOLDERS, 0)
        self.bytes = 0

    def versions(self, snapshot: Snapshot, names: VersionList, versions: Sequence[int]) -> set[int]:
        """Remove the manifests of `versions`; returns those that had to be put back.

        A tag or branch may be created, or a version restored, while this runs. Who does it checks afterwards
        that the version still exists, and here they are listed again once it is removed: one of both notices.
        """
        kept: set[int] = set()
        batch: dict[int, bytes] = {}
        for version in versions:
            content = self._take(names.path(version))
            if content is not None:
                batch[version] = content
            if sum(map(len, batch.values())) > _MANIFEST_BYTES:
                kept |= self._put_back(snapshot, names, batch)
                batch.clear()
        return kept | self._put_back(snapshot, names, batch)

    def _take(self, path: str) -> bytes | None:
        self._reporter.advance(1)
        try:
            content = self._store.read(path)
        except FileNotFoundError:
            return None
        if not self._dry_run:
            self._store.delete(path)
        self.bytes += len(content)
        return content

    def _put_back(self, snapshot: Snapshot, names: VersionList, batch: Mapping[int, bytes]) -> set[int]:
        if self._dry_run or not batch:
            return set()
        named = _named_versions(snapshot) & batch.keys()
        for version in named:
            with suppress(FileExistsError):
                self._store.put_if_absent(names.path(version), batch[version])
            self.bytes -= len(batch[version])
        return named

    def files(self, paths: Sequence[str]) -> None:
        """Remove other files."""
        for path in paths:
            self._reporter.advance(1)
            try:
                size = self._store.size(path)
            except FileNotFoundError:
                continue
            if not self._dry_run:
                self._store.delete(path)
            self.bytes += size
            folder = path.split("/")[0]
            if folder in self.counts:
                self.counts[folder] += 1
