"""What rules find out about a statement, kept for statements that run again."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from lance_engine.base import METADATA, LruCache

from lance_sql.pushdown_settings import Pushdowns
from lance_sql.text.kinds import Does
from lance_sql.text.statement import Statement

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

    from lance_sql.catalog.binding import Bound
    from lance_sql.engines.base import Engine, Parameters, StatementCache
    from lance_sql.syntax.scopes import BoundQuery, Names

T = TypeVar("T")

#: Number of plans of a session, how long the text of one may be, and what it takes for each character.
_CACHED_PLANS: Final = 64
_LONGEST_KEPT: Final = 8192
#: Number of values that the engine keeps for a statement.
_CACHED_BY_ENGINE: Final = 16
_BYTES_PER_CHARACTER: Final = 200


class PlanKey(NamedTuple):
    """What a plan depends on, besides the datasets: it is another plan if any of these differs.

    `parameters` are the types of the values.
    """

    text: str
    parameters: tuple[Hashable, ...]
    #: of the settings and functions of the engine; None if it changes unnoticed
    state: object | None
    pushdowns: Pushdowns


class StatementPlan:
    """What rules found out about a statement over `datasets`, by registered name.

    `statement` has the text that the engine gets. Facts may depend on everything in a `PlanKey`, and on the
    datasets. They count as page metadata does, and are dropped where that exceeds its limit.
    """

    def __init__(self, statement: Statement, datasets: Mapping[str, DatasetVersion]) -> None:
        self.statement = statement
        self._names: Names | None = None
        self._datasets = {name: weakref.ref(dataset) for name, dataset in datasets.items()}
        self._facts: dict[Hashable, Any] = {}

    def is_of(self, datasets: Mapping[str, DatasetVersion]) -> bool:
        """Whether these are its datasets."""
        return self._datasets.keys() == datasets.keys() and all(
            known() is datasets[name] for name, known in self._datasets.items()
        )

    @property
    def datasets(self) -> Mapping[str, DatasetVersion]:
        """The datasets by registered name."""
        alive = {name: reference() for name, reference in self._datasets.items()}
        return {name: dataset for name, dataset in alive.items() if dataset is not None}

    def fact(self, name: Hashable, find: Callable[[], T]) -> T:
        """What `find` returns; kept under a name."""
        if name not in self._facts:
            self._facts[name] = find()
        value: T = self._facts[name]
        return value

    @property
    def of_engine(self) -> StatementCache:
        """What the engine keeps for the statement."""
        return self.fact("of the engine", partial(LruCache, _CACHED_BY_ENGINE))

    def known(self, name: Hashable) -> Any:
        """A fact that is kept; None without one."""
        return self._facts.get(name)

    def note(self, name: Hashable, value: object) -> None:
        """Keep a fact."""
        self._facts[name] = value

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of the statement in upper case, keywords among them; none if it is not a query."""
        if not self.statement.does & Does.QUERY:
            return frozenset()
        return frozenset(token.upper for token in self.statement.tokens)

    def query(self, names: Names) -> BoundQuery | None:
        """The statement with its names bound; None if it is not certain what they mean.

        `names` belongs to each statement: a user may change the settings of an own session unnoticed.
        """
        if self._names not in (None, names):
            self._facts = {}
        self._names = names
        return self.fact("query", partial(self._bound, names))

    def _bound(self, names: Names) -> BoundQuery | None:
        from lance_sql.syntax.scopes import BoundQuery
        from lance_sql.syntax.tree import tree_of

        parsed = tree_of(self.statement)
        if parsed is None:
            return None
        METADATA.grew(self, len(self.statement.original) * _BYTES_PER_CHARACTER)
        columns = {name: dataset.storage_schema.names for name, dataset in self.datasets.items()}
        return BoundQuery(parsed, columns, names)

    def evict(self) -> None:
        """Drop what was found out, which is then found again."""
        self._facts = {}
        self.statement.facts.clear()


class StatementPlans:
    """The plans of a session."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._cache: LruCache[PlanKey, StatementPlan] = LruCache(_CACHED_PLANS)

    def of(self, statement: Statement, bound: Bound, parameters: Parameters) -> StatementPlan:
        """The plan of a statement."""
        parts = {reference.name for reference in statement.references if reference.part}
        datasets = {name: dataset for name, dataset in bound.datasets.items() if name not in parts}
        key = PlanKey(bound.text, _types(parameters), self._engine.state, self._engine.pushdowns)
        plan = self._cache.get(key)
        if plan is None or not plan.is_of(datasets):
            same = bound.text == statement.original
            plan = StatementPlan(statement if same else Statement(bound.text), datasets)
            if len(bound.text) <= _LONGEST_KEPT:
                self._cache[key] = plan
        return plan

    def clear(self) -> None:
        """Forget all plans."""
        self._cache.clear()


def _types(parameters: Parameters) -> tuple[Hashable, ...]:
    if isinstance(parameters, Mapping):
        return tuple((name, type(value)) for name, value in parameters.items())
    return tuple(map(type, parameters or ()))
