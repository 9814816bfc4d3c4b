"""The version hint: a small local file with the latest version when it was written.

It may be missing, outdated or damaged. It is valid as long as no file was added to or removed from the
manifest folder after it was written: then it is sufficient to check that its version exists and the next one
does not.
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
    """Write the latest version for local readers. A missing or outdated hint is harmless."""
    # Only local readers benefit: object stores list the newest version first.
    path = store.local_path(HINT_PATH)
    if path is None or os.environ.get("LANCE_USE_VERSION_HINT") == "0":
        return
    with contextlib.suppress(OSError):
        write_in_place(path, b'{"version":%d}' % version)


def read_hint(store: Store) -> int | None:
    """The version in the hint, None without a plausible hint."""
    path = store.local_path(HINT_PATH)
    if path is None:
        return None
    try:
        # The hint is written in place, which does not change the modification time of the folder.
        if os.stat(path).st_mtime_ns < os.stat(os.path.dirname(path)).st_mtime_ns:
            return None
        version = json.loads(store.read(HINT_PATH))["version"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return version if isinstance(version, int) and 0 < version < DETACHED_BIT else None
