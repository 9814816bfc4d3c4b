"""Selecting a version by number, tag, time or branch."""

from __future__ import annotations

import datetime
import operator
import os
from collections.abc import Mapping
from typing import Any

from lance_engine.errors import InvalidArgumentError, VersionNotFoundError
from lance_engine.io.resolve import open_store
from lance_engine.io.store import Store
from lance_engine.table.refs import branch_store
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import open_snapshot, version_as_of


def select_snapshot(
    uri: str | os.PathLike[str] | Store,
    version: int | None = None,
    tag: str | None = None,
    as_of: datetime.datetime | None = None,
    storage_options: Mapping[str, Any] | None = None,
    branch: str | None = None,
) -> Snapshot:
    """Open the version that at most one of `version`, `tag` and `as_of` selects, the latest if none does.

    Versions and times are those of `branch`; None and "main" are the main branch.
    """
    if sum(choice is not None for choice in (version, tag, as_of)) > 1:
        raise InvalidArgumentError("Pass only one of version, tag and as_of")
    if version is not None:
        version = _whole_number(version)
    if as_of is not None and not isinstance(as_of, datetime.datetime):
        raise InvalidArgumentError(
            f"as_of must be a datetime, not {as_of!r}",
            remedy="Pass for example datetime.datetime.now() - datetime.timedelta(days=1)",
        )
    for kind, name in (("tag", tag), ("branch", branch)):
        if name is not None and not isinstance(name, str):
            raise InvalidArgumentError(f"{kind} must be a name, not {name!r}")
    root = open_store(uri, storage_options)
    branch = None if branch == "main" else branch
    if tag is not None:
        from lance_engine.table.tags import read_tag

        tagged = read_tag(root, tag)
        if branch is not None and tagged.branch != branch:
            raise VersionNotFoundError(
                f"The tag '{tag}' is on {_described(tagged.branch)}, not on {_described(branch)}",
                path=root.uri,
            )
        version, branch = tagged.version, tagged.branch
    if branch is not None:
        from lance_engine.table.branches import read_branch

        read_branch(root, branch)
    store = branch_store(root, branch)
    if as_of is not None:
        version = version_as_of(store, as_of)
    return open_snapshot(store, version, storage_options=storage_options)


def _whole_number(version: Any) -> int:
    try:
        return operator.index(version)
    except TypeError:
        raise InvalidArgumentError(
            f"version must be a whole number, not {version!r}", remedy="Pass tag= to open a tagged version"
        ) from None


def _described(branch: str | None) -> str:
    return "the main branch" if branch is None else f"the branch '{branch}'"
