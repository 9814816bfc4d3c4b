"""Zone maps: the statistics in data files about the values of their columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from lance_engine.errors import LanceError
from lance_engine.file.zone_map import ZoneMap, read_zone_map
from lance_engine.format.fragment import Fragment
from lance_engine.inspection.held_columns import held_columns
from lance_engine.schema_tree import Field
from lance_engine.table.snapshot import Snapshot

ZONES_SCHEMA: Final = pa.schema(
    [
        ("column", pa.string()),
        ("fragment_id", pa.uint32()),
        ("zone", pa.uint32()),
        ("first_row", pa.uint64()),
        ("rows", pa.uint64()),
        ("minimum", pa.string()),
        ("maximum", pa.string()),
        ("null_count", pa.uint64()),
    ]
)


def zones(snapshot: Snapshot, column: str | None = None) -> pa.Table:
    """One row per zone of every column that has a zone map, or of `column` and what is below it.

    ColumnNotFoundError if the column does not exist. `first_row` counts from the start of the fragment.
    Bounds are null if a zone has none: only nulls, or only text that is too long. Long text is cut, so bounds
    may not be values of the column.
    """
    tables = [
        _rows(path, fragment_id, zone_map) for path, fragment_id, zone_map in all_zone_maps(snapshot, column)
    ]
    return pa.concat_tables([ZONES_SCHEMA.empty_table(), *tables]).combine_chunks()


def all_zone_maps(snapshot: Snapshot, column: str | None = None) -> Iterator[tuple[str, int, ZoneMap]]:
    """The zone maps of all columns, or of `column` and what is below it: column, fragment id, zone map."""
    paths = snapshot.schema.paths_by_id()
    top = snapshot.schema.fields if column is None else (snapshot.schema.field(column),)
    wanted = {leaf.id: leaf for field in top for leaf in _outside_lists(field)}
    for fragment in snapshot.fragments:
        try:
            for field_id, zone_map in _zone_maps(snapshot, fragment, wanted, paths):
                yield paths[field_id], fragment.id, zone_map
        except LanceError as error:
            raise error.at(version=snapshot.version, fragment=fragment.id) from error.__cause__


def _outside_lists(field: Field) -> Iterator[Field]:
    if field.is_leaf:
        yield field
    elif field.logical_type == "struct":
        for child in field.children:
            yield from _outside_lists(child)


def _zone_maps(
    snapshot: Snapshot, fragment: Fragment, wanted: dict[int, Field], paths: dict[int, str]
) -> Iterator[tuple[int, ZoneMap]]:
    for reader, field_id, index in held_columns(snapshot, fragment, wanted):
        zone_map = read_zone_map(reader, index, wanted[field_id], paths[field_id])
        if zone_map is not None:
            yield field_id, zone_map


def _rows(column: str, fragment_id: int, zone_map: ZoneMap) -> pa.Table:
    count = zone_map.zones
    arrays: list[Any] = [
        pa.repeat(pa.scalar(column), count),
        pa.repeat(pa.scalar(fragment_id, pa.uint32()), count),
        pa.array(range(count), pa.uint32()),
        pa.array(zone_map.starts, pa.uint64()),
        pa.array(zone_map.lengths, pa.uint64()),
        as_text(zone_map.minimum),
        as_text(zone_map.maximum),
        pa.array(zone_map.null_count, pa.uint64()),
    ]
    return pa.Table.from_arrays(arrays, schema=ZONES_SCHEMA)


def as_text(bounds: pa.Array) -> pa.Array:
    """Bounds as text; binary in hexadecimal."""
    kind = bounds.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([None if value is None else value.hex() for value in bounds.to_pylist()], pa.string())
    if pa.types.is_duration(kind):
        bounds = bounds.cast(pa.int64())
    try:
        return bounds.cast(pa.string())
    except pa.ArrowInvalid:  # an unknown time zone: the times are those of UTC
        return bounds.cast(pa.timestamp(kind.unit)).cast(pa.string())
