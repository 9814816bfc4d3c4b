"""The version hint: a small local file with the latest version when it was written.

It is written for other programs and never read: it may be missing, damaged or older than the manifests,
and the times of a copied or touched table do not show that. A listing of the folder is always right; it takes
20 µs for a few versions and 5 ms for 10,000.
"""

from __future__ import annotations

import contextlib
import os
from typing import Final

from lance_engine.io.local import write_in_place
from lance_engine.io.manifest_names import VERSIONS
from lance_engine.io.store import Store

HINT_PATH: Final = f"{VERSIONS}/latest_version_hint.json"


def write_hint(store: Store, version: int) -> None:
    """Write the latest version for local readers. A missing or outdated hint is harmless."""
    # Only local readers benefit: object stores list the newest version first.
    path = store.local_path(HINT_PATH)
    if path is None or os.environ.get("LANCE_USE_VERSION_HINT") == "0":
        return
    with contextlib.suppress(OSError):
        write_in_place(path, b'{"version":%d}' % version)
