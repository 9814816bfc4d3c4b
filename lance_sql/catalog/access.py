"""What a session may access: the restrictions of its engine rule statements on datasets too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from lance_engine.base import without_secrets
from lance_engine.errors import ExternalAccessError
from lance_engine.io import ALLOW_EXTERNAL, is_below


class Restrictions(NamedTuple):
    """The settings of an engine with DuckDB's names; directories and paths count without external access."""

    enable_external_access: bool = True
    allowed_directories: tuple[str, ...] = ()
    allowed_paths: tuple[str, ...] = ()
    lock_configuration: bool = False


UNRESTRICTED: Final = Restrictions()


def require_access(location: str, restrictions: Restrictions, known: Iterable[str]) -> None:
    """ExternalAccessError if a session must not access `location`.

    `known` are the directories and datasets of the session, which stay usable. Symbolic links are resolved.
    """
    if restrictions.enable_external_access:
        return
    if any(is_below(root, location) for root in (*known, *restrictions.allowed_directories)):
        return
    if any(is_below(path, location) and is_below(location, path) for path in restrictions.allowed_paths):
        return
    raise ExternalAccessError(
        "This session has no access to that location",
        path=without_secrets(location),
        remedy="Its setting enable_external_access is false: only the directory of the session, what was "
        "attached or registered before, and allowed_directories are accessible",
    )


def restricted_options(options: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The storage options for a dataset that may only refer to other places that were allowed by name."""
    allowed = (options or {}).get(ALLOW_EXTERNAL)
    by_name = allowed is not None and allowed not in ("all", "same-store")
    return {**(options or {}), ALLOW_EXTERNAL: allowed if by_name else "none"}
