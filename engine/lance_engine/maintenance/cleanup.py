"""Removing old versions, and the files that nothing but them needs."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator
from typing import Final

from lance_engine.errors import DatasetNotFoundError
from lance_engine.format.index_section import parse_index_section
from lance_engine.format.manifest import parse_manifest_file
from lance_engine.io import Store, files_uri
from lance_engine.io.manifest_names import ENDING, VERSIONS
from lance_engine.table.branches import list_branches
from lance_engine.table.commit import TRANSACTIONS
from lance_engine.table.deletions import DELETIONS, deletion_path
from lance_engine.table.hint import HINT_PATH
from lance_engine.table.refs import REFS, branch_store, root_store
from lance_engine.table.snapshot import DATA, INDICES, Snapshot
from lance_engine.table.tags import list_tags
from lance_engine.table.versions import StoredVersion, VersionList, list_versions, read_version


@dataclasses.dataclass(frozen=True)
class CleanupReport:
    """What a clean-up removed or, as a dry run, would remove. Counts are of files."""

    versions: tuple[int, ...]
    data_files: int
    deletion_files: int
    transaction_files: int
    index_files: int
    bytes_removed: int
    dry_run: bool


def cleanup(
    snapshot: Snapshot,
    older_than: datetime.timedelta,
    *,
    dry_run: bool = False,
    delete_unverified: bool = False,
) -> CleanupReport:
    """Remove versions committed longer ago than `older_than`, and the files that only they need.

    The latest version, tagged versions and those that branches began with stay, and so do files that a branch
    refers to. Files that no version ever
    named may belong to a writer at work; `delete_unverified` removes them too, and is safe only when there is
    none. Whoever reads a removed version meanwhile fails.
    """
    store = snapshot.store
    versions = list_versions(store)
    if versions is None:
        raise DatasetNotFoundError("There is no Lance dataset at this path", path=store.uri)
    cutoff = datetime.datetime.now(datetime.UTC) - older_than
    protected = {versions.latest, *_named_versions(snapshot)}
    needed, known = _Files(), _Files()
    removed: list[int] = []
    for version in versions.versions:
        stored = _read(store, versions, version)
        if stored is None:
            continue
        old = stored.manifest.committed_at < cutoff and version not in protected
        files = _files_of(stored)
        known.add(files)
        if old:
            removed.append(version)
        else:
            needed.add(files)
    for files in _files_of_branches(snapshot):
        known.add(files)
        needed.add(files)
    for path in _detached(store):
        files = _files_of(StoredVersion(*parse_manifest_file(store.read(path))))
        known.add(files)
        needed.add(files)
    unused = known.without(needed)
    paths = [
        path
        for folder in _FOLDERS
        for path in store.list(folder)
        if path in unused or (delete_unverified and path not in known)
    ]
    if delete_unverified:
        paths += _leftovers(store)
    manifests = [versions.path(version) for version in removed]
    return _remove(store, manifests, paths, tuple(removed), dry_run)


_FOLDERS: Final = (DATA, DELETIONS, TRANSACTIONS, INDICES)


@dataclasses.dataclass
class _Files:
    """Files by path; and, by their folders, those of indices and the blobs of data files."""

    paths: set[str] = dataclasses.field(default_factory=set)

    def add(self, other: _Files) -> None:
        self.paths |= other.paths

    def without(self, other: _Files) -> _Files:
        return _Files(self.paths - other.paths)

    def __contains__(self, path: str) -> bool:
        # _indices/<uuid>/... belongs to _indices/<uuid>, data/<stem>/... to data/<stem>.lance.
        owner = "/".join(path.split("/")[:2])
        return path in self.paths or owner in self.paths or f"{owner}.lance" in self.paths


def _files_of(stored: StoredVersion, base_id: int | None = None) -> _Files:
    """The files that a version has in the dataset itself, or in one of its base paths."""
    files = _Files()
    for fragment in stored.manifest.fragments:
        files.paths |= {f"{DATA}/{file.path}" for file in fragment.files if file.base_id == base_id}
        deletion = fragment.deletion_file
        if deletion is not None and deletion.base_id == base_id:
            files.paths.add(deletion_path(fragment.id, deletion))
    if stored.manifest.transaction_file and base_id is None:
        files.paths.add(f"{TRANSACTIONS}/{stored.manifest.transaction_file}")
    if stored.index_section is not None:
        for index in parse_index_section(stored.index_section):
            if index.base_id == base_id:
                files.paths.add(f"{INDICES}/{index.uuid}")
    return files


def _read(store: Store, versions: VersionList, version: int) -> StoredVersion | None:
    try:
        return read_version(store, versions.path(version), version)
    except FileNotFoundError:
        return None  # another clean-up was faster


def _named_versions(snapshot: Snapshot) -> set[int]:
    """Versions of this history that a tag or the beginning of a branch names."""
    root, branch = root_store(snapshot), snapshot.manifest.branch
    named = {tag.version for tag in list_tags(root) if tag.branch == branch}
    return named | {other.parent_version for other in list_branches(root) if other.parent == branch}


def _files_of_branches(snapshot: Snapshot) -> Iterator[_Files]:
    """What the other branches refer to in this one, even if the version they began with is gone."""
    root, location = root_store(snapshot), files_uri(snapshot.store).rstrip("/")
    for branch in (None, *(branch.name for branch in list_branches(root))):
        if branch == snapshot.manifest.branch:
            continue
        store = branch_store(root, branch)
        versions = list_versions(store)
        if versions is None:
            continue
        for version in versions.versions:
            stored = _read(store, versions, version)
            if stored is None:
                continue
            for base in stored.manifest.base_paths:
                if base.path.rstrip("/") == location:
                    yield _files_of(stored, base.id)


def _leftovers(store: Store) -> list[str]:
    """What writers that were killed left beside manifests and references, under names that readers ignore."""
    beside = [path for path in store.list(VERSIONS) if not path.endswith(ENDING) and path != HINT_PATH]
    return beside + [path for path in store.list(REFS) if not path.endswith(".json")]


def _detached(store: Store) -> list[str]:
    paths = store.list(VERSIONS)
    return [path for path in paths if path.startswith(f"{VERSIONS}/d") and path.endswith(ENDING)]


def _remove(
    store: Store, manifests: list[str], paths: list[str], versions: tuple[int, ...], dry_run: bool
) -> CleanupReport:
    removed = 0
    counts = dict.fromkeys(_FOLDERS, 0)
    # Manifests first: an interruption leaves files that nothing names, but no version without its files.
    for path in [*manifests, *paths]:
        try:
            size = store.size(path)
        except FileNotFoundError:
            continue
        if not dry_run:
            store.delete(path)
        removed += size
        folder = path.split("/")[0]
        if folder in counts:
            counts[folder] += 1
    return CleanupReport(
        versions=versions,
        data_files=counts[DATA],
        deletion_files=counts[DELETIONS],
        transaction_files=counts[TRANSACTIONS],
        index_files=counts[INDICES],
        bytes_removed=removed,
        dry_run=dry_run,
    )
