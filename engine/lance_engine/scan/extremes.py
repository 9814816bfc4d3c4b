"""The minimum and maximum value of a column: from zone maps if they are exact, otherwise from the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_engine.arrow_values import of_numpy, scalar, to_numpy
from lance_engine.errors import UnsupportedTypeError
from lance_engine.expr.value_types import is_bytes, is_comparable, is_text, value_type
from lance_engine.scan.fragment import FragmentReader
from lance_engine.scan.paths import arrow_field
from lance_engine.scan.scanner import Scanner
from lance_engine.scan.splits import ScanSplit
from lance_engine.weak_identity import WeakIdentityDict

if TYPE_CHECKING:
    from lance_engine.file.zone_map import ZoneMap
    from lance_engine.table.snapshot import Snapshot

#: by column, what was found of a snapshot
_cache: WeakIdentityDict[Snapshot, dict[str, Extremes]] = WeakIdentityDict()
# Zone maps truncate longer strings; a shorter bound is the value itself.
_CUT_BYTES = 32


class Extremes(NamedTuple):
    """The minimum and maximum value, null without values. NaN is greater than every other number."""

    minimum: pa.Scalar
    maximum: pa.Scalar


class Known(NamedTuple):
    """The extremes of a column from zone maps, and its number of nulls if that is known too."""

    extremes: Extremes
    nulls: int | None


def min_max(snapshot: Snapshot, reader_for: Callable[[int], FragmentReader], column: str) -> Extremes:
    """The extremes of a top-level column over all rows that are not deleted; kept with the snapshot."""
    cache = _cache.setdefault(snapshot, {})
    min_max = cache.get(column)
    if min_max is None:
        min_max = cache[column] = _min_max(snapshot, reader_for, column)
    return min_max


def _min_max(snapshot: Snapshot, reader_for: Callable[[int], FragmentReader], column: str) -> Extremes:
    min_max, splits = _from_zones(snapshot, reader_for, column)
    if splits:
        kind = min_max.minimum.type
        scan = Scanner(snapshot, reader_for, columns=[column], splits=splits)
        bounds = [pa.array(list(min_max), kind)]
        for batch in scan.to_batches():
            values = batch.column(0)
            values = values if values.type == kind else pc.cast(values, kind)
            bounds.append(pa.array(list(_extremes([values], kind)), kind))
        min_max = _extremes(bounds, kind)
    return min_max


def known(snapshot: Snapshot, reader_for: Callable[[int], FragmentReader], column: str) -> Known | None:
    """The extremes and nulls of a top-level column without reading rows; None if its extremes are unknown."""
    extremes, splits = _from_zones(snapshot, reader_for, column)
    return None if splits else Known(extremes, _known_nulls(snapshot, reader_for, column))


def _from_zones(
    snapshot: Snapshot, reader_for: Callable[[int], FragmentReader], column: str
) -> tuple[Extremes, list[ScanSplit]]:
    """The extremes of the zones that have exact bounds, and ranges of other rows that may exceed them."""
    field = snapshot.schema.field(column)
    kind = value_type(arrow_field(snapshot.schema, column).type)
    if not is_comparable(kind):
        raise UnsupportedTypeError(f"Values of type {kind} cannot be ordered", column=column)
    bounds: list[pa.Array] = []
    unsure: list[tuple[ScanSplit, pa.Scalar | None, pa.Scalar | None]] = []
    for fragment in snapshot.fragments:
        reader = reader_for(fragment.id)
        if not reader.is_stored(field):
            continue  # all null
        zone_map = reader.zone_map(field, column) if field.is_leaf else None
        if zone_map is None:
            unsure.append((ScanSplit(fragment.id, 0, fragment.physical_rows), None, None))
            continue
        exact = _exact_zones(zone_map, reader.deleted())
        bounds += [pc.filter(bound, of_numpy(exact)) for bound in (zone_map.minimum, zone_map.maximum)]
        for zone in np.flatnonzero(~exact).tolist():
            start, rows = int(zone_map.starts[zone]), int(zone_map.lengths[zone])
            split = ScanSplit(fragment.id, start, start + rows)
            unsure.append((split, zone_map.minimum[zone], zone_map.maximum[zone]))
    extremes = _extremes(bounds, kind)
    # Zones without exact bounds only matter if they may exceed the known extremes.
    return extremes, [split for split, low, high in unsure if _may_extend(extremes, low, high)]


def _known_nulls(snapshot: Snapshot, reader_for: Callable[[int], FragmentReader], column: str) -> int | None:
    """The number of nulls in rows that are not deleted; None if deleted rows may be among those counted."""
    field = snapshot.schema.field(column)
    nulls = 0
    for fragment in snapshot.fragments:
        reader = reader_for(fragment.id)
        if not reader.is_stored(field):
            nulls += snapshot.live_rows(fragment)
            continue
        zone_map = reader.zone_map(field, column) if field.is_leaf else None
        if zone_map is None:
            return None
        here = int(np.sum(zone_map.null_count))
        if here and reader.deleted() is not None:
            return None
        nulls += here
    return nulls


def _exact_zones(zone_map: ZoneMap, deleted: npt.NDArray[np.uint32] | None) -> npt.NDArray[np.bool_]:
    """Zones whose bounds are values of rows that are not deleted."""
    exact: npt.NDArray[np.bool_] = np.ones(zone_map.zones, dtype=np.bool_)
    kind = zone_map.minimum.type
    # Written by others: it is unknown whether strings were truncated, and how NaN affects bounds.
    if not zone_map.nan_order_known and (is_text(kind) or is_bytes(kind) or pa.types.is_floating(kind)):
        exact[:] = False
    for bound in (zone_map.minimum, zone_map.maximum):
        if is_text(kind) or is_bytes(kind):
            held = to_numpy(pc.fill_null(pc.less(pc.binary_length(bound), _CUT_BYTES), False))
        else:
            held = to_numpy(pc.is_valid(bound))
        exact &= held | (zone_map.null_count == zone_map.lengths)
    if deleted is not None:
        exact[deleted // zone_map.rows_per_zone] = False
    return exact


def _extremes(arrays: Sequence[pa.Array], kind: pa.DataType) -> Extremes:
    values = pa.concat_arrays([pc.cast(array, kind) for array in arrays]) if arrays else pa.array([], kind)
    if pa.types.is_float16(kind):
        single = _extremes([values.cast(pa.float32())], pa.float32())
        return Extremes(*(bound.cast(kind) for bound in single))
    if pa.types.is_duration(kind):
        counts = _extremes([values.cast(pa.int64())], pa.int64())
        return Extremes(*(bound.cast(kind) for bound in counts))
    if not pa.types.is_floating(kind):
        held = pc.min_max(values)
        return Extremes(held["min"], held["max"])
    nan = pc.is_nan(values)
    # A bound of zero stands for both zeros; adding one makes it the positive.
    numbers = pc.min_max(pc.add(pc.filter(values, pc.invert(nan)), scalar(0.0, kind)))
    if not pc.any(nan).as_py():
        return Extremes(numbers["min"], numbers["max"])
    not_a_number = scalar(float("nan"), kind)
    return Extremes(numbers["min"] if numbers["min"].is_valid else not_a_number, not_a_number)


def _may_extend(known: Extremes, low: pa.Scalar | None, high: pa.Scalar | None) -> bool:
    """Whether values between two bounds, null or None where unknown, can be outside of the extremes."""
    if low is None or high is None or not (low.is_valid and high.is_valid):
        return True
    if not (known.minimum.is_valid and known.maximum.is_valid):
        return True
    kind = known.minimum.type
    joined = _extremes([pa.array([*known, low.cast(kind), high.cast(kind)], kind)], kind)
    return str(joined) != str(known)
