"""Merging a source into a dataset by key: updating, inserting and deleting in one version."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_engine.errors import AmbiguousMergeError, SchemaMismatchError
from lance_engine.expr import evaluate, parse_sql
from lance_engine.format.operations import Update
from lance_engine.maintenance.changes import commit_change, removed_on_failure, write_options
from lance_engine.maintenance.keys import I64Array, Keys
from lance_engine.maintenance.retry import redo_on_conflict
from lance_engine.maintenance.rows import (
    Filter,
    drop_unused,
    joined,
    lineage,
    matching_addresses,
    read_rows,
    rows_by_fragment,
    scan,
    take_out,
    with_lineage,
)
from lance_engine.scan.system import ROW_ADDRESS
from lance_engine.table.snapshot import Snapshot, U64Array
from lance_engine.types import Schema
from lance_engine.write.fragments import data_paths, write_fragments
from lance_engine.write.source import check_compatible, conform, open_source

# Updated rows that are put together at once.
_STEP_ROWS: Final = 1 << 16

Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class _Actions:
    """What is to happen; the conditions are None where there is none."""

    update: bool = False
    update_where: str | None = None
    delete_matched: bool = False
    insert: bool = False
    delete_unmatched: bool = False
    delete_where: Filter = None


class MergeBuilder(Generic[Result]):
    """What to do with the rows of the source and of the dataset; nothing happens before `execute`.

    A row of the source matches the rows of the dataset with the same values in the key columns; a null
    matches nothing.
    """

    def __init__(
        self, snapshot: Snapshot, source: Any, on: str | Sequence[str], finish: Callable[[Snapshot], Result]
    ) -> None:
        self._snapshot = snapshot
        self._source = source
        self._on = [on] if isinstance(on, str) else list(on)
        self._finish = finish
        self._actions = _Actions()
        if not self._on:
            raise ValueError("merge needs at least one key column")

    def when_matched_update_all(self, where: str | None = None) -> Self:
        """Give matched rows the values of the source, in all columns that it has.

        `where` is a condition over both rows, for example ``source.changed_at > target.changed_at``.
        """
        return self._with(update=True, update_where=where)

    def when_matched_delete(self) -> Self:
        """Delete the rows of the dataset that match."""
        return self._with(delete_matched=True)

    def when_not_matched_insert_all(self) -> Self:
        """Add the rows of the source that match nothing; columns that it lacks are null."""
        return self._with(insert=True)

    def when_not_matched_by_source_delete(self, where: Filter = None) -> Self:
        """Delete the rows of the dataset that no row of the source matches, and that pass `where`."""
        return self._with(delete_unmatched=True, delete_where=where)

    def execute(self) -> Result:
        """Commit the merge as one new version and return the dataset at that version.

        The source is read once and held in memory. AmbiguousMergeError if several of its rows match a row
        that is to be updated; SchemaMismatchError if it does not fit the dataset.
        """
        actions = self._actions
        if not (actions.update or actions.delete_matched or actions.insert or actions.delete_unmatched):
            raise ValueError("say what to do: when_matched_update_all(), when_not_matched_insert_all() ...")
        if actions.update and actions.delete_matched:
            raise ValueError("matched rows are either updated or deleted")
        schema, batches = open_source(self._source)
        source = pa.Table.from_batches(batches, schema=schema)

        def once(snapshot: Snapshot) -> Snapshot:
            return _merge(snapshot, source, self._on, actions)

        return self._finish(redo_on_conflict(self._snapshot, once))

    def _with(self, **changes: Any) -> Self:
        self._actions = dataclasses.replace(self._actions, **changes)
        return self


@dataclasses.dataclass(frozen=True)
class _Matches:
    """Rows of the dataset, by ascending address, and the row of the source for each."""

    addresses: U64Array
    source_rows: I64Array


def _merge(snapshot: Snapshot, source: pa.Table, on: list[str], actions: _Actions) -> Snapshot:
    columns = _source_columns(snapshot.schema, source, on, actions)
    batch = _one_batch(source, columns)
    keys = Keys(on, [batch.column(name) for name in on])
    matches, seen, chosen = _match(snapshot, batch, keys, on, actions)
    updated = chosen if actions.update else _Matches(matches.addresses[:0], matches.source_rows[:0])
    inserted = _unmatched_rows(keys, seen) if actions.insert else matches.source_rows[:0]
    gone = [updated.addresses]
    if actions.delete_matched:
        gone.append(matches.addresses)
    if actions.delete_unmatched:
        others = matching_addresses(snapshot, actions.delete_where)
        gone.append(np.setdiff1d(others, matches.addresses, assume_unique=True))
    with removed_on_failure(snapshot.store) as paths:
        rows = _new_rows(snapshot, batch, columns, updated, inserted)
        fragments = write_fragments(snapshot.store, snapshot.schema, rows, write_options(snapshot))
        paths += data_paths(fragments)
        fragments = with_lineage(fragments, lineage(snapshot, updated.addresses))
        removal = take_out(snapshot, rows_by_fragment(snapshot, np.unique(np.concatenate(gone))))
        paths += removal.paths()
    operation = Update(
        removal.removed_ids,
        removal.updated,
        tuple(fragments),
        tuple(field.id for top in columns.fields for field in top.walk()),
        inserts_keys=len(inserted) > 0,
    )
    committed = commit_change(snapshot, operation, paths, taken=removal.taken)
    drop_unused(committed, removal)
    return committed


def _source_columns(schema: Schema, source: pa.Table, on: list[str], actions: _Actions) -> Schema:
    """The columns of the dataset that the source has, in the order of the dataset."""
    for name in on:
        schema.field(name)
        if name not in source.column_names or name not in schema.names:
            raise SchemaMismatchError(
                "The source has no such key column", column=name, remedy="Add it, or merge on another column"
            )
    present = Schema(tuple(field for field in schema.fields if field.name in source.column_names))
    # Inserted rows are whole rows; others take what is missing from the row that they replace.
    check_compatible(source.schema, (schema if actions.insert else present).to_arrow())
    return present


def _one_batch(source: pa.Table, columns: Schema) -> pa.RecordBatch:
    """The source with the types of the dataset."""
    schema = columns.to_arrow()
    table = pa.Table.from_batches(conform(source.to_batches(), columns), schema=schema)
    arrays = [
        pa.concat_arrays(table.column(index).chunks) if table.num_rows else pa.array([], field.type)
        for index, field in enumerate(schema)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _match(
    snapshot: Snapshot, source: pa.RecordBatch, keys: Keys, on: list[str], actions: _Actions
) -> tuple[_Matches, I64Array, _Matches]:
    """All matches, the numbers of the keys that matched, and the matches that pass the condition."""
    rows_per_key = np.bincount(keys.numbers[keys.numbers >= 0], minlength=keys.count)
    row_of_key = np.zeros(keys.count, dtype=np.int64)
    with_key = np.flatnonzero(keys.numbers >= 0)
    row_of_key[keys.numbers[with_key]] = with_key
    condition = _Condition(snapshot, source, actions.update_where)
    addresses, rows, seen, chosen = [], [], [], []
    for batch in scan(snapshot, [*dict.fromkeys([*on, *condition.columns]), ROW_ADDRESS]).to_batches():
        numbers = keys.find([batch.column(name) for name in on])
        places = np.flatnonzero(numbers >= 0)
        found = numbers[places]
        if actions.update and (rows_per_key[found] > 1).any():
            _raise_ambiguous(source, on, row_of_key[found[rows_per_key[found] > 1][0]])
        addresses.append(batch.column(batch.num_columns - 1).to_numpy()[places])
        rows.append(row_of_key[found])
        seen.append(np.unique(found))
        chosen.append(condition.passing(batch, places, rows[-1]))
    matches = _Matches(joined(addresses), _joined_rows(rows))
    passing = np.concatenate(chosen) if chosen else np.empty(0, dtype=np.bool_)
    kept = _Matches(matches.addresses[passing], matches.source_rows[passing])
    return matches, _joined_rows(seen), kept


def _joined_rows(parts: list[I64Array]) -> I64Array:
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


def _raise_ambiguous(source: pa.RecordBatch, on: list[str], row: int) -> None:
    key = ", ".join(f"{name} = {source.column(name)[row]}" for name in on)
    raise AmbiguousMergeError(
        f"Several rows of the source match the same row of the dataset: {key}",
        remedy="Keep one row per key in the source",
    )


class _Condition:
    """Which matches are meant: SQL over the structs ``source`` and ``target``."""

    def __init__(self, snapshot: Snapshot, source: pa.RecordBatch, text: str | None) -> None:
        self._source = source
        self._node = None
        self.columns: list[str] = []
        if text is None:
            return
        target = snapshot.schema.to_arrow()
        sides = [("source", pa.struct(list(source.schema))), ("target", pa.struct(list(target)))]
        self._node = parse_sql(text, pa.schema(sides))
        self.columns = target.names

    def passing(self, batch: pa.RecordBatch, places: I64Array, source_rows: I64Array) -> Any:
        """For each matched place of the batch, whether the pair passes."""
        if self._node is None:
            return np.ones(len(places), dtype=np.bool_)
        target = batch.select(self.columns).take(pa.array(places)).to_struct_array()
        source = self._source.take(pa.array(source_rows)).to_struct_array()
        pairs = pa.RecordBatch.from_arrays([source, target], names=["source", "target"])
        return pc.fill_null(evaluate(self._node, pairs), False).to_numpy(zero_copy_only=False)


def _unmatched_rows(keys: Keys, seen: I64Array) -> I64Array:
    """The rows of the source whose key no row of the dataset has."""
    matched = np.zeros(keys.count + 1, dtype=np.bool_)
    # The last element stands for keys with a null, which have the number -1.
    matched[seen] = True
    return np.flatnonzero(~matched[keys.numbers])


def _new_rows(
    snapshot: Snapshot, source: pa.RecordBatch, columns: Schema, updated: _Matches, inserted: I64Array
) -> Iterator[pa.RecordBatch]:
    """The rows to be written: first those that replace others, then those that are new."""
    missing = [name for name in snapshot.schema.names if name not in columns.names]
    for start in range(0, len(updated.addresses), _STEP_ROWS):
        part = slice(start, start + _STEP_ROWS)
        rows = source.take(pa.array(updated.source_rows[part]))
        if missing:
            kept = read_rows(snapshot, updated.addresses[part], missing)
            arrays = dict(zip([*columns.names, *missing], [*rows.columns, *kept.columns], strict=True))
            rows = pa.RecordBatch.from_arrays(
                [arrays[name] for name in snapshot.schema.names], names=snapshot.schema.names
            )
        yield rows
    for start in range(0, len(inserted), _STEP_ROWS):
        yield source.take(pa.array(inserted[start : start + _STEP_ROWS]))
