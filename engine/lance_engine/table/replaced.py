"""Whether a dataset was dropped and created again since one of its versions was read.

The new dataset counts its versions from 1, too, so their numbers do not show it.
"""

from __future__ import annotations

from lance_engine.errors import DatasetNotFoundError, IncompatibleChangeError
from lance_engine.io.manifest_names import NamingScheme
from lance_engine.io.store import Store
from lance_engine.table.snapshot import TRANSACTIONS, Snapshot
from lance_engine.table.versions import find_latest, read_version


def check_not_replaced(read: Snapshot, store: Store, scheme: NamingScheme) -> None:
    """IncompatibleChangeError if `store` has another version with the number of `read`.

    DatasetNotFoundError if it has no dataset any more.
    """
    if _is_replaced(read, store, scheme):
        raise IncompatibleChangeError(
            "Another writer has replaced the dataset: dropped it, and created it again",
            path=store.uri,
            version=read.version,
            remedy="Open the new dataset, and check whether you still want this change",
        )


def _is_replaced(read: Snapshot, store: Store, scheme: NamingScheme) -> bool:
    recorded = read.manifest.transaction_file
    if recorded and store.exists(f"{TRANSACTIONS}/{recorded}"):
        return False  # its name is unique
    # Without it, the dataset may also have been cleaned up, or have been written without such files.
    try:
        manifest = read_version(store, scheme.path(read.version), read.version).manifest
    except FileNotFoundError:
        if find_latest(store) is None:
            raise DatasetNotFoundError("No Lance dataset to commit to", path=store.uri) from None
        return False
    return (manifest.transaction_file, manifest.timestamp) != (recorded, read.manifest.timestamp)
