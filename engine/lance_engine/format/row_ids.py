"""Row id sequences: the stable ids of the physical rows of a fragment, as compact segments.

Also the sequences of dataset versions in which rows were created or last changed, which use the same
segments.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from lance_engine.errors import CorruptFileError
from lance_engine.format.pb import table_pb2

U64Array = npt.NDArray[np.uint64]

_MAX_U64: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class IdRange:
    """Consecutive ids, `end` exclusive."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class IdArray:
    """Individual ids in any order."""

    ids: U64Array

    def __len__(self) -> int:
        return len(self.ids)


Segment = IdRange | IdArray


def parse_row_ids(data: bytes, physical_rows: int) -> list[Segment]:
    """The segments of a serialised RowIdSequence; CorruptFileError unless they have `physical_rows` ids."""
    segments = list(_parse_segments(data, physical_rows))
    held = sum(map(len, segments))
    if held != physical_rows:
        raise CorruptFileError(
            f"A row id sequence has {held} ids, but there are {physical_rows} physical rows"
        )
    return segments


def row_ids_at(segments: list[Segment], offsets: npt.NDArray[np.integer[Any]]) -> U64Array:
    """The ids of the rows at these physical offsets, each below the total length of the segments."""
    ends = np.cumsum([len(segment) for segment in segments])
    row_ids = np.empty(len(offsets), dtype=np.uint64)
    owners = np.searchsorted(ends, offsets, side="right")
    for number in np.unique(owners).tolist():
        segment = segments[number]
        here = owners == number
        inside = offsets[here].astype(np.uint64) - np.uint64(ends[number] - len(segment))
        row_ids[here] = (
            np.uint64(segment.start) + inside if isinstance(segment, IdRange) else segment.ids[inside]
        )
    return row_ids


def encode_row_ids(ids: U64Array) -> bytes:
    """A serialised RowIdSequence of these ids: one segment, of the smallest kind that fits."""
    message = table_pb2.RowIdSequence()
    if len(ids):
        _write_segment(message.segments.add(), np.ascontiguousarray(ids, dtype=np.uint64))
    data: bytes = message.SerializeToString()
    return data


def encode_row_id_range(start: int, count: int) -> bytes:
    """A serialised RowIdSequence of `count` consecutive ids from `start`."""
    message = table_pb2.RowIdSequence()
    segment_range = message.segments.add().range
    segment_range.start, segment_range.end = start, start + count
    data: bytes = message.SerializeToString()
    return data


def count_row_ids(data: bytes, limit: int) -> int:
    """How many ids a serialised RowIdSequence has; CorruptFileError if there are more than `limit`."""
    return sum(map(len, _parse_segments(data, limit)))


def decode_versions(data: bytes, physical_rows: int) -> U64Array:
    """The dataset version of each physical row from a serialised RowDatasetVersionSequence."""
    try:
        message = table_pb2.RowDatasetVersionSequence.FromString(data)
    except DecodeError as error:
        raise CorruptFileError("A sequence of row versions cannot be parsed") from error
    lengths: list[int] = []
    remaining = physical_rows
    for run in message.runs:
        lengths.append(len(_parse_segment(run.span, remaining)))
        remaining -= lengths[-1]
    if remaining:
        raise CorruptFileError(
            f"A sequence of row versions has {physical_rows - remaining} entries, but there are "
            f"{physical_rows} rows"
        )
    return np.repeat(np.array([run.version for run in message.runs], dtype=np.uint64), lengths)


def encode_uniform_version(version: int, count: int) -> bytes:
    """A serialised RowDatasetVersionSequence that gives all `count` rows the same version."""
    message = table_pb2.RowDatasetVersionSequence()
    run = message.runs.add(version=version)
    run.span.range.start, run.span.range.end = 0, count
    data: bytes = message.SerializeToString()
    return data


def encode_versions(versions: U64Array) -> bytes:
    """A serialised RowDatasetVersionSequence of these versions, one per physical row."""
    message = table_pb2.RowDatasetVersionSequence()
    borders = np.flatnonzero(np.diff(versions)) + 1
    bounds = [0, *borders.tolist(), len(versions)] if len(versions) else [0]
    for start, end in itertools.pairwise(bounds):
        run = message.runs.add(version=int(versions[start]))
        run.span.range.start, run.span.range.end = start, end
    data: bytes = message.SerializeToString()
    return data


# ---- reading ---------------------------------------------------------------------------------------------


def _parse_segments(data: bytes, limit: int) -> Iterator[Segment]:
    """The segments of a serialised RowIdSequence of at most `limit` ids."""
    try:
        message = table_pb2.RowIdSequence.FromString(data)
    except DecodeError as error:
        raise CorruptFileError("A row id sequence cannot be parsed") from error
    for segment in message.segments:
        parsed = _parse_segment(segment, limit)
        limit -= len(parsed)
        yield parsed


