"""Zones of live rows, the basis of indices of zones (indices, ZONEMAP, building)."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lance_engine.errors import CorruptFileError, InvalidArgumentError
from lance_engine.file.table import FileTable
from lance_engine.format.row_id_map import parse_row_id_map, serialize_row_id_map
from lance_engine.index.files import number_in, whole_numbers

ROWS_PER_ZONE: Final = 8192
#: The option for the number of rows, which ZONEMAP also records under this name.
ROWS_OPTION: Final = "rows_per_zone"
#: Metadata key for the number of the buffer with the null rows.
NULL_BITMAP: Final = "null_bitmap"
_PLACES: Final = ["fragment_id", "zone_start", "zone_length"]

#: Bitmaps of row offsets by fragment id; None stands for all rows.
NullRows = Mapping[int, BitMap | None]


@dataclass(frozen=True, slots=True)
class Zones:
    """Positions of zones: rows [start, end) of a fragment, one array element per zone."""

    fragment_ids: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True, slots=True)
class LiveZone:
    """Consecutive live rows of a fragment: their ascending offsets, and a value for each."""

    fragment_id: int
    offsets: npt.NDArray[np.uint32]
    values: pa.Array

    @property
    def start(self) -> int:
        """The offset of the first row."""
        return int(self.offsets[0])

    @property
    def end(self) -> int:
        """The offset after the last row; deleted rows may be in between."""
        return int(self.offsets[-1]) + 1

    def null_rows(self) -> BitMap:
        """The offsets of null rows."""
        null = self.values.is_null().to_numpy(zero_copy_only=False)
        return BitMap(array("I", self.offsets[null].tobytes()))


def live_zones(
    batches: Iterable[tuple[npt.NDArray[np.uint64], pa.Array]], rows_per_zone: int
) -> Iterator[LiveZone]:
    """Zones of `rows_per_zone` rows; the last one of each fragment may be shorter.

    `batches` are ascending row addresses with values.
    """
    if rows_per_zone < 1:
        raise InvalidArgumentError(f"rows_per_zone must be at least 1, not {rows_per_zone}")
    pending: list[tuple[npt.NDArray[np.uint32], pa.Array]] = []
    held, fragment = 0, -1
    for addresses, values in batches:
        fragments = (addresses >> np.uint64(32)).astype(np.int64)
        borders = [0, *(np.flatnonzero(np.diff(fragments)) + 1).tolist(), len(addresses)]
        offsets = addresses.astype(np.uint32)
        for begin, end in itertools.pairwise(borders):
            if begin == end:
                continue
            if int(fragments[begin]) != fragment:
                if pending:
                    yield _joined(fragment, pending)
                pending, held, fragment = [], 0, int(fragments[begin])
            position = begin
            while position < end:
                rows = min(end - position, rows_per_zone - held)
                pending.append((offsets[position : position + rows], values.slice(position, rows)))
                held, position = held + rows, position + rows
                if held == rows_per_zone:
                    yield _joined(fragment, pending)
                    pending, held = [], 0
    if pending:
        yield _joined(fragment, pending)


def _joined(fragment: int, pieces: list[tuple[npt.NDArray[np.uint32], pa.Array]]) -> LiveZone:
    offsets = np.concatenate([piece[0] for piece in pieces])
    return LiveZone(fragment, offsets, pa.concat_arrays([piece[1] for piece in pieces]))


def parse_zones(file: FileTable) -> Zones:
    """The zones that an index file describes; CorruptFileError if it is invalid."""
    fragments, starts, lengths = (whole_numbers(column) for column in file.read(_PLACES).columns)
    limit = np.uint64(1 << 32)
    if ((fragments >= limit) | (starts >= limit) | (lengths > limit)).any():
        raise CorruptFileError("A zone is outside all fragments", path=file.path)
    starts = starts.astype(np.int64)
    return Zones(fragments.astype(np.int64), starts, starts + lengths.astype(np.int64))


def in_fragments(zones: Zones, fragments: frozenset[int]) -> pa.Array:
    """Which zones belong to the given fragments."""
    return pa.array(np.isin(zones.fragment_ids, np.fromiter(fragments, np.int64, len(fragments))))


def rows_per_zone_in(metadata: Mapping[str, str], key: str) -> int:
    """How many rows the zones of an index were built from."""
    return number_in(metadata, key, ROWS_PER_ZONE, 1 << 32)


def null_rows_in(file: FileTable) -> NullRows | None:
    """The null rows, None if the index does not list them."""
    metadata = file.schema.metadata
    if NULL_BITMAP not in metadata:
        return None
    return parse_row_id_map(file.buffer(number_in(metadata, NULL_BITMAP, 1, 1 << 16)))


class CollectedNulls:
    """The null rows in the zones of a segment being written."""

    def __init__(self) -> None:
        self._rows: dict[int, BitMap | None] = {}
        self._all_known = True

    def add(self, zone: LiveZone) -> None:
        """Those of a new zone."""
        if zone.values.null_count:
            held = self._rows.get(zone.fragment_id) or BitMap()
            self._rows[zone.fragment_id] = held | zone.null_rows()

    def carry_over(self, file: FileTable, fragments: frozenset[int]) -> None:
        """Add those of the zones of some fragments in an existing segment, which may not list them."""
        listed = null_rows_in(file)
        if listed is None:
            self._all_known = False
        else:
            self._rows |= {fragment: rows for fragment, rows in listed.items() if fragment in fragments}

    def stored(self) -> tuple[dict[str, str], list[bytes]]:
        """The metadata and the buffers that list the null rows, if all are known."""
        known = {fragment: rows for fragment, rows in self._rows.items() if rows is not None}
        if not self._all_known or len(known) < len(self._rows):
            return {}, []
        return {NULL_BITMAP: "1"}, [serialize_row_id_map(known)]
