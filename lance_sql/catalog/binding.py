"""Makes an engine know the Lance tables that a statement names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from lance_engine.dataset import DatasetVersion
from lance_engine.errors import DatasetNotFoundError, VersionNotFoundError

from lance_sql.catalog.catalog import Catalog
from lance_sql.catalog.metadata import metadata_table
from lance_sql.text.reference import Reference
from lance_sql.text.statement import Statement


class Registry(Protocol):
    """Where an engine looks names up."""

    def register(self, name: str, dataset: DatasetVersion, system_columns: Sequence[str]) -> None:
        """Make `name` mean `dataset`; what the name meant before is forgotten."""

    def register_other(self, name: str, data: Any) -> None:
        """Make `name` mean Arrow data or anything else that the engine itself can scan."""

    def unregister(self, name: str) -> None:
        """Forget what is registered as `name`."""


class Bound(NamedTuple):
    """The text of a statement for an engine that knows the datasets which it names."""

    text: str
    datasets: Mapping[str, DatasetVersion]


@dataclass(frozen=True, slots=True)
class _Known:
    """What a name was registered for; `system_columns` are those that the table was declared with."""

    reference: Reference
    dataset: DatasetVersion
    system_columns: tuple[str, ...]


class Binding:
    """What `registry` knows of the datasets in `catalog`; `before_change` is called before a name changes.

    `listings` make the tables that describe all tables. `numbers_parameters`: in texts for its engine ``?``
    must be written ``$1``, ``$2`` ...
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
        #: name -> what it was registered for
        self._known: dict[str, _Known] = {}
        #: names that the engine may have lost
        self._unsettled: set[str] = set()
        #: tables that describe all others, by name
        self._listings = listings or {}
        self._listed: set[str] = set()

    def bind(self, statement: Statement) -> Bound:
        """Register what `statement` names."""
        found = self.catalog.resolve(statement)
        for reference in statement.references:
            name = reference.name
            if name in found:
                self._register(reference, found[name], statement.system_columns)
            elif name in self._known:
                self.forget(name)
                self._registry.unregister(name)
        if any(reference.name not in found for reference in statement.references):
            # One of the names may be that of a view, which means the newest versions as well.
            self._renew_others(found)
        listed = self._list(statement)
        return Bound(statement.text({*found, *listed}, self._numbers_parameters), found)

    def _list(self, statement: Statement) -> set[str]:
        """Register what a statement asks for of the tables that describe others, as they are now."""
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
        """The names under which the engine knows datasets, versions of them and what describes them."""
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
        if reference.part:  # what tags and versions there are may change while the dataset does not
            self._registry.register_other(name, metadata_table(dataset, reference.part))
        else:
            self._registry.register(name, dataset, system_columns)
        self._known[name] = _Known(reference, dataset, system_columns)
        self._unsettled.discard(name)

    def _renew_others(self, found: Collection[str]) -> None:
        """Register the newest versions of what is known and not named by the statement."""
        for name, known in list(self._known.items()):
            if name not in found:
                try:
                    dataset = self.catalog.open(known.reference)
                except (DatasetNotFoundError, VersionNotFoundError):
                    dataset = None  # gone since; whoever names it is told so
                if dataset is not None:
                    self._register(known.reference, dataset, known.system_columns)

    def forget_all(self) -> None:
        """The engine forgets what was registered: it is registered again when it is named."""
        for name in self.registered():
            self._registry.unregister(name)
        self._known.clear()
        self._unsettled.clear()
        self._listed.clear()

    def unsettle(self) -> None:
        """What was registered may be gone: it is registered again when it is named."""
        self._unsettled.update(self._known)

    def forget(self, name: str) -> None:
        """`name` is about to mean something else."""
        if self._known.pop(name, None) is not None:
            self._before_change()
