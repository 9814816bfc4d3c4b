"""Resolves names in statements to datasets: registered names, a directory as a database, paths."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from lance_engine import io
from lance_engine import table as versions
from lance_engine.errors import (
    DatasetNotFoundError,
    ExternalAccessError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)

from lance_sql.catalog.access import UNRESTRICTED, Restrictions, require_access, restricted_options
from lance_sql.catalog.attached import SESSION, Attached, Listed
from lance_sql.catalog.engine_names import NO_NAMES, FindNames
from lance_sql.catalog.namespaces import (
    MAIN,
    SUFFIX,
    DirectoryNamespace,
    Namespace,
    Place,
    is_dataset_path,
    is_remote,
    join,
    named,
)
from lance_sql.errors import SqlError
from lance_sql.text.reference import NEWEST, Reference, VersionChoice, split_suffix
from lance_sql.text.statement import Statement

if TYPE_CHECKING:
    from lance_engine.io import Store
    from lance_engine.table import SeenVersion

    from lance_sql.catalog.dataset import SqlDataset
    from lance_sql.catalog.secrets import Secret
    from lance_sql.catalog.transaction import Matches, Mode, Transaction


class _Opened(NamedTuple):
    """An open dataset, and how it was found to be the newest version; None if only opening it again tells."""

    dataset: SqlDataset
    options: Mapping[str, Any] | None
    seen: SeenVersion | None

    def is_newest(self, location: str) -> bool:
        return self.seen is not None and self.seen.is_newest(location)


class _Names:
    """Values by names, which match in another case if only one does."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def get(self, name: str) -> Any:
        if not self._values:
            return None
        value = self._values.get(name)
        if value is None:
            matches = self._folded.get(name.lower(), ())
            value = matches[0] if len(matches) == 1 else None
        return value

    @cached_property
    def _folded(self) -> dict[str, list[Any]]:
        folded: dict[str, list[Any]] = {}
        for name, value in self._values.items():
            folded.setdefault(name.lower(), []).append(value)
        return folded


class _Tables(_Names):
    """The tables of the default directory, by name."""

    def __init__(self, directory: DirectoryNamespace, schema: str, names: list[str]) -> None:
        super().__init__({name: name for name in names})
        self.listed = directory, schema, names

    def place(self, name: str) -> Place | None:
        """The location of the table with a name; None if it does not exist."""
        directory, schema, _ = self.listed
        table = self.get(name)
        return None if table is None else directory.place(schema, table)


