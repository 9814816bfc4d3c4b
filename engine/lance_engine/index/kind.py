"""The common interface of index kinds: opening, searching and building.

There are two families. Row indices (`RowFinder`) contain every value with its rows, and find these rows. Zone
indices (`ZoneFinder`) describe sets of neighbouring rows, and find the sets that may match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine.errors import UnsupportedFeatureError
from lance_engine.expr.statistics import ZoneMatch
from lance_engine.expr.tree import And, Column, Comparison, In, IsNull, Literal, Match, Node, Not, Or, walk
from lance_engine.format.index_section import IndexSegment
from lance_engine.index.files import SegmentFiles
from lance_engine.index.live_zones import ROWS_OPTION, ROWS_PER_ZONE, LiveZone, Zones

U64Array = npt.NDArray[np.uint64]

_PLAIN: Final = (And, Or, Not, Comparison, In, IsNull, Match, Literal, Column)

#: Columns of the batches from which row indices are built.
VALUE, ROW = "value", "row"


class RowFinder(Protocol):
    """An open row index."""

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        ...

    @property
    def value_type(self) -> pa.DataType:
        """The type of the values in the index."""
        ...

    @property
    def statistics(self) -> Mapping[str, int]:
        """Statistics for people."""
        ...

    def estimate(self, node: Node, rows: int) -> int:
        """The estimated number of rows, of `rows`, that match `node`, a predicate on the index column."""
        ...

    def find(self, node: Node) -> U64Array:
        """The row ids or addresses of exactly the rows that match `node`, in any order."""
        ...

    def entries(self) -> Iterator[pa.RecordBatch]:
        """All values with their rows (columns `VALUE` and `ROW`): nulls first, then ascending, NaN last."""
        ...


class ZoneFinder(Protocol):
    """An open zone index."""

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        ...

    @property
    def value_type(self) -> pa.DataType | None:
        """The type of the values, None if the index does not contain it."""
        ...

    @property
    def statistics(self) -> Mapping[str, int]:
        """Statistics for people."""
        ...

    @property
    def zones(self) -> Zones:
        """The zones that are described."""
        ...

    def match(self, node: Node) -> ZoneMatch | None:
        """The match result of the zones for `node`, a predicate on the index column; None if unsupported."""
        ...


class IndexFileSink(Protocol):
    """A file of an index being written."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        ...

    def finish(self, metadata: Mapping[str, str], buffers: Iterable[bytes] = ()) -> None:
        """Complete the file; `buffers` become its extra buffers from number 1 on."""
        ...


class IndexOutput(Protocol):
    """Destination for the files of a new segment."""

    def create(self, name: str, schema: pa.Schema) -> IndexFileSink:
        """Start a file."""
        ...


def one_entry_per_row(ids: U64Array, values: pa.Array) -> pa.RecordBatch:
    """The entries of rows with a single entry: their value."""
    return pa.RecordBatch.from_arrays([values, pa.array(ids)], [VALUE, ROW])


def is_plain(node: Node) -> bool:
    """Whether a predicate can be evaluated for any value without errors."""
    return all(isinstance(child, _PLAIN) for child in walk(node))


def _same(kind: pa.DataType) -> pa.DataType:
    return kind


@dataclass(frozen=True, slots=True)
class RowFinderKind:
    """A kind of row index.

    `name` is the name for users, `message` the name of its details message without ``IndexDetails``, `newest`
    the latest supported version. `holds_addresses` says whether segments of a version contain row addresses
    even with stable row ids.
    """

    name: str
    message: str
    newest: int
    supports: Callable[[pa.DataType], bool]
    holds_addresses: Callable[[int], bool]
    #: The version of new segments with stable row ids.
    stable_version: int
    open: Callable[[SegmentFiles], RowFinder]
    #: (sorted entries, type of the values, output, options) -> serialised details
    build: Callable[[Iterable[pa.RecordBatch], pa.DataType, IndexOutput, Mapping[str, Any]], bytes]
    #: Names of the options of `build`, with their defaults.
    options: Mapping[str, int] = field(default_factory=dict)
    #: The options with which an existing segment was built.
    built_with: Callable[[RowFinder], Mapping[str, int]] = lambda index: {}
    #: The version of new segments without stable row ids.
    version: int = 0
    #: The supported predicates on the column.
    answers: Callable[[Node], bool] = is_plain
    #: (row ids, values of the column) -> the index entries of these rows
    entries_of: Callable[[U64Array, pa.Array], pa.RecordBatch] = one_entry_per_row
    #: The type of the values of entries, by the type of the column.
    entry_type: Callable[[pa.DataType], pa.DataType] = _same
    #: Whether exactly the matching rows are found; otherwise all found rows are tested.
    is_exact: bool = True
    #: Whether it supports predicates on the fields of its column, a struct.
    reads_fields: bool = False


def _zone_rows(index: ZoneFinder) -> Mapping[str, int]:
    return {ROWS_OPTION: index.statistics[ROWS_OPTION]}


@dataclass(frozen=True, slots=True)
class ZoneSource:
    """The input for a new segment of a zone index."""

    zones: Iterable[LiveZone]
    #: existing segments, with the fragments whose zones are carried over
    carried: Iterable[tuple[ZoneFinder, frozenset[int]]]
    value_type: pa.DataType
    rows_per_zone: int


@dataclass(frozen=True, slots=True)
class ZoneFinderKind:
    """A kind of zone index; see `RowFinderKind`. Zones may be carried over from existing segments."""

    name: str
    message: str
    newest: int
    supports: Callable[[pa.DataType], bool]
    open: Callable[[SegmentFiles], ZoneFinder]
    #: writes the files of a segment -> serialised details
    build: Callable[[ZoneSource, IndexOutput], bytes]
    options: Mapping[str, int] = field(default_factory=lambda: {ROWS_OPTION: ROWS_PER_ZONE})
    built_with: Callable[[ZoneFinder], Mapping[str, int]] = _zone_rows
    answers: Callable[[Node], bool] = is_plain
    entry_type: Callable[[pa.DataType], pa.DataType] = _same


IndexKind = RowFinderKind | ZoneFinderKind


def not_built(*_: object) -> bytes:
    """Used instead of `build` for read-only kinds."""
    raise UnsupportedFeatureError("Indices of this kind can be read, but not built")


def column_of(node: Node) -> Column | None:
    """The only column that `node` reads; None if it reads none or several."""
    columns = {child.parts: child for child in walk(node) if isinstance(child, Column)}
    return next(iter(columns.values())) if len(columns) == 1 else None


def as_batch(column: Column, values: pa.Array) -> pa.RecordBatch:
    """A batch in which `column`, which may be a field inside of structs, has these values."""
    array = values
    for part in reversed(column.parts[1:]):
        array = pa.StructArray.from_arrays([array], [part])
    return pa.RecordBatch.from_arrays([array], [column.parts[0]])


def is_usable(segment: IndexSegment, kind: IndexKind) -> bool:
    """Whether a segment of this kind can be used: its version is supported and its coverage recorded."""
    return segment.index_version <= kind.newest and segment.fragment_ids is not None
