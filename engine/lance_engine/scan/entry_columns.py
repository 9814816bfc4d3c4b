"""Columns that have a value of a fixed width for each entry of the dictionaries of a string column.

Rows get what stands for their string by its code in the dictionary of a page, so the work is done once for
each entry of a dictionary, not for each row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import pyarrow as pa

from lance_engine import kernels
from lance_engine.errors import InvalidArgumentError
from lance_engine.records import record


class Entries(Protocol):
    """What stands for the entries."""

    @property
    def type(self) -> pa.DataType:
        """The type of the values: bool, or numbers of 1, 4 or 8 bytes."""

    @property
    def native(self) -> kernels.EntryMap:
        """The same for the kernels."""

    @property
    def is_lasting(self) -> bool:
        """Whether it exists as long as the snapshot."""


@record
class EntryColumn:
    """A column of a scan that is called `name`, with the values in `entries` for the strings of `source`."""

    name: str
    source: str
    entries: Entries

    def to_arrow(self) -> pa.Field:
        return pa.field(self.name, self.entries.type)


class MappedEntries:
    """The values that a function gives for strings; it is called once for each dictionary of a page.

    For pages without a dictionary it is called with the strings of some rows, those of nulls among them.
    `function` gets an array of strings without nulls, and returns one of the same length. It is called by the
    threads that decode, several at a time. What it gave is remembered for `most_entries` entries, until
    `forget`.
    """

    is_lasting = False

    def __init__(
        self, function: Callable[[pa.Array], pa.Array], kind: pa.DataType, most_entries: int, *, large: bool
    ) -> None:
        width = _width(kind)
        if width is None:
            raise InvalidArgumentError(f"The values of entries cannot be of type {kind}")
        self.type = kind
        call = partial(_called, function, kind, pa.large_string() if large else pa.string())
        self.native = kernels.EntryFunction(call, width, pa.types.is_boolean(kind), most_entries)

    def forget(self) -> None:
        """Drop what the function gave so far: it is called again."""
        self.native.forget()


def _called(
    function: Callable[[pa.Array], pa.Array], kind: pa.DataType, strings: pa.DataType, address: int
) -> pa.Array:
    found = function(pa.Array._import_from_c(address, strings))
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    if found.type != kind:
        raise InvalidArgumentError(f"The function gave {found.type} instead of {kind}")
    return found


def _width(kind: pa.DataType) -> int | None:
    if pa.types.is_boolean(kind):
        return 1
    if not (pa.types.is_primitive(kind) and kind.bit_width in (8, 32, 64)):
        return None
    return int(kind.bit_width) // 8
