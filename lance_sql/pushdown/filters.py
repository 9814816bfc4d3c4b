"""Conditions that the engine does not offer to scans, but that scans test in addition while they decode.

Engines offer comparisons of columns with constants. Patterns and conditions on several columns are found in
the text. The engine tests them again on the rows that are left, so that a condition only has to be right
about the rows that it drops.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from lance_engine.errors import LanceError
from lance_engine.recent import Recent

from lance_sql.engines.base import Decision
from lance_sql.engines.pushdown import Condition, decide, is_small
from lance_sql.engines.sampling import percent, sampled_share
from lance_sql.pushdown.wrapped_query import WrappedQuery
from lance_sql.text.parameters import Constants, constants, with_constants
from lance_sql.text.statement import Statement
from lance_sql.text.table_conditions import Filtered, table_conditions

if TYPE_CHECKING:
    import pyarrow as pa
    from lance_engine.dataset import DatasetVersion
    from lance_engine.expr.tree import Column, Node

    from lance_sql.engines.base import Engine, Parameters, Query, ScanReport
    from lance_sql.engines.statement_run import StatementRun
    from lance_sql.text.tokens import Token

#: Why conditions are tested that do not pay.
FORCED = "pushdowns are forced"
#: Number of texts whose conditions are kept, with the results of indices and samples.
_KEPT_TEXTS = 16
#: Number of places where a condition is tried first, and the share of rows there with which it is given up.
_FIRST_PLACES, _MOST_PASS = 2, 0.7


@dataclass(frozen=True, slots=True)
class ScanCondition:
    """A condition for the scan of `table`, and whether it pays to test it there."""

    table: str
    condition: Condition
    decision: Decision


class NarrowedQuery(WrappedQuery):
    """`query`, whose scans test some conditions in addition."""

    def __init__(self, query: Query, conditions: Sequence[ScanCondition], engine: Engine) -> None:
        super().__init__(query)
        self._conditions = conditions
        self._engine = engine

    def prepare(self, run: StatementRun) -> None:
        require(self._conditions, run, self._engine)


def require(conditions: Sequence[ScanCondition], run: StatementRun, engine: Engine) -> None:
    """Let the scans of a run test the conditions for which that pays.

    The statement means what settings and macros give it when it runs, not when it was planned.
    """
    chosen = [found for found in conditions if found.decision.pushed]
    if chosen and engine.compares_bytes() and engine.likes_are_standard():
        for found in chosen:
            run.require(found.table, found.condition.plan)


def of_one_scan(conditions: Iterable[ScanCondition], scans: Mapping[str, int]) -> list[ScanCondition]:
    """The conditions for tables that a plan scans once."""
    return [condition for condition in conditions if scans.get(condition.table) == 1]


def with_conditions(scans: Iterable[ScanReport], conditions: Sequence[ScanCondition]) -> Iterator[ScanReport]:
    """The scans of a plan, with the conditions for each of them."""
    for scan in scans:
        own = tuple(found.decision for found in conditions if found.table == scan.name)
        yield replace(scan, narrowed=own)


class ScanConditions:
    """Finds such conditions in the statements of a session; they are kept for texts that run again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        #: by text and values of its parameters: the datasets, and their conditions
        self._known: Recent[
            tuple[str, bool, tuple[str, ...]],
            tuple[Mapping[str, weakref.ref[DatasetVersion]], Sequence[ScanCondition]],
        ] = Recent(_KEPT_TEXTS)

    def of(
        self,
        statement: Statement,
        text: str,
        parameters: Parameters,
        datasets: Mapping[str, DatasetVersion],
        scans: Callable[[], Mapping[str, int]],
    ) -> Sequence[ScanCondition]:
        """The conditions of a statement, of which the engine gets `text`, over `datasets`.

        `scans` returns how often the engine scans each of them; conditions only concern tables that are
        scanned once.
        """
        planned = statement if text == statement.original else Statement(text)
        filtered = table_conditions(planned)
        if not filtered:
            return ()
        found = self._kept(text, datasets, filtered, constants(planned.tokens, parameters))
        if not any(condition.decision.pushed for condition in found):
            return found
        return of_one_scan(found, scans())

    def _kept(
        self,
        text: str,
        datasets: Mapping[str, DatasetVersion],
        filtered: Sequence[Filtered],
        values: Constants,
    ) -> Sequence[ScanCondition]:
        force = self._engine.pushdowns.force
        key = text, force, tuple(token.text for _, written in values.values() for token in written)
        known = self._known.get(key)
        if (
            known is None
            or known[0].keys() != datasets.keys()
            or any(reference() is not datasets[name] for name, reference in known[0].items())
        ):
            references = {name: weakref.ref(dataset) for name, dataset in datasets.items()}
            escapes = self._engine.capabilities.backslash_escapes
            found = [part for one in filtered for part in _conditions(one, values, datasets, escapes, force)]
            known = self._known[key] = references, found
        return known[1]


def _conditions(
    filtered: Filtered,
    values: Constants,
    datasets: Mapping[str, DatasetVersion],
    backslash_escapes: bool,
    force: bool,
) -> list[ScanCondition]:
    tables = set(filtered.tables.values())
    if not datasets.keys() >= tables or (not force and all(is_small(datasets[name]) for name in tables)):
        return []
    from lance_engine.expr.tree import Column, Match, columns_of, conjuncts, walk

    from lance_sql.text.predicates import predicate

    schemas = {qualifier: datasets[table].storage_schema for qualifier, table in filtered.tables.items()}
    found = []
    for tokens in filtered.conditions:
        #: the table of each column, by the name that qualifies it
        owners: dict[Column, str] = {}
        #: those that are JSON
        json: set[Column] = set()
        tree = predicate(
            with_constants(tokens, values),
            partial(named_column, schemas, owners, json),
            backslash_escapes=backslash_escapes,
        )
        for node in () if tree is None else conjuncts(tree):
            tested = {owners[part] for part in walk(node) if isinstance(part, Column)}
            is_offered = len(columns_of(node)) < 2 and not any(isinstance(part, Match) for part in walk(node))
            table = filtered.tables[next(iter(tested))] if len(tested) == 1 else None
            if table in filtered.once and not is_offered and _only_matches_json(node, json):
                condition = Condition(datasets[table], node)
                decision = Decision(str(condition), True, FORCED) if force else decide_on(condition)
                if not decision.pushed:
                    condition.forget_plan()
                found.append(ScanCondition(table, condition, decision))
    return found


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
    from lance_engine.expr.tree import Column, Match, walk

    uses = [child for part in walk(node) if not isinstance(part, Match) for child in part.children]
    return json.isdisjoint(use for use in uses if isinstance(use, Column))


def named_column(
    schemas: Mapping[str, pa.Schema],
    owners: dict[Column, str],
    json: set[Column],
    parts: Sequence[Token],
) -> Column | None:
    """The column that a name refers to, if there is only one; its table is added to `owners`.

    If it is JSON, it is also added to `json`.
    """
    from lance_engine.expr import build

    *qualifier, wanted = [part.value.lower() for part in parts]
    columns = {field.name.lower() for schema in schemas.values() for field in schema}
    if not columns.isdisjoint(qualifier):
        return None  # it may be the field of a struct
    found = [
        (place, schema, field)
        for place, schema in schemas.items()
        for field in schema
        if field.name.lower() == wanted and qualifier in ([], [place])
    ]
    if len(found) != 1:
        return None
    place, schema, field = found[0]
    extension = (field.metadata or {}).get(b"ARROW:extension:name")
    if extension not in (None, b"arrow.json"):
        return None  # engines have types of their own
    column = build.column(schema, [field.name])
    if extension is not None:
        json.add(column)
    # Columns of two tables may be equal: a condition on both is not understood.
    return column if owners.setdefault(column, place) == place else None
