"""What is known about the values of every column without reading them."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from lance_engine.errors import LanceError
from lance_engine.file.zone_map import ZoneMap
from lance_engine.inspection.storage import columns
from lance_engine.inspection.zones import all_zone_maps, as_text
from lance_engine.table.snapshot import Snapshot

STATISTICS_SCHEMA: Final = pa.schema(
    [
        ("column", pa.string()),
        ("rows", pa.uint64()),
        ("null_count", pa.uint64()),
        ("minimum", pa.string()),
        ("maximum", pa.string()),
        ("zones", pa.uint64()),
        ("bytes", pa.uint64()),
        ("plain_bytes", pa.uint64()),
        ("ratio", pa.float64()),
    ]
)


def statistics(snapshot: Snapshot) -> pa.Table:
    """One row per stored column: bounds and nulls by its zone maps, and how well it is compressed.

    `rows` are physical: they include deleted rows, which may have the bounds. `null_count`, `minimum` and
    `maximum` are null unless every fragment has a zone map of the column; long text is cut.
    `plain_bytes` is the size of the values in memory, null if their width varies, and `ratio` is
    `plain_bytes` divided by `bytes`.
    """
    rows = snapshot.physical_rows
    by_column: dict[str, list[ZoneMap]] = {}
    for path, _, zone_map in all_zone_maps(snapshot):
        by_column.setdefault(path, []).append(zone_map)
    paths = snapshot.schema.paths_by_id()
    types = {paths[field.id]: field for field in snapshot.schema.walk()}
    described = []
    for column in columns(snapshot).to_pylist():
        zone_maps = by_column.get(column["column"], [])
        complete = bool(zone_maps) and len(zone_maps) == len(snapshot.fragments)
        minimum, maximum = _bounds(zone_maps) if complete else (None, None)
        plain = _plain_bytes(types[column["column"]], rows)
        described.append(
            {
                "column": column["column"],
                "rows": rows,
                "null_count": sum(int(held.null_count.sum()) for held in zone_maps) if complete else None,
                "minimum": minimum,
                "maximum": maximum,
                "zones": sum(zone_map.zones for zone_map in zone_maps),
                "bytes": column["bytes"],
                "plain_bytes": plain,
                "ratio": plain / column["bytes"] if plain and column["bytes"] else None,
            }
        )
    return pa.Table.from_pylist(described, schema=STATISTICS_SCHEMA)


def _bounds(zone_maps: list[ZoneMap]) -> tuple[str | None, str | None]:
    """The minimum and maximum bound as text; None if a zone with values has none."""
    bounds: list[str | None] = []
    for name in ("minimum", "maximum"):
        arrays = [getattr(zone_map, name) for zone_map in zone_maps]
        unknown = any(
            not array.is_valid()[zone].as_py() and zone_map.null_count[zone] < zone_map.lengths[zone]
            for array, zone_map in zip(arrays, zone_maps, strict=True)
            if array.null_count
            for zone in range(zone_map.zones)
        )
        try:
            extreme = pc.min_max(pa.chunked_array(arrays))["min" if name == "minimum" else "max"]
        except pa.ArrowNotImplementedError:
            unknown = True
        bounds.append(None if unknown else as_text(pa.repeat(extreme, 1))[0].as_py())
    return bounds[0], bounds[1]


def _plain_bytes(field: Any, rows: int) -> int | None:
    try:
        bits: int = field.to_arrow().type.bit_width
    except (ValueError, LanceError):  # of variable width
        return None
    return rows * bits // 8
