"""Resolves table names to locations: directories, and services that list datasets by name."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from lance_engine import io
from lance_engine import table as versions
from lance_engine.errors import DatasetNotFoundError, InvalidArgumentError, LanceError

if TYPE_CHECKING:
    from lance_engine.table import Identity

#: The schema of table names without a schema.
MAIN = "main"

SUFFIX = ".lance"

# Marker file that creates an empty folder in a bucket.
_MARKER = ".schema"


class Place(NamedTuple):
    """The location of a dataset and its storage options; None: those of the session."""

    location: str
    options: Mapping[str, Any] | None = None


class Namespace(Protocol):
    """Schemas of tables, which are datasets."""

    #: description for people
    source: str

    def schemas(self) -> list[str]:
        """The names of the schemas."""

    def tables(self, schema: str) -> list[str]:
        """The names of the tables of a schema; none if there is no such schema."""

    def find(self, schema: str, table: str) -> Place | None:
        """The location of a table, None if it does not exist."""

    def place(self, schema: str, table: str) -> Place:
        """The location for a new table with that name."""

    def require_removable(self, location: str) -> None:
        """ExternalAccessError if the contents of a location must not be removed as a table."""

    def dropped(self, schema: str, table: str) -> None:
        """The dataset of a table was removed."""

    def create_schema(self, schema: str) -> None:
        """Create an empty schema."""

    def drop_schema(self, schema: str) -> None:
        """Remove an empty schema."""


class Viewer(Protocol):
    """A session, as far as it decides what a directory contains."""

    def may_list(self, folder: str) -> bool:
        """Whether statements may name what is in a folder."""

    def tables_in(self, folder: str, options: Mapping[str, Any] | None, names: list[str]) -> list[str]:
        """The tables of a folder with the tables `names`, as the open transaction sees them."""


class _Listed(NamedTuple):
    """The folders in a folder, and what changes with them."""

    identity: Identity
    names: list[str]


class DirectoryNamespace:
    """A directory or a prefix of a bucket: ``t.lance`` in it is ``main.t``, ``s/t.lance`` is ``s.t``.

    The first table creates a local directory that does not exist. A schema that is a symbolic link exists
    only if the session may list the folder that it leads to.
    """

    def __init__(
        self,
        directory: str,
        storage_options: Mapping[str, Any] | None = None,
        viewer: Viewer | None = None,
    ) -> None:
        self.source = directory
        self._options = storage_options
        self._viewer = viewer
        #: by folder
        self._listed: dict[str, _Listed] = {}
        if not is_remote(directory) and not _can_be_directory(directory):
            raise DatasetNotFoundError(
                "The directory does not exist, and cannot be created here",
                path=directory,
                remedy="Pass a directory, or the name of a new one in an existing directory",
            )
        if not is_remote(directory) and os.path.isdir(os.path.join(directory, "_versions")):
            raise InvalidArgumentError(
                "This is a dataset, not a directory of datasets",
                path=directory,
                remedy=f"Pass the directory that contains it, or use its path in SQL: FROM '{directory}'",
            )

    def within(self, viewer: Viewer) -> DirectoryNamespace:
        """The same directory for another session."""
        copied = copy.copy(self)
        copied._viewer = viewer
        return copied

    def schemas(self) -> list[str]:
        names = self._entries(self.source)
        others = [name for name in names if not name.endswith(SUFFIX) and name[0] not in "._"]
        if not is_remote(self.source) and self.source not in self._listed:  # there are links
            folders = {name: self._folder(name) for name in others}
            others = [
                name
                for name, folder in folders.items()
                if not os.path.islink(folder) or self._viewer is None or self._viewer.may_list(folder)
            ]
        return [MAIN, *others]

    def tables(self, schema: str) -> list[str]:
        folder = self._folder(schema)
        names = [name.removesuffix(SUFFIX) for name in self._entries(folder) if name.endswith(SUFFIX)]
        return names if self._viewer is None else self._viewer.tables_in(folder, self._options, names)

    def find(self, schema: str, table: str) -> Place | None:
        known = named(schema, self.schemas()) if schema.lower() != MAIN else MAIN
        name = None if known is None else named(table, self.tables(known))
        return None if known is None or name is None else self.place(known, name)

    def place(self, schema: str, table: str) -> Place:
        return Place(join(self._folder(schema), f"{table}{SUFFIX}"), self._options)

    def require_removable(self, location: str) -> None:
        """All tables are below the directory."""

    def dropped(self, schema: str, table: str) -> None:
        """No other place refers to the table."""

    def create_schema(self, schema: str) -> None:
        folder = self._folder(_plain(schema))
        if is_remote(folder):
            io.open_store(folder, self._options).put(_MARKER, b"")
        else:
            try:
                os.makedirs(folder)
            except OSError as error:
                raise io.local_error(error, folder, writing=True) from error

    def drop_schema(self, schema: str) -> None:
        folder = self._folder(_plain(schema))
        remote = is_remote(folder)
        if not remote and os.path.islink(folder):
            raise LanceError(
                "The folder of the schema is a symbolic link", path=folder, remedy="Remove the link instead"
            )
        held = self._entries(folder) if remote else sorted(os.listdir(folder))
        others = [name for name in held if not (remote and name == _MARKER)]
        if others:
            raise LanceError(
                f"The folder of the schema has other files: {', '.join(others[:10])}",
                path=folder,
                remedy="Remove them first",
            )
        if remote:
            io.open_store(folder, self._options).delete(_MARKER)
        else:
            try:
                os.rmdir(folder)
            except OSError as error:
                raise io.local_error(error, folder, writing=True) from error

    def _folder(self, schema: str) -> str:
        return self.source if schema == MAIN else join(self.source, schema)

    def _entries(self, folder: str) -> list[str]:
        """The names of the folders in a folder, sorted."""
        if is_remote(folder):
            return sorted(io.open_store(folder, self._options).names(""))
        known = self._listed.get(folder)
        try:
            if known is not None and versions.identity(os.stat(folder)) == known.identity:
                return known.names
            before = versions.settled(folder)
            with os.scandir(folder) as scanned:
                entries = list(scanned)
            names = sorted(entry.name for entry in entries if entry.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        # The target of a link may come and go without a change of the folder.
        if before is not None and not any(entry.is_symlink() for entry in entries):
            self._listed[folder] = _Listed(before, names)
        return names


def _can_be_directory(directory: str) -> bool:
    """Whether a path is a directory, or a name that is free in one."""
    if os.path.lexists(directory):
        return os.path.isdir(directory)
    return os.path.isdir(os.path.dirname(os.path.abspath(directory)))


def _plain(schema: str) -> str:
    if (
        schema == MAIN
        or "/" in schema
        or os.sep in schema
        or schema[:1] in ("", ".", "_")
        or schema.endswith(SUFFIX)
    ):
        raise LanceError(f"{schema!r} cannot be the name of a schema", remedy="Choose another name")
    return schema


def named(name: str, names: list[str]) -> str | None:
    """The matching name: the same, or else the only one that differs in case."""
    if name in names:
        return name
    matches = [known for known in names if known.lower() == name.lower()]
    return matches[0] if len(matches) == 1 else None


def is_dataset_path(name: str) -> bool:
    """Whether a name is plainly the path of a dataset; parameters of a manifest store may follow it."""
    return any(part.rstrip("/").endswith(SUFFIX) for part in (name, name.partition("?")[0]))


def is_remote(location: str) -> bool:
    """Whether a location is a URI."""
    return "://" in location


def join(directory: str, name: str) -> str:
    """The location of `name` in a directory."""
    return f"{directory.rstrip('/')}/{name}" if is_remote(directory) else os.path.join(directory, name)
