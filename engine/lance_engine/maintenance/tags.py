"""Selecting a version by number, tag or time, and naming versions."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from typing import Any

from lance_engine.errors import UnsupportedFeatureError
from lance_engine.io import Store, open_store
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.tags import Tag, create_tag, delete_tag, list_tags, read_tag, update_tag
from lance_engine.table.versions import open_snapshot, version_as_of


class Tags:
    """The tags of a dataset. Changes are visible at once and for every version; they are no versions."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def __repr__(self) -> str:
        return f"Tags({ {tag.name: tag.version for tag in self.list()} })"

    def list(self) -> list[Tag]:
        """All tags by name."""
        return list_tags(self._snapshot.store)

    def get(self, name: str) -> Tag:
        """One tag; VersionNotFoundError if there is none of this name."""
        return read_tag(self._snapshot.store, name)

    def create(self, name: str, version: int | None = None) -> Tag:
        """Name a version, by default that of the dataset this was asked of; TagExistsError if taken."""
        return create_tag(self._snapshot.store, name, self._version(version))

    def update(self, name: str, version: int | None = None) -> Tag:
        """Let an existing tag name another version."""
        return update_tag(self._snapshot.store, name, self._version(version))

    def delete(self, name: str) -> None:
        """Forget a tag; its version stays until it is cleaned up."""
        delete_tag(self._snapshot.store, name)

    def _version(self, version: int | None) -> int:
        return self._snapshot.version if version is None else version


def select_snapshot(
    uri: str | os.PathLike[str] | Store,
    version: int | None = None,
    tag: str | None = None,
    as_of: datetime.datetime | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Snapshot:
    """Open the version that at most one of the arguments selects, the latest if none does."""
    if sum(choice is not None for choice in (version, tag, as_of)) > 1:
        raise ValueError("give only one of version, tag and as_of")
    store = open_store(uri, storage_options)
    if tag is not None:
        found = read_tag(store, tag)
        if found.branch is not None:
            raise UnsupportedFeatureError(
                f"The tag '{tag}' names a version of the branch '{found.branch}'",
                path=store.uri,
                remedy="Branches are not supported yet",
            )
        version = found.version
    if as_of is not None:
        version = version_as_of(store, as_of)
    return open_snapshot(store, version, storage_options=storage_options)
