"""The interface between the SQL layer and an engine."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa
from lance_engine.base import LruCache
from lance_engine.errors import InvalidArgumentError

from lance_sql.catalog.access import Restrictions
from lance_sql.catalog.engine_names import EngineNames
from lance_sql.engines.alone import Alone
from lance_sql.engines.capabilities import Capabilities
from lance_sql.engines.statement_run import Runs, StatementRun

if TYPE_CHECKING:
    from lance_engine.base import PlanNode
    from lance_engine.dataset import DatasetVersion
    from lance_engine.scan import Scanner

    from lance_sql.engines.added_columns import AddedColumns
    from lance_sql.pushdown_settings import Pushdowns
    from lance_sql.syntax.scopes import Names

Parameters = Sequence[Any] | Mapping[str, Any] | None
#: What engines keep for a statement that runs again, by keys of their own.
StatementCache = LruCache[Hashable, Any]


def check_parameters(params: Any) -> None:
    """InvalidArgumentError if `params` is a single value."""
    if params is not None and (isinstance(params, str | bytes) or not isinstance(params, Iterable)):
        raise InvalidArgumentError(
            f"params must be a list or a dict, not {params!r}", remedy="For one value, pass params=[value]"
        )


class Decision(NamedTuple):
    """Whether our scan applies a condition that the engine offered, or leaves it to the engine.

    `share` is the estimated share of the rows that pass it, 1 if unknown.
    """

    condition: str
    pushed: bool
    reason: str
    share: float = 1.0


class ScanReport(NamedTuple):
    """What an engine reads from one Lance table in a plan.

    `columns`: the columns read, None if the plan does not say. `pushed`: predicates that our scan applies.
    `residual`: predicates over this table that the engine applies. `decisions`: the reason for each predicate
    that the engine offered to the scan. `read_ahead`: loaded into memory before the statement runs.
    `scanner`: the scan itself, which has not run. `coded`: columns read as dictionary codes.
    `narrowed`: whether the scan tests each condition that only the engine has to test.
    """

    name: str
    dataset: DatasetVersion
    columns: tuple[str, ...] | None
    pushed: tuple[str, ...]
    residual: tuple[str, ...]
    decisions: tuple[Decision, ...] = ()
    read_ahead: bool = False
    scanner: Scanner | None = None
    coded: tuple[str, ...] = ()
    narrowed: tuple[Decision, ...] = ()


class Query(Protocol):
    """A planned statement. Each call runs it again."""

    def schema(self) -> pa.Schema:
        """Names and types of the result, without running the statement."""

    def to_table(self, run: StatementRun) -> pa.Table:
        """All rows; the scans for them are registered in `run`. Raises `LanceError`."""

    def kinds(self) -> Sequence[Any]:
        """The DuckDB types of the columns, none of another engine."""

    def stream(self, run: StatementRun) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The schema, and the batches as they arrive; errors as in `to_table`."""


class EnginePlan(NamedTuple):
    """A plan: the rows of EXPLAIN, as text and as trees of steps, and its scans of Lance tables."""

    rows: pa.Table
    text: str
    trees: tuple[PlanNode, ...]
    scans: list[ScanReport]


class PlannedQuery(Query, Protocol):
    """A planned statement and its metadata."""

    def columns(self) -> list[tuple[str, str]]:
        """Names and types of the result, as the engine names them."""

    @property
    def scans(self) -> Mapping[str, int]:
        """How often the statement scans each Lance table, by name; empty if the engine does not report it."""


@runtime_checkable
class EngineData(Protocol):
    """Data that is computed when an engine scans it."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""

    def within(self, declare: Callable[[pa.Field], pa.Field] | None, runs: Runs) -> Any:
        """The same data in types that the engine supports, for scans registered in `runs`."""


class Engine(Protocol):
    """A session of one SQL engine."""

    capabilities: Capabilities
    #: which rules statements use
    pushdowns: Pushdowns
    #: held while a statement is planned
    lock: Alone
    #: held while a statement runs, unless engines run several at once
    alone: AbstractContextManager[bool]

    def register(
        self,
        name: str,
        dataset: DatasetVersion,
        system_columns: Sequence[str],
        added: AddedColumns | None = None,
    ) -> None:
        """Register `dataset` as `name`, replacing any previous registration.

        `added` are columns in addition to those of the dataset.
        """

    def unregister(self, name: str) -> None:
        """Unregister the dataset `name`."""

    def register_other(self, name: str, data: Any) -> None:
        """Register Arrow data, or any other object that the engine can scan, as `name`."""

    def names(self) -> list[str]:
        """The names of its tables and views, including registered ones."""

    def databases(self) -> list[str]:
        """The names of its databases."""

    def describing(self, text: str) -> pa.Table:
        """The rows of a query of the engine's own metadata."""

    def matching_names(self) -> Names | None:
        """Which names in statements are the same; None if names in quotation marks may be strings."""

    def orders_descending(self) -> bool:
        """Whether greater values come first in an ORDER BY without ASC or DESC."""

    def nulls_are_last(self, descending: bool) -> bool:
        """Whether nulls come last in an ORDER BY without NULLS FIRST or NULLS LAST."""

    def compares_bytes(self) -> bool:
        """Whether strings without a collation of their own are equal where their bytes are."""

    def restrictions(self) -> Restrictions:
        """What statements may access, and whether settings are locked."""

    @property
    def first_schema(self) -> Sequence[str]:
        """The default database and schema at the start of the session."""

    def own_names(self) -> EngineNames:
        """What names without dots mean to the engine, without those that are registered for datasets."""

    def restrict(self, restrictions: Restrictions) -> None:
        """Restrict a new session for its whole life."""

    def replaces_aggregates(self) -> bool:
        """Whether functions of the session replace count, min or max."""

    @property
    def state(self) -> object | None:
        """Another value after each change of settings and functions; None if changes may go unnoticed."""

    def functions_are_standard(self) -> bool:
        """Whether functions that sessions replace certainly have their usual meaning."""

    def likes_are_standard(self) -> bool:
        """Whether LIKE and the functions for parts of strings have their usual meaning."""

    def without_pushdowns(self) -> AbstractContextManager[None]:
        """Statements that are planned and run in this block use no rules."""

    def query(self, text: str, params: Parameters, cache: StatementCache | None = None) -> PlannedQuery:
        """Plan `text`; statements without a result run at once. Raises `LanceError`.

        `cache` has what the engine keeps for the text until its datasets or settings are others.
        """

    def kinds(self, rows: pa.Table) -> Sequence[Any]:
        """As `Query.kinds`, for rows that a statement returns."""

    def explain(self, text: str, params: Parameters, run: StatementRun, *, analyze: bool) -> EnginePlan:
        """The engine's plan, and the scans of Lance tables in it.

        With `analyze` the statement runs as `run`, and the plan contains metrics of each part.
        """

    def begin(self) -> StatementRun:
        """A new run of a statement, to be passed when its rows are read."""

    def transact(self, statement: Literal["BEGIN", "COMMIT", "ROLLBACK"]) -> None:
        """Begin or end a transaction of the engine's own tables, if it has transactions."""

    def check_transaction(self) -> None:
        """LanceError if the open transaction of the engine's own tables can only be rolled back."""

    def cursor(self) -> Engine:
        """A session of the same database for another thread.

        It has the same tables; if names are shared, registrations in one session apply to all.
        """

    def close(self) -> None: ...
