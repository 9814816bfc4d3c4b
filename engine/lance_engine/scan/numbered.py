"""Strings as numbers of one byte: their places in a list of all values of the column.

Engines group by such numbers several times faster than by strings, also by those of a dictionary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_engine.arrow_compute import pc
from lance_engine.errors import CorruptFileError
from lance_engine.owned import OwnedValues
from lance_engine.scan.fragment import FragmentReader

if TYPE_CHECKING:
    from lance_engine.table.snapshot import Snapshot

#: A list of more values than these is not made: they must fit a byte.
MOST_VALUES = 250
#: One row of so many pages of a fragment is read at most to find the values.
_MOST_PAGES = 100


#: by column, the values that were found of a snapshot
_known: OwnedValues[Snapshot, dict[str, tuple[str, ...] | None]] = OwnedValues()


def values_of(snapshot: Snapshot, name: str) -> tuple[str, ...] | None:
    """All values of a string column, ascending; None if some page has no dictionary, or they are many.

    Values of deleted rows may be among them.
    """
    known = _known.setdefault(snapshot, {})
    if name not in known:
        known[name] = _values_of(snapshot, name)
    return known[name]


def _values_of(snapshot: Snapshot, name: str) -> tuple[str, ...] | None:
    found: set[str] = set()
    for fragment in snapshot.fragments:
        reader = FragmentReader(snapshot, fragment)
        if not reader.is_dictionary_coded(name):
            return None
        projection = reader.projection((name,), frozenset({name}))
        starts = {start for _, leaves in projection.leaves for leaf in leaves for start in leaf.page_starts}
        if len(starts) > _MOST_PAGES:
            return None
        for start in starts:
            if start < reader.rows:
                # A page brings its whole dictionary, however few rows are read.
                codes = projection.read_range(start, start + 1).column(0)
                found.update(value for value in codes.dictionary.to_pylist() if value is not None)
        if len(found) > MOST_VALUES:
            return None
    return tuple(sorted(found, key=lambda value: value.encode()))


def with_numbers(batch: pa.RecordBatch, values: Mapping[int, Sequence[str]]) -> pa.RecordBatch:
    """A batch with numbers in place of the strings of some columns, of which these are all values."""
    fields = list(batch.schema)
    arrays = list(batch.columns)
    for place, known in values.items():
        arrays[place] = _numbers(arrays[place], known, fields[place].name)
        fields[place] = fields[place].with_type(pa.uint8())
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, metadata=batch.schema.metadata))


def _numbers(array: pa.Array, values: Sequence[str], name: str) -> pa.Array:
    plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    found = pc.index_in(plain, value_set=pa.array(values, plain.type))
    if found.null_count != plain.null_count:
        raise CorruptFileError("A dictionary has other values than before", column=name)
    return found.cast(pa.uint8())
