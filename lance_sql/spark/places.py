"""Locations of the tables of a catalog: in a directory, or as a service of namespaces returns them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, Final, Protocol

from lance_engine.errors import UnsupportedFeatureError

from lance_sql.catalog.catalog import Catalog
from lance_sql.catalog.namespaces import MAIN, Place
from lance_sql.catalog.service import DELIMITER, ServiceNamespace, connect_service
from lance_sql.spark.options import Options

SUFFIX: Final = ".lance"


class Places(Protocol):
    """A namespace is identified by a list of parts, and a table by that list and a name."""

    def find(self, namespace: list[str], table: str) -> Options | None:
        """How to open a table if it exists; None if there is no table of that name."""

    def new(self, namespace: list[str], table: str) -> Options:
        """How to write a table that does not exist yet."""

    def require_removable(self, namespace: list[str], location: str) -> None:
        """ExternalAccessError if the contents of a location must not be removed as a table."""

    def dropped(self, namespace: list[str], table: str) -> None:
        """The dataset of a table was removed."""

    def tables(self, namespace: list[str]) -> list[str]:
        """The names of the tables of a namespace."""

    def namespaces(self, namespace: list[str]) -> list[str] | None:
        """The names of the namespaces in a namespace; None if it does not exist."""

    def create(self, namespace: list[str]) -> bool:
        """Create a namespace; False if it exists."""

    def drop(self, namespace: list[str]) -> bool:
        """Remove a namespace; False if it is not empty."""


def places(options: Options) -> Places:
    """The locations that the options of a catalog describe."""
    return DirectoryPlaces(options) if options.namespace is None else ServicePlaces(options)


def _at(options: Options, path: str, storage_options: Mapping[str, Any] | None) -> Options:
    return dataclasses.replace(options, path=path, storage_options=storage_options, catalog_command=None)


class DirectoryPlaces:
    """Folders are namespaces, and ``NAME.lance`` is the table NAME; a path or URL is a table too."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def find(self, namespace: list[str], table: str) -> Options | None:
        return self.new(namespace, table)  # whether it is a dataset is checked when it is opened

    def new(self, namespace: list[str], table: str) -> Options:
        if not namespace and ("://" in table or os.path.isabs(table)):
            # Credentials are for the directory of the catalog; given with a local one, for any URL.
            root = self._options.path.rstrip("/")
            are_for_it = "://" not in root or table.startswith(f"{root}/")
            return _at(self._options, table, self._options.storage_options if are_for_it else None)
        if not table or table in (".", "..") or {"/", "\\", "\0"} & set(table):
            raise UnsupportedFeatureError(f"{table!r} cannot be the name of a table", path=self._options.path)
        path = f"{self._folder(namespace)}/{table.removesuffix(SUFFIX)}{SUFFIX}"
        return _at(self._options, path, self._options.storage_options)

    def require_removable(self, namespace: list[str], location: str) -> None:
        """All tables are below the folder."""

    def dropped(self, namespace: list[str], table: str) -> None:
        """No other place refers to the table."""

    def tables(self, namespace: list[str]) -> list[str]:
        return list(Catalog(self._folder(namespace), self._options.storage_options).tables())

    def namespaces(self, namespace: list[str]) -> list[str] | None:
        folder = self._folder(namespace)
        if "://" in folder:
            return []  # on object stores, any prefix is a namespace
        if not os.path.isdir(folder):
            return None
        with os.scandir(folder) as entries:
            names = [
                entry.name for entry in entries if entry.is_dir() and not entry.name.startswith((".", "_"))
            ]
        return sorted(name for name in names if not name.endswith(SUFFIX))

    def create(self, namespace: list[str]) -> bool:
        folder = self._folder(namespace)
        if "://" in folder:
            return True
        if os.path.isdir(folder):
            return False
        os.makedirs(folder)
        return True

    def drop(self, namespace: list[str]) -> bool:
        folder = self._folder(namespace)
        if "://" in folder:
            raise UnsupportedFeatureError(
                "On object stores, an empty namespace does not exist: drop its last table instead",
                path=folder,
            )
        if os.listdir(folder):
            return False
        os.rmdir(folder)
        return True

    def _folder(self, namespace: list[str]) -> str:
        for part in namespace:
            if not part or part in (".", "..") or {"/", "\\", "\0"} & set(part) or part.endswith(SUFFIX):
                raise UnsupportedFeatureError(
                    f"{part!r} cannot be the name of a namespace", path=self._options.path
                )
        return "/".join([self._options.path.rstrip("/"), *namespace])


class ServicePlaces:
    """The tables and namespaces that a service knows, such as a REST server."""

    def __init__(self, options: Options) -> None:
        self._options = options
        properties = {key: str(value) for key, value in (options.namespace or {}).items()}
        self._kind, self._root = properties.pop("impl"), properties.pop("root", "")
        self._properties = properties

    def find(self, namespace: list[str], table: str) -> Options | None:
        place = self._namespace(namespace).find(MAIN, table)
        return None if place is None else self._options_of(place)

    def new(self, namespace: list[str], table: str) -> Options:
        return self._options_of(self._namespace(namespace).place(MAIN, table))

    def require_removable(self, namespace: list[str], location: str) -> None:
        self._namespace(namespace).require_removable(location)

    def dropped(self, namespace: list[str], table: str) -> None:
        self._namespace(namespace).dropped(MAIN, table)

    def tables(self, namespace: list[str]) -> list[str]:
        return self._namespace(namespace).tables(MAIN)

    def namespaces(self, namespace: list[str]) -> list[str] | None:
        if namespace and namespace[-1] not in self._children(namespace[:-1]):
            return None
        return self._children(namespace)

    def create(self, namespace: list[str]) -> bool:
        if namespace[-1] in self._children(namespace[:-1]):
            return False
        self._namespace(namespace[:-1]).create_schema(namespace[-1])
        return True

    def drop(self, namespace: list[str]) -> bool:
        if self.tables(namespace) or self._children(namespace):
            return False
        self._namespace(namespace[:-1]).drop_schema(namespace[-1])
        return True

    def _children(self, namespace: list[str]) -> list[str]:
        return self._namespace(namespace).schemas()[1:]  # the first one is the namespace itself

    def _namespace(self, namespace: list[str]) -> ServiceNamespace:
        levels = [part for part in [self._root, *namespace] if part]
        return connect_service(
            self._kind, DELIMITER.join(levels), self._properties, self._options.storage_options
        )

    def _options_of(self, place: Place) -> Options:
        return _at(self._options, place.location.removeprefix("file://"), place.options)
