"""How many distinct strings a column has at most, as far as its pages tell without being decoded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_engine import kernels
from lance_engine.errors import ColumnNotFoundError, LanceError
from lance_engine.scan.fragment import FragmentReader
from lance_engine.scan.paths import field_path, is_read_alone, narrowed

if TYPE_CHECKING:
    from lance_engine.schema_tree import Field
    from lance_engine.table.snapshot import Snapshot

#: A table of more fragments has no such columns: each is opened to find out how it is stored.
MOST_FRAGMENTS = 256
#: More distinct strings than this share of the rows save too little.
_LEAST_ROWS_PER_ENTRY = 4
#: Pages without a dictionary have so many bytes in files at most: they are decoded to know their strings.
MOST_PLAIN_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class StoredEntries:
    """The strings of a column in all fragments: how many distinct ones at most, and their bytes.

    `bytes` are the most that dictionaries can decode to, `largest` are the entries of the largest one.
    """

    entries: int
    bytes: int
    largest: int
    pages: int
    leaves: tuple[kernels.LeafColumn, ...]


def stored_entries(snapshot: Snapshot, column: str) -> StoredEntries | None:
    """What is known about the strings of a column, if a `CodeColumn` of it pays; None if not.

    Its pages must have dictionaries, except for small ones, as files have to which few rows were added, and
    for those of equal strings. Fragments without the column do not matter.
    """
    if not snapshot.is_local or len(snapshot.fragments) > MOST_FRAGMENTS:
        return None
    path = _string_path(snapshot, column)
    if path is None:
        return None
    field, alone = narrowed(path), len(path) > 1
    leaves: list[kernels.LeafColumn] = []
    probe = kernels.StringNumbers(0, 0)
    try:
        for fragment in snapshot.fragments:
            reader = FragmentReader(snapshot, fragment)
            if not reader.is_stored(path[-1]):
                continue
            with reader.placed():
                built = reader.built(field, alone=alone)
                if built.decoder.mapped(probe) is None:
                    return None
                leaves += [leaf for columns in built.leaves.values() for leaf in columns]
        entries = sum(leaf.most_distinct for leaf in leaves)
        plain = sum(leaf.plain_bytes for leaf in leaves)
        if entries * _LEAST_ROWS_PER_ENTRY > snapshot.num_rows or plain > MOST_PLAIN_BYTES:
            return None
        size = sum(leaf.dictionary_bytes() for leaf in leaves)
    except (LanceError, kernels.CorruptDataError):  # a damaged file: the scan itself will report it
        return None
    largest = max((leaf.dictionary_entries for leaf in leaves), default=0)
    pages = sum(len(leaf.page_starts) - 1 for leaf in leaves)
    return StoredEntries(entries, size, largest, pages, tuple(leaves))


def _string_path(snapshot: Snapshot, column: str) -> tuple[Field, ...] | None:
    """The fields that lead to a column of strings, at the top level or in structs."""
    try:
        path = field_path(snapshot.schema, column)
    except ColumnNotFoundError:
        return None
    is_one = len([field for field in snapshot.schema.fields if field.name == path[0].name]) == 1
    is_text = path[-1].logical_type in ("string", "large_string") and not path[-1].is_json
    return path if is_one and is_text and (len(path) == 1 or is_read_alone(path)) else None
