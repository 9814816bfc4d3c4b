"""Zone maps scaled to the range from 0 to 1, for drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance_engine.dataset import DatasetVersion
from lance_engine.inspection import all_zone_maps, as_text
from lance_engine.table import ZoneMap

#: Maximum number of zones in a picture; if there are more, neighbours are grouped.
_MOST_ZONES = 300
#: Number of leading bytes of a string that determine its position.
_TEXT_BYTES = 7


@dataclass(frozen=True, slots=True)
class ZonePicture:
    """The zones of a column in row order.

    `starts` and `ends` are row positions, `low` and `high` bounds, all from 0 to 1, NaN for zones with only
    nulls. `minimum` and `maximum` are the formatted bounds of the column. Each group of `grouped` zones is
    drawn as one.
    """

    column: str
    zones: int
    grouped: int
    starts: npt.NDArray[np.float64]
    ends: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    minimum: str
    maximum: str

    def read_share(self, start: float, end: float) -> float:
        """The share of rows in zones that may contain values between `start` and `end`, both from 0 to 1."""
        touched = (self.low <= end) & (self.high >= start)
        return float((self.ends - self.starts)[touched].sum())


def zone_pictures(dataset: DatasetVersion) -> list[ZonePicture]:
    """One entry per column with zone maps whose values can be placed on an axis."""
    firsts, position = {}, 0
    for fragment in dataset.snapshot.fragments:
        firsts[fragment.id] = position
        position += fragment.physical_rows
    by_column: dict[str, list[tuple[int, ZoneMap]]] = {}
    for column, fragment_id, zone_map in all_zone_maps(dataset.snapshot):
        by_column.setdefault(column, []).append((firsts[fragment_id], zone_map))
    pictures = (_picture(column, parts, max(position, 1)) for column, parts in by_column.items())
    return [picture for picture in pictures if picture is not None]


def _picture(column: str, parts: Sequence[tuple[int, ZoneMap]], rows: int) -> ZonePicture | None:
    bounds = (
        [_numbers(zone_map.minimum) for _, zone_map in parts],
        [_numbers(zone_map.maximum) for _, zone_map in parts],
    )
    if any(numbers is None for side in bounds for numbers in side):
        return None
    low, high = (np.concatenate([numbers for numbers in side if numbers is not None]) for side in bounds)
    starts = np.concatenate([first + zone_map.starts for first, zone_map in parts]) / rows
    ends = np.concatenate([first + zone_map.starts + zone_map.lengths for first, zone_map in parts]) / rows
    known = np.isfinite(low) & np.isfinite(high)
    if not known.any():
        return None
    least, greatest = low[known].min(), high[known].max()
    width = (greatest - least) or 1.0
    lowest, highest = (
        int(np.nanargmin(np.where(known, low, np.nan))),
        int(np.nanargmax(np.where(known, high, np.nan))),
    )
    texts = [
        pa.chunked_array([as_text(getattr(zone_map, name)) for _, zone_map in parts])
        for name in ("minimum", "maximum")
    ]
    is_binary = any(pa.types.is_binary(zone_map.minimum.type) for _, zone_map in parts)
    group = -(-len(low) // _MOST_ZONES)
    cuts = np.arange(0, len(low), group)
    with np.errstate(invalid="ignore"):
        return ZonePicture(
            column,
            len(low),
            group,
            starts[cuts],
            np.append(starts[cuts][1:], ends[-1]),
            (np.fmin.reduceat(np.where(known, low, np.nan), cuts) - least) / width,
            (np.fmax.reduceat(np.where(known, high, np.nan), cuts) - least) / width,
            "" if is_binary else str(texts[0][lowest]),
            "" if is_binary else str(texts[1][highest]),
        )


def _numbers(values: pa.Array) -> npt.NDArray[np.float64] | None:
    """Positions of `values` on an axis, NaN for null; None for types without an axis."""
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        return np.array([_place(value) for value in values.to_pylist()], np.float64)
    if pa.types.is_temporal(kind):
        values = values.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return None
    numbers: npt.NDArray[np.float64] = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _place(value: str | bytes | None) -> float:
    if value is None:
        return float("nan")
    data = value.encode() if isinstance(value, str) else value
    return float(int.from_bytes(data[:_TEXT_BYTES].ljust(_TEXT_BYTES, b"\0"), "big"))
