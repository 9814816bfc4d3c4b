"""Dictionary codes of the strings of a column: positions in a list of its distinct strings.

Engines group by codes, and count distinct ones, several times faster than by strings.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lance_engine import compute as pc
from lance_engine import kernels
from lance_engine.arrow_values import to_numpy
from lance_engine.cache import METADATA
from lance_engine.errors import InvalidArgumentError
from lance_engine.scan.paths import field_path
from lance_engine.scan.stored_entries import StoredEntries, stored_entries
from lance_engine.weak_identity import WeakIdentityDict

if TYPE_CHECKING:
    from lance_engine.table.snapshot import Snapshot

#: A list has at most so many strings of so many bytes together; each takes up to 64 bytes more.
MOST_STRINGS = 1 << 24
MOST_BYTES = 256 << 20
#: Up to so many strings, of dictionaries of so many pages, are read beforehand: their codes fit a byte.
MOST_KNOWN = 250
_MOST_PAGES_KNOWN = 100

_of_snapshots: WeakIdentityDict[Snapshot, dict[str, DictionaryCodes | None]] = WeakIdentityDict()


class DictionaryCodes:
    """A list of distinct strings that grows while the pages of a column are decoded; thread-safe.

    If they are few, all are known beforehand in ascending order of their bytes (`known`), and codes are
    uint8; otherwise they are int32, in any order. Strings of deleted rows may be among them.

    Its memory is that of the strings, up to `MOST_BYTES`, and up to 64 bytes for each, up to `MOST_STRINGS`;
    and 4 bytes for each entry of the dictionaries, of up to two scans of the table. A list that is kept with
    its snapshot counts as page metadata does: where that exceeds its limit, later queries begin another one.
    """

    def __init__(
        self,
        native: kernels.StringNumbers,
        entries: int,
        known: tuple[str, ...] | None = None,
        *,
        large: bool = False,
    ) -> None:
        self.native = native
        #: there are no more strings than these
        self.entries = entries
        #: all strings, ascending by their bytes, if that is known
        self.known = known
        self.type: pa.DataType = pa.int32() if known is None else pa.uint8()
        self._large = large
        #: the snapshot by which it is kept, and its column
        self._owner: tuple[weakref.ref[Snapshot], str] | None = None
        self._counted = 0

    def evict(self) -> None:
        """Do not keep the list for later queries."""
        snapshot = None if self._owner is None else self._owner[0]()
        if self._owner is not None and snapshot is not None:
            _of_snapshots.get(snapshot, {}).pop(self._owner[1], None)
        self._owner, self._counted = None, 0

    def _count(self) -> None:
        """Count the bytes that the list has gained."""
        size = self.native.memory
        if self._owner is not None and size > self._counted:
            self._counted, gained = size, size - self._counted
            METADATA.grew(self, gained)

    @staticmethod
    def of(snapshot: Snapshot, column: str) -> DictionaryCodes | None:
        """The list for a column, kept with its snapshot; None if codes would not pay or cannot be had.

        They can for strings outside of lists in local files, of at most 256 fragments, if dictionaries have
        few entries, at most a quarter of the rows and at most `MOST_BYTES`, and if pages without a dictionary
        are small or of equal strings.
        """
        lists = _of_snapshots.setdefault(snapshot, {})
        codes = lists.get(column)
        if codes is None and column not in lists:
            # Two threads may both get here: one list must be used by all.
            codes = lists.setdefault(column, _list_of(snapshot, column))
        if codes is not None:
            codes._owner = codes._owner or (weakref.ref(snapshot), column)
            codes._count()
        return codes

    @property
    def string_type(self) -> pa.DataType:
        return pa.large_string() if self._large else pa.string()

    @property
    def size(self) -> int:
        """Number of strings so far."""
        return self.native.size

    def strings(self, codes: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
        """The string of each code, InvalidArgumentError if none has it; nulls stay null."""
        if isinstance(codes, pa.ChunkedArray):
            return pa.chunked_array([self.strings(chunk) for chunk in codes.chunks], self.string_type)
        if not pa.types.is_integer(codes.type):
            raise InvalidArgumentError(f"Dictionary codes are integers, not {codes.type}")
        valid = None
        if codes.null_count:
            valid = np.packbits(to_numpy(codes.is_valid()), bitorder="little")
            codes = codes.fill_null(0)
        try:
            wanted = np.ascontiguousarray(to_numpy(pc.cast(codes, pa.int64())))
            strings = self.native.strings_of(wanted, valid, self._large)
        except IndexError:
            raise InvalidArgumentError(f"A code is not among the {self.size:,} strings") from None
        except kernels.BatchTooLargeError:
            raise InvalidArgumentError("The strings do not fit into one array: convert fewer codes") from None
        self._count()
        return pa.Array._import_from_c(strings.address, self.string_type)


def _list_of(snapshot: Snapshot, column: str) -> DictionaryCodes | None:
    stored = stored_entries(snapshot, column)
    if stored is None or stored.entries > MOST_STRINGS:
        return None
    large = field_path(snapshot.schema, column)[-1].logical_type == "large_string"
    native = kernels.StringNumbers(stored.entries, MOST_BYTES)
    try:
        for leaf in stored.leaves:
            leaf.map_pages(native, dictionaries=False)
        if stored.bytes + native.memory > MOST_BYTES:
            return None
        known = _known_strings(native, stored)
    except (kernels.CorruptDataError, kernels.BatchTooLargeError, UnicodeDecodeError):
        return None  # a damaged file: the scan itself will report it
    if known is not None:
        return DictionaryCodes(kernels.StringNumbers(known), len(known), _texts(known), large=large)
    return DictionaryCodes(native, stored.entries, large=large)


def _known_strings(native: kernels.StringNumbers, stored: StoredEntries) -> list[bytes] | None:
    """All strings, ascending, if they are few; where pages have no dictionary, also what nulls have there."""
    if stored.largest > MOST_KNOWN or stored.pages > _MOST_PAGES_KNOWN:
        return None
    for leaf in stored.leaves:
        leaf.map_pages(native, dictionaries=True)
        if native.size > MOST_KNOWN:
            return None
    strings = set(native.all_strings())
    if not all(leaf.gives_codes for leaf in stored.leaves):
        strings.add(b"")
    return sorted(strings)


def _texts(strings: list[bytes]) -> tuple[str, ...]:
    return tuple(string.decode() for string in strings)
