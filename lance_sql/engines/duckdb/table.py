"""Lance datasets in DuckDB.

DuckDB 2 scans Python objects through a small protocol, `ArrowScanSource`: the row count reaches the
optimizer, each conjunct of a filter is offered separately, and batches arrive as an Arrow C stream. The
protocol is private to DuckDB, so it may be missing: a dataset is then scanned through its
`pyarrow.dataset.Dataset` interface, which DuckDB plans with one row.
"""

from __future__ import annotations

import datetime
import decimal
from collections import deque
from collections.abc import Hashable, Sequence
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

import duckdb
import pyarrow as pa
from lance_engine.base import LruCache, public
from lance_engine.errors import InvalidFilterError, UnsupportedFeatureError

from lance_sql.engines.added_columns import AddedColumns
from lance_sql.engines.base import Decision, EngineData
from lance_sql.engines.duckdb.planning import Planning
from lance_sql.engines.duckdb.versions import (
    BINARY,
    COLUMN,
    HAS_SOURCES,
    IN,
    POSTFIX,
    ArrowScanSource,
    class_of,
)
from lance_sql.engines.pushdown import Condition, decide, excludes_for_keys
from lance_sql.engines.statement_run import Runs
from lance_sql.engines.table import EngineTable
from lance_sql.engines.table_scan import TableScan
from lance_sql.types.declared import declared
from lance_sql.types.relations import register_stored, register_table

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion
    from lance_engine.scan import FilterPlan, Scanner

    from lance_sql.engines.join_keys import JoinKeys
    from lance_sql.engines.plain_dataset import PlainDataset

Pushdown = Literal["auto", "all", "none"]

#: Rows per batch: 32 of DuckDB's vectors, so that its threads seldom wait for one another. Small tables have
#: smaller batches, at least eight vectors, so that all threads have work.
_BATCH_ROWS, _LEAST_BATCH_ROWS, _BATCHES = 65_536, 16_384, 16
#: Number of predicates per table whose decision is kept, and of those that keep index results.
_CACHED_DECISIONS, _CACHED_PLANS = 256, 8


class _Offered(NamedTuple):
    """A predicate that DuckDB offered, converted to our condition (None if not possible), and the decision.

    `is_build_side`: the scan applies it as well, because scans of other tables test its keys.
    """

    condition: Condition | None
    decision: Decision
    is_build_side: bool = False


