"""Columns that statements over other tables have in place of a dataset's own, and in addition to these."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from lance_engine.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from lance_engine.scan.entry_columns import EntryColumn
    from lance_engine.scan.string_numbers import StringNumbers
    from lance_engine.schema_tree import Field
    from lance_engine.table.snapshot import Snapshot


class Parts(NamedTuple):
    """What replaces columns of the table that statements call `of`.

    `columns` lack some of their fields or members. `fields` are paths to fields of structs, which become
    columns of these names.

    `coded` and `mapped` add columns after all others. Each of `coded` is its name and that of a column of
    strings, whose numbers in the `StringNumbers` of the snapshot it has. Each of `mapped` is its name, that
    of a column of strings, a function as `MappedEntries` calls it, and the type of the array that it returns;
    for strings a `StringNumbers`, which gives their numbers.
    """

    of: str
    columns: tuple[Field, ...] = ()
    fields: tuple[str, ...] = ()
    coded: tuple[tuple[str, str], ...] = ()
    mapped: tuple[tuple[str, str, Callable[[pa.Array], pa.Array], pa.DataType | StringNumbers], ...] = ()


def added_columns(snapshot: Snapshot, parts: Parts) -> dict[str, EntryColumn]:
    """The columns that `parts` add."""
    if not (parts.coded or parts.mapped):
        return {}
    # Most statements need none of this.
    from lance_engine.scan.entry_columns import EntryColumn, MappedEntries
    from lance_engine.scan.stored_entries import entries_of
    from lance_engine.scan.string_numbers import StringNumbers

    found = {}
    for name, source in parts.coded:
        numbers = StringNumbers.of(snapshot, source)
        if numbers is None:
            raise UnsupportedFeatureError("The strings of a column have no numbers", column=source)
        found[name] = EntryColumn(name, source, numbers)
    for name, source, function, kind in parts.mapped:
        entries = entries_of(snapshot, source)
        if entries is None:
            raise UnsupportedFeatureError("A column has too many distinct strings", column=source)
        large = snapshot.schema.field(source).logical_type == "large_string"
        if isinstance(kind, StringNumbers):
            values = MappedEntries(partial(_numbers, function, kind), pa.int32(), 2 * entries, large=large)
        else:
            values = MappedEntries(function, kind, 2 * entries, large=large)
        found[name] = EntryColumn(name, source, values)
    return found


def _numbers(function: Callable[[pa.Array], pa.Array], numbers: StringNumbers, strings: pa.Array) -> pa.Array:
    return numbers.numbers(function(strings))
