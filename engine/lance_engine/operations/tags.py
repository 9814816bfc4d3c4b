"""Names for versions."""

from __future__ import annotations

from lance_engine.io.store import Store
from lance_engine.public import Public
from lance_engine.table.refs import root_store
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.tags import Tag, create_tag, delete_tag, list_tags, read_tag, update_tag


class Tags(Public):
    """The tags of a dataset. Changes take effect at once and do not create versions."""

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
        """The tag `name`; VersionNotFoundError if it does not exist."""
        return read_tag(self._root, name)

    def create(self, name: str, version: int | None = None) -> Tag:
        """Tag a version of this branch, by default this version; TagExistsError if `name` is taken."""
        return create_tag(self._root, name, self._version(version), self._snapshot.manifest.branch)

    def update(self, name: str, version: int | None = None) -> Tag:
        """Move the existing tag `name` to another version; VersionNotFoundError if either does not exist."""
        return update_tag(self._root, name, self._version(version), self._snapshot.manifest.branch)

    def delete(self, name: str) -> None:
        """Delete the tag `name`. Its version is kept until cleanup removes it."""
        delete_tag(self._root, name)

    def _version(self, version: int | None) -> int:
        return self._snapshot.version if version is None else version
