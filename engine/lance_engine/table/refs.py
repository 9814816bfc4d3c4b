"""What tags and branches have in common: where they are kept, and what a valid name is."""

from __future__ import annotations

import json
import urllib.parse
from typing import Any, Final

from lance_engine.errors import CorruptFileError
from lance_engine.io import Store, SubStore, open_store
from lance_engine.table.snapshot import Snapshot

REFS: Final = "_refs"
TREE: Final = "tree"
ENDING: Final = ".json"


def list_refs(store: Store, folder: str) -> list[str]:
    """The names of all references in a folder, ascending."""
    paths = [path.removeprefix(f"{folder}/") for path in store.list(folder)]
    names = [path.removesuffix(ENDING) for path in paths if path.endswith(ENDING) and "/" not in path]
    return sorted(urllib.parse.unquote(name) for name in names)


def read_ref(store: Store, path: str, what: str, version_key: str) -> dict[str, Any]:
    """The content of a reference: an object that names a version under `version_key`.

    FileNotFoundError if there is none, CorruptFileError if it is something else.
    """
    try:
        content = json.loads(store.read(path))
    except ValueError as error:
        raise CorruptFileError(f"A {what} is not valid JSON", path=f"{store.uri}/{path}") from error
    if not isinstance(content, dict) or not isinstance(content.get(version_key), int):
        raise CorruptFileError(f"A {what} does not name a version", path=f"{store.uri}/{path}")
    return content


def branch_store(root: Store, branch: str | None) -> Store:
    """Where the versions of a branch lie, None being the main history."""
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
