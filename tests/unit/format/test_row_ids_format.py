"""Row id sequences: every kind of segment, both directions, and damage."""

from __future__ import annotations

import numpy as np
import pytest
from lance_engine.errors import CorruptFileError
from lance_engine.format.pb import table_pb2
from lance_engine.format.row_ids import (
    IdRange,
    decode_versions,
    encode_row_id_range,
    encode_row_ids,
    encode_uniform_version,
    parse_row_ids,
    row_ids_at,
)
from row_id_values import decode_row_ids


def _sequence(**segment: object) -> bytes:
    message = table_pb2.RowIdSequence()
    message.segments.add(**segment)
    data: bytes = message.SerializeToString()
    return data


def _u16(base: int, *offsets: int) -> dict[str, object]:
    return {"u16_array": {"base": base, "offsets": np.array(offsets, "<u2").tobytes()}}


def _u32(base: int, *offsets: int) -> dict[str, object]:
    return {"u32_array": {"base": base, "offsets": np.array(offsets, "<u4").tobytes()}}


def _u64(*values: int) -> dict[str, object]:
    return {"u64_array": {"values": np.array(values, "<u8").tobytes()}}


@pytest.mark.parametrize(
    ("data", "ids"),
    [
        (bytes.fromhex("0a060a04080a100d"), [10, 11, 12]),
        (_sequence(range={"start": 5, "end": 5}), []),
        (_sequence(range_with_holes={"start": 10, "end": 15, "holes": _u16(11, 0, 2)}), [10, 12, 14]),
        (_sequence(range_with_holes={"start": 10, "end": 12}), [10, 11]),
        # Least significant bit first: 0b00000101, 0b00000010.
        (bytes.fromhex("0a0a1a08080a10141a020502"), [10, 12, 19]),
        (_sequence(sorted_array=_u32(7, 0, 70000)), [7, 70007]),
        (_sequence(array=_u64(2**64 - 1, 3)), [2**64 - 1, 3]),
        (_sequence(array=_u16(100, 5, 0, 5)), [105, 100, 105]),
        (_sequence(range={"start": 0, "end": 2}) + _sequence(array=_u16(9, 1, 0)), [0, 1, 10, 9]),
        (b"", []),
    ],
    ids=["range", "empty", "holes", "no-holes", "bitmap", "sorted", "u64", "array", "several", "nothing"],
)
def test_every_kind_of_segment_is_read(data: bytes, ids: list[int]) -> None:
    decoded = decode_row_ids(data, len(ids))
    assert decoded.dtype == np.uint64
    assert decoded.tolist() == ids
    for wrong in {len(ids) + 1, max(len(ids) - 1, 0)} - {len(ids)}:
        with pytest.raises(CorruptFileError):
            decode_row_ids(data, wrong)


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        ([7], "range"),
        (range(5, 1000), "range"),
        ([*range(100), *range(101, 4000)], "range_with_holes"),
        (range(0, 4000, 2), "range_with_bitmap"),
        (range(0, 2**40, 2**35), "sorted_array"),
        ([0, 2**64 - 1], "sorted_array"),
        ([3, 1, 2], "array"),
        ([3, 3], "array"),
        ([0, 2**20, 5], "array"),
    ],
)
def test_the_smallest_segment_is_written(ids: list[int], kind: str) -> None:
    data = encode_row_ids(np.array(list(ids), dtype=np.uint64))
    (segment,) = table_pb2.RowIdSequence.FromString(data).segments
    assert segment.WhichOneof("segment") == kind
    assert decode_row_ids(data, len(ids)).tolist() == list(ids)


def test_random_sequences_survive() -> None:
    random = np.random.default_rng(3)
    for size in (1, 2, 10, 1000):
        for high in (size * 2, 2**20, 2**33, 2**63):
            ids = random.integers(0, high, size, dtype=np.uint64)
            for order in (ids, np.unique(ids)):
                assert decode_row_ids(encode_row_ids(order), len(order)).tolist() == order.tolist()
    assert encode_row_ids(np.empty(0, dtype=np.uint64)) == b""


def test_ids_of_some_rows() -> None:
    data = (
        _sequence(range={"start": 50, "end": 53})
        + _sequence(array=_u16(9, 1, 0))
        + _sequence(range={"end": 2})
    )
    segments = parse_row_ids(data, 7)
    offsets = np.array([6, 0, 4, 3, 2, 2], dtype=np.uint32)
    assert row_ids_at(segments, offsets).tolist() == [1, 50, 9, 10, 52, 52]
    assert row_ids_at([], offsets[:0]).tolist() == []


def test_ranges_are_not_spelled_out() -> None:
    data = encode_row_id_range(2**40, 2**32)
    assert parse_row_ids(data, 2**32) == [IdRange(2**40, 2**40 + 2**32)]
    assert data == encode_row_id_range(2**40, 2**32)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff",
        _sequence(),
        _sequence(range={"start": 3, "end": 2}),
        _sequence(range={"start": 0, "end": 2**63}),
        _sequence(range_with_holes={"start": 0, "end": 2**63, "holes": _u16(0, 1)}),
        _sequence(range_with_holes={"start": 0, "end": 3, "holes": _u16(3, 0)}),
        _sequence(range_with_holes={"start": 1, "end": 4, "holes": _u16(0, 0)}),
        _sequence(range_with_holes={"start": 0, "end": 4, "holes": _u16(0, 1, 1)}),
        _sequence(range_with_bitmap={"start": 0, "end": 9, "bitmap": b"\x03"}),
        _sequence(range_with_bitmap={"start": 0, "end": 4, "bitmap": b"\x33"}),
        _sequence(range_with_bitmap={"start": 0, "end": 2**40, "bitmap": b"\x03"}),
        _sequence(sorted_array=_u16(0, 2, 1)),
        _sequence(array=_u16(2**64 - 1, 0, 1)),
        _sequence(array={"u32_array": {"offsets": b"\0\0\0\0\0\0"}}),
    ],
)
def test_damaged_sequences_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode_row_ids(data, 2)


def test_versions_are_expanded_by_the_length_of_their_spans() -> None:
    message = table_pb2.RowDatasetVersionSequence()
    message.runs.add(version=3).span.range.end = 2
    message.runs.add(version=9).span.CopyFrom(
        table_pb2.U64Segment(range_with_bitmap={"start": 50, "end": 53, "bitmap": b"\x05"})
    )
    data = message.SerializeToString()
    assert decode_versions(data, 4).tolist() == [3, 3, 9, 9]
    assert decode_versions(encode_uniform_version(8, 3), 3).tolist() == [8, 8, 8]
    assert encode_uniform_version(1, 30) == bytes.fromhex("0a080a040a02101e1001")
    for rows in (3, 5):
        with pytest.raises(CorruptFileError):
            decode_versions(data, rows)
    with pytest.raises(CorruptFileError):
        decode_versions(b"\xff", 1)