def _parse_segment(message: Any, limit: int) -> Segment:
    """A segment of at most `limit` ids: checked before memory is allocated."""
    match message.WhichOneof("segment"):
        case "range":
            start, end = _bounds(message.range)
            _check_length(end - start, limit)
            return IdRange(start, end)
        case "range_with_holes":
            return _parse_range_with_holes(message.range_with_holes, limit)
        case "range_with_bitmap":
            return _parse_range_with_bitmap(message.range_with_bitmap, limit)
        case "sorted_array":
            ids = _parse_array(message.sorted_array, limit)
            if np.any(ids[1:] < ids[:-1]):
                raise CorruptFileError("A sorted row id segment is not in ascending order")
            return IdArray(ids)
        case "array":
            return IdArray(_parse_array(message.array, limit))
    raise CorruptFileError("A row id segment is of an unknown kind")


def _check_length(length: int, limit: int) -> None:
    if length > limit:
        raise CorruptFileError(f"A row id segment has {length} ids, but only {limit} rows are left")


def _bounds(message: Any) -> tuple[int, int]:
    if message.start > message.end:
        raise CorruptFileError(f"A row id range goes from {message.start} to {message.end}")
    return message.start, message.end


def _parse_range_with_holes(message: Any, limit: int) -> IdArray:
    start, end = _bounds(message)
    # There cannot be more holes than bytes, which limits the work before the span is trusted.
    holes = _parse_array(message.holes, end - start)
    _check_length(end - start - len(holes), limit)
    if len(holes) and (
        int(holes[0]) < start or int(holes[-1]) >= end or bool(np.any(holes[1:] <= holes[:-1]))
    ):
        raise CorruptFileError("The holes of a row id range are not in ascending order within the range")
    present = np.ones(end - start, dtype=np.bool_)
    present[(holes - np.uint64(start)).astype(np.intp)] = False
    return IdArray(np.flatnonzero(present).astype(np.uint64) + np.uint64(start))


def _parse_range_with_bitmap(message: Any, limit: int) -> IdArray:
    start, end = _bounds(message)
    span = end - start
    if len(message.bitmap) != (span + 7) // 8:
        raise CorruptFileError(f"A row id range of {span} values has a bitmap of {len(message.bitmap)} bytes")
    bits = np.unpackbits(np.frombuffer(message.bitmap, dtype=np.uint8), bitorder="little")
    if bits[span:].any():
        raise CorruptFileError("The bitmap of a row id range has bits set beyond its end")
    offsets = np.flatnonzero(bits[:span])
    _check_length(len(offsets), limit)
    return IdArray(offsets.astype(np.uint64) + np.uint64(start))


def _parse_array(message: Any, limit: int) -> U64Array:
    match message.WhichOneof("array"):
        case "u16_array":
            content, base, dtype = message.u16_array.offsets, message.u16_array.base, "<u2"
        case "u32_array":
            content, base, dtype = message.u32_array.offsets, message.u32_array.base, "<u4"
        case "u64_array":
            content, base, dtype = message.u64_array.values, 0, "<u8"
        case _:
            return np.empty(0, dtype=np.uint64)
    width = np.dtype(dtype).itemsize
    if len(content) % width:
        raise CorruptFileError(f"A row id array of {width}-byte values has {len(content)} bytes")
    _check_length(len(content) // width, limit)
    offsets = np.frombuffer(content, dtype=dtype).astype(np.uint64)
    if len(offsets) and base + int(offsets.max()) > _MAX_U64:
        raise CorruptFileError("The values of a row id array exceed 64 bits")
    return offsets + np.uint64(base)


# ---- writing ---------------------------------------------------------------------------------------------


def _write_segment(message: Any, ids: U64Array) -> None:
    first, last = int(ids[0]), int(ids[-1])
    if not np.all(ids[1:] > ids[:-1]):
        _write_array(message.array, ids)
        return
    span = last - first + 1
    if span == len(ids):
        message.range.start, message.range.end = first, last + 1
        return
    # Estimated sizes in bytes; the order decides ties.
    holes = span - len(ids)
    sizes = {
        "range_with_holes": 24 + 4 * holes,
        "range_with_bitmap": 24 + (span + 7) // 8,
        "sorted_array": 24 + 2 * len(ids),
    }
    kind = min(sizes, key=sizes.__getitem__)
    if kind == "sorted_array":
        _write_array(message.sorted_array, ids)
        return
    segment = getattr(message, kind)
    segment.start, segment.end = first, last + 1
    present = np.zeros(span, dtype=np.bool_)
    present[(ids - ids[0]).astype(np.intp)] = True
    if kind == "range_with_bitmap":
        segment.bitmap = np.packbits(present, bitorder="little").tobytes()
    else:
        _write_array(segment.holes, np.flatnonzero(~present).astype(np.uint64) + ids[0])


def _write_array(message: Any, values: U64Array) -> None:
    low, high = values.min(), values.max()
    width = int(high - low)
    if width <= 0xFFFF:
        message.u16_array.base = int(low)
        message.u16_array.offsets = (values - low).astype("<u2").tobytes()
    elif width <= 0xFFFFFFFF:
        message.u32_array.base = int(low)
        message.u32_array.offsets = (values - low).astype("<u4").tobytes()
    else:
        message.u64_array.values = values.astype("<u8").tobytes()
