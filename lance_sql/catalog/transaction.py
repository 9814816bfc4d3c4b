"""Datasets as a transaction sees them: at the versions it started with, plus its own changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from lance_engine.base import without_secrets
from lance_engine.errors import (
    CommitConflictError,
    DatasetExistsError,
    DatasetNotFoundError,
    LanceError,
    UnsupportedFeatureError,
)
from lance_engine.operations import check_newest, check_removable, drop_dataset, latest

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.catalog.namespaces import SUFFIX

if TYPE_CHECKING:
    from lance_engine.io import Store
    from lance_engine.operations import StagedChanges, StagedCreation
    from lance_engine.table import Operation, Others, Snapshot
    from lance_engine.table import Transaction as Committed

#: How a statement writes rows to a location.
Mode = Literal["create", "append", "overwrite"]

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
        #: by location: what COMMIT removes, as it was when it was dropped
        self._dropped: dict[str, SqlDataset] = {}
        #: changes that later statements dropped or replaced; planned queries may read their files
        self._given_up: list[StagedChanges] = []
        #: whether a statement has created, dropped or renamed a dataset
        self.defines = False

    def view(self, dataset: SqlDataset) -> SqlDataset:
        """`dataset`, or the newer version that this transaction made of it, for queries."""
        return self._views.get(dataset.uri) or self._seen.setdefault(dataset.uri, dataset)

    def own(self, dataset: SqlDataset) -> SqlDataset | None:
        """`dataset`, a version selected by name, or the version that the transaction made of its dataset.

        None if the transaction has dropped it.
        """
        return None if dataset.uri in self._dropped else self._views.get(dataset.uri, dataset)

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

    def defined(self, store: Store) -> SqlDataset | None:
        """The dataset that the transaction has created in `store`; None if it has not.

        DatasetNotFoundError if the transaction has dropped it.
        """
        uri = store.uri
        if uri in self._dropped:
            raise DatasetNotFoundError(
                "The transaction has dropped this dataset",
                path=uri,
                remedy="Create it again, or undo the transaction with ROLLBACK",
            )
        return self._views.get(uri) if self._creation(uri) is not None else None

    def tables_in(self, folder: str, names: list[str]) -> list[str]:
        """The tables of a folder with the tables `names`."""
        created = (uri for uri in self._staged if self._creation(uri) is not None)
        return sorted({*names, *_tables_in(folder, created)} - _tables_in(folder, self._dropped))

    @contextmanager
    def writing(
        self, store: Store, storage_options: Mapping[str, Any] | None, mode: Mode
    ) -> Iterator[tuple[Store, Mode]]:
        """What to write to, and how, to create, extend or replace the dataset in `store` in this block."""
        from lance_engine.operations import StagedCreation
        from lance_engine.table import find_snapshot

        uri = store.uri
        known = self._staged.get(uri)
        if known is None and uri not in self._dropped:
            existing = find_snapshot(store, storage_options)
            if existing is not None:
                self.target(SqlDataset(existing))
                known = self._staged[uri]
        if known is None and mode == "append":
            raise DatasetNotFoundError("No dataset to append to", path=uri, remedy="Create it first")
        if known is not None and mode != "overwrite":  # "create" raises DatasetExistsError
            yield known.snapshot.store, mode
            return
        creation = StagedCreation(store, storage_options, self._replaced(uri))
        self._staged[uri] = creation
        try:
            yield creation.snapshot.store, "create"
        except BaseException:
            creation.discard()
            del self._staged[uri]
            if known is not None:
                self._staged[uri] = known
            raise
        if known is not None:
            self._given_up.append(known)
        self._dropped.pop(uri, None)
        self.defines = True

    def drop(self, dataset: SqlDataset) -> None:
        """Remove a dataset at COMMIT; no statement finds it from now on."""
        uri = dataset.uri
        if uri not in self._staged:  # named twice by the statement
            return
        replaced = self._replaced(uri)
        if replaced is not None:
            check_removable(replaced)
            self._dropped[uri] = SqlDataset(replaced)
        self._given_up.append(self._staged.pop(uri))
        self._views.pop(uri, None)
        self.defines = True

    def rename(self, dataset: SqlDataset, store: Store) -> None:
        """Create a dataset that this transaction creates in another `store`."""
        from lance_engine.table import find_snapshot

        uri = dataset.uri
        creation = self._creation(uri)
        if creation is None:
            raise UnsupportedFeatureError(
                "RENAME TO of a dataset that existed before the transaction cannot be part of it",
                remedy="Run it before BEGIN or after COMMIT",
            )
        dropped = self._dropped.pop(store.uri, None)
        if store.uri in self._staged or (dropped is None and find_snapshot(store) is not None):
            raise DatasetExistsError("A dataset with that name already exists", path=store.uri)
        if creation.replaced is not None:
            self._dropped[uri] = SqlDataset(creation.replaced)
        creation.move(store, None if dropped is None else dropped.snapshot)
        del self._staged[uri], self._views[uri]
        self._staged[store.uri] = creation
        self._views[store.uri] = SqlDataset(creation.view())

    def _creation(self, uri: str) -> StagedCreation | None:
        from lance_engine.operations import StagedCreation

        staged = self._staged.get(uri)
        return staged if isinstance(staged, StagedCreation) else None

    def _replaced(self, uri: str) -> Snapshot | None:
        """The version of others at a location that this transaction started with; None if it created it."""
        creation = self._creation(uri)
        if creation is not None:
            return creation.replaced
        if uri in self._dropped:
            return self._dropped[uri].snapshot
        return self._staged[uri].base if uri in self._staged else None

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

        Dropped datasets are removed last. If one commit fails, the earlier ones stay committed, as the error
        says, and the other changes are discarded. An interruption carries a note with the same information,
        and the dataset that may already be committed.
        """
        committed: list[SqlDataset] = []
        under_way = ""
        try:
            self._check()
            for uri, staged in self._staged.items():
                if staged.is_changed:
                    under_way = uri
                    read = self._read.get(uri, [])
                    creation = self._creation(uri)
                    check = partial(_check_reads, staged.base, read)
                    if creation is not None and creation.replaced is not None:
                        check = partial(_check_replaced, creation.replaced, read)
                    snapshot = staged.commit(check, {_READS: "rows"} if read else None)
                    committed.append(SqlDataset(snapshot))
            for uri, dataset in self._dropped.items():
                under_way = uri
                drop_dataset(dataset.snapshot)
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
        for staged in (*self._staged.values(), *self._given_up):
            staged.discard()
        self._staged.clear()

    def dropped(self) -> list[SqlDataset]:
        """The datasets that COMMIT removed."""
        return list(self._dropped.values())

    def _check(self) -> None:
        """CommitConflictError if others have created, changed or dropped what this transaction defines."""
        if not self.defines:
            return
        for staged in self._staged.values():
            staged.check()
        for dataset in self._dropped.values():
            check_newest(dataset.snapshot)


def _tables_in(folder: str, locations: Iterable[str]) -> set[str]:
    """The names of the tables among `locations` that are directly in a folder."""
    names = (location.removeprefix(f"{folder.rstrip('/')}/") for location in locations)
    return {name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX) and "/" not in name}


def already_committed(committed: list[SqlDataset]) -> str:
    """Which datasets a transaction has committed, for errors."""
    names = [f"{without_secrets(dataset.uri)} as version {dataset.version}" for dataset in committed]
    return f"Already committed by the same transaction: {', '.join(names) or 'nothing'}"


def _check_reads(base: Snapshot, read: list[Matches | None], newest: Snapshot, others: Others) -> None:
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


def _check_replaced(base: Snapshot, read: list[Matches | None], newest: Snapshot, others: Others) -> None:
    """CommitConflictError if this transaction replaces rows of others, after it has read those before."""
    changes = [version for version, transaction in others if _changes_rows(transaction.operation)]
    if read and changes:
        raise _conflict(base, changes[0])


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