class Catalog:
    """Finds the datasets of a session. With a `directory`, ``NAME.lance`` in it is the table NAME."""

    def __init__(
        self,
        directory: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        restrictions: Callable[[], Restrictions] = lambda: UNRESTRICTED,
        engine_names: FindNames = lambda: NO_NAMES,
    ) -> None:
        self.directory = directory
        self.storage_options = storage_options
        self._registered: dict[str, SqlDataset | str] = {}
        #: names in lower case under which other data is registered with the engine
        self._others: set[str] = set()
        self._opened: dict[tuple[str, VersionChoice], _Opened] = {}
        #: the restrictions of the engine at this time
        self.restrictions = restrictions
        #: the open transaction; names resolve to datasets as it sees them
        self.transaction: Transaction | None = None
        session: dict[str, Namespace] = (
            {} if directory is None else {SESSION: DirectoryNamespace(directory, storage_options, self)}
        )
        #: directories and services whose tables have dotted names
        self.attached = Attached(session, engine_names)
        #: credentials by name and scope
        self.secrets: dict[str, Secret] = {}
        #: of the last statement
        self._tables: _Tables | None = None
        #: storage options that namespaces returned, by location
        self._options: dict[str, Mapping[str, Any] | None] = {}

    def copy(self, restrictions: Callable[[], Restrictions], engine_names: FindNames) -> Catalog:
        """A copy that can be changed independently, for a cursor of the engine."""
        copied = Catalog(self.directory, self.storage_options, restrictions)
        copied._registered = dict(self._registered)
        copied._others = set(self._others)
        copied._opened = dict(self._opened)
        copied.attached = self.attached.copy(engine_names, copied)
        copied._options = dict(self._options)
        copied.secrets = dict(self.secrets)
        return copied

    @property
    def opened(self) -> int:
        """How many datasets are kept open for statements to come."""
        return len(self._opened)

    def register(self, name: str, dataset: SqlDataset | str) -> None:
        """Register `name` for a dataset, or for the newest version at a location, which must exist."""
        if isinstance(dataset, str):
            self._open(dataset, NEWEST)
        self._others.discard(name.lower())
        self._registered[name] = dataset

    def register_other(self, name: str) -> None:
        """`name` was registered with the engine for other data, and names no dataset from now on."""
        self._registered.pop(name, None)
        self._others.add(name.lower())

    def forget(self, name: str) -> None:
        """`name` is no longer registered."""
        self._registered.pop(name, None)
        self._others.discard(name.lower())

    def ran(self, statement: Statement) -> None:
        """The engine ran `statement`, which may have dropped other data."""
        if self._others and statement.tokens and statement.tokens[0].upper == "DROP":
            self._others.difference_update(token.value.lower() for token in statement.tokens)

    def renew(self, dataset: SqlDataset) -> None:
        """A statement created `dataset`: names registered for an earlier version now refer to it."""
        if self.transaction is not None:
            self.transaction.changed(dataset)
            return
        for name, known in self._registered.items():
            if not isinstance(known, str) and known.uri == dataset.uri:
                self._registered[name] = dataset

    def require_removable(self, dataset: SqlDataset, name: str) -> None:
        """ExternalAccessError if the dataset must not be removed as the table `name`."""
        place = self.attached.split(name) if name not in self._registered else None
        if place is not None:
            self._refuse_service(place[0])
            place[0].require_removable(dataset.uri)

    def _refuse_service(self, namespace: Namespace) -> None:
        """A transaction cannot hide from others what a service lists."""
        if self.transaction is not None and not isinstance(namespace, DirectoryNamespace):
            raise UnsupportedFeatureError(
                "Tables of a service cannot be created, dropped or renamed in a transaction",
                path=namespace.source,
                remedy="Run the statement before BEGIN or after COMMIT",
            )

    def drop(self, dataset: SqlDataset, name: str) -> None:
        """Remove the dataset that is the table `name`, in a transaction at COMMIT."""
        from lance_engine.operations import drop_dataset

        if self.transaction is not None:
            self.transaction.drop(dataset)
        else:
            drop_dataset(dataset.snapshot)
            self.dropped(dataset, name)

    def rename(self, dataset: SqlDataset, name: str) -> None:
        """Rename the folder of a dataset."""
        from lance_engine.operations import check_folder_name, rename_dataset

        if self.transaction is None:
            rename_dataset(dataset.snapshot, name)
            self.dropped(dataset)
            return
        check_folder_name(dataset.uri, name)
        folder, slash, _ = dataset.uri.rpartition("/")
        location = f"{folder}{slash}{name}"
        self.options_of(location)  # may be refused
        self.transaction.rename(dataset, io.open_store(location, dataset.snapshot.storage_options))

    def dropped(self, dataset: SqlDataset, name: str = "") -> None:
        """The dataset that was the table `name` was dropped or renamed."""
        place = self.attached.split(name) if name and name not in self._registered else None
        if place is not None:
            namespace, schema, table = place
            namespace.dropped(schema, table)
        for name, known in list(self._registered.items()):
            if (known if isinstance(known, str) else known.uri) == dataset.uri:
                del self._registered[name]

    def names(self) -> list[str]:
        """The names of datasets: those in the directory, and registered ones."""
        known = {*self.attached.current_tables(), *self._registered}
        return sorted(name for name in known if name.lower() not in self._others)

    def tables(self) -> dict[str, str]:
        """Table name -> location of the datasets in the default directory."""
        current = self.attached.current_directory()
        if current is None:
            return {}
        directory, schema = current
        return {name: self._location(directory.place(schema, name)) for name in directory.tables(schema)}

    def listed(self, listed: Listed) -> SqlDataset | None:
        """The newest version of a table that a namespace lists, or of a registered name."""
        namespace = self.attached.get(listed.catalog)
        place = None if namespace is None else namespace.find(listed.schema, listed.name)
        if place is not None:
            return self._open(self._location(place), NEWEST)
        return self.open(Reference(listed.name, listed.name))

    def full_name(self, name: str) -> tuple[str, str] | None:
        """The namespace and schema of the dataset with an unqualified name; None if it does not exist."""
        current = self.attached.current
        if current is None or name.lower() in self._others or _Names(self._registered).get(name) is not None:
            return None
        return None if self.attached.find(name) is None else current

    def new_place(self, name: str, *, dots: bool) -> str | None:
        """The location for a new dataset with this name; None if it is a table of the engine.

        Without `dots`, dots are part of the table name.
        """
        parts_of_name = self.attached.split(name, dots=dots)
        if parts_of_name is None or any("/" in part or os.sep in part for part in parts_of_name[1:]):
            return None
        namespace, schema, table = parts_of_name
        self._refuse_service(namespace)
        known = named(schema, namespace.schemas()) if schema != MAIN else MAIN
        if known is None:
            raise SqlError(f"Schema {schema!r} not found for {name}", remedy="Write CREATE SCHEMA first")
        place = namespace.find(known, table) or namespace.place(known, table)
        return self._location(place)

    def options_of(self, location: str) -> Mapping[str, Any] | None:
        """The storage options for a dataset at a location that a statement names.

        ExternalAccessError if the session must not access it: every location passes through here before it
        is read or written.
        """
        restrictions = self.restrictions()
        if restrictions.enable_external_access:
            return self._options_of(location)
        require_access(location, restrictions, self._known_locations())
        return restricted_options(self._options_of(location))

    def options_within(self, folder: str) -> Mapping[str, Any] | None:
        """As `options_of`, for what is in a folder: a path in allowed_paths allows nothing below it."""
        return self.options_of(join(folder, f"*{SUFFIX}"))

    def may_list(self, folder: str) -> bool:
        """Whether statements may name what is in a folder."""
        try:
            self.options_within(folder)
        except ExternalAccessError:
            return False
        return True

    def tables_in(self, folder: str, options: Mapping[str, Any] | None, names: list[str]) -> list[str]:
        """The tables of a folder with the tables `names`, as the open transaction sees them."""
        if self.transaction is None or not self.transaction.defines:
            return names
        place = io.open_store(folder, options).uri
        return self.transaction.tables_in(place, names)

    @contextmanager
    def writing(self, location: str, mode: Mode) -> Iterator[tuple[str | Store, Mode]]:
        """What to write to, and how, to create, extend or replace the dataset at a location in this block."""
        options = self.options_of(location)
        if self.transaction is None:
            yield location, mode
        else:
            with self.transaction.writing(io.open_store(location, options), options, mode) as target:
                yield target

    def _known_locations(self) -> Iterator[str]:
        """The directories and datasets that became part of the session before it was restricted."""
        yield from self.attached.sources()
        yield from self._options  # tables of services
        for known in self._registered.values():
            yield known if isinstance(known, str) else versions.root_store(known.snapshot).uri

    def _options_of(self, location: str) -> Mapping[str, Any] | None:
        own = self._options.get(location)
        secret: Mapping[str, str] = {}
        if self.secrets:
            from lance_sql.catalog.secrets import matching

            secret = matching(self.secrets.values(), location)
        if not own and not secret:
            return self.storage_options
        return {**(self.storage_options or {}), **secret, **(own or {})}

    def _location(self, place: Place) -> str:
        if place.options is not self.storage_options:
            self._options[place.location] = place.options
        return place.location

    def resolve(self, statement: Statement) -> dict[str, SqlDataset]:
        """The datasets that `statement` names, each at the requested version or the newest one.

        Raises `DatasetNotFoundError` for a path used as a table that does not contain a dataset.
        """
        known = self._names()
        datasets = ((reference.name, self._find(reference, known)) for reference in statement.references)
        return {name: dataset for name, dataset in datasets if dataset is not None}

    def open(self, reference: Reference) -> SqlDataset | None:
        """The dataset that `reference` names; None if it is not a dataset. Errors as in `resolve`."""
        return self._find(reference, self._names())

    def open_to_change(self, reference: Reference) -> SqlDataset | None:
        """The newest version of the dataset that `reference` names; None if it is not a dataset.

        In a transaction, this includes the changes of the transaction, and new changes become part of it.
        """
        dataset = self._found(reference, self._names(), changes=True)
        if dataset is None:
            return None
        if self.transaction is not None:
            return self.transaction.target(dataset)
        from lance_engine.operations import latest

        return type(dataset)(latest(dataset.snapshot))

    def changing(self) -> AbstractContextManager[None]:
        """Reads in this block determine what a statement changes."""
        return nullcontext() if self.transaction is None else self.transaction.changing()

    def without_reads(self) -> AbstractContextManager[None]:
        """Statements in this block consist of constants."""
        return nullcontext() if self.transaction is None else self.transaction.without_reads()

    def looked_for(self, dataset: SqlDataset, matches: Matches) -> None:
        """A statement changed the rows of `dataset` selected by `matches`."""
        if self.transaction is not None:
            self.transaction.looked_for(dataset, matches)

    def _names(self) -> tuple[_Names, _Tables | None]:
        """What names refer to at this time: registered ones, and the tables of the default directory."""
        return _Names(self._registered), self._current_tables()

    def _current_tables(self) -> _Tables | None:
        """The tables of the default directory; None if the default namespace is not a directory."""
        current = self.attached.current_directory()
        if current is None:
            return None
        directory, schema = current
        listed = directory, schema, directory.tables(schema)
        if self._tables is None or self._tables.listed != listed:
            self._tables = _Tables(*listed)
        return self._tables

    def _find(self, reference: Reference, names: tuple[_Names, _Tables | None]) -> SqlDataset | None:
        if _is_other_word(reference, *names):
            return None
        dataset = self._found(reference, names)
        # Other words in the statement may be the same as dataset names.
        if dataset is not None and reference.certain and self.transaction is not None:
            self.transaction.met(dataset)
        return dataset

    def _found(
        self, reference: Reference, names: tuple[_Names, _Tables | None], *, changes: bool = False
    ) -> SqlDataset | None:
        registered, tables = names
        if self._others and reference.location.lower() in self._others and not reference.choice:
            return None
        choices = [(reference.location, reference.choice)]
        if reference.quoted and not reference.choice and "@" in reference.location:
            suffix = split_suffix(reference.location)
            choices += [] if suffix is None else [suffix]
        for location, choice in choices:
            known = registered.get(location)
            if known is not None and not isinstance(known, str):
                dataset: SqlDataset = known
                if not choice and self.transaction is None:
                    return dataset
                if not choice and self.transaction is not None:
                    return self.transaction.own(dataset)
                return self._open(versions.root_store(dataset.snapshot).uri, choice.within(dataset.branch))
            if known is None:
                place = None if tables is None else tables.place(location)
                known = self._in_namespace(reference, location) if place is None else self._location(place)
                if known is not None and self._is_ambiguous(location, raises=changes or reference.certain):
                    return None
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

    def _is_ambiguous(self, name: str, *, raises: bool) -> bool:
        """Whether the name of a dataset is also that of the engine's own table or view.

        SqlError with `raises`: other words of a statement may be equal to names of datasets.
        """
        schema, _, table = name.rpartition(".")
        if schema and schema.lower() != MAIN:
            return False
        kind = self.attached.hidden(table)
        if kind is None:
            return False
        if not raises:
            return True
        space, schema = self.attached.current or (SESSION, MAIN)
        raise SqlError(
            f"{name} is ambiguous: a {kind} of the SQL engine and a dataset have this name",
            remedy=f"Write {space}.{schema}.{table} for the dataset, or the name with its database "
            "and schema for the other, or drop or rename one of them",
        )

    def _in_namespace(self, reference: Reference, location: str) -> str | None:
        """The location of a dataset with a dotted name, or of a name that only a service can resolve."""
        if "." in location:
            is_name = not reference.quoted
        else:
            is_name = "/" not in location and self.attached.current_directory() is None
        if not is_name:
            return None
        place = self.attached.find(location)
        return None if place is None else self._location(place)

    def _open_choice(self, location: str, choice: VersionChoice, *, suffixed: bool) -> SqlDataset:
        """A name after ``@`` is a tag, otherwise a branch."""
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
        """Resolve a relative path in the directory if it exists there, otherwise in the working directory."""
        if self.directory is not None and not is_remote(location) and not os.path.isabs(location):
            inside = join(self.directory, location)
            if is_remote(self.directory) or os.path.isdir(inside):
                return inside
        return location

    def _open(self, location: str, choice: VersionChoice) -> SqlDataset:
        """The current dataset; if unchanged, the object opened before, whose metadata is already loaded."""
        transaction = self.transaction
        if transaction is not None and transaction.defines:
            created = transaction.defined(io.open_store(location, self.options_of(location)))
            if created is not None:
                if choice.is_newest:
                    return created
                raise VersionNotFoundError(
                    "The transaction has replaced all versions of the dataset",
                    path=created.uri,
                    remedy="Read older versions before BEGIN or after COMMIT",
                )
        newest = self._open_now(location, choice)
        if transaction is not None and choice.is_newest:
            return transaction.view(newest)
        return newest

    def _open_now(self, location: str, choice: VersionChoice) -> SqlDataset:
        options = self.options_of(location)
        known = self._opened.get((location, choice))
        if known is not None and known.options == options and known.is_newest(location):
            return known.dataset
        folder = None if choice else versions.SeenFolder.at(location)
        from lance_sql.catalog.dataset import SqlDataset

        dataset = SqlDataset.open(location, **choice.arguments(), storage_options=options)
        seen = None if folder is None else folder.with_version(dataset.snapshot)
        if (
            known is not None
            and known.options == options
            and known.dataset.uri == dataset.uri  # relative paths may mean another directory
            and known.dataset.snapshot.manifest == dataset.snapshot.manifest
        ):
            dataset = known.dataset
        self._opened[location, choice] = _Opened(dataset, options, seen)
        return dataset


def _is_other_word(reference: Reference, registered: _Names, tables: _Tables | None) -> bool:
    """Whether a word of a statement cannot be a dataset, as most words."""
    if reference.certain or reference.quoted or reference.choice or "." in reference.location:
        return False
    # Without a directory, a service may know the name.
    return (
        tables is not None
        and tables.get(reference.location) is None
        and registered.get(reference.location) is None
    )


def _is_dataset_path(location: str, certain: bool) -> bool:
    if is_dataset_path(location):
        return True
    return certain and os.path.isdir(os.path.join(location, "_versions"))