class DuckDBTable(ArrowScanSource):  # type: ignore[misc]
    """A dataset as a DuckDB scan source.

    DuckDB does not apply accepted predicates again, and plans with the row count of the whole table, unless
    `planning` has an estimate. ``pushdown="auto"`` accepts predicates according to
    `lance_sql.engines.pushdown`; ``"all"`` and ``"none"`` are for measurements.
    """

    #: a snapshot is immutable, so the schema is too
    schema_is_stable = True
    #: batches are read from native threads
    pull_under_gil = False

    def __init__(
        self,
        table: EngineTable,
        pushdown: Pushdown = "auto",
        planning: Planning | None = None,
        runs: Runs | None = None,
    ) -> None:
        self.obj = self
        self.table = table
        self.pushdown = pushdown
        self._planning = planning or Planning()
        self._runs = runs or Runs()
        #: by the key of the predicate, the side in joins, and what is accepted; statements are
        #: planned more than once
        self._offered: LruCache[tuple[Hashable, bool, Pushdown], _Offered] = LruCache(_CACHED_DECISIONS)
        #: accepted conditions whose plans are kept, the newest last
        self._with_plans: deque[Condition] = deque()

    def __arrow_c_schema__(self) -> object:
        return self.table.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._scan().stream().capsule()

    def rows(self) -> int:
        """The row count for planning; called once per planning, before any predicate is offered."""
        keys = self._keys
        if keys is not None:
            keys.planned(self.table.name)
        return self._planning.rows(self)

    def accepts(self, predicate: Any) -> bool:
        """Whether `stream` will apply `predicate` as DuckDB would."""
        offered = self._offered_as(predicate)
        self._planning.decided(self, offered.decision)
        keys = self._keys
        if keys is not None and offered.is_build_side and offered.condition is not None:
            keys.excluding(self.table.name, offered.condition.plan)
        return offered.decision.pushed

    @property
    def _keys(self) -> JoinKeys | None:
        """The join keys of the current run, if this table is on a build side."""
        run = self._runs.current
        keys = None if run is None else run.join_keys
        return keys if keys is not None and self.table.name in keys.build_tables else None

    def _offered_as(self, predicate: Any) -> _Offered:
        """The decision made when DuckDB first offered `predicate`."""
        is_build_side, pushdown = self._keys is not None, self._pushdown()
        key = _predicate_key(predicate), is_build_side, pushdown
        offered = self._offered.get(key)
        if offered is None:
            offered = self._offered[key] = self._judge(predicate, is_build_side, pushdown)
            if offered.condition is not None and (offered.decision.pushed or offered.is_build_side):
                self._keep_plan(offered.condition)
        return offered

    def _keep_plan(self, condition: Condition) -> None:
        """Keep the index results of the newest conditions for later scans."""
        if len(self._with_plans) == _CACHED_PLANS:
            self._with_plans.popleft().forget_plan()
        self._with_plans.append(condition)

    def _condition_of(self, predicate: Any) -> Condition | None:
        """The condition of a predicate that was accepted."""
        key = _predicate_key(predicate)
        for is_build_side, pushdown in product((False, True), get_args(Pushdown)):
            offered = self._offered.get((key, is_build_side, pushdown))
            if offered is not None and offered.decision.pushed:
                return offered.condition
        return self._offered_as(predicate).condition  # forgotten since

    def _pushdown(self) -> Pushdown:
        """Which predicates the current statement should accept."""
        chosen = self._planning.pushdowns()
        if self.pushdown != "auto" or chosen.allow("filters"):
            return "all" if chosen.force and self.pushdown == "auto" else self.pushdown
        return "none"

    def _judge(self, predicate: Any, is_build_side: bool, pushdown: Pushdown) -> _Offered:
        if pushdown == "none":
            return _Offered(None, Decision(predicate.fragment(), False, "pushdown is disabled"))
        from lance_engine.expr import columns_of

        from lance_sql.engines.duckdb.conditions import from_duckdb  # takes longer to import than a query

        try:
            tree = from_duckdb(predicate, self.table.filter_schema)
        except InvalidFilterError:
            reason = "this condition is not supported by scans"
            return _Offered(None, Decision(predicate.fragment(), False, reason))
        changed = self.table.converted.union(self.table.added)
        widened = sorted(changed.intersection(columns_of(tree)))
        if widened:
            reason = f"{', '.join(widened)} is stored with a different type"
            return _Offered(None, Decision(str(tree), False, reason))
        condition = Condition(self.table.dataset, tree)
        if pushdown == "all":
            return _Offered(condition, Decision(str(tree), True, "full pushdown is enabled"))
        decision = decide(condition, is_build_side=is_build_side)
        excludes = is_build_side and excludes_for_keys(condition, decision)
        if not decision.pushed:
            condition.forget_plan()
        return _Offered(condition, decision, excludes)

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Any]) -> tuple[object, bool]:
        """The Arrow stream of the declared `columns`, by index, that pass the accepted `filters`."""
        names = self.table.schema.names if columns is None else [self.table.schema.names[i] for i in columns]
        return self._scan(names, self._filter(filters)).stream().capsule(), True

    def _scan(self, columns: Sequence[str] | None = None, filter: FilterPlan | None = None) -> TableScan:
        return self.table.scan(columns, filter, run=self._runs.current)

    def described(self, columns: Sequence[str], decisions: Sequence[Decision]) -> Scanner:
        """A scan, not run, of `columns` of the rows that pass the pushed-down conditions in `decisions`."""
        pushed = {decision.condition for decision in decisions if decision.pushed}
        known = [offered.condition for offered in self._offered.values() if offered.decision.pushed]
        chosen = {
            str(condition): condition
            for condition in known
            if condition is not None and str(condition) in pushed
        }
        return self.table.scan(columns, self._plan_of(list(chosen.values())), run=None).scanner

    def _filter(self, predicates: Sequence[Any]) -> FilterPlan | None:
        """Accepted predicates as a scan takes them, with the index results from when they were accepted."""
        conditions = []
        for predicate in predicates:
            condition = self._condition_of(predicate)
            if condition is None:
                raise InvalidFilterError(f"This predicate was not pushed down: {predicate.fragment()}")
            conditions.append(condition)
        return self._plan_of(conditions)

    def _plan_of(self, conditions: Sequence[Condition]) -> FilterPlan | None:
        if len(conditions) < 2:
            return conditions[0].plan if conditions else None
        from lance_engine.expr.build import conjunction
        from lance_engine.scan import FilterPlan

        plans = [condition.plan for condition in conditions]

        def join() -> FilterPlan:
            tree = conjunction([condition.tree for condition in conditions])
            return FilterPlan(tree, self.table.dataset.snapshot, parts=plans)

        return plans[-1].joined(tuple(plans[:-1]), join)


