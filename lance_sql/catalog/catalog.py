"""From names in a statement to datasets: registered names, a directory as a database, paths."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from lance_engine.errors import DatasetNotFoundError, VersionNotFoundError
from lance_engine.io import open_store
from lance_engine.operations.retry import latest
from lance_engine.table.refs import root_store

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.catalog.transaction import Matches, Transaction
from lance_sql.text.reference import NEWEST, Reference, VersionChoice, split_suffix
from lance_sql.text.statement import Statement

_SUFFIX = ".lance"


class Catalog:
    """Finds the datasets of a session. With a `directory`, ``NAME.lance`` in it is the table NAME."""

    def __init__(
        self, directory: str | None = None, storage_options: Mapping[str, Any] | None = None
    ) -> None:
        self.directory = directory
        self.storage_options = storage_options
        self._registered: dict[str, SqlDataset | str] = {}
        self._opened: dict[tuple[str, VersionChoice], SqlDataset] = {}
        #: the open transaction: names mean datasets as it sees them
        self.transaction: Transaction | None = None
        if directory is not None and not _is_remote(directory) and not os.path.isdir(directory):
            raise DatasetNotFoundError(
                "the directory does not exist",
                path=directory,
                remedy="Pass an existing directory, or use the path of a dataset in SQL",
            )

    def copy(self) -> Catalog:
        """The same names, to be changed on their own."""
        copied = Catalog(self.directory, self.storage_options)
        copied._registered = dict(self._registered)
        copied._opened = dict(self._opened)
        return copied

    def register(self, name: str, dataset: SqlDataset | str) -> None:
        """Make `name` mean a dataset, or whatever version is the newest at a location, which must exist."""
        if isinstance(dataset, str):
            self._open(dataset, NEWEST)
        self._registered[name] = dataset

    def forget(self, name: str) -> None:
        self._registered.pop(name, None)

    def renew(self, dataset: SqlDataset) -> None:
        """A statement made `dataset`: names that mean an object for an earlier version now mean this one."""
        if self.transaction is not None:
            self.transaction.changed(dataset)
            return
        for name, known in self._registered.items():
            if isinstance(known, SqlDataset) and known.uri == dataset.uri:
                self._registered[name] = dataset

    def dropped(self, dataset: SqlDataset) -> None:
        """The dataset is gone, or has another name."""
        for name, known in list(self._registered.items()):
            if (known.uri if isinstance(known, SqlDataset) else known) == dataset.uri:
                del self._registered[name]

    def names(self) -> list[str]:
        """The names that mean datasets here: those in the directory, and registered ones."""
        return sorted({*self.tables(), *self._registered})

    def tables(self) -> dict[str, str]:
        """Table name -> location of the datasets in the directory."""
        if self.directory is None:
            return {}
        if _is_remote(self.directory):
            entries = list(open_store(self.directory, self.storage_options).names(""))
        else:
            entries = [entry.name for entry in os.scandir(self.directory) if entry.is_dir()]
        return {
            name.removesuffix(_SUFFIX): _join(self.directory, name)
            for name in sorted(entries)
            if name.endswith(_SUFFIX)
        }

    def resolve(self, statement: Statement) -> dict[str, SqlDataset]:
        """The datasets that `statement` names, each at the version asked for or the newest there is now.

        Raises `DatasetNotFoundError` for a path that stands where only a table can and holds no dataset.
        """
        tables = self.tables()
        found = ((reference.name, self._find(reference, tables)) for reference in statement.references)
        return {name: dataset for name, dataset in found if dataset is not None}

    def open(self, reference: Reference) -> SqlDataset | None:
        """The dataset that `reference` names, None if it is no name of one; errors as in `resolve`."""
        return self._find(reference, self.tables())

    def open_to_change(self, reference: Reference) -> SqlDataset | None:
        """The newest version of the dataset that `reference` names, None if it is no name of one.

        In a transaction it has what the transaction changed, and what is made of it is the transaction's.
        """
        dataset = self._found(reference, self.tables())
        if dataset is None:
            return None
        if self.transaction is not None:
            return self.transaction.target(dataset)
        return type(dataset)(latest(dataset.snapshot))

    def changing(self) -> AbstractContextManager[None]:
        """What is read in the block decides what a statement changes."""
        return nullcontext() if self.transaction is None else self.transaction.changing()

    def looked_for(self, dataset: SqlDataset, matches: Matches) -> None:
        """A statement changed the rows of `dataset` that `matches` tells."""
        if self.transaction is not None:
            self.transaction.looked_for(dataset, matches)

    def _find(self, reference: Reference, tables: Mapping[str, str]) -> SqlDataset | None:
        found = self._found(reference, tables)
        # Other words of the statement may happen to be names of datasets.
        if found is not None and reference.certain and self.transaction is not None:
            self.transaction.met(found)
        return found

    def _found(self, reference: Reference, tables: Mapping[str, str]) -> SqlDataset | None:
        choices = [(reference.location, reference.choice)]
        suffix = split_suffix(reference.location) if reference.quoted and not reference.choice else None
        if suffix is not None:
            choices.append(suffix)
        for location, choice in choices:
            known = _lookup(self._registered, location)
            if isinstance(known, SqlDataset):
                if not choice:
                    return known if self.transaction is None else self.transaction.own(known)
                return self._open(root_store(known.snapshot).uri, choice.within(known.branch))
            if known is None:
                known = _lookup(tables, location)
            if known is not None:
                return self._open_choice(known, choice, suffixed=choice is not reference.choice)
        if not reference.quoted:
            return None
        for location, choice in choices:
            if _is_dataset_path(location, reference.certain):
                try:
                    suffixed = choice is not reference.choice
                    return self._open_choice(self._locate(location), choice, suffixed=suffixed)
                except DatasetNotFoundError:
                    if reference.certain:
                        raise
        return None

    def _open_choice(self, location: str, choice: VersionChoice, *, suffixed: bool) -> SqlDataset:
        """A name behind ``@`` is a tag, or else a branch."""
        try:
            return self._open(location, choice)
        except VersionNotFoundError:
            if not suffixed or choice.tag is None:
                raise
            try:
                return self._open(location, VersionChoice(branch=choice.tag))
            except VersionNotFoundError:
                pass
            raise

    def _locate(self, location: str) -> str:
        """A relative path is relative to the directory if it exists there, else to the working directory."""
        if self.directory is not None and not _is_remote(location) and not os.path.isabs(location):
            inside = _join(self.directory, location)
            if _is_remote(self.directory) or os.path.isdir(inside):
                return inside
        return location

    def _open(self, location: str, choice: VersionChoice) -> SqlDataset:
        """The dataset as it is now; if nothing changed the one opened before, with its metadata at hand."""
        newest = self._open_now(location, choice)
        if self.transaction is not None and choice.is_newest:
            return self.transaction.view(newest)
        return newest

    def _open_now(self, location: str, choice: VersionChoice) -> SqlDataset:
        dataset = SqlDataset.open(location, **choice.arguments(), storage_options=self.storage_options)
        known = self._opened.get((location, choice))
        if known is not None and known.snapshot.manifest == dataset.snapshot.manifest:
            return known
        self._opened[location, choice] = dataset
        return dataset


def _lookup(names: Mapping[str, Any], name: str) -> Any:
    """The entry of that name; if there is none, of that name in another case."""
    found = names.get(name)
    if found is None:
        folded = name.lower()
        matches = [value for key, value in names.items() if key.lower() == folded]
        found = matches[0] if len(matches) == 1 else None
    return found


def _is_dataset_path(location: str, certain: bool) -> bool:
    # A path may end with the parameters of a manifest store.
    location = location.partition("?")[0].rstrip("/")
    if location.endswith(_SUFFIX):
        return True
    return certain and os.path.isdir(os.path.join(location, "_versions"))


def _is_remote(location: str) -> bool:
    return "://" in location


def _join(directory: str, name: str) -> str:
    return f"{directory.rstrip('/')}/{name}" if _is_remote(directory) else os.path.join(directory, name)
