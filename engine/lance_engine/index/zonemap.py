"""ZONEMAP (indices, ZONEMAP): bounds and null counts of zones of rows, in ``zonemap.lance``.

This is the index of the table; the zone maps that data files hold are in `lance_engine.file.zone_map`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_engine.errors import CorruptFileError
from lance_engine.expr.statistics import ColumnStatistics, ZoneMatch, match_zones
from lance_engine.expr.tree import Node
from lance_engine.index.btree import supports
from lance_engine.index.files import SegmentFiles, index_errors, whole_numbers
from lance_engine.index.kind import IndexOutput, ZoneFinderKind, ZoneSource, column_of
from lance_engine.index.live_zones import (
    ROWS_OPTION,
    CollectedNulls,
    LiveZone,
    Zones,
    in_fragments,
    parse_zones,
    rows_per_zone_in,
)

FILE: Final = "zonemap.lance"


class ZoneMapIndex:
    """An opened ZONEMAP segment, all in memory."""

    def __init__(self, files: SegmentFiles) -> None:
        self.segment = files.segment
        with index_errors(files.segment.name):
            self.file = files.open(FILE)
            names = ["min", "max", "null_count", "nan_count"]
            self.bounds = self.file.read(names)
            self.zones = parse_zones(self.file)
            minimum, maximum, null_count, nan_count = self.bounds.columns
            lengths = self.zones.ends - self.zones.starts
            counts = [whole_numbers(column).astype(np.int64) for column in (null_count, nan_count)]
            if (sum(counts) > lengths).any():
                raise CorruptFileError("A zone has more nulls than rows", path=self.file.path)
            self._statistics = ColumnStatistics.from_counts(lengths, minimum, maximum, *counts)
            self.rows_per_zone = rows_per_zone_in(self.file.schema.metadata, ROWS_OPTION)

    @property
    def nbytes(self) -> int:
        return 2 * int(self.bounds.nbytes) + 24 * len(self.zones)

    @property
    def value_type(self) -> pa.DataType:
        return self.bounds.schema.field(0).type

    @property
    def statistics(self) -> Mapping[str, int]:
        return {"zones": len(self.zones), "rows_per_zone": self.rows_per_zone}

    def match(self, node: Node) -> ZoneMatch | None:
        column = column_of(node)
        assert column is not None
        return match_zones(node, {column.parts: self._statistics}, len(self.zones))


def build(source: ZoneSource, output: IndexOutput) -> bytes:
    """Write the file of a segment: zones of existing segments, restricted to fragments, and new ones."""
    parts = []
    nulls = CollectedNulls()
    for index, fragments in source.carried:
        assert isinstance(index, ZoneMapIndex)
        parts.append(_table(index.bounds.columns, index.zones).filter(in_fragments(index.zones, fragments)))
        with index_errors(index.segment.name):
            nulls.carry_over(index.file, fragments)
    collected = _Collected(source.value_type)
    for zone in source.zones:
        collected.add(zone)
        nulls.add(zone)
    parts.append(collected.table())
    table = pa.concat_batches(parts).sort_by([("fragment_id", "ascending"), ("zone_start", "ascending")])
    file = output.create(FILE, table.schema)
    file.write(table)
    place, buffers = nulls.stored()
    file.finish({ROWS_OPTION: str(source.rows_per_zone)} | place, buffers)
    return b""


class _Collected:
    """Bounds of zones, computed as they come."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._bounds: list[pa.Array] = []
        self._counts: list[tuple[int, int]] = []
        self._places: list[tuple[int, int, int]] = []

    def add(self, zone: LiveZone) -> None:
        """One more zone."""
        low, high, nan_count = _bounds(zone.values)
        self._bounds.append(pa.array([low, high], self._kind))
        self._counts.append((zone.values.null_count, nan_count))
        self._places.append((zone.fragment_id, zone.start, zone.end))

    def table(self) -> pa.RecordBatch:
        """All of them."""
        bounds = pa.concat_arrays([pa.nulls(0, self._kind), *self._bounds])
        counts = np.array(self._counts, dtype=np.uint32).reshape(-1, 2)
        places = np.array(self._places, dtype=np.int64).reshape(-1, 3)
        even = np.arange(0, len(bounds), 2)
        columns = [bounds.take(pa.array(even)), bounds.take(pa.array(even + 1))]
        columns += [pa.array(np.ascontiguousarray(counts[:, column])) for column in (0, 1)]
        return _table(columns, Zones(*places.T))


def _table(bounds: list[pa.Array], zones: Zones) -> pa.RecordBatch:
    kind = bounds[0].type
    schema = pa.schema(
        [
            ("min", kind),
            ("max", kind),
            pa.field("null_count", pa.uint32(), False),
            pa.field("nan_count", pa.uint32(), False),
            pa.field("fragment_id", pa.uint64(), False),
            pa.field("zone_start", pa.uint64(), False),
            pa.field("zone_length", pa.uint64(), False),
        ]
    )
    places = (zones.fragment_ids, zones.starts, zones.ends - zones.starts)
    return pa.RecordBatch.from_arrays(
        [*bounds, *(pa.array(place.astype(np.uint64)) for place in places)], schema=schema
    )


def _bounds(values: pa.Array) -> tuple[pa.Scalar, pa.Scalar, int]:
    """The minimum and maximum value, NaN being the largest of all, and how many NaN there are."""
    kind = values.type
    nan_count = 0
    held = values.cast(pa.int64()) if pa.types.is_duration(kind) else values
    if pa.types.is_floating(kind):
        held = values.cast(pa.float32()) if pa.types.is_float16(kind) else values
        nan = pc.fill_null(pc.is_nan(held), False)
        nan_count = nan.true_count
        if nan_count:
            held = held.filter(pc.invert(nan))
    min_max = pc.min_max(held)
    low, high = (min_max[name].cast(kind) for name in ("min", "max"))
    return low, pa.scalar(float("nan"), kind) if nan_count else high, nan_count


ZONEMAP: Final = ZoneFinderKind(
    name="zonemap",
    message="ZoneMap",
    newest=0,
    supports=supports,
    open=ZoneMapIndex,
    build=build,
)