#: Types of constants that are equal only if they mean the same, in a column of one type.
_PLAIN: Final = frozenset({bool, int, str, datetime.date, decimal.Decimal})


def _predicate_key(predicate: Any) -> Hashable:
    """A key that is unique per predicate over a table; constants have the types of their columns.

    Usually its parts, because formatting them as a text takes longer.
    """
    with suppress(AttributeError, TypeError):  # not only plain constants
        key = _parts_of(predicate, 2)
        if key is not None:
            hash(key)
            return key
    text: str = predicate.fragment()
    return text


def _parts_of(predicate: Any, depth: int) -> Hashable:
    """The parts of a predicate; None if it is more than a condition, or two, of a column and constants."""
    kind = class_of(predicate)
    if kind == IN and class_of(predicate.operand) == COLUMN:
        return predicate.operand.parts, tuple(value.value for value in predicate.values)
    if kind == POSTFIX:
        return predicate.op, predicate.operand.parts
    if kind != BINARY:
        return None
    op, left, right = predicate.op, predicate.left, predicate.right
    if class_of(left) == COLUMN:
        return (op, left.parts, right.value) if type(right.value) in _PLAIN else None
    if depth == 1:
        return None
    sides = _parts_of(left, depth - 1), _parts_of(right, depth - 1)
    return None if None in sides else (op, *sides)


@public
def register(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    dataset: DatasetVersion,
    *,
    pushdown: Pushdown = "auto",
    system_columns: Sequence[str] = (),
) -> DuckDBTable | None:
    """Register `dataset` as the table `name` of `connection`, but not of other connections and cursors.

    `system_columns`, such as ``_rowid``, become columns of the table. Scans apply the conditions that pay for
    ``pushdown="auto"``; ``"all"`` and ``"none"`` are for measurements. Returns the registered object, None
    for a plain dataset.
    """
    scanned = source(dataset, name, system_columns, pushdown)
    register_data(connection, name, scanned)
    return scanned if isinstance(scanned, DuckDBTable) else None


def register_data(
    connection: duckdb.DuckDBPyConnection, name: str, data: Any, runs: Runs | None = None
) -> None:
    """Register what a connection can scan, with the types that datasets store for DuckDB."""
    if isinstance(data, EngineData):
        register_stored(connection, name, data.within(declared, runs or Runs()), data.schema)
    elif isinstance(data, pa.Table):
        register_table(connection, name, data)
    elif isinstance(getattr(data, "table", None), EngineTable):
        register_stored(connection, name, data, data.table.filter_schema)
    else:
        connection.register(name, data)


def source(
    dataset: DatasetVersion,
    name: str,
    system_columns: Sequence[str] = (),
    pushdown: Pushdown = "auto",
    planning: Planning | None = None,
    runs: Runs | None = None,
    added: AddedColumns | None = None,
) -> DuckDBTable | PlainDataset:
    """The object that DuckDB scans for `dataset`; LanceError if its row count is unknown.

    `added` are columns in addition to those of the dataset.
    """
    # DuckDB requests the count during registration, and would report an error as its own.
    _ = dataset.snapshot.num_rows
    if not (system_columns or dataset.storage_schema.names):
        raise UnsupportedFeatureError(
            "The dataset has no columns, and DuckDB does not support tables without columns",
            path=dataset.uri,
            version=dataset.version,
            remedy="Restore a version that has columns",
        )
    table = EngineTable(
        dataset,
        name,
        system_columns,
        declared,
        dictionaries=True,
        narrow_decimals=HAS_SOURCES,
        batch_rows=min(max(dataset.count_rows() // _BATCHES, _LEAST_BATCH_ROWS), _BATCH_ROWS),
        added=added,
    )
    if not HAS_SOURCES:
        from lance_sql.engines.plain_dataset import PlainDataset  # takes longer to import than a query

        return PlainDataset(table, runs=runs)
    return DuckDBTable(table, pushdown, planning, runs)
