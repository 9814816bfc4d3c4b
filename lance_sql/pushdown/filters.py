"""Conditions that the engine does not offer to scans, but that scans test in addition while they decode.

Engines offer comparisons of columns with constants. Patterns and conditions on several columns are found in
the tree. The engine tests them again on the rows that are left, so that a condition only has to be right
about the rows that it drops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lance_engine.base import LruCache
from lance_engine.errors import LanceError

from lance_sql.engines.base import Decision
from lance_sql.engines.pushdown import Condition, decide, is_small
from lance_sql.engines.sampling import percent, sampled_share
from lance_sql.pushdown.rule import Asked
from lance_sql.pushdown.wrapped_query import WrappedQuery
from lance_sql.syntax.scopes import BoundQuery, Place, Scope, conjuncts

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion
    from lance_engine.expr import Column, Node
    from sqlglot import exp

    from lance_sql.engines.base import Engine, Query, ScanReport
    from lance_sql.engines.statement_run import StatementRun

#: Why conditions are tested that do not pay.
_FORCED: Final = "pushdowns are forced"
#: Number of values of parameters for which the conditions of a statement are kept.
_CACHED_VALUES: Final = 16
#: Number of places where a condition is tried first, and the share of rows there with which it is given up.
_FIRST_PLACES, _MOST_PASS = 2, 0.7


@dataclass(frozen=True, slots=True)
class ScanCondition:
    """A condition for the scan of `table`, and whether it pays to test it there."""

    table: str
    condition: Condition
    decision: Decision


class _Found(NamedTuple):
    """A condition in a scope that the engine may not offer."""

    scope: Scope
    node: exp.Expression


class NarrowedQuery(WrappedQuery):
    """`query`, whose scans test some conditions in addition."""

    def __init__(self, query: Query, conditions: Sequence[ScanCondition], engine: Engine) -> None:
        super().__init__(query)
        self._conditions = conditions
        self._engine = engine

    def prepare(self, run: StatementRun) -> None:
        require(self._conditions, run, self._engine)


class Filters:
    """The rule."""

    name = "filters"
    words = (
        frozenset({"WHERE"}),
        frozenset(
            {
                "CONTAINS", "ENDS_WITH", "ILIKE", "LIKE", "OR", "PREFIX", "STARTS_WITH", "SUFFIX",
            }
        ),
    )  # fmt: skip

    def hindrance(self, engine: Engine) -> str:
        return ""  # of settings and functions when the statement runs

    def applied(self, asked: Asked, query: Query | None = None) -> Query | None:
        conditions = self.conditions(asked)
        return NarrowedQuery(query or asked.planned(), conditions, asked.engine) if conditions else None

    def described(self, asked: Asked) -> str | None:
        return None  # the scans say so

    def conditions(self, asked: Asked) -> Sequence[ScanCondition]:
        """The conditions of a statement; they only concern tables that it scans once."""
        datasets = asked.plan.datasets
        if not asked.force and all(map(is_small, datasets.values())):
            return ()
        query = asked.bound(self)
        parts = () if query is None else asked.plan.fact(self.name, lambda: list(_parts(query)))
        if query is None or not parts:
            return ()
        known: LruCache[Any, Any] = asked.plan.fact("conditions", lambda: LruCache(_CACHED_VALUES))
        values = _values(parts, asked)
        conditions: Sequence[ScanCondition] = known.computed(
            values, lambda: [part for one in parts for part in _conditions(query, one, asked)]
        )
        if not any(condition.decision.pushed for condition in conditions):
            return conditions
        scans = asked.planned().scans
        return [condition for condition in conditions if scans.get(condition.table) == 1]


def _parts(query: BoundQuery) -> Iterator[_Found]:
    """The conditions of all scopes that the engine may not offer."""
    from lance_sql.pushdown.conditions import may_be_left

    for scope in query.scopes:
        where = scope.select.args.get("where")
        if any(occurrence and query.named_once(occurrence.table) for occurrence in scope.inner):
            for node in conjuncts(where.this if where else None):
                if may_be_left(node):
                    yield _Found(scope, node)


def _values(parts: Sequence[_Found], asked: Asked) -> tuple[str, ...]:
    """The values of the parameters in some conditions."""
    from sqlglot import exp

    from lance_sql.pushdown.conditions import parameter_value

    return tuple(
        repr(parameter_value(node, asked.parameters))
        for part in parts
        for node in part.node.find_all(exp.Placeholder)
    )


def _conditions(query: BoundQuery, part: _Found, asked: Asked) -> Iterator[ScanCondition]:
    """The conditions for scans in a part of a statement."""
    from lance_engine.expr import Match, columns_of, conjuncts, walk

    from lance_sql.pushdown.conditions import condition_of

    datasets = asked.plan.datasets
    places: set[Place] = set()
    #: the columns that are JSON
    json: set[Column] = set()

    def column(node: Any) -> Column | None:
        place = query.column(part.scope, node)
        if place is None or place.occurrence not in part.scope.inner:
            return None
        places.add(place)
        return _column(datasets[place.occurrence.table], place.column, json)

    escapes = asked.engine.capabilities.backslash_escapes
    tree = condition_of(part.node, query.tree, column, asked.parameters, backslash_escapes=escapes)
    tables = {place.occurrence.table for place in places}
    if tree is None or len(tables) != 1:
        return
    (table,) = tables
    if not query.named_once(table) or (not asked.force and is_small(datasets[table])):
        return
    for node in conjuncts(tree):
        is_offered = len(columns_of(node)) < 2 and not any(isinstance(child, Match) for child in walk(node))
        if is_offered or not _only_matches_json(node, json):
            continue
        condition = Condition(datasets[table], node)
        decision = Decision(str(condition), True, _FORCED) if asked.force else decide_on(condition)
        if not decision.pushed:
            condition.forget_plan()
        yield ScanCondition(table, condition, decision)


def decide_on(condition: Condition) -> Decision:
    """Whether it pays to test a condition; a few places tell that most rows pass, which costs less."""
    dataset = condition.dataset
    if dataset.snapshot.is_local and not is_small(dataset):
        with suppress(LanceError, OSError):  # the scan itself will fail and report it
            share = sampled_share(dataset, condition.plan, _FIRST_PLACES)
            if share > _MOST_PASS:
                return Decision(str(condition), False, f"{percent(share)} of sampled rows pass", share)
    return decide(condition)


def _only_matches_json(node: Node, json: Set[Column]) -> bool:
    """Whether a condition compares columns of JSON, whose values are not texts, with nothing but patterns."""
    from lance_engine.expr import Column, Match, walk

    uses = [child for part in walk(node) if not isinstance(part, Match) for child in part.children]
    return json.isdisjoint(use for use in uses if isinstance(use, Column))


def _column(dataset: DatasetVersion, name: str, json: set[Column]) -> Column | None:
    """The column of a dataset, None if engines have a type of their own for it; added to `json` if it is."""
    from lance_engine.expr import build

    schema = dataset.storage_schema
    extension = (schema.field(name).metadata or {}).get(b"ARROW:extension:name")
    if extension not in (None, b"arrow.json"):
        return None
    column = build.column(schema, [name])
    if extension is not None:
        json.add(column)
    return column


def require(conditions: Sequence[ScanCondition], run: StatementRun, engine: Engine) -> None:
    """Let the scans of a run test the conditions for which that pays.

    The statement means what settings and macros give it when it runs, not when it was planned.
    """
    chosen = [condition for condition in conditions if condition.decision.pushed]
    if chosen and engine.compares_bytes() and engine.likes_are_standard():
        for condition in chosen:
            run.require(condition.table, condition.condition.plan)


def with_conditions(scans: Iterable[ScanReport], conditions: Sequence[ScanCondition]) -> Iterator[ScanReport]:
    """The scans of a plan, with the conditions for each of them."""
    for scan in scans:
        own = tuple(condition.decision for condition in conditions if condition.table == scan.name)
        yield scan._replace(narrowed=own)
