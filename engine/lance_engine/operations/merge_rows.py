"""Executes a merge: finds the matches, and writes the changed and new rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from itertools import chain, pairwise
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine.constraints.candidates import KeyBounds, possible_rows
from lance_engine.constraints.keys import I64Array, Keys
from lance_engine.distinct import union
from lance_engine.errors import (
    AmbiguousMergeError,
    InvalidArgumentError,
    SchemaMismatchError,
)
from lance_engine.operations.changes import (
    removed_on_failure,
    write_options,
    write_reported,
)
from lance_engine.operations.pairs import PairCondition, PairValues, Sides
from lance_engine.operations.retry import redo_on_conflict
from lance_engine.operations.rows import joined, matching_addresses, read_rows
from lance_engine.operations.source_rows import SourceRows
from lance_engine.operations.update import commit_moved
from lance_engine.operations.values import Compiler, Value, check_whole_columns, column_values
from lance_engine.progress import ProgressOption, Reporter
from lance_engine.scan.partial import Filter, shared_readers
from lance_engine.scan.system import ROW_ADDRESS
from lance_engine.schema_tree import Schema
from lance_engine.table.constraints import has_key_within
from lance_engine.table.snapshot import Snapshot, U64Array
from lance_engine.write.fragments import data_paths
from lance_engine.write.inputs import open_source
from lance_engine.write.source import check_compatible, conform

# Number of rows that are combined at once.
_STEP_ROWS: Final = 1 << 14

BoolArray = npt.NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class Clause:
    """The action for rows for which `where` is true. `values` None: those of the source."""

    action: Literal["update", "delete", "insert"]
    where: Filter = None
    values: Mapping[str, Value] | None = None

    @property
    def takes_all(self) -> bool:
        """Whether it takes the columns of the source unchanged."""
        return self.values is None and self.action != "delete"


@dataclasses.dataclass(frozen=True)
class Clauses:
    """The actions for matching rows, and for rows of the source and of the dataset without a match."""

    matched: tuple[Clause, ...] = ()
    not_matched: tuple[Clause, ...] = ()
    by_source: tuple[Clause, ...] = ()


def merge(
    snapshot: Snapshot,
    source: Any,
    on: list[str],
    clauses: Clauses,
    *,
    compiler: Compiler | None,
    memory_bytes: int,
    progress: ProgressOption,
) -> Snapshot:
    """The version after a merge; see `MergeBuilder.execute`."""
    arrow, batches = open_source(source, snapshot.schema.to_arrow())
    columns = _source_columns(snapshot.schema, arrow, on, clauses)
    converted = conform(batches, columns, None if compiler is None else compiler.convert)
    with SourceRows(columns.to_arrow(), converted, memory_bytes) as rows:
        keys = Keys(on, [rows.column(name) for name in on])

        def once(snapshot: Snapshot) -> Snapshot:
            _source_columns(snapshot.schema, arrow, on, clauses)
            return _Merge(snapshot, rows, keys, on, clauses, compiler, Reporter(progress)).run()

        return redo_on_conflict(snapshot, once)


def _source_columns(schema: Schema, source: pa.Schema, on: list[str], clauses: Clauses) -> Schema:
    """The columns of the source, converted to the types of the dataset if they are used unchanged."""
    for name in on:
        schema.field(name)
        if name not in source.names or name not in schema.names:
            raise SchemaMismatchError(
                "Key column not found in the source", column=name, remedy="Add it, or merge on another column"
            )
    every = [*clauses.matched, *clauses.not_matched]
    for clause in [*every, *clauses.by_source]:
        check_whole_columns(schema, clause.values or ())
    if any(clause.takes_all for clause in every):
        present = Schema(tuple(field for field in schema.fields if field.name in source.names))
        # Inserted rows are complete; others take missing columns from the row that they replace.
        inserted = any(clause.takes_all for clause in clauses.not_matched)
        check_compatible(source, (schema if inserted else present).to_arrow())
        return present
    target = schema.to_arrow()
    kept = Schema.from_arrow(
        pa.schema([target.field(name) if name in on else source.field(name) for name in source.names])
    )
    check_compatible(source, kept.to_arrow())
    return kept


@dataclasses.dataclass(frozen=True)
class _Matches:
    """Rows of the dataset, by ascending address, the row of the source and the clause for each; -1: none."""

    addresses: U64Array
    source_rows: I64Array
    clauses: I64Array


@dataclasses.dataclass(frozen=True)
class _Moved:
    """Rows that are moved, by ascending address, with their new values."""

    addresses: U64Array
    batches: Iterator[pa.RecordBatch]


class _Merge:
    """One attempt to merge into one version."""

    def __init__(
        self,
        snapshot: Snapshot,
        source: SourceRows,
        keys: Keys,
        on: list[str],
        clauses: Clauses,
        compiler: Compiler | None,
        reporter: Reporter,
    ) -> None:
        self._snapshot = snapshot
        self._schema = snapshot.schema.to_arrow()
        self._reader_for = shared_readers(snapshot)
        self._source = source
        self._keys = keys
        self._on = on
        self._clauses = clauses
        self._compiler = compiler
        self._reporter = reporter
        self._pairs = Sides(source.schema, self._schema, compiler)
        self._alone = Sides(source.schema, None, compiler)

    def run(self) -> Snapshot:
        snapshot, reporter = self._snapshot, self._reporter
        conditions = [_condition(clause, self._pairs) for clause in self._clauses.matched]
        # Invalid values are rejected before anything is read.
        updates = [self._values(clause, self._pairs) for clause in self._clauses.matched]
        inserts = [self._values(clause, self._alone) for clause in self._clauses.not_matched]
        matches, seen = self._match(conditions)
        moved: list[_Moved] = []
        gone = [matches.addresses[matches.clauses >= 0]]
        for number, (clause, values) in enumerate(zip(self._clauses.matched, updates, strict=True)):
            if clause.action == "update":
                here = matches.clauses == number
                addresses = matches.addresses[here]
                moved.append(_Moved(addresses, self._updated(addresses, matches.source_rows[here], values)))
        for addresses, batches in self._others(matches.addresses):
            gone.append(addresses)
            if batches is not None:
                moved.append(_Moved(addresses, batches))
        inserted = list(self._inserted(seen, inserts))
        inserts_rows = any(len(rows) for rows, _ in inserted)
        total = sum(len(part.addresses) for part in moved) + sum(len(rows) for rows, _ in inserted)
        reporter.begin("writing rows", total)
        new = chain.from_iterable([*(part.batches for part in moved), *(rows for _, rows in inserted)])
        with removed_on_failure(snapshot.store) as paths:
            options = write_options(snapshot)
            fragments = write_reported(snapshot.store, snapshot.schema, new, options, reporter)
            paths += data_paths(fragments)
            reporter.end()
        return commit_moved(
            snapshot,
            self._modified(),
            [part.addresses for part in moved],
            fragments,
            deleted=joined(gone),
            inserts_keys=inserts_rows and not has_key_within(snapshot.schema, self._on),
            inserts_rows=inserts_rows,
        )

    # ---- matching ----------------------------------------------------------------------------------------

    def _match(self, conditions: list[PairCondition | None]) -> tuple[_Matches, I64Array]:
        """All matches, and the numbers of the keys that matched."""
        keys = self._keys
        sources = _SourcesOfKeys(keys.numbers, keys.count)
        read = dict.fromkeys(self._on)
        for condition in conditions:
            read |= dict.fromkeys(condition.target_columns if condition is not None else ())
        self._reporter.begin("matching rows")
        addresses, rows, clauses = [], [], []
        seen = np.zeros(keys.count, dtype=np.bool_)
        for batch in self._possible_matches([*read, ROW_ADDRESS]):
            places, matched = keys.matches([batch.column(name) for name in self._on])
            self._reporter.advance(batch.num_rows)
            if not len(places):
                continue
            seen[matched] = True
            sources_of_rows, chosen = self._clauses_of(batch, places, matched, sources, conditions)
            addresses.append(batch.column(batch.num_columns - 1).to_numpy()[places])
            rows.append(sources_of_rows)
            clauses.append(chosen)
        self._reporter.end()
        return _Matches(joined(addresses), _joined(rows), _joined(clauses)), np.flatnonzero(seen)

    def _clauses_of(
        self,
        batch: pa.RecordBatch,
        places: I64Array,
        matched: I64Array,
        sources: _SourcesOfKeys,
        conditions: list[PairCondition | None],
    ) -> tuple[I64Array, I64Array]:
        """The row of the source and the clause for each matched position of a batch.

        AmbiguousMergeError if several rows of the source would update a row, or update and delete it.
        """
        first = sources.first(matched)
        counts = sources.counts[matched]
        if not conditions or counts.max() == 1:
            return first, self._choose(batch, places, first, conditions)
        if conditions[0] is None:  # the other rows of the source do the same
            if self._clauses.matched[0].action == "update":
                self._raise_ambiguous(first[counts > 1][0])
            return first, np.zeros(len(places), dtype=np.int64)
        updates = np.array([clause.action == "update" for clause in self._clauses.matched])
        chosen = np.full(len(places), -1, dtype=np.int64)
        for begin, end in _slices(counts):
            which = np.repeat(np.arange(begin, end), counts[begin:end])
            rows = sources.all(matched[begin:end])
            clauses = self._choose(batch, places[which], rows, conditions)
            acting = np.flatnonzero(clauses >= 0)
            acted = which[acting]
            again = np.bincount(acted, minlength=len(places))[acted] > 1
            if (wrong := acting[again & updates[clauses[acting]]]).size:
                self._raise_ambiguous(rows[wrong[0]])
            first[acted], chosen[acted] = rows[acting], clauses[acting]
        return first, chosen

    def _possible_matches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """All rows that may match, and some others; indices and zone maps exclude most of them."""
        bounds = KeyBounds(self._on)
        bounds.add([self._source.column(name) for name in self._on])
        return possible_rows(self._snapshot, columns, bounds.filter(self._schema), self._reader_for)

    def _choose(
        self,
        batch: pa.RecordBatch,
        places: I64Array,
        source_rows: I64Array,
        conditions: list[PairCondition | None],
    ) -> I64Array:
        """The clause for each matched position of a batch."""
        if not conditions:
            return np.full(len(places), -1, dtype=np.int64)

        def test(condition: PairCondition, pairs: I64Array) -> BoolArray:
            target = batch.select(condition.target_columns).take(pa.array(places[pairs]))
            return condition.passing(self._source.take(source_rows[pairs], condition.source_columns), target)

        return _first_passing(len(places), conditions, test)

    def _raise_ambiguous(self, row: int) -> None:
        values = self._source.take(np.array([row], dtype=np.int64), self._on)
        key = ", ".join(f"{name} = {values.column(name)[0]}" for name in self._on)
        raise AmbiguousMergeError(
            f"Several source rows match the same row of the dataset: {key}",
            remedy="Deduplicate the source by key",
        )

    # ---- new rows ----------------------------------------------------------------------------------------

    def _values(self, clause: Clause, sides: Sides) -> list[PairValues] | None:
        """How the values of a clause are computed; None for those of the source unchanged."""
        if clause.values is None:
            return None
        return [
            PairValues(name, value, self._schema.field(name), sides) for name, value in clause.values.items()
        ]

    def _updated(
        self, addresses: U64Array, source_rows: I64Array, values: list[PairValues] | None
    ) -> Iterator[pa.RecordBatch]:
        """Matched rows with their new values."""
        new = self._source.schema.names if values is None else [value.name for value in values]
        kept = [name for name in self._schema.names if name not in new]
        needed = {name for value in values or () for name in value.target_columns}
        read = [name for name in self._schema.names if name in needed or name in kept]
        for start in range(0, len(addresses), _STEP_ROWS):
            part = slice(start, start + _STEP_ROWS)
            source = self._source.take(source_rows[part])
            target = read_rows(self._snapshot, addresses[part], read, self._reader_for) if read else None
            columns = {name: target.column(name) for name in kept} if target is not None else {}
            if values is None:
                columns |= {name: source.column(name) for name in new}
            else:
                columns |= {value.name: value.compute(source, target) for value in values}
            yield self._rows(columns, source.num_rows)

    def _others(self, matched: U64Array) -> Iterator[tuple[U64Array, Iterator[pa.RecordBatch] | None]]:
        """The rows without a match, by clause: their addresses, and their new values if any."""
        left: U64Array | None = None
        for clause in self._clauses.by_source:
            addresses = matching_addresses(self._snapshot, clause.where)
            decided = matched if left is None else union(matched, left)
            addresses = np.setdiff1d(addresses, decided, assume_unique=True)
            left = addresses if left is None else union(left, addresses)
            if clause.values is None:
                yield addresses, None
            else:
                yield addresses, self._changed(addresses, clause.values)

    def _changed(self, addresses: U64Array, values: Mapping[str, Value]) -> Iterator[pa.RecordBatch]:
        computed = [
            column_values(name, value, self._schema, self._schema.field(name), self._compiler)
            for name, value in values.items()
        ]
        for start in range(0, len(addresses), _STEP_ROWS):
            part = addresses[start : start + _STEP_ROWS]
            rows = read_rows(self._snapshot, part, self._schema.names, self._reader_for)
            columns = dict(zip(self._schema.names, rows.columns, strict=True))
            columns |= {column.name: column.compute(rows) for column in computed}
            yield self._rows(columns, rows.num_rows)

    def _inserted(
        self, seen: I64Array, values: list[list[PairValues] | None]
    ) -> Iterator[tuple[I64Array, Iterator[pa.RecordBatch]]]:
        """The rows of the source without a match, by clause, and the rows to write for them."""
        if not values:
            return
        matched = np.zeros(self._keys.count + 1, dtype=np.bool_)
        # The last element is for keys with a null, which have the number -1.
        matched[seen] = True
        rows = np.flatnonzero(~matched[self._keys.numbers])
        conditions = [_condition(clause, self._alone) for clause in self._clauses.not_matched]

        def test(condition: PairCondition, places: I64Array) -> BoolArray:
            parts = [
                condition.passing(
                    self._source.take(rows[places[start : start + _STEP_ROWS]], condition.source_columns),
                    None,
                )
                for start in range(0, len(places), _STEP_ROWS)
            ]
            return np.concatenate(parts) if parts else np.empty(0, dtype=np.bool_)

        chosen = _first_passing(len(rows), conditions, test)
        for number, computed in enumerate(values):
            yield rows[chosen == number], self._new(rows[chosen == number], computed)

    def _new(self, rows: I64Array, values: list[PairValues] | None) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(rows), _STEP_ROWS):
            source = self._source.take(rows[start : start + _STEP_ROWS])
            if values is None:
                columns = dict(zip(source.schema.names, source.columns, strict=True))
            else:
                columns = {value.name: value.compute(source, None) for value in values}
            yield self._rows(columns, source.num_rows)

    def _rows(self, columns: Mapping[str, pa.Array], rows: int) -> pa.RecordBatch:
        """The columns in the order of the dataset, those without values null."""
        arrays = [
            columns[field.name] if field.name in columns else pa.nulls(rows, field.type)
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(arrays, names=self._schema.names)

    def _modified(self) -> list[str]:
        """The columns that may have new values in moved rows."""
        names: set[str] = set()
        for clause in [*self._clauses.matched, *self._clauses.by_source]:
            if clause.action == "update":
                names.update(self._source.schema.names if clause.values is None else clause.values)
        return [name for name in self._snapshot.schema.names if name in names]


class _SourcesOfKeys:
    """The rows of the source by the numbers of their keys."""

    def __init__(self, numbers: I64Array, count: int) -> None:
        self._rows = np.argsort(numbers, kind="stable")[np.count_nonzero(numbers < 0) :]
        self.counts = np.bincount(numbers[numbers >= 0], minlength=count)
        self._starts = np.cumsum(self.counts) - self.counts

    def first(self, keys: I64Array) -> I64Array:
        """The first row of each key."""
        rows: I64Array = self._rows[self._starts[keys]]
        return rows

    def all(self, keys: I64Array) -> I64Array:
        """All rows of each key, one key after the other."""
        counts = self.counts[keys]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        rows: I64Array = self._rows[np.repeat(self._starts[keys], counts) + within]
        return rows


def _slices(counts: I64Array) -> Iterator[tuple[int, int]]:
    """Ranges of positions with some thousands of pairs each, but for those of a single position."""
    steps = np.flatnonzero(np.diff(np.cumsum(counts) // _STEP_ROWS)) + 1
    return pairwise([0, *steps.tolist(), len(counts)])


def _condition(clause: Clause, sides: Sides) -> PairCondition | None:
    if clause.where is None:
        return None
    if not isinstance(clause.where, str):
        raise InvalidArgumentError(f"The condition of a merge must be SQL text, not {clause.where!r}")
    return PairCondition(clause.where, sides)


def _first_passing(count: int, conditions: list[PairCondition | None], test: Any) -> I64Array:
    """For each of `count` rows the number of the first condition that is true, -1 if none is."""
    chosen = np.full(count, -1, dtype=np.int64)
    for number, condition in enumerate(conditions):
        undecided = np.flatnonzero(chosen < 0)
        if condition is not None and len(undecided):
            undecided = undecided[test(condition, undecided)]
        chosen[undecided] = number
    return chosen


def _joined(parts: list[I64Array]) -> I64Array:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
