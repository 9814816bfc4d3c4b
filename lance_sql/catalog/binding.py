"""Registers the Lance tables that a statement names with an engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from lance_engine.dataset import DatasetVersion
from lance_engine.errors import DatasetNotFoundError, VersionNotFoundError
from lance_engine.records import record

from lance_sql.catalog.catalog import Catalog
from lance_sql.catalog.metadata import metadata_table
from lance_sql.text.reference import Reference
from lance_sql.text.statement import Statement


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


@record
class _Known:
    """The dataset registered for a name; `system_columns` are those declared for the table."""

    reference: Reference
    dataset: DatasetVersion
    system_columns: tuple[str, ...]


class Binding:
    """Registers datasets of `catalog` in `registry`; `before_change` is called before a name changes.

    `listings` builds the tables that list all tables. `numbers_parameters`: the engine needs ``$1``, ``$2``
    ... instead of ``?``.
    """

    def __init__(
        self,
        registry: Registry,
        catalog: Catalog,
        before_change: Callable[[], None] = lambda: None,
        *,
        numbers_parameters: bool = False,
        listings: Mapping[str, Callable[[], Any]] | None = None,
    ) -> None:
        self._registry = registry
        self._numbers_parameters = numbers_parameters
        self.catalog = catalog
        self._before_change = before_change
        #: name -> registered dataset
        self._known: dict[str, _Known] = {}
        #: names that the engine may have dropped
        self._unsettled: set[str] = set()
        #: registered tables that list all tables, by name
        self._listings = listings or {}
        self._listed: set[str] = set()
        #: prepared statements by name
        self.prepared: dict[str, Statement] = {}
        #: whether statements may name views, which read datasets that the statements do not name
        self.may_have_views = True

    def bind(self, statement: Statement) -> Bound:
        """Register the datasets that `statement` names."""
        found = self.catalog.resolve(statement)
        for reference in statement.references:
            name = reference.name
            if name in found:
                self._register(reference, found[name], statement.system_columns)
            elif name in self._known:
                self.forget(name)
                self._registry.unregister(name)
        if self.may_have_views and any(ref.name not in found for ref in statement.references):
            # A name may refer to a view, which reads the newest versions as well.
            self._renew_others(found)
        listed = self._list(statement)
        return Bound(statement.text({*found, *listed}, self._numbers_parameters), found)

    def _list(self, statement: Statement) -> set[str]:
        """Register the listing tables that a statement uses, with their current contents."""
        names = {
            reference.name
            for reference in statement.references
            if reference.certain and reference.name.lower() in self._listings
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
        unchanged = known is not None and known.dataset is dataset and known.system_columns == system_columns
        if unchanged and not reference.part and name not in self._unsettled:
            return
        self.forget(name)
        if reference.part:  # tags and versions can change without a new version of the dataset
            self._registry.register_other(name, metadata_table(dataset, reference.part))
        else:
            self._registry.register(name, dataset, system_columns)
        self._known[name] = _Known(reference, dataset, system_columns)
        self._unsettled.discard(name)

    def _renew_others(self, found: Collection[str]) -> None:
        """Register the newest versions of known datasets that the statement does not name."""
        for name, known in list(self._known.items()):
            if name not in found:
                try:
                    dataset = self.catalog.open(known.reference)
                except (DatasetNotFoundError, VersionNotFoundError):
                    dataset = None
                if dataset is None:  # deleted meanwhile: views of it, and names in another case, are errors
                    self.forget(name)
                    self._registry.unregister(name)
                else:
                    self._register(known.reference, dataset, known.system_columns)

    def forget_all(self) -> None:
        """Unregister everything; names are registered again when a statement uses them."""
        for name in self.registered():
            self._registry.unregister(name)
        self._known.clear()
        self._unsettled.clear()
        self._listed.clear()

    def unsettle(self) -> None:
        """Registrations may be lost; names are registered again when a statement uses them."""
        self._unsettled.update(self._known)

    def forget(self, name: str) -> None:
        """`name` is about to be redefined."""
        if self._known.pop(name, None) is not None:
            self._before_change()
