"""Datasets as a transaction sees them: at the versions it started with, plus its own changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from lance_engine.base import without_secrets
from lance_engine.errors import CommitConflictError, LanceError
from lance_engine.operations import latest

from lance_sql.catalog.dataset import SqlDataset

if TYPE_CHECKING:
    from lance_engine.operations import StagedChanges
    from lance_engine.table import Operation, Others, Snapshot
    from lance_engine.table import Transaction as Committed

#: Whether rows of a dataset are among those that a statement searched for.
Matches = Callable[[SqlDataset], bool]

#: Commit property of transactions that read rows of a dataset to which they only added rows.
_READS: Final = "lance_sql.reads"

#: Operations that do not change the rows of a dataset.
_LEAVES_ROWS: Final = frozenset(
    ["create_index", "reserve_fragments", "rewrite", "update_bases", "update_config"]
)


class Transaction:
    """The changes that the statements between BEGIN and COMMIT made to datasets.

    A transaction sees the version of a dataset that was the newest when the transaction first used it. With
    `serializable`, COMMIT also checks the rows read by queries, not only those read by statements that change
    rows.
    """

    def __init__(self, *, serializable: bool = False) -> None:
        self._serializable = serializable
        self._changing = False
        self._constants = False
        #: by location
        self._seen: dict[str, SqlDataset] = {}
        self._staged: dict[str, StagedChanges] = {}
        self._views: dict[str, SqlDataset] = {}
        #: by location: the conditions of reads; None stands for all rows
        self._read: dict[str, list[Matches | None]] = {}

    def view(self, dataset: SqlDataset) -> SqlDataset:
        """`dataset`, or the newer version that this transaction made of it, for queries."""
        return self._views.get(dataset.uri) or self._seen.setdefault(dataset.uri, dataset)

    def own(self, dataset: SqlDataset) -> SqlDataset:
        """`dataset`, a version selected by name, or the version that the transaction made of its dataset."""
        return self._views.get(dataset.uri, dataset)

    def target(self, dataset: SqlDataset) -> SqlDataset:
        """The dataset for a statement that changes it."""
        from lance_engine.operations import StagedChanges  # takes longer to import than a query

        uri = dataset.uri
        staged = self._staged.get(uri)
        if staged is None:
            base = self._seen[uri].snapshot if uri in self._seen else latest(dataset.snapshot)
            self._seen.setdefault(uri, type(dataset)(base))
            staged = self._staged[uri] = StagedChanges(base)
        return type(dataset)(staged.snapshot)

    def changed(self, dataset: SqlDataset) -> None:
        """A statement created `dataset` from what `target` returned."""
        staged = self._staged[dataset.uri]
        staged.advance(dataset.snapshot)
        self._views[dataset.uri] = type(dataset)(staged.view())

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Reads in this block determine what a statement changes."""
        before, self._changing = self._changing, True
        try:
            yield
        finally:
            self._changing = before

    @contextmanager
    def without_reads(self) -> Iterator[None]:
        """Statements in this block consist of constants, so they read no dataset."""
        self._constants = True
        try:
            yield
        finally:
            self._constants = False

    def met(self, dataset: SqlDataset) -> None:
        """A statement reads any rows of `dataset`: this matters if another writer creates a newer version."""
        if self._constants:
            return
        uri = dataset.uri
        is_newest = dataset is self._views.get(uri) or dataset is self._seen.get(uri)
        if is_newest and (self._changing or self._serializable):
            self._read.setdefault(uri, []).append(None)

    def looked_for(self, dataset: SqlDataset, matches: Matches) -> None:
        """A statement changed the rows of `dataset` selected by `matches`."""
        self._read.setdefault(dataset.uri, []).append(matches)

    def commit(self) -> list[SqlDataset]:
        """Commit the changes, one dataset after the other, in the order of their first change.

        If one commit fails, the earlier ones stay committed, as the error says, and the other changes are
        discarded. An interruption carries a note with the same information, and the dataset that may already
        be committed.
        """
        committed: list[SqlDataset] = []
        under_way = ""
        try:
            for uri, staged in self._staged.items():
                if staged.is_changed:
                    under_way = uri
                    read = self._read.get(uri, [])
                    snapshot = staged.commit(
                        partial(_check, staged.base, read), {_READS: "rows"} if read else None
                    )
                    committed.append(SqlDataset(snapshot))
        except LanceError as error:
            if committed:
                error.message = f"{error.message}. {already_committed(committed)}"
            raise
        except BaseException as error:
            error.add_note(f"{already_committed(committed)}. Maybe committed: {without_secrets(under_way)}")
            raise
        finally:
            self.rollback()
        return committed

    def rollback(self) -> None:
        """Discard the changes that were not committed."""
        for staged in self._staged.values():
            staged.discard()
        self._staged.clear()


def already_committed(committed: list[SqlDataset]) -> str:
    """Which datasets a transaction has committed, for errors."""
    names = [f"{without_secrets(dataset.uri)} as version {dataset.version}" for dataset in committed]
    return f"Already committed by the same transaction: {', '.join(names) or 'nothing'}"


def _check(base: Snapshot, read: list[Matches | None], newest: Snapshot, others: Others) -> None:
    """CommitConflictError if concurrent commits would have changed the result of this transaction.

    Transactions that only added rows, without reading any, do not conflict.
    """
    readers = [version for version, transaction in others if _reads(transaction)]
    if not read or not readers:
        return
    if None in read:
        raise _conflict(base, readers[0])
    last = base.manifest.max_fragment_id
    added = [fragment for fragment in newest.fragments if last is None or fragment.id > last]
    if added:
        manifest = dataclasses.replace(newest.manifest, fragments=tuple(added))
        part = SqlDataset(newest.with_manifest(manifest))
        if any(_finds(matches, part) for matches in read if matches is not None):
            raise _conflict(base, readers[0])


def _finds(matches: Matches, part: SqlDataset) -> bool:
    try:
        return matches(part)
    except LanceError:  # its columns may have been dropped
        return True


def _reads(transaction: Committed) -> bool:
    """Whether a commit may depend on rows that its author read."""
    if transaction.operation.kind.value == "append":
        return _READS in transaction.properties
    return _changes_rows(transaction.operation)


def _changes_rows(operation: Operation) -> bool:
    return operation.kind.value not in _LEAVES_ROWS


def _conflict(base: Snapshot, version: int) -> CommitConflictError:
    return CommitConflictError(
        f"The transaction, which began with version {base.version}, read rows that another writer changed in "
        f"version {version}",
        path=base.uri,
        version=version,
        remedy="Run the transaction again",
    )
