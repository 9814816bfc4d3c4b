"""Making, listing and removing branches, and cloning a dataset without copying its files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lance_engine.errors import DatasetExistsError
from lance_engine.io.resolve import open_store
from lance_engine.public import Public
from lance_engine.table.branches import Branch, create_branch, delete_branch, list_branches, read_branch
from lance_engine.table.clones import write_clone
from lance_engine.table.refs import root_store
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import list_versions, open_snapshot
from lance_engine.write.dataset import check_extension


class Branches(Public):
    """The branches of a dataset. Changes are effective immediately; they do not create versions."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def __repr__(self) -> str:
        return f"Branches({ {branch.name: branch.parent_version for branch in self.list()} })"

    def list(self) -> list[Branch]:
        """All branches by name, without the main branch."""
        return list_branches(root_store(self._snapshot))

    def get(self, name: str) -> Branch:
        """The branch `name`; VersionNotFoundError if it does not exist."""
        return read_branch(root_store(self._snapshot), name)

    def create(self, name: str, version: int | None = None) -> Branch:
        """Create the branch `name` from a version of this branch, by default this version.

        Open it with ``open(..., branch=name)``. No data is copied. BranchExistsError if it exists.
        """
        return create_branch(_at(self._snapshot, version), name)

    def delete(self, name: str) -> None:
        """Delete the branch `name` and its versions; BranchInUseError if others were created from it."""
        delete_branch(root_store(self._snapshot), name)


def shallow_clone(
    snapshot: Snapshot, uri: str, version: int | None, storage_options: Mapping[str, Any] | None
) -> Snapshot:
    """Create a dataset at `uri` from a version of this one, which refers to its files."""
    target = open_store(uri, snapshot.storage_options if storage_options is None else storage_options)
    check_extension(target.uri)
    source = _at(snapshot, version)
    problem = DatasetExistsError(
        "A dataset already exists at this path", path=target.uri, remedy="Choose another path"
    )
    if list_versions(target) is not None:
        raise problem
    try:
        write_clone(source, target)
    except FileExistsError:
        raise problem from None
    return open_snapshot(target, storage_options=storage_options or snapshot.storage_options)


def _at(snapshot: Snapshot, version: int | None) -> Snapshot:
    if version is None or version == snapshot.version:
        return snapshot
    return open_snapshot(snapshot.store, version, storage_options=snapshot.storage_options)
