"""Removing and renaming whole datasets."""

from __future__ import annotations

import os
import shutil
import uuid

from lance_engine.errors import DatasetExistsError, UnsupportedFeatureError
from lance_engine.io import Store
from lance_engine.io.local import LocalStore
from lance_engine.io.manifest_names import VERSIONS
from lance_engine.table.refs import root_store
from lance_engine.table.snapshot import Snapshot


def drop_dataset(snapshot: Snapshot) -> None:
    """Remove the dataset with all its versions, branches and tags.

    On a local disk it disappears at once; elsewhere its manifests go first, so that no reader finds a version
    whose files are gone.
    """
    store = root_store(snapshot)
    folder = _folder(store)
    if folder is not None:
        hidden = os.path.join(os.path.dirname(folder), f".{uuid.uuid4().hex}.dropped")
        os.rename(folder, hidden)
        shutil.rmtree(hidden)
        return
    paths = store.list("")
    paths.sort(key=lambda path: not path.startswith(VERSIONS))
    for path in paths:
        store.delete(path)


def rename_dataset(snapshot: Snapshot, name: str) -> None:
    """Give the folder of a dataset on a local disk another name.

    DatasetExistsError if there is something of that name; UnsupportedFeatureError on object stores, which
    cannot rename.
    """
    store = root_store(snapshot)
    folder = _folder(store)
    if folder is None:
        raise UnsupportedFeatureError(
            "Only datasets on a local disk, without a manifest store of their own, can be renamed",
            path=store.uri,
            remedy="Copy it with CREATE TABLE ... AS SELECT, and drop the old one",
        )
    renamed = os.path.join(os.path.dirname(folder), name)
    if os.path.exists(renamed):
        raise DatasetExistsError("There is already something of that name", path=renamed)
    os.rename(folder, renamed)


def _folder(store: Store) -> str | None:
    """The folder of a dataset that consists of nothing but local files."""
    path = store.local_path(VERSIONS) if isinstance(store, LocalStore) else None
    return None if path is None else os.path.dirname(path)
