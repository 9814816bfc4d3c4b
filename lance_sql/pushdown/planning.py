"""Applies the rules to the statements of a session."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from lance_sql.pushdown.dictionary_keys import CodedQuery, DictionaryKeys
from lance_sql.pushdown.filters import Filters
from lance_sql.pushdown.join_filters import JoinFilters
from lance_sql.pushdown.limit import Limit
from lance_sql.pushdown.metadata_aggregates import MetadataAggregates
from lance_sql.pushdown.rule import Asked, Rule
from lance_sql.pushdown.top_n import TopN

if TYPE_CHECKING:
    from lance_sql.engines.base import Engine, Query
    from lance_sql.engines.finished import Finished


class PushdownPlanner:
    """The rules of one session."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.metadata_aggregates = MetadataAggregates()
        self.top_n = TopN()
        self.dictionary_keys = DictionaryKeys(engine)
        self.limit = Limit()
        self.join_filters = JoinFilters()
        self.filters = Filters()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules."""
        return (
            self.metadata_aggregates, self.top_n, self.dictionary_keys, self.limit, self.join_filters,
            self.filters,
        )  # fmt: skip

    def known(self, asked: Asked) -> Finished | None:
        """The answer that a statement got before, without planning it; None if it has to be planned."""
        if asked.parameters or self._engine.pushdowns.verify:
            return None
        return self.metadata_aggregates.known(asked.plan, self._engine)

    def query(self, asked: Asked) -> tuple[Query, list[Callable[[], object]]]:
        """The query to run instead of the planned one, and what to call when it cannot run any more."""
        planned = asked.planned()
        answered = self.metadata_aggregates.applied(asked, planned)
        if answered is not None:
            return answered, []
        query = self.top_n.applied(asked, planned)
        coded = self.coded(asked) if query is None else None
        if query is None:
            chosen = planned if coded is None else coded
            query = self.limit.applied(asked, chosen) or self.join_filters.applied(asked, chosen) or chosen
        query = self.filters.applied(asked, query) or query
        return query, [] if coded is None else [partial(self.release, coded)]

    def coded(self, asked: Asked) -> CodedQuery | None:
        """The statement over dictionary codes; to be released."""
        return self.dictionary_keys.applied(asked)

    def release(self, coded: CodedQuery) -> None:
        """A query over dictionary codes cannot run any more."""
        self.dictionary_keys.tables.release(coded.table)

    def described(self, asked: Asked) -> list[str]:
        """What rules do for a statement, apart from what the scans of its plan say."""
        descriptions = ((rule.name, rule.described(asked)) for rule in self.rules)
        return [f"{name}  {text}" for name, text in descriptions if text is not None]

    def names(self) -> set[str]:
        """The names of the tables that rules have registered with the engine."""
        return self.dictionary_keys.tables.names()
