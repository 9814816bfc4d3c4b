"""Selecting a version by number, tag, time or branch, and naming versions."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from typing import Any

from lance_engine.errors import VersionNotFoundError
from lance_engine.io import Store, open_store
from lance_engine.table.branches import read_branch
from lance_engine.table.refs import branch_store, root_store
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.tags import Tag, create_tag, delete_tag, list_tags, read_tag, update_tag
from lance_engine.table.versions import open_snapshot, version_as_of


class Tags:
    """The tags of a dataset. Changes are visible at once and for every version; they are no versions."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @property
    def _root(self) -> Store:
        return root_store(self._snapshot)

    def __repr__(self) -> str:
        return f"Tags({ {tag.name: tag.version for tag in self.list()} })"

    def list(self) -> list[Tag]:
        """All tags by name."""
        return list_tags(self._root)

    def get(self, name: str) -> Tag:
        """One tag; VersionNotFoundError if there is none of this name."""
        return read_tag(self._root, name)

    def create(self, name: str, version: int | None = None) -> Tag:
        """Name a version of this branch, by default that of this dataset; TagExistsError if taken."""
        return create_tag(self._root, name, self._version(version), self._snapshot.manifest.branch)

    def update(self, name: str, version: int | None = None) -> Tag:
        """Let an existing tag name another version."""
        return update_tag(self._root, name, self._version(version), self._snapshot.manifest.branch)

    def delete(self, name: str) -> None:
        """Forget a tag; its version stays until it is cleaned up."""
        delete_tag(self._root, name)

    def _version(self, version: int | None) -> int:
        return self._snapshot.version if version is None else version


def select_snapshot(
    uri: str | os.PathLike[str] | Store,
    version: int | None = None,
    tag: str | None = None,
    as_of: datetime.datetime | None = None,
    storage_options: Mapping[str, Any] | None = None,
    branch: str | None = None,
) -> Snapshot:
    """Open the version that at most one of `version`, `tag` and `as_of` selects, the latest if none does.

    Versions and times are those of `branch`; None and "main" are the main history.
    """
    if sum(choice is not None for choice in (version, tag, as_of)) > 1:
        raise ValueError("give only one of version, tag and as_of")
    root = open_store(uri, storage_options)
    branch = None if branch == "main" else branch
    if tag is not None:
        found = read_tag(root, tag)
        if branch is not None and found.branch != branch:
            raise VersionNotFoundError(
                f"The tag '{tag}' names a version of {_described(found.branch)}, not of {_described(branch)}",
                path=root.uri,
            )
        version, branch = found.version, found.branch
    if branch is not None:
        read_branch(root, branch)
    store = branch_store(root, branch)
    if as_of is not None:
        version = version_as_of(store, as_of)
    return open_snapshot(store, version, storage_options=storage_options)


def _described(branch: str | None) -> str:
    return "the main history" if branch is None else f"the branch '{branch}'"
