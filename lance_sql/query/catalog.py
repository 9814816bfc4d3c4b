"""From names in a statement to datasets: registered names, a directory as a database, paths."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from lance_engine.errors import DatasetNotFoundError

from lance_sql.dataset import Dataset
from lance_sql.query.statement import Reference, Statement

_SUFFIX = ".lance"


class Catalog:
    """Finds the datasets of a session. With a `directory`, ``NAME.lance`` in it is the table NAME."""

    def __init__(
        self, directory: str | None = None, storage_options: Mapping[str, Any] | None = None
    ) -> None:
        self.directory = directory
        self.storage_options = storage_options
        self._registered: dict[str, Dataset | str] = {}
        self._opened: dict[tuple[str, int | None], Dataset] = {}
        if directory is not None and not _is_remote(directory) and not os.path.isdir(directory):
            raise DatasetNotFoundError(
                "no such directory of datasets",
                path=directory,
                remedy="Name an existing directory, or a dataset in SQL",
            )

    def register(self, name: str, dataset: Dataset | str) -> None:
        """Make `name` mean a dataset, or whatever version is the newest at a location, which must exist."""
        if isinstance(dataset, str):
            self._open(dataset, None)
        self._registered[name] = dataset

    def forget(self, name: str) -> None:
        self._registered.pop(name, None)

    def tables(self) -> dict[str, str]:
        """Table name -> location of the datasets in the directory."""
        if self.directory is None:
            return {}
        if _is_remote(self.directory):
            entries = self._list_remote(self.directory)
        else:
            entries = [entry.name for entry in os.scandir(self.directory) if entry.is_dir()]
        return {
            name.removesuffix(_SUFFIX): _join(self.directory, name)
            for name in sorted(entries)
            if name.endswith(_SUFFIX)
        }

    def _list_remote(self, directory: str) -> list[str]:
        import fsspec

        filesystem, path = fsspec.core.url_to_fs(directory, **(self.storage_options or {}))
        return [entry.rstrip("/").rpartition("/")[2] for entry in filesystem.ls(path, detail=False)]

    def resolve(self, statement: Statement) -> dict[str, Dataset]:
        """The datasets that `statement` names, each at the version asked for or the newest there is now.

        Raises `DatasetNotFoundError` for a path that stands where only a table can and holds no dataset.
        """
        tables = self.tables()
        found: dict[str, Dataset] = {}
        for reference in statement.references:
            dataset = self._find(reference, tables)
            if dataset is not None:
                found[reference.name] = dataset
        return found

    def _find(self, reference: Reference, tables: Mapping[str, str]) -> Dataset | None:
        registered = _lookup(self._registered, reference)
        if isinstance(registered, Dataset):
            return registered if reference.version is None else self._open(registered.uri, reference.version)
        if registered is not None:
            return self._open(registered, reference.version)
        location = _lookup(tables, reference)
        if location is not None:
            return self._open(location, reference.version)
        if reference.quoted and _is_dataset_path(reference):
            location = self._locate(reference.location)
            try:
                return self._open(location, reference.version)
            except DatasetNotFoundError:
                if reference.certain:
                    raise
        return None

    def _locate(self, location: str) -> str:
        """A relative path is relative to the directory if it exists there, else to the working directory."""
        if self.directory is not None and not _is_remote(location) and not os.path.isabs(location):
            inside = _join(self.directory, location)
            if _is_remote(self.directory) or os.path.isdir(inside):
                return inside
        return location

    def _open(self, location: str, version: int | None) -> Dataset:
        """The dataset as it is now; if nothing changed the one opened before, with its metadata at hand."""
        dataset = Dataset.open(location, version, storage_options=self.storage_options)
        known = self._opened.get((location, version))
        if known is not None and known.snapshot.manifest == dataset.snapshot.manifest:
            return known
        self._opened[location, version] = dataset
        return dataset


def _lookup(names: Mapping[str, Any], reference: Reference) -> Any:
    """The entry of that name; unquoted and not found, of that name in another case."""
    found = names.get(reference.location)
    if found is None:
        folded = reference.location.lower()
        matches = [value for name, value in names.items() if name.lower() == folded]
        found = matches[0] if len(matches) == 1 else None
    return found


def _is_dataset_path(reference: Reference) -> bool:
    location = reference.location.rstrip("/")
    if location.endswith(_SUFFIX):
        return True
    return reference.certain and os.path.isdir(os.path.join(location, "_versions"))


def _is_remote(location: str) -> bool:
    return "://" in location


def _join(directory: str, name: str) -> str:
    return f"{directory.rstrip('/')}/{name}" if _is_remote(directory) else os.path.join(directory, name)
