"""Join keys that the scan of one table passes to the scan of another, while their statement runs.

Engines read the build side of a join first. Its scan collects the keys of its rows; once it has ended, later
scans of joined tables skip rows with other keys, and prune with them. Whether
that pays is decided with the collected keys: if there are too many, or too many rows of a sample pass, the
scan reads all rows as usual.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from lance_engine.base import distinct_numbers, to_numpy
from lance_engine.expr import IsNull, conjuncts
from lance_engine.scan import FilterPlan, ScanStream

from lance_sql.engines import key_conditions
from lance_sql.engines.key_conditions import KeyConditions, KeyPath

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from lance_engine.dataset import DatasetVersion
    from lance_engine.expr import Node
    from lance_engine.scan import Scanner, ScanSplit

#: Maximum number of keys that are kept: eight bytes each.
_MOST_KEYS = 1 << 20
#: The same for keys of tables that are not this many times smaller, whose scans take as long; engines that
#: filter joins gain less.
_FEW_PASSING_SHARE, _FEW_PASSING_SHARE_FILTERED = 1 / 32, 1 / 64
_MUCH_LARGER = 8
#: Number of keys after which to check for the first time whether there will be too many.
_FIRST_LOOK = 1 << 14
#: Keys hardly repeat if at least this share of them is distinct.
_MOSTLY_DISTINCT = 0.9
#: Stop collecting if the expected share exceeds the maximum by this factor.
_SURELY_TOO_MANY = 1.5


@dataclass(frozen=True, slots=True)
class KeyUse:
    """The outcome for the keys of a path in a run."""

    path: KeyPath
    keys: int
    applied: bool
    reason: str

    def __str__(self) -> str:
        probe = f"{self.path.probe}.{self.path.column}"
        build = f"{self.path.build}.{self.path.key}"
        outcome = "applied" if self.applied else "not applied"
        keys = "key" if self.keys == 1 else "keys"
        return f"{probe} in {self.keys:,} {keys} of {build}: {outcome}, {self.reason}"


class JoinKeys:
    """The keys of a run, along `paths`; `rows` are the row counts of the tables.

    `filters_joins`: the engine itself drops rows without a match early. `conditions` are those of earlier
    runs of the statement. Keys along the paths in `ahead` are only collected from tables that are read ahead.
    """

    def __init__(
        self,
        paths: Sequence[KeyPath],
        rows: dict[str, int],
        filters_joins: bool,
        conditions: KeyConditions | None = None,
        ahead: Collection[KeyPath] = (),
    ) -> None:
        self.paths = tuple(paths)
        self._waiting = frozenset(ahead)
        #: tables that are read ahead
        self._read_ahead: set[str] = set()
        self._rows = rows
        self._conditions = conditions or KeyConditions()
        self._few_passing = _FEW_PASSING_SHARE_FILTERED if filters_joins else _FEW_PASSING_SHARE
        self._most_passing = (
            key_conditions.MOST_PASSING_SHARE_FILTERED if filters_joins else key_conditions.MOST_PASSING_SHARE
        )
        self._lock = threading.Lock()
        self._collected: dict[tuple[str, str], _Collected] = {}
        #: decisions by path
        self._decided: dict[KeyPath, FilterPlan | None] = {}
        #: conditions that engines test as well, of build tables
        self._excluding: dict[str, list[FilterPlan]] = {}
        self.uses: list[KeyUse] = []

    @property
    def build_tables(self) -> frozenset[str]:
        """The tables whose conditions are worth testing in their scans."""
        return frozenset(path.build for path in self.paths)

    def descriptions(self, ran: bool) -> list[str]:
        """The planned use of the keys; or the actual one, once the statement `ran`."""
        known = {use.path: str(use) for use in self.uses}
        return [
            known.get(path)
            or f"{path.probe}.{path.column} in keys of {path.build}.{path.key}"
            + (f": not applied, {self._hindrance(path)}" if ran else " if these are few and known in time")
            for path in self.paths
        ]

    def _hindrance(self, path: KeyPath) -> str:
        """Why the keys of a path were not tested in a run."""
        if not self._collects(path):
            return f"{path.build} is not read ahead"
        collected = self._collected.get((path.build, path.key))
        if collected is None:
            return f"the scan of {path.build} leaves no rows out"
        if collected.dropped_at:
            return f"dropped, {collected.dropped_at:,} or more are too many"
        return "they were not known in time"

    def collector(
        self, table: str, scanner: Scanner, splits: Sequence[ScanSplit] | None
    ) -> _Collector | None:
        """The collector for the keys of a scan of a table, or of some `splits` of it; None without keys."""
        columns = scanner.schema.names
        paths = [path for path in self.paths if path.build == table and self._collects(path)]
        keys = {path.key for path in paths}.intersection(columns)
        if not keys or not _excludes(scanner.filter) or scanner.limit is not None or scanner.offset:
            return None
        with self._lock:
            places = {}
            for key in sorted(keys):
                probe_tables = {path.probe for path in paths if path.key == key}
                most = max(self._most_keys(self._rows[table], self._rows[probe]) for probe in probe_tables)
                place = self._collected.setdefault(
                    (table, key), _Collected(most, self._rows[table], self._most_passing)
                )
                places[columns.index(key)] = place
        return _Collector(places, splits)

    def read_ahead(self, table: str) -> None:
        """The next scan of a table has all rows that any of its scans in the statement would return."""
        self._read_ahead.add(table)

    def not_read_ahead(self, table: str) -> None:
        """That scan did not end: each occurrence of the table will be scanned."""
        self._read_ahead.discard(table)

    def _collects(self, path: KeyPath) -> bool:
        return path not in self._waiting or path.build in self._read_ahead

    def _most_keys(self, build_rows: int, probe_rows: int) -> int:
        """The maximum number of keys of the build side that are worth testing in rows of the probe side."""
        is_much_larger = build_rows * _MUCH_LARGER <= probe_rows
        share = self._most_passing if is_much_larger else self._few_passing
        return min(_MOST_KEYS, int(probe_rows * share))

    def plans(self, table: str, dataset: DatasetVersion) -> list[FilterPlan]:
        """The condition on rows of a table, from the keys known so far."""
        with self._lock:
            decided = [self._decide(path, dataset) for path in self.paths if path.probe == table]
            return [*self._excluding.get(table, ()), *(plan for plan in decided if plan is not None)]

    def planned(self, table: str) -> None:
        """Called when the scan of a table is planned again: conditions of the previous plan are dropped."""
        self._excluding.pop(table, None)

    def excluding(self, table: str, plan: FilterPlan) -> None:
        """The engine will test a condition on rows of a table, so its scan may test it first."""
        self._excluding.setdefault(table, []).append(plan)

    def _decide(self, path: KeyPath, dataset: DatasetVersion) -> FilterPlan | None:
        if path not in self._decided:
            collected = self._collected.get((path.build, path.key))
            keys = None if collected is None else collected.keys()
            if keys is None:
                return None
            plan, reason = self._conditions.condition(
                path, keys, self._rows[path.probe], dataset, self._most_passing
            )
            self._decided[path] = plan
            self.uses.append(KeyUse(path, len(keys), plan is not None, reason))
        return self._decided[path]


def _excludes(filter: Node | None) -> bool:
    """Whether a filter excludes rows; engines add that keys are not null."""
    return filter is not None and not all(
        isinstance(node, IsNull) and node.negated for node in conjuncts(filter)
    )


class _Collected:
    """Distinct keys of a table of `rows` rows; none if there are more than `most`.

    Also none if more than the share `most_passing` of another table's rows will pass.
    """

    def __init__(self, most: int, rows: int, most_passing: float) -> None:
        self._most = most
        self._rows = rows
        self._most_passing = most_passing
        #: the splits that were read; None is the whole table
        self._read: set[ScanSplit | None] = set()
        self._lock = threading.Lock()
        self._waiting: list[npt.NDArray[np.int64]] = []
        self._count = self._passed = 0
        self._next_look = min(_FIRST_LOOK, most)
        #: the number of keys when they were dropped as too many; 0 while they are kept
        self.dropped_at = 0

    def add(self, values: pa.Array, passing_share: float = 0.0) -> None:
        """Add keys of delivered rows, which cover about this share of the table's rows."""
        if self.dropped_at:
            return
        if values.null_count:
            values = values.drop_null()
        if pa.types.is_date32(values.type):
            values = values.view(pa.int32())
        keys = to_numpy(values.cast(pa.int64()))
        with self._lock:
            self._passed += len(keys)
            self._waiting.append(keys)
            self._count += len(keys)
            if self._count > self._next_look:
                self._merge()
                self._drop_too_many(passing_share)
                self._next_look = max(2 * self._count, self._next_look)

    def _drop_too_many(self, passing_share: float = 0.0) -> None:
        """Drop the merged keys if there are too many."""
        if self._count > self._most or self._mostly_pass(passing_share):
            self.dropped_at, self._waiting = self._count, []

    def _mostly_pass(self, passing_share: float) -> bool:
        """Whether it is already clear that most rows of a table with these keys will pass.

        Keys that do not repeat are primary keys of the table, each with as many rows in another table.
        """
        if self._count <= _MOSTLY_DISTINCT * self._passed:
            return False
        most = self._most_passing
        return self._passed > self._rows * most or passing_share > most * _SURELY_TOO_MANY

    def _merge(self) -> None:
        import numpy as np

        merged = distinct_numbers(np.concatenate(self._waiting)) if self._waiting else np.empty(0, np.int64)
        self._waiting, self._count = [merged], len(merged)

    def finished(self, splits: Sequence[ScanSplit] | None) -> None:
        """A scan of the table, or of some splits of it, has ended, and all of its keys were added."""
        with self._lock:
            self._read.update([None] if splits is None else splits)

    @property
    def _is_complete(self) -> bool:
        """Whether all rows were read; different splits of a dataset do not overlap."""
        rows = sum(split.stop - split.start for split in self._read if split is not None)
        return None in self._read or (rows == self._rows and rows > 0)

    def keys(self) -> npt.NDArray[np.int64] | None:
        """All keys in ascending order; None while some are missing, or if there are too many."""
        with self._lock:
            if self.dropped_at or not self._is_complete:
                return None
            self._merge()
            self._drop_too_many()
            return None if self.dropped_at else self._waiting[0]


