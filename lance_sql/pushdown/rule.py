"""The shape of a rule."""

from __future__ import annotations

import sys
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Protocol

from lance_engine.scan import estimated_row_bytes

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

    from lance_sql.engines.base import Engine, Parameters, PlannedQuery, Query
    from lance_sql.pushdown.statement_plan import StatementPlan
    from lance_sql.syntax.scopes import BoundQuery, Names

#: Smaller local tables are read in the time that the parser takes to load.
_LOADING_PAYS: Final = 64 << 20


@dataclass(frozen=True)
class Asked:
    """A statement, which the engine plans when a rule first needs its plan."""

    plan: StatementPlan
    engine: Engine
    parameters: Parameters

    def planned(self) -> PlannedQuery:
        """The query of the engine."""
        return self._planned

    @cached_property
    def _planned(self) -> PlannedQuery:
        return self.engine_query(self.plan.statement.original)

    def engine_query(self, text: str) -> PlannedQuery:
        """A query of the engine in place of the statement."""
        return self.engine.query(text, self.parameters, self.plan.of_engine)

    @property
    def force(self) -> bool:
        """Whether rules apply even if they do not pay."""
        return self.engine.pushdowns.force

    @cached_property
    def is_worth_parsing(self) -> bool:
        """Whether rules may apply: it is a query of datasets, and the parser is loaded, or worth loading."""
        datasets = self.plan.datasets
        if not datasets or not self.plan.words:
            return False
        return self.force or "sqlglot" in sys.modules or any(map(_is_large, datasets.values()))

    def bound(self, rule: Rule) -> BoundQuery | None:
        """The statement with its names bound, for a rule that the session uses.

        None if the rule certainly does not apply, or if it is not certain that it may.
        """
        if not self.is_worth_parsing or not self.engine.pushdowns.allow(rule.name):
            return None
        if any(self.plan.words.isdisjoint(wanted) for wanted in rule.words):
            return None
        query = None if self._names is None else self.plan.query(self._names)
        return None if query is None or rule.hindrance(self.engine) else query

    @cached_property
    def _names(self) -> Names | None:
        return self.engine.matching_names()


class Rule(Protocol):
    """A way to read less for the result of a query."""

    @property
    def name(self) -> str:
        """The name in settings."""

    @property
    def words(self) -> Sequence[Set[str]]:
        """Keywords: a statement to which the rule applies has at least one of each set."""

    def hindrance(self, engine: Engine) -> str:
        """Why the rule does not apply with the settings and functions of a session; "" if it does."""

    def applied(self, asked: Asked, query: Query | None = None) -> Query | None:
        """A query with the rows of `query` that reads less; None if the rule does not apply or not pay.

        `query` is that of the engine by default.
        """

    def described(self, asked: Asked) -> str | None:
        """What the rule does for a statement, for EXPLAIN; None if nothing, or if the scans say so."""


def _is_large(dataset: DatasetVersion) -> bool:
    if not dataset.snapshot.is_local:
        return True
    return dataset.count_rows() * estimated_row_bytes(dataset.storage_schema) >= _LOADING_PAYS
