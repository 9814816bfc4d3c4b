"""Which locations a namespace service may return: it is trusted no more than the manifest of a dataset."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from lance_engine.base import without_secrets
from lance_engine.errors import ExternalAccessError, LanceError
from lance_engine.io import ALLOW_EXTERNAL, access_of, is_below, local_folder

_BUCKETS: Final = ("s3", "s3a", "s3+ddb", "gs", "gcs", "az", "abfs", "abfss", "adl")

#: folders on the local disk that this process created for tables of services, which it may remove again
_made: set[str] = set()


def options_for_place(
    source: str, location: str, options: Mapping[str, Any] | None, given: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """The storage options for a table that the service at `source` locates at `location`.

    `options` are those of the session, `given` those that the service adds. Raises ExternalAccessError for a
    location that the service may not use: it must be in a bucket, or on a disk that the service shares with
    this process.
    """
    if "\0" in location:
        raise LanceError(f"The namespace reports a table at {location!r}", path=source)
    access = access_of(options)
    # The caller decides which locations are allowed.
    added = {name: value for name, value in (given or {}).items() if name.lower() != ALLOW_EXTERNAL}
    allowed = access.everything
    for prefix, own in access.prefixes.items():
        if is_below(prefix, location):
            allowed, options = True, {**(options or {}), **own}
            break
    if not allowed and not (access.same_store and _is_same_store(source, location)):
        raise _refused(source, f"names '{without_secrets(location)}' as the place of a table", location)
    kept = dict(options or {})
    if any("endpoint" in name.lower() or "proxy" in name.lower() for name in added):
        # Do not send the session's credentials to a server that the service chose.
        kept = {name: value for name, value in kept.items() if name == ALLOW_EXTERNAL}
    return {**kept, **added} or None


def note_made(location: str) -> None:
    """Remember that a table of a service will be created at an empty location."""
    folder = local_folder(location)
    if folder is not None and not os.path.lexists(folder):
        _made.add(os.path.realpath(folder))


def require_removable(source: str, location: str, options: Mapping[str, Any] | None) -> None:
    """ExternalAccessError for a local folder that only the service claims is one of its tables."""
    folder = local_folder(location)
    if folder is None or os.path.realpath(folder) in _made:
        return
    access = access_of(options)
    if not access.everything and not any(is_below(prefix, location) for prefix in access.prefixes):
        raise _refused(source, f"says that the table to remove is '{location}' on this disk", location)


def _is_same_store(source: str, location: str) -> bool:
    if local_folder(location) is not None:
        return _is_this_machine(source)
    return location.partition("://")[0].lower() in _BUCKETS


def _is_this_machine(source: str) -> bool:
    host = urlsplit(source).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refused(source: str, what: str, location: str) -> ExternalAccessError:
    shown = without_secrets(location).partition("?")[0]
    return ExternalAccessError(
        f"The namespace {what}",
        path=without_secrets(source),
        remedy=f"If you trust it, pass allow_external=['{shown.rpartition('/')[0] or shown}'] (a list of "
        f"locations) or allow_external='all'",
    )