class _Collector:
    """Collects the keys of one scan, from the given columns of its batches."""

    def __init__(self, places: dict[int, _Collected], splits: Sequence[ScanSplit] | None) -> None:
        self._places = places
        self._splits = splits

    def add(self, batch: pa.RecordBatch, passing_share: float) -> None:
        for index, collected in self._places.items():
            collected.add(batch.column(index), passing_share)

    def finished(self) -> None:
        for collected in self._places.values():
            collected.finished(self._splits)


class CollectingStream(ScanStream):
    """A scan whose keys are collected while it is read."""

    def __init__(
        self,
        collector: _Collector,
        scanner: Scanner,
        schema: pa.Schema,
        convert: Callable[[pa.RecordBatch], pa.RecordBatch] | None,
        failed: Callable[[Exception], None] | None,
        narrowed: Collection[str],
    ) -> None:
        # All batches pass through a function that converts batches.
        super().__init__(scanner, schema, convert or _same, failed, narrowed)
        self._collector = collector
        self._lock = threading.Lock()
        self._asked = self._taken = self._tested = self._passed = 0
        self._complete = self._told = False

    def more(self) -> tuple[list[Any], bool]:
        tasks, left = super().more()
        with self._lock:
            self._asked += sum(end - begin for _, begin, end, *_ in tasks)
            self._complete = not left
        self._tell()
        return tasks, left

    def read(self, number: int, begin: int, end: int) -> list[pa.RecordBatch]:
        batches = super().read(number, begin, end)
        share = self._passing_share(sum(map(len, batches)), end - begin)
        for batch in batches:
            self._collector.add(batch, share)
        with self._lock:
            self._taken += end - begin
        self._tell()
        return batches

    def _passing_share(self, passed: int, tested: int) -> float:
        """The estimated share of the table's rows that pass, after this many more rows."""
        with self._lock:
            self._passed += passed
            self._tested += tested
            left, planned = self._metrics.counts("rows_left", "rows_planned")
            return self._passed / max(1, self._tested) * left / max(1, planned)

    def _tell(self) -> None:
        with self._lock:
            if not self._complete or self._told or self._taken != self._asked:
                return
            self._told = True
        self._collector.finished()


def _same(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch
