"""The metadata entry with which a data file declares the zone maps of its columns.

The value of ``lance-sql:zone-maps`` is a JSON object: ``rows_per_zone``, the same for all columns, and
``column_buffer``, the number of the column buffer that contains the zone map of a column, in the layout of
format 2.0, zone_index. A column without such a buffer has no zone map. Readers that do not know the entry see
ordinary columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from lance_engine.errors import CorruptFileError

ZONE_MAPS_KEY = "lance-sql:zone-maps"


@dataclass(frozen=True, slots=True)
class ZoneMapPlace:
    """The positions of the zone maps of a file's columns."""

    rows_per_zone: int
    column_buffer: int


def serialize_zone_map_place(place: ZoneMapPlace) -> dict[str, str]:
    """The entry for the schema metadata of a file."""
    value = {"rows_per_zone": place.rows_per_zone, "column_buffer": place.column_buffer}
    return {ZONE_MAPS_KEY: json.dumps(value)}


def parse_zone_map_place(metadata: Mapping[str, bytes]) -> ZoneMapPlace | None:
    """The zone map entry in the schema metadata of a file; CorruptFileError if it is invalid."""
    text = metadata.get(ZONE_MAPS_KEY)
    if text is None:
        return None
    try:
        value = json.loads(text)
        place = ZoneMapPlace(value["rows_per_zone"], value["column_buffer"])
    except (ValueError, KeyError, TypeError) as error:
        raise _corrupt() from error
    for number, least in ((place.rows_per_zone, 1), (place.column_buffer, 0)):
        if type(number) is not int or not least <= number < 1 << 32:
            raise _corrupt()
    return place


def _corrupt() -> CorruptFileError:
    return CorruptFileError(f"The entry '{ZONE_MAPS_KEY}' in the file's metadata is invalid")
