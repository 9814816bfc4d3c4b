"""The automatic cleanup that the configuration of a table asks its writers for."""

from __future__ import annotations

import datetime
import re
import warnings
from collections.abc import Mapping
from typing import Final

from lance_engine.errors import InvalidArgumentError, LanceError
from lance_engine.io.staged_store import StagedStore
from lance_engine.table.snapshot import Snapshot

#: Keys of the configuration: versions between two cleanups, the age of what is removed, versions to keep.
INTERVAL: Final = "lance.auto_cleanup.interval"
OLDER_THAN: Final = "lance.auto_cleanup.older_than"
RETAIN_VERSIONS: Final = "lance.auto_cleanup.retain_versions"

_UNITS: Final = {
    "ms": "milliseconds", "s": "seconds", "m": "minutes", "min": "minutes", "h": "hours", "d": "days",
    "w": "weeks", "second": "seconds", "minute": "minutes", "hour": "hours", "day": "days", "week": "weeks",
}  # fmt: skip
_DURATION: Final = re.compile(r"(\d+)\s*([a-z]+)\s*")


def duration(text: str) -> datetime.timedelta:
    """``14days``, ``1h 30m`` or ``1s`` as a duration; InvalidArgumentError for anything else."""
    total, place = datetime.timedelta(), 0
    for match in _DURATION.finditer(text.strip().lower()):
        name = match[2] if match[2] in _UNITS else match[2].removesuffix("s")
        if match.start() != place or name not in _UNITS:
            break
        try:
            total += datetime.timedelta(**{_UNITS[name]: int(match[1])})
        except OverflowError:
            break
        place = match.end()
    if not place or place != len(text.strip()):
        raise InvalidArgumentError(
            f"{text!r} is not a duration", remedy="Write a number and a unit, such as 14d, 12h or 30s"
        )
    return total


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
