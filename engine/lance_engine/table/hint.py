"""The version hint: a small local file that says which version was the latest when it was written.

It may be missing, old or damaged: whoever uses it must be able to do with another version than the latest.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Final

from lance_engine.io import Store
from lance_engine.io.local import write_in_place
from lance_engine.io.manifest_names import DETACHED_BIT, VERSIONS

HINT_PATH: Final = f"{VERSIONS}/latest_version_hint.json"


def write_hint(store: Store, version: int) -> None:
    """Tell local readers which version is the latest. A missing or an old hint does no harm."""
    # Only local readers profit: object stores list the newest version first.
    path = store.local_path(HINT_PATH)
    if path is None or os.environ.get("LANCE_USE_VERSION_HINT") == "0":
        return
    with contextlib.suppress(OSError):
        write_in_place(path, b'{"version":%d}' % version)


def read_hint(store: Store) -> int | None:
    """The version that the hint names, None if there is no usable hint."""
    if store.local_path(HINT_PATH) is None:
        return None
    try:
        version = json.loads(store.read(HINT_PATH))["version"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return version if isinstance(version, int) and 0 < version < DETACHED_BIT else None
