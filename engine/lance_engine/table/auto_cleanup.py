"""The automatic cleanup that the configuration of a table asks its writers for."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Mapping
from typing import Final

from lance_engine.errors import InvalidArgumentError, LanceError
from lance_engine.io.staged_store import StagedStore
from lance_engine.table.durations import duration
from lance_engine.table.snapshot import Snapshot

#: Keys of the configuration: versions between two cleanups, the age of what is removed, versions to keep.
INTERVAL: Final = "lance.auto_cleanup.interval"
OLDER_THAN: Final = "lance.auto_cleanup.older_than"
RETAIN_VERSIONS: Final = "lance.auto_cleanup.retain_versions"


def clean_up_if_due(snapshot: Snapshot) -> None:
    """Clean up if the configuration asks for it at this new version. A failure is only a warning."""
    config = snapshot.manifest.config
    if INTERVAL not in config or isinstance(snapshot.store, StagedStore):
        return
    try:
        interval = _count(config, INTERVAL)
        if snapshot.version % interval == 0:
            from lance_engine.table.cleanup import cleanup

            # The version before may still be read.
            retained = _count(config, RETAIN_VERSIONS) if RETAIN_VERSIONS in config else 2
            # Without an age, only the number of versions counts.
            age = duration(config[OLDER_THAN]) if OLDER_THAN in config else datetime.timedelta()
            cleanup(snapshot, age, retain_versions=retained)
    except (LanceError, OSError) as error:  # another cleanup may have removed a file first
        warnings.warn(
            f"Version {snapshot.version} is committed, but its automatic cleanup failed: {error}",
            stacklevel=2,
        )


def _count(config: Mapping[str, str], key: str) -> int:
    value = config[key]
    if not (value.isascii() and value.isdecimal() and len(value) < 20 and int(value)):
        raise InvalidArgumentError(
            f"{key} is {value!r} in the configuration of the table, not a number from 1 on",
            remedy="Set it to a number with Dataset.update_config, or remove it",
        )
    return int(value)
