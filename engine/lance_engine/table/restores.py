"""Versions that are being restored. A cleanup keeps them, and their files, until the new version exists."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from lance_engine.errors import StorageError
from lance_engine.io.store import Store
from lance_engine.table.refs import REFS
from lance_engine.table.versions import check_still_there

#: Files named by version, without content. Those of killed processes are removed as files of no version are.
RESTORES: Final = f"{REFS}/restores"


@contextmanager
def kept_while_restoring(store: Store, version: int) -> Iterator[None]:
    """Keep `version`; VersionNotFoundError if a cleanup has just removed it."""
    path = f"{RESTORES}/{version}-{uuid.uuid4()}"
    store.put(path, b"")
    try:
        check_still_there(store, version, lambda: None)
        yield
    finally:
        with suppress(StorageError):  # the change is done, or fails for a reason of its own
            store.delete(path)


def versions_being_restored(store: Store) -> set[int]:
    """The versions that other writers are restoring."""
    names = (path.rpartition("/")[2].partition("-")[0] for path in store.list(RESTORES))
    return {int(name) for name in names if name.isdecimal()}
