"""Columns that tables of some statements have in addition to those of their dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lance_engine.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from lance_engine.scan.entry_columns import EntryColumn
    from lance_engine.table.snapshot import Snapshot


class Parts(NamedTuple):
    """What is added to the table that statements call `of`, after all of its columns.

    Each of `coded` is a name and that of a column of strings, whose numbers in the `StringNumbers` of the
    snapshot the additional column has.
    """

    of: str
    coded: tuple[tuple[str, str], ...] = ()


def added_columns(snapshot: Snapshot, parts: Parts) -> dict[str, EntryColumn]:
    """The columns that `parts` add."""
    if not parts.coded:
        return {}
    # Most statements need none of this.
    from lance_engine.scan.entry_columns import EntryColumn
    from lance_engine.scan.string_numbers import StringNumbers

    found = {}
    for name, source in parts.coded:
        numbers = StringNumbers.of(snapshot, source)
        if numbers is None:
            raise UnsupportedFeatureError("The strings of a column have no numbers", column=source)
        found[name] = EntryColumn(name, source, numbers)
    return found
