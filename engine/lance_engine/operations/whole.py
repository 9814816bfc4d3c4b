"""Removes and renames whole datasets."""

from __future__ import annotations

import os
import shutil
import uuid
from typing import Final

from lance_engine.errors import (
    CommitConflictError,
    DatasetExistsError,
    DatasetNotFoundError,
    UnsupportedFeatureError,
)
from lance_engine.io.local import LocalStore
from lance_engine.io.local_files import LocalErrors
from lance_engine.io.manifest_names import VERSIONS
from lance_engine.io.store import Store
from lance_engine.operations.retry import latest
from lance_engine.table.refs import TREE, root_store
from lance_engine.table.snapshot import DATA, Snapshot


def drop_dataset(snapshot: Snapshot) -> None:
    """Remove the dataset with all its versions, branches and tags.

    On a local disk it disappears at once; in other storage its manifests are removed first, so that no reader
    finds a version without its files.
    """
    check_removable(snapshot)
    store = root_store(snapshot)
    folder = _folder(store)
    if folder is not None:
        hidden = os.path.join(os.path.dirname(folder), f".{uuid.uuid4().hex}.dropped")
        with LocalErrors(folder):
            os.rename(folder, hidden)
            shutil.rmtree(hidden)
        return
    paths = store.list("")
    paths.sort(key=lambda path: not path.startswith(VERSIONS))
    for path in paths:
        store.delete(path)


def check_removable(snapshot: Snapshot) -> None:
    """UnsupportedFeatureError if this is not a whole dataset, or if its folder contains anything else."""
    _refuse_branch(snapshot)
    folder = _folder(root_store(snapshot))
    if folder is not None:
        _check_alone(folder)


def check_newest(snapshot: Snapshot) -> None:
    """CommitConflictError if another writer has committed a version since, or dropped the dataset."""
    try:
        newest = latest(snapshot)
    except DatasetNotFoundError:
        newest = None
    if newest is None or newest.manifest.timestamp != snapshot.manifest.timestamp:
        raise CommitConflictError(
            "Another writer has dropped the dataset"
            if newest is None
            else f"Another writer has changed the dataset since version {snapshot.version}",
            path=snapshot.uri,
            version=None if newest is None else newest.version,
            remedy="Run the transaction again",
        )


def rename_dataset(snapshot: Snapshot, name: str) -> None:
    """Rename the folder of a dataset on a local disk.

    DatasetExistsError if there is something of that name; UnsupportedFeatureError on object stores, which
    cannot rename.
    """
    _refuse_branch(snapshot)
    store = root_store(snapshot)
    folder = _folder(store)
    if folder is None:
        raise UnsupportedFeatureError(
            "Only local datasets without a manifest store can be renamed",
            path=store.uri,
            remedy="Copy it with CREATE TABLE ... AS SELECT and drop the old one",
        )
    check_folder_name(store.uri, name)
    _check_alone(folder)
    renamed = os.path.join(os.path.dirname(folder), name)
    if os.path.lexists(renamed):
        raise DatasetExistsError("A file or folder with that name already exists", path=renamed)
    with LocalErrors(folder):
        os.rename(folder, renamed)


def check_folder_name(uri: str, name: str) -> None:
    """UnsupportedFeatureError if the dataset at `uri` cannot get this name."""
    if not name or name in (".", "..") or {"/", "\\", "\0", os.sep} & set(name):
        raise UnsupportedFeatureError(
            f"{name!r} is a path, not the name of a folder",
            path=uri,
            remedy="A dataset cannot be moved to another folder: use a name without slashes",
        )


def _refuse_branch(snapshot: Snapshot) -> None:
    """Refuse the path of a branch: the operation is for whole datasets."""
    branch = snapshot.manifest.branch
    if branch is not None:
        raise UnsupportedFeatureError(
            f"This is the branch {branch!r}, not a dataset of its own",
            path=snapshot.store.uri,
            remedy=f"Use branches.delete({branch!r}), or CALL delete_branch(table, {branch!r})",
        )


def _check_alone(folder: str) -> None:
    """UnsupportedFeatureError if the folder contains anything besides a dataset."""
    if os.path.islink(folder):
        raise UnsupportedFeatureError(
            f"The path is a symbolic link to '{os.path.realpath(folder)}'",
            path=folder,
            remedy="Use the path of the dataset itself, or remove the link",
        )
    with LocalErrors(folder):
        others = [name for name in os.listdir(folder) if not name.startswith(("_", ".")) and name not in _OWN]
    if others:
        raise UnsupportedFeatureError(
            f"The folder contains other files than the dataset: {', '.join(sorted(map(repr, others))[:5])}",
            path=folder,
            remedy="Move files that are not part of the dataset elsewhere",
        )


# Folders of a dataset whose names do not begin with an underscore.
_OWN: Final = frozenset({DATA, TREE})


def _folder(store: Store) -> str | None:
    """The folder of a dataset that consists of nothing but local files."""
    path = store.local_path(VERSIONS) if isinstance(store, LocalStore) else None
    return None if path is None else os.path.dirname(path)
