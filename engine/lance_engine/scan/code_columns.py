"""Columns that have a dictionary code for each string of another column.

Rows get it by the code of their string in the dictionary of a page, so the work is done once for each
entry of a dictionary, not for each row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

if TYPE_CHECKING:
    from lance_engine.scan.dictionary_codes import DictionaryCodes


class CodeColumn(NamedTuple):
    """A column of a scan that is called `name`: codes in `entries` of the strings of `source`."""

    name: str
    source: str
    entries: DictionaryCodes

    def to_arrow(self) -> pa.Field:
        return pa.field(self.name, self.entries.type)
