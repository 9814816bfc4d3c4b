"""How many entries the dictionaries of a string column have, without reading them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_engine import kernels
from lance_engine.errors import LanceError
from lance_engine.owned import OwnedValues
from lance_engine.records import record
from lance_engine.scan.fragment import FragmentReader

if TYPE_CHECKING:
    from lance_engine.schema_tree import Field
    from lance_engine.table.snapshot import Snapshot

#: A table of more fragments has no such columns: each is opened to find out how it is stored.
MOST_FRAGMENTS = 256
#: Dictionaries that have more entries than this share of the rows save too little.
_LEAST_ROWS_PER_ENTRY = 4


@record
class StoredEntries:
    """The dictionaries of a column in all fragments: their entries, and the most bytes of these, together."""

    entries: int
    bytes: int
    #: entries of the largest dictionary
    largest: int
    pages: int
    leaves: tuple[kernels.LeafColumn, ...]


_known: OwnedValues[Snapshot, dict[str, int | None]] = OwnedValues()


def entries_of(snapshot: Snapshot, column: str) -> int | None:
    """How many entries the dictionaries of a column have together, as `stored_entries` finds."""
    known = _known.setdefault(snapshot, {})
    if column not in known:
        found = stored_entries(snapshot, column)
        known[column] = None if found is None else found.entries
    return known[column]


def stored_entries(snapshot: Snapshot, column: str) -> StoredEntries | None:
    """The dictionaries of a string column, if an `EntryColumn` of it pays; None if not.

    All of its pages must have one; fragments without the column do not matter.
    """
    if not snapshot.is_local or len(snapshot.fragments) > MOST_FRAGMENTS:
        return None
    field = _string_field(snapshot, column)
    if field is None:
        return None
    leaves: list[kernels.LeafColumn] = []
    for fragment in snapshot.fragments:
        reader = FragmentReader(snapshot, fragment)
        if not reader.is_stored(field):
            continue
        try:
            if not reader.is_dictionary_coded(column):
                return None
            with reader.placed():
                leaves += [leaf for found in reader.built(field).leaves.values() for leaf in found]
        except LanceError:  # a damaged file: the scan itself will report it
            return None
    entries = sum(leaf.total_entries for leaf in leaves)
    if entries * _LEAST_ROWS_PER_ENTRY > snapshot.num_rows:
        return None
    try:
        size = sum(leaf.dictionary_bytes() for leaf in leaves)
    except kernels.CorruptDataError:
        return None
    return StoredEntries(
        entries,
        size,
        max((leaf.dictionary_entries for leaf in leaves), default=0),
        sum(len(leaf.page_starts) - 1 for leaf in leaves),
        tuple(leaves),
    )


def _string_field(snapshot: Snapshot, column: str) -> Field | None:
    found = [field for field in snapshot.schema.fields if field.name == column]
    if len(found) != 1 or found[0].logical_type not in ("string", "large_string") or found[0].is_json:
        return None
    return found[0]
