"""The common part of tags and branches: where they are stored, and valid names."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar, cast

from lance_engine.errors import (
    CorruptFileError,
    InvalidArgumentError,
    LanceError,
    MissingFileError,
    StorageUnavailableError,
    VersionNotFoundError,
)
from lance_engine.io.resolve import open_store
from lance_engine.io.store import Store
from lance_engine.io.substore import SubStore
from lance_engine.table.snapshot import Snapshot

Ref = TypeVar("Ref")
REFS: Final = "_refs"
TREE: Final = "tree"
ENDING: Final = ".json"


def put_new(store: Store, path: str, data: bytes) -> None:
    """Create a file with content that no other writer writes; FileExistsError if another one exists.

    A client of a store that repeats a request whose answer was lost finds the file of its first request.
    """
    try:
        store.put_if_absent(path, data)
    except FileExistsError:
        try:
            if store.read(path) == data:
                return
        except FileNotFoundError:
            pass
        raise


def list_refs(store: Store, folder: str) -> list[str]:
    """The names of all references in a folder, ascending."""
    paths = [path.removeprefix(f"{folder}/") for path in store.list(folder)]
    names = [path.removesuffix(ENDING) for path in paths if path.endswith(ENDING) and "/" not in path]
    return sorted(urllib.parse.unquote(name) for name in names)


def read_ref(store: Store, path: str, what: str, version_key: str) -> dict[str, Any]:
    """The content of a reference: an object that names a version under `version_key`.

    FileNotFoundError if none exists, CorruptFileError if it is something else.
    """
    try:
        content = json.loads(store.read(path))
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"A {what} is not valid JSON", path=f"{store.uri}/{path}") from error
    version = content.get(version_key) if isinstance(content, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or not 0 < version < 2**64:
        raise CorruptFileError(f"A {what} has no version", path=f"{store.uri}/{path}")
    for key in ("branch", "parentBranch"):
        branch = content.get(key)
        if branch is not None and not (isinstance(branch, str) and is_branch_name(branch)):
            raise CorruptFileError(f"A {what} has no branch", path=f"{store.uri}/{path}")
    return cast("dict[str, Any]", content)


def is_branch_name(name: str) -> bool:
    """Whether the name is valid for a branch; it is also the path of a folder below ``tree``."""
    parts = name.split("/")
    plain = all(part and all(letter.isalnum() or letter in ".-_" for letter in part) for part in parts)
    return plain and not (".." in name or name == "main" or name.endswith(".lock") or "." in parts)


def readable(names: Iterable[str], read: Callable[[str], Ref]) -> list[Ref]:
    """The readable references: damaged ones, or just removed ones, are skipped."""
    readable = []
    for name in names:
        try:
            readable.append(read(name))
        except (ValueError, VersionNotFoundError, FileNotFoundError) as error:
            damaged = (CorruptFileError, InvalidArgumentError, VersionNotFoundError, MissingFileError)
            if isinstance(error, LanceError) and not isinstance(error, damaged):
                raise
    return readable


def unreadable(root: Store, folder: str, read: Callable[[str], object]) -> list[str]:
    """The paths of the unreadable references in a folder, under any name."""
    unreadable = []
    for path in root.list(folder):
        name = urllib.parse.unquote(path.removeprefix(f"{folder}/").removesuffix(ENDING))
        if not path.endswith(ENDING):
            continue  # unfinished, or not of ours
        try:
            read(name)
        except (VersionNotFoundError, FileNotFoundError):
            if root.exists(path):  # under a name that is spelled otherwise
                unreadable.append(path)
        except (ValueError, LanceError) as error:
            if isinstance(error, StorageUnavailableError):
                raise
            unreadable.append(path)
    return unreadable


def branch_store(root: Store, branch: str | None) -> Store:
    """The location of the versions of a branch, None being the main branch."""
    return root if branch is None else SubStore(root, f"{TREE}/{branch}")


def root_store(snapshot: Snapshot) -> Store:
    """The store of the whole dataset, with its tags and branches, for a version of any branch."""
    store, branch = snapshot.store, snapshot.manifest.branch
    if branch is None:
        return store
    if isinstance(store, SubStore):
        return store.base
    # Opened by the path of the branch itself.
    location, query, parameters = store.uri.partition("?")
    root = location.removesuffix(f"/{TREE}/{branch}")
    return open_store(f"{root}{query}{parameters}", snapshot.storage_options)
