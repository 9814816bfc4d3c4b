"""Branches: separate histories of a dataset, each of which starts from a version of another one.

The folder ``tree/NAME`` contains the versions and files of a branch, and a small file in ``_refs/branches``
records its existence and origin. It is created first and removed last, because it protects the files that the
branch needs from cleanup.
"""

from __future__ import annotations

import datetime
import json
import time
import uuid
from dataclasses import dataclass
from typing import Any, Final

from lance_engine.errors import (
    BranchExistsError,
    BranchInUseError,
    CorruptFileError,
    InvalidArgumentError,
    VersionNotFoundError,
)
from lance_engine.io.manifest_names import VERSIONS, parse_manifest_name
from lance_engine.io.store import Store, delete_quietly
from lance_engine.table.deletions import DELETIONS
from lance_engine.table.refs import (
    ENDING,
    TREE,
    branch_store,
    is_branch_name,
    list_refs,
    put_new,
    read_ref,
    readable,
    root_store,
    unreadable,
)
from lance_engine.table.snapshot import DATA, INDICES, TRANSACTIONS, Snapshot
from lance_engine.table.versions import check_still_there

BRANCHES: Final = "_refs/branches"
_FOLDERS: Final = (VERSIONS, TRANSACTIONS, DATA, DELETIONS, INDICES)


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch. `parent` is the branch from which it was created, None for the main branch.

    `lineage` distinguishes branches that had the same name at different times: a version and a random
    identifier for each step from the main branch. Empty if it is not recorded.
    """

    name: str
    parent: str | None
    parent_version: int
    created_at: datetime.datetime | None = None
    lineage: tuple[tuple[int, str], ...] = ()


def list_branches(root: Store) -> list[Branch]:
    """All branches by name, except damaged ones; one request each."""
    return readable(branch_names(root), lambda name: read_branch(root, name))


def damaged_branches(root: Store) -> list[str]:
    """The paths of the branches that cannot be read."""
    return unreadable(root, BRANCHES, lambda name: read_branch(root, name))


def branch_names(root: Store) -> list[str]:
    """The names of all branches, including those with damaged files."""
    return [name for name in list_refs(root, BRANCHES) if is_branch_name(name)]


def read_branch(root: Store, name: str) -> Branch:
    """The branch `name`; VersionNotFoundError lists the existing branches."""
    path = _path(name)
    try:
        content = read_ref(root, path, "branch", "parentVersion")
    except FileNotFoundError:
        known = ", ".join(list_refs(root, BRANCHES)) or "none"
        raise VersionNotFoundError(
            f"Branch '{name}' not found", path=root.uri, remedy=f"Available branches: {known}"
        ) from None
    try:
        mapping = (content.get("identifier") or {}).get("version_mapping") or ()
        created = content.get("createAt")
        return Branch(
            name,
            content.get("parentBranch"),
            content["parentVersion"],
            datetime.datetime.fromtimestamp(created, datetime.UTC) if created is not None else None,
            tuple((int(version), str(identifier)) for version, identifier in mapping),
        )
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CorruptFileError("A branch has invalid properties", path=f"{root.uri}/{path}") from error


def create_branch(source: Snapshot, name: str) -> Branch:
    """Create a branch from the version `source`. BranchExistsError if the name is taken."""
    from lance_engine.table.clones import write_clone  # only needed for writing versions

    root, parent = root_store(source), source.manifest.branch
    lineage = read_branch(root, parent).lineage if parent is not None else ()
    path = _path(name)
    content: dict[str, Any] = {
        "parentBranch": parent,
        "identifier": {"version_mapping": [*lineage, (source.version, uuid.uuid4().hex)]},
        "parentVersion": source.version,
        "createAt": int(time.time()),
        "manifestSize": 0,
        "metadata": {},
    }
    try:
        put_new(root, path, json.dumps(content).encode())
    except FileExistsError:
        raise BranchExistsError(
            f"Branch '{name}' already exists",
            path=root.uri,
            remedy="Delete the branch or choose another name",
        ) from None
    try:
        # Remainders of an interrupted deletion.
        _remove_files(root, name)
        content["manifestSize"] = write_clone(source, branch_store(root, name), name)
        root.put(path, json.dumps(content).encode())
        check_still_there(source.store, source.version, lambda: _remove_files(root, name))
    except BaseException:
        delete_quietly(root, [path])
        raise
    return read_branch(root, name)


def delete_branch(root: Store, name: str) -> None:
    """Delete a branch with all its versions. BranchInUseError if other branches were created from it."""
    try:
        lineage = read_branch(root, name).lineage
    except CorruptFileError:
        lineage = ()  # damaged branches can be deleted, too
    others = {_path(other) for other in branch_names(root) if other != name}
    damaged = [path for path in damaged_branches(root) if path in others]
    if damaged:
        raise BranchInUseError(
            f"The file of another branch, possibly created from the branch '{name}', is damaged",
            path=f"{root.uri}/{damaged[0]}",
            remedy="Restore that file from a copy, or delete its branch first",
        )
    for other in list_branches(root):
        begins_here = lineage and other.lineage[: len(lineage)] == lineage
        if other.name != name and (begins_here or other.parent == name):
            raise BranchInUseError(
                f"The branch '{name}' is the parent of the branch '{other.name}'",
                path=root.uri,
                remedy=f"Delete the branch '{other.name}' first",
            )
    _remove_files(root, name)
    root.delete(_path(name))


def _remove_files(root: Store, name: str) -> None:
    # The folder of the branch "a/b" is inside that of the branch "a".
    inside = tuple(f"{TREE}/{other}/" for other in list_refs(root, BRANCHES) if other.startswith(f"{name}/"))
    for folder in _FOLDERS:
        paths = root.list(f"{TREE}/{name}/{folder}")
        # The latest version last: until it is removed, readers find the same data as before.
        for path in sorted(paths, key=_age) if folder == VERSIONS else paths:
            if not inside or not path.startswith(inside):
                root.delete(path)


def _age(path: str) -> int:
    parsed = parse_manifest_name(path.rpartition("/")[2])
    return 0 if parsed is None else parsed[0]


def _path(name: str) -> str:
    if not is_branch_name(name):
        raise InvalidArgumentError(
            f"{name!r} is not a valid branch name: use letters, digits, '.', '-' and '_', in parts "
            f"separated by single slashes, without two dots in a row; not ending with '.lock', and not 'main'"
        )
    # Unlike in tags, non-ASCII letters are kept.
    return f"{BRANCHES}/{name.replace('/', '%2F')}{ENDING}"
