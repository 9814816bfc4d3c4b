"""Registers the Lance tables that a statement names with an engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from lance_engine.errors import DatasetNotFoundError, ExternalAccessError, VersionNotFoundError

from lance_sql.catalog.catalog import Catalog
from lance_sql.errors import SqlError
from lance_sql.text.definitions import is_definition
from lance_sql.text.kinds import Does
from lance_sql.text.metadata_tables import DESCRIPTIONS
from lance_sql.text.reference import NEWEST, Reference, split_suffix
from lance_sql.text.statement import Statement

if TYPE_CHECKING:
    import pyarrow as pa
    from lance_engine.dataset import DatasetVersion


class Registry(Protocol):
    """The name registry of an engine."""

    def register(self, name: str, dataset: DatasetVersion, system_columns: Sequence[str]) -> None:
        """Register `dataset` as `name`, replacing any previous registration."""

    def register_other(self, name: str, data: Any) -> None:
        """Register Arrow data, or any other object that the engine can scan, as `name`."""

    def unregister(self, name: str) -> None:
        """Unregister `name`."""


class Bound(NamedTuple):
    """The text of a statement, rewritten for an engine in which its datasets are registered."""

    text: str
    datasets: Mapping[str, DatasetVersion]


class _Known(NamedTuple):
    """The dataset registered for a name; `system_columns` are those declared for the table."""

    reference: Reference
    dataset: DatasetVersion
    system_columns: tuple[str, ...]

    def shows(self, dataset: DatasetVersion, system_columns: tuple[str, ...]) -> bool:
        """Whether it is registered for this version, with these columns."""
        return self.dataset is dataset and self.system_columns == system_columns


class View(NamedTuple):
    """A view of an engine that plans it when it is created."""

    statement: Statement
    datasets: Mapping[str, DatasetVersion]


class InView(NamedTuple):
    """A dataset that views read, and the system columns that occur in them."""

    reference: Reference
    system_columns: tuple[str, ...]


class Binding:
    """Registers datasets of `catalog` in `registry`; `before_change` is called before a name changes.

    `listings` builds the tables that list all tables. `numbers_parameters`: the engine needs ``$1``, ``$2``
    ... instead of ``?``. `sees_views`: every statement that creates a view passes through here.
    """

    def __init__(
        self,
        registry: Registry,
        catalog: Catalog,
        before_change: Callable[[], None] = lambda: None,
        *,
        numbers_parameters: bool = False,
        listings: Mapping[str, Callable[[], Any]] | None = None,
        sees_views: bool = False,
    ) -> None:
        self._registry = registry
        self._numbers_parameters = numbers_parameters
        self.catalog = catalog
        self._before_change = before_change
        #: name -> registered dataset
        self._known: dict[str, _Known] = {}
        self._sees_views = sees_views
        #: the datasets that views and macros read, by registered name; cursors share them
        self.in_views: dict[str, InView] = {}
        #: names that the engine may have dropped
        self._unsettled: set[str] = set()
        #: names that were registered again for the current statement
        self._restored: set[str] = set()
        #: registered tables that list all tables, by name
        self._listings = listings or {}
        self._listed: set[str] = set()
        #: prepared statements by name
        self.prepared: dict[str, Statement] = {}
        #: statements that created views, by name, and the datasets that the views read
        self.views: dict[str, View] = {}
        #: whether statements may name views, which read datasets that the statements do not name
        self.may_have_views = True

    def bind(self, statement: Statement) -> Bound:
        """Register the datasets that `statement` names."""
        self._restored.clear()
        datasets = self.catalog.resolve(statement)
        self._refuse_same_names(statement, datasets)
        for reference in statement.references:
            name = reference.name
            if name in datasets:
                self._register(reference, datasets[name], statement.system_columns)
                if not self._sees_views or (statement.does & Does.OBJECTS and is_definition(statement)):
                    self._in_view(reference, statement.system_columns)
            else:
                self._unregister(name)
        if (
            self.in_views
            and self.may_have_views
            and any(ref.name not in datasets for ref in statement.references)
        ):
            # A name may refer to a view, which reads the newest versions as well.
            self._renew_views(datasets)
        listed = self._list(statement, datasets)
        return Bound(statement.text({*datasets, *listed}, self._numbers_parameters), datasets)

    def _refuse_same_names(self, statement: Statement, datasets: Mapping[str, DatasetVersion]) -> None:
        """SqlError if a statement needs two datasets whose names differ only in case."""
        by_name: dict[str, Reference] = {}
        for reference in statement.references:
            if reference.name in datasets and reference.certain:
                other = by_name.setdefault(reference.name.lower(), reference)
                if datasets[other.name] is not datasets[reference.name]:
                    raise SqlError(
                        f"{other.name} and {reference.name} are two datasets, which SQL does not distinguish",
                        remedy="Name one of them by its path, or rename it",
                    )

    def _list(self, statement: Statement, datasets: Collection[str]) -> set[str]:
        """Register the listing tables that a statement uses, with their current contents."""
        names = {
            reference.name
            for reference in statement.references
            if reference.certain
            and reference.name not in datasets
            and reference.name.lower() in self._listings
            and self.catalog.attached.engine_names().kind(reference.location) is None
        }
        for name in names:
            table = self._listings[name.lower()]()
            self._before_change()
            self._registry.register_other(name, table)
        self._listed |= names
        return names

    def registered(self) -> set[str]:
        """The registered names of datasets, their versions and their metadata tables."""
        return {*self._known, *self._listed}

    def _register(
        self, reference: Reference, dataset: DatasetVersion, system_columns: tuple[str, ...]
    ) -> None:
        name = reference.name
        known = self._known.get(name)
        unchanged = known is not None and known.shows(dataset, system_columns)
        if unchanged and not reference.part and name not in self._unsettled:
            return
        self._forget(
            other
            for other, replaced in self._known.items()
            # Engines do not distinguish names by case, at least in some statements.
            if other == name
            or (other.lower() == name.lower() and not replaced.shows(dataset, system_columns))
        )
        if reference.part:  # tags and versions can change without a new version of the dataset
            self._registry.register_other(name, _described(dataset, reference.part))
        else:
            self._registry.register(name, dataset, system_columns)
        self._known[name] = _Known(reference, dataset, system_columns)
        self._unsettled.discard(name)

    def _renew_views(self, datasets: Collection[str]) -> None:
        """Register the newest versions of the datasets that views read and the statement does not name."""
        for name, (reference, system_columns) in list(self.in_views.items()):
            if name not in datasets:
                try:
                    dataset = self.catalog.open(reference)
                except (DatasetNotFoundError, VersionNotFoundError, ExternalAccessError):
                    dataset = None
                if dataset is None:  # deleted or out of reach meanwhile: only views of it are errors
                    self._unregister(name)
                else:
                    self._register(reference, dataset, system_columns)

    def supply(self, name: str) -> bool:
        """Register the dataset that a view reads as `name`, which the engine did not find; False if unknown.

        The view may be older than the session, or somebody else may have created it.
        """
        known = self.in_views.get(name)
        if known is not None:
            reference = known.reference
        else:
            location, choice = split_suffix(name) or (name, NEWEST)
            is_path = "/" in location or location.endswith(".lance")
            reference = Reference(name, location, choice, certain=True, quoted=is_path)
        registered = self._known.get(name)
        if registered is not None and name not in self._unsettled:
            return self._restore(registered)
        try:
            dataset = self.catalog.open(reference)
        except (DatasetNotFoundError, VersionNotFoundError):
            dataset = None
        if dataset is None:
            return False
        self._in_view(reference, ())
        self._register(reference, dataset, self.in_views[name].system_columns)
        return True

    def _restore(self, lost: _Known) -> bool:
        """Register again what the user's own connection dropped: with a transaction that it rolled back.

        False if this statement already had it registered again, and the engine still does not find it.
        """
        name = lost.reference.name
        if name in self._restored:
            return False
        self._restored.add(name)
        self._unsettled.add(name)
        self._register(lost.reference, lost.dataset, lost.system_columns)
        return True

    def _in_view(self, reference: Reference, system_columns: tuple[str, ...]) -> None:
        known = self.in_views.get(reference.name)
        others = () if known is None else known.system_columns
        columns = tuple(dict.fromkeys([*others, *system_columns]))
        self.in_views[reference.name] = InView(reference, columns)

    def _unregister(self, name: str) -> None:
        """The name means no dataset any more, however it is written."""
        for known in [one for one in self._known if one.lower() == name.lower()]:
            self.forget(known)
            self._registry.unregister(known)

    def unsettle(self) -> None:
        """Registrations may be lost; names are registered again when a statement uses them."""
        self._unsettled.update(self._known)

    def forget(self, name: str) -> None:
        """`name` is about to be redefined, however it is written."""
        self._forget(known for known in self._known if known.lower() == name.lower())

    def _forget(self, names: Iterable[str]) -> None:
        forgotten = list(names)
        for name in forgotten:
            del self._known[name]
        if forgotten:
            self._before_change()


def _described(dataset: DatasetVersion, part: str) -> pa.Table:
    if part not in DESCRIPTIONS.values():
        from lance_sql.catalog.metadata import metadata_table

        return metadata_table(dataset, part)
    from lance_sql.catalog.definitions import describe  # takes longer to import than a query

    return describe(dataset, part)
