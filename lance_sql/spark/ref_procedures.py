"""The procedures for tags and branches."""

from __future__ import annotations

import datetime
from typing import Final

from lance_engine.errors import InvalidArgumentError

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.spark.procedure_results import Listing, Row


def tag(
    dataset: SqlDataset,
    name: str,
    replace: bool,
    if_not_exists: bool = False,
    version: int | None = None,
    branch: str | None = None,
    of_tag: str | None = None,
) -> Row:
    source = _source(dataset, version, branch, of_tag)
    tags = source.tags
    known = {tag.name: tag.version for tag in tags.list()}
    if if_not_exists and name in known:
        return {"tag": name, "version": known[name], "name": name}
    if replace and name in known:
        tags.update(name)
    else:
        tags.create(name)
    return {"tag": name, "version": source.version, "name": name}


def untag(dataset: SqlDataset, name: str, if_exists: bool = False) -> Row:
    if not if_exists or any(tag.name == name for tag in dataset.tags.list()):
        dataset.tags.delete(name)
    return {"tag": name, "name": name}


_TAGS: Final = {
    "name": "STRING",
    "branch": "STRING",
    "version": "BIGINT",
    "created_at": "BIGINT",
    "updated_at": "BIGINT",
}


def show_tags(dataset: SqlDataset) -> Listing:
    rows = [
        [tag.name, tag.branch, tag.version, _seconds(tag.created_at), _seconds(tag.updated_at)]
        for tag in dataset.tags.list()
    ]
    return Listing(_TAGS, rows)


def create_branch(
    dataset: SqlDataset,
    name: str,
    if_not_exists: bool = False,
    version: int | None = None,
    branch: str | None = None,
    of_tag: str | None = None,
) -> Row:
    if not if_not_exists or all(known.name != name for known in dataset.branches.list()):
        _source(dataset, version, branch, of_tag).branches.create(name)
    return {"name": name}


def drop_branch(dataset: SqlDataset, name: str, if_exists: bool = False) -> Row:
    if not if_exists or any(known.name == name for known in dataset.branches.list()):
        dataset.branches.delete(name)
    return {"name": name}


_BRANCHES: Final = {
    "name": "STRING",
    "parent_branch": "STRING",
    "parent_version": "BIGINT",
    "created_at": "BIGINT",
}


def show_branches(dataset: SqlDataset) -> Listing:
    rows = [
        [branch.name, branch.parent, branch.parent_version, _seconds(branch.created_at)]
        for branch in dataset.branches.list()
    ]
    return Listing(_BRANCHES, rows)


def _seconds(moment: datetime.datetime | None) -> int | None:
    return None if moment is None else int(moment.timestamp())


def _source(dataset: SqlDataset, version: int | None, branch: str | None, of_tag: str | None) -> SqlDataset:
    """The version that a new tag or branch is of, by default the latest one."""
    if of_tag is not None:
        if version is not None or branch is not None:
            raise InvalidArgumentError(
                "A tag names its version and its branch", remedy="Leave out version and branch"
            )
        known = dataset.tags.get(of_tag)
        version, branch = known.version, known.branch
    if version is None and branch is None:
        return dataset
    return SqlDataset.open(
        dataset.uri, version, branch=branch, storage_options=dataset.snapshot.storage_options
    )
