"""What the SQL front door asks of an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa
from lance_engine.dataset import DatasetVersion
from lance_engine.plan_picture import PlanNode

from lance_sql.engines.capabilities import Capabilities
from lance_sql.engines.statement_run import Runs, StatementRun

if TYPE_CHECKING:
    from lance_engine.scan.scanner import Scanner

    from lance_sql.engines.table import Parts

Parameters = Sequence[Any] | Mapping[str, Any] | None


class Decision(NamedTuple):
    """Whether our scan applies a condition that the engine offered, or the engine itself.

    `share` is about how many of the rows pass it, 1 where that is not known.
    """

    condition: str
    pushed: bool
    reason: str
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class ScanReport:
    """What an engine asks of one Lance table in a plan.

    `columns`: asked for, None where the plan does not tell. `pushed`: predicates our scan applies.
    `residual`: predicates over this table that stay with the engine. `decisions`: why, for each that was
    offered to the scan.
    `read_ahead`: loaded into memory before the statement runs. `scanner`: the scan itself, which was not run.
    """

    name: str
    dataset: DatasetVersion
    columns: tuple[str, ...] | None
    pushed: tuple[str, ...]
    residual: tuple[str, ...]
    decisions: tuple[Decision, ...] = ()
    read_ahead: bool = False
    scanner: Scanner | None = None


#: What makes the Python value of one of pyarrow's; None where they are the same.
Convert = Callable[[Any], Any]


def whole_number(value: Any) -> int | None:
    """A whole number that Arrow holds as a decimal."""
    return None if value is None else int(value)


class Query(Protocol):
    """A planned statement. Each call runs it again."""

    def schema(self) -> pa.Schema:
        """Names and types of the result, without running the statement."""

    def to_table(self, run: StatementRun) -> pa.Table:
        """All rows; what is scanned for them belongs to `run`. Raises `LanceError`."""

    def converters(self) -> Sequence[Convert | None]:
        """For each column, what makes the engine's own Python values; nothing where those are pyarrow's."""

    def stream(self, run: StatementRun) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The schema and the batches, as they come; errors as in `to_table`."""


class EnginePlan(NamedTuple):
    """A plan as the rows of EXPLAIN, as text and as trees of steps, and the scans of Lance tables in it."""

    rows: pa.Table
    text: str
    trees: tuple[PlanNode, ...]
    scans: list[ScanReport]


class PlannedQuery(Query, Protocol):
    """A statement as an engine planned it."""

    def columns(self) -> list[tuple[str, str]]:
        """Names and types of the result, as the engine calls them."""

    @property
    def scans(self) -> Mapping[str, int]:
        """How often the statement scans each Lance table, by name; nothing where the engine does not tell."""


@runtime_checkable
class EngineData(Protocol):
    """Data that is computed when an engine scans it."""

    def within(self, declare: Callable[[pa.DataType], pa.DataType] | None, runs: Runs) -> Any:
        """The same in types that the engine reads, for scans that belong to `runs`."""


class Engine(Protocol):
    """A session of one SQL engine."""

    capabilities: Capabilities
    #: held while a statement is planned
    lock: AbstractContextManager[bool]

    def register(
        self,
        name: str,
        dataset: DatasetVersion,
        system_columns: Sequence[str],
        parts: Parts | None = None,
    ) -> None:
        """Make `name` mean `dataset`; what the name meant before is forgotten.

        `parts` are in place of whole structs.
        """

    def unregister(self, name: str) -> None:
        """Forget the dataset registered as `name`."""

    def register_other(self, name: str, data: Any) -> None:
        """Make `name` mean Arrow data or anything else that the engine itself can scan."""

    def names(self) -> list[str]:
        """The names of the tables and views that it knows, those that were registered included."""

    def databases(self) -> list[str]:
        """The names of its databases."""

    def describing(self, text: str) -> pa.Table:
        """The rows of a query of what the engine says of itself."""

    def nulls_are_last(self, descending: bool) -> bool:
        """Whether nulls come last in an order that does not say where they do."""

    def query(self, text: str, params: Parameters) -> PlannedQuery:
        """Plan `text`; statements without a result run at once. Raises `LanceError`."""

    def explain(self, text: str, params: Parameters, run: StatementRun, *, analyze: bool) -> EnginePlan:
        """The engine's plan, and the scans of Lance tables in it.

        With `analyze` the statement runs, as `run`, and the plan says what each part of it did.
        """

    def begin(self) -> StatementRun:
        """A run of a statement, which a query is then asked for rows with."""

    def transact(self, statement: Literal["BEGIN", "COMMIT", "ROLLBACK"]) -> None:
        """Begin or end a transaction of the engine's own tables, if it has transactions."""

    def check_transaction(self) -> None:
        """LanceError if the open transaction of the engine's own tables can only be rolled back."""

    def cursor(self) -> Engine:
        """A session of the same database for another thread.

        It knows the same tables; where names are shared, what one session registers is registered for all.
        """

    def close(self) -> None: ...
