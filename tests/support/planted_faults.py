"""Faults that were mended, and some that a change may bring: each generator must find those of its kind.

`python tests/differential/planted.py` shows in how many seconds (`make planted-faults`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa


def _order_of_computed_batches() -> None:
    """Values that DataFusion computes in several partitions are taken in the order in which they come."""
    from datafusion import SessionConfig, SessionContext

    from lance_sql.catalog import functions

    def by_position(values: pa.ChunkedArray, numbered: pa.ChunkedArray, rows: int) -> pa.Array:
        return values.combine_chunks()

    def context() -> Any:
        return SessionContext(SessionConfig().with_target_partitions(4).with_information_schema(True))

    functions.by_number = by_position  # type: ignore[assignment]
    functions._context = _once(context)  # type: ignore[assignment]


def _highest_fragment_of_old_manifests() -> None:
    """Manifests that do not record the highest fragment id count as those of empty datasets."""
    from lance_engine.table import defaults

    defaults._max_fragment_id = lambda manifest, section: manifest.max_fragment_id


def _lone_struct_fields() -> None:
    """Structs are converted by the exact names of their fields, with nulls for those that are missing."""
    from lance_sql.statements import insert
    from lance_sql.syntax.source import as_written
    from lance_sql.types import conversion

    original = conversion.converted

    def by_exact_name(values: pa.Array, field: pa.Field) -> pa.Array:
        if not pa.types.is_struct(field.type):
            found = original(values, field)
            return values.cast(field.type) if found is None else found
        if not pa.types.is_struct(values.type):
            raise pa.ArrowInvalid(f"{values.type} is not a struct")
        given = {child.name: values.field(number) for number, child in enumerate(values.type)}
        children = [
            by_exact_name(given.get(child.name, pa.nulls(len(values), child.type)), child)
            for child in field.type
        ]
        return pa.StructArray.from_arrays(children, fields=list(field.type), mask=values.is_null())

    def converted(values: pa.Array, field: pa.Field) -> pa.Array | None:
        return by_exact_name(values, field) if pa.types.is_struct(field.type) else original(values, field)

    conversion.converted = converted
    insert._values = lambda values, schema, names: as_written(values)


def _null_key_twice() -> None:
    """The keys of a BITMAP keep the order in which they are stored, where null may be last."""
    from lance_engine.index import bitmap

    def entries(self: Any) -> Any:
        for key, rows in enumerate(self._bitmaps(np.arange(len(self._keys)))):
            for ids in bitmap.ids_in(rows):
                values = self._keys.take(pa.array(np.full(len(ids), key, dtype=np.int64)))
                yield pa.RecordBatch.from_arrays([values, pa.array(ids)], [bitmap.VALUE, bitmap.ROW])

    bitmap.Bitmap.entries = entries  # type: ignore[method-assign]


def _merge_that_only_inserts() -> None:
    """What only inserts keys is committed as an append, with which every other insertion is compatible."""
    from lance_engine.format.operations import Append, Update
    from lance_engine.operations import change_rows, update

    for module in (change_rows, update):
        original = module.commit_change

        def commit(
            snapshot: Any, operation: Any, *rest: Any, original: Callable[..., Any] = original, **options: Any
        ) -> Any:
            if isinstance(operation, Update) and not (
                operation.removed_fragment_ids or operation.updated_fragments
            ):
                operation = Append(operation.new_fragments)
            elif isinstance(operation, Update):
                operation = dataclasses.replace(operation, inserts_keys=False)
            return original(snapshot, operation, *rest, **options)

        module.commit_change = commit


def _conditions_of_other_values() -> None:
    """Conditions that were kept with a statement are used again for other values of its parameters."""
    from lance_sql.pushdown import filters

    filters._values = lambda parts, asked: ()


def _failed_prepare_removes() -> None:
    """A PREPARE that fails removes the statement that had its name."""
    from lance_sql.searches.prepared import PreparedSearches

    original = PreparedSearches.keeps

    def keeps(self: Any, statement: Any, *, is_change: bool = False) -> bool:
        kept = original(self, statement, is_change=is_change)
        if not kept:
            self.ran(statement)
        return kept

    PreparedSearches.keeps = keeps  # type: ignore[method-assign]


def _one_source_row_of_a_key() -> None:
    """Of several source rows of a key, merges test the conditions of the last one only."""
    from lance_engine.operations.merge_rows import _Merge

    def clauses_of(
        self: Any, batch: Any, places: Any, matched: Any, sources: Any, conditions: Any
    ) -> tuple[Any, Any]:
        counts = sources.counts[matched]
        if (counts > 1).any() and any(clause.action == "update" for clause in self._clauses.matched):
            self._raise_ambiguous(sources.first(matched)[counts > 1][0])
        last = sources._rows[sources._starts[matched] + counts - 1]
        return last, self._choose(batch, places, last, conditions)

    _Merge._clauses_of = clauses_of  # type: ignore[method-assign]


def _ranges_with_deleted_rows() -> None:
    """Rows of a range of which all match are read without a look at which of them are deleted."""
    from lance_engine.scan.reader import RowsReader

    RowsReader.any_deleted = lambda self, begin, end: False  # type: ignore[method-assign]


def _deleted_rows_beyond_a_fragment() -> None:
    """Deletion files may name rows that the fragment does not have."""
    from lance_engine.format import deletion
    from lance_engine.table import deletions

    def unbounded(data: bytes, kind: Any, physical_rows: int) -> Any:
        return deletion.decode_deletions(data, kind, 1 << 32)

    deletions.decode_deletions = unbounded


def _once(make: Callable[[], Any]) -> Callable[[], Any]:
    made: list[Any] = []

    def get() -> Any:
        if not made:
            made.append(make())
        return made[0]

    return get


#: The faults, and the generators that may find them.
FAULTS: Final[dict[str, tuple[Callable[[], None], tuple[str, ...]]]] = {
    "order of computed batches": (_order_of_computed_batches, ("filters",)),
    "highest fragment of old manifests": (_highest_fragment_of_old_manifests, ("operations",)),
    "lone struct fields": (_lone_struct_fields, ("changes",)),
    "null key twice": (_null_key_twice, ("operations",)),
    "merge that only inserts": (_merge_that_only_inserts, ("commits",)),
    "conditions of other values": (_conditions_of_other_values, ("queries",)),
    "failed PREPARE removes a statement": (_failed_prepare_removes, ("sessions",)),
    "one source row of a key": (_one_source_row_of_a_key, ("twins",)),
    "deleted rows beyond a fragment": (_deleted_rows_beyond_a_fragment, ("structured",)),
    "ranges with deleted rows": (_ranges_with_deleted_rows, ("pylance",)),
}


def plant(name: str) -> None:
    """Put a fault back into this process."""
    FAULTS[name][0]()
