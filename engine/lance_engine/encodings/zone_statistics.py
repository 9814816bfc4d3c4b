"""Zone maps of written data: minimum, maximum and null count of each zone of an orderable column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_engine import kernels
from lance_engine.encodings.leaves import Leaf
from lance_engine.encodings.zone_map import Bounds, serialize_zone_map
from lance_engine.kernels import ZoneKind, ZoneStatistics
from lance_engine.schema_tree import Field

_TEXT_AND_BYTES = (ZoneKind.TEXT, ZoneKind.BYTES)


def zone_kind(field: Field) -> ZoneKind | None:
    """The order of the values of a column; None for columns without a zone map."""
    if field.is_blob or field.is_json:
        return None
    kind, types = field.arrow_type, pa.types
    if types.is_boolean(kind):
        return ZoneKind.BOOL
    if types.is_unsigned_integer(kind):
        return ZoneKind.UNSIGNED
    if types.is_signed_integer(kind) or types.is_decimal(kind) or types.is_temporal(kind):
        return ZoneKind.SIGNED
    if types.is_floating(kind):
        return ZoneKind.FLOAT
    if types.is_string(kind) or types.is_large_string(kind):
        return ZoneKind.TEXT
    if types.is_binary(kind) or types.is_large_binary(kind):
        return ZoneKind.BYTES
    return None


def zone_statistics(leaf: Leaf, zone_rows: int, first_row: int) -> ZoneStatistics | None:
    """Statistics of consecutive rows from row `first_row` of the file on; None for nested types."""
    is_row = leaf.levels.max_rep == 0 and leaf.items_per_row == 1
    kind = zone_kind(leaf.field) if is_row else None
    if kind is None:
        return None
    array = leaf.array
    _, values, *rest = array.buffers()
    if kind in _TEXT_AND_BYTES:
        statistics = ZoneStatistics(kind, 0, zone_rows, first_row)
        bits = 64 if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type) else 32
        data = kernels.VariableInput(values, rest[0], bits, array.offset, len(array), leaf.levels)
        statistics.add_variable(data, leaf.levels)
    else:
        statistics = ZoneStatistics(kind, max(1, array.type.bit_width // 8), zone_rows, first_row)
        statistics.add_fixed(values, array.offset, leaf.levels)
    return statistics


def joined_statistics(parts: Sequence[ZoneStatistics]) -> ZoneStatistics:
    """The merged statistics of consecutive rows; the first part is modified."""
    whole = parts[0]
    for part in parts[1:]:
        whole.append(part)
    return whole


def zone_map(field: Field, statistics: ZoneStatistics) -> bytes:
    """The zone map of a column in its stored form."""
    kind = field.arrow_type
    bits = 0 if zone_kind(field) in _TEXT_AND_BYTES else kind.bit_width
    minimum, maximum = (_bounds(statistics, upper) for upper in (False, True))
    return serialize_zone_map(bits, minimum, maximum, statistics.null_counts().view(np.uint32))


def _bounds(statistics: ZoneStatistics, upper: bool) -> Bounds:
    known, ends, data = statistics.bounds(upper)
    return Bounds(known.view(np.bool_), ends.view(np.uint64), data.tobytes())
