"""What queries use of maps, as structs: the values of some keys, the lists of keys or values, and the size.

Engines take long to read whole maps, because they compare the keys of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine.arrow_compute import pc

#: Names of fields for all keys, all values, and the number of entries; others are keys.
KEYS: Final = "map_keys()"
VALUES: Final = "map_values()"
SIZE: Final = "cardinality()"


def parts_type(kind: pa.MapType, parts: Iterable[str]) -> pa.StructType:
    """The type of some parts of maps; values of keys are null where a map lacks the key."""
    types = {KEYS: pa.list_(kind.key_type), VALUES: pa.list_(kind.item_type), SIZE: pa.uint64()}
    return pa.struct([pa.field(part, types.get(part, kind.item_type)) for part in parts])


def parts_of(maps: pa.MapArray, parts: Iterable[str]) -> pa.StructArray:
    """Some parts of maps; they and the structs are null for maps that are null."""
    names = list(parts)
    is_null = np.asarray(maps.is_null())  # maps that are null may have entries
    mask = pa.array(is_null) if is_null.any() else None
    columns = [_part(maps, is_null, mask, name) for name in names]
    return pa.StructArray.from_arrays(columns, fields=list(parts_type(maps.type, names)), mask=mask)


def _part(
    maps: pa.MapArray, is_null: npt.NDArray[np.bool_], mask: pa.BooleanArray | None, part: str
) -> pa.Array:
    offsets = np.asarray(maps.offsets)
    if part == SIZE:
        return pa.array(np.diff(offsets).astype(np.uint64), mask=is_null)
    if part in (KEYS, VALUES):
        items = maps.keys if part == KEYS else maps.items
        return pa.ListArray.from_arrays(pa.array(offsets), items, mask=mask)
    first, last = int(offsets[0]), int(offsets[-1])
    found = np.asarray(pc.equal(maps.keys.slice(first, last - first), part).cast(pa.uint8()))
    places = np.flatnonzero(found)
    # The number of hits before each entry, and so the first hit of each map.
    before = np.zeros(len(found) + 1, np.int32)
    np.cumsum(found, out=before[1:])
    hits, following = before[offsets[:-1] - first], before[offsets[1:] - first]
    index = np.append(places, 0)[hits] + first
    return maps.items.take(pa.array(index, mask=(hits == following) | is_null))
