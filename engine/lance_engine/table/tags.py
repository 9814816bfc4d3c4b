"""Tags: names for versions, each a small file."""

from __future__ import annotations

import contextlib
import datetime
import json
import urllib.parse
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from lance_engine.errors import CorruptFileError, InvalidArgumentError, TagExistsError, VersionNotFoundError
from lance_engine.io.store import Store
from lance_engine.table.refs import ENDING, branch_store, list_refs, put_new, read_ref, readable, unreadable
from lance_engine.table.versions import check_still_there, list_versions

TAGS: Final = "_refs/tags"


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag. `branch` is None for the main branch; times are None if they are not recorded."""

    name: str
    version: int
    branch: str | None = None
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None


def list_tags(store: Store) -> list[Tag]:
    """All tags by name, except damaged ones; one request each."""
    return readable(list_refs(store, TAGS), lambda name: read_tag(store, name))


def damaged_tags(store: Store) -> list[str]:
    """The paths of the tags that cannot be read."""
    return unreadable(store, TAGS, lambda name: read_tag(store, name))


def read_tag(store: Store, name: str) -> Tag:
    """The tag `name`; VersionNotFoundError lists the existing tags."""
    return _parse(store, name, _content(store, name))


def create_tag(store: Store, name: str, version: int, branch: str | None = None) -> Tag:
    """Tag a version of a branch or of the main branch. TagExistsError if the name is taken."""
    now = _now()
    content: dict[str, Any] = {
        "branch": branch,
        "version": version,
        "createdAt": now,
        "updatedAt": now,
        "manifestSize": _manifest_size(branch_store(store, branch), version),
        "metadata": {},
    }
    try:
        put_new(store, _path(name), json.dumps(content).encode())
    except FileExistsError:
        raise TagExistsError(
            f"Tag '{name}' already exists",
            path=store.uri,
            version=read_tag(store, name).version,
            remedy="Update or delete the tag or choose another name",
        ) from None
    check_still_there(branch_store(store, branch), version, lambda: store.delete(_path(name)))
    return _parse(store, name, content)


def update_tag(store: Store, name: str, version: int, branch: str | None = None) -> Tag:
    """Move an existing tag to another version."""
    before = _content(store, name)
    content = before | {
        "branch": branch,
        "version": version,
        "updatedAt": _now(),
        "manifestSize": _manifest_size(branch_store(store, branch), version),
    }
    store.put(_path(name), json.dumps(content).encode())
    undo = partial(store.put, _path(name), json.dumps(before).encode())
    check_still_there(branch_store(store, branch), version, undo)
    return _parse(store, name, content)


def delete_tag(store: Store, name: str) -> None:
    """Delete a tag; its version is kept."""
    with contextlib.suppress(CorruptFileError):  # damaged tags can be deleted, too
        read_tag(store, name)
    store.delete(_path(name))


def _path(name: str) -> str:
    plain = all(character.isalnum() or character in ".-_" for character in name)
    if not plain or not name or name != name.strip(".") or ".." in name or name.endswith(".lock"):
        raise InvalidArgumentError(
            f"{name!r} is not a valid tag name: use letters, digits, '.', '-' and '_', without a dot at "
            f"the start or end, without two dots in a row, and not ending with '.lock'"
        )
    return f"{TAGS}/{urllib.parse.quote(name)}{ENDING}"


def _manifest_size(store: Store, version: int) -> int:
    versions = list_versions(store)
    if versions is not None and version in versions.versions:
        with contextlib.suppress(FileNotFoundError):  # a cleanup has just removed it
            return store.size(versions.path(version))
    raise VersionNotFoundError(
        f"No version {version} to tag", path=store.uri, remedy="history() lists the versions"
    )


def _content(store: Store, name: str) -> dict[str, Any]:
    path = _path(name)
    try:
        return read_ref(store, path, "tag", "version")
    except FileNotFoundError:
        known = ", ".join(list_refs(store, TAGS)) or "none"
        raise VersionNotFoundError(
            f"Tag '{name}' not found", path=store.uri, remedy=f"Available tags: {known}"
        ) from None


def _parse(store: Store, name: str, content: dict[str, Any]) -> Tag:
    try:
        created, updated = (
            datetime.datetime.fromisoformat(content[key]) if content.get(key) else None
            for key in ("createdAt", "updatedAt")
        )
    except (TypeError, ValueError) as error:
        raise CorruptFileError("A tag has an invalid time", path=f"{store.uri}/{_path(name)}") from error
    return Tag(name, content["version"], content.get("branch"), created, updated)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat().replace("+00:00", "Z")
