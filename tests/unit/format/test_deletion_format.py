"""Deletion files of both kinds, both directions, and damage."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import CorruptFileError
from lance_engine.format.deletion import decode_deletions, encode_deletions, preferred_kind
from lance_engine.format.manifest import DeletionKind
from pyroaring import BitMap

KINDS = list(DeletionKind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "offsets", [[], [0], [3, 4, 5, 99_999], list(range(0, 100_000, 3)), list(range(100_000))]
)
def test_offsets_survive(kind: DeletionKind, offsets: list[int]) -> None:
    data = encode_deletions(np.array(offsets, dtype=np.uint32), kind)
    decoded = decode_deletions(data, kind, 100_000).within
    assert decoded.dtype == np.uint32
    assert decoded.tolist() == offsets


def test_golden_bitmaps() -> None:
    # Portable format without runs: cookie 12346, 1 container, key 0, cardinality 2, offset 16, values 1 and
    # 3.
    plain = bytes.fromhex("3a300000" + "01000000" + "0000" + "0100" + "10000000" + "0100" + "0300")
    assert decode_deletions(plain, DeletionKind.BITMAP, 4).within.tolist() == [1, 3]
    # With runs: cookie 12347, 1 container, run flag, key 0, cardinality 5, 1 run: 2 + 4 more.
    runs = bytes.fromhex("3b300000" + "01" + "0000" + "0400" + "0100" + "0200" + "0400")
    assert decode_deletions(runs, DeletionKind.BITMAP, 7).within.tolist() == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_arrow_files_of_any_compression_and_order_are_read(compression: str | None) -> None:
    data = _arrow_file([9, 1, 4], compression=compression)
    assert decode_deletions(data, DeletionKind.ARROW, 10).within.tolist() == [1, 4, 9]


def _arrow_file(
    *batches: list[int | None],
    name: str = "row_id",
    kind: pa.DataType | None = None,
    compression: str | None = None,
) -> bytes:
    schema = pa.schema([pa.field(name, kind or pa.uint32(), nullable=True)])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        for batch in batches:
            writer.write_batch(pa.record_batch([pa.array(batch, schema.types[0])], schema=schema))
    data: bytes = sink.getvalue().to_pybytes()
    return data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"ARROW1",
        _arrow_file([1], [2]),
        _arrow_file(),
        _arrow_file([1], name="row"),
        _arrow_file([1], kind=pa.int32()),
        _arrow_file([1, None]),
        _arrow_file([1, 1]),
        _arrow_file([1, 2])[:-20],
    ],
)
def test_damaged_arrow_files_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode_deletions(data, DeletionKind.ARROW, 10)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"xyz",
        BitMap([1, 2]).serialize()[:-1],
    ],
)
def test_damaged_bitmaps_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        decode_deletions(data, DeletionKind.BITMAP, 10)


@pytest.mark.parametrize("kind", list(DeletionKind))
def test_rows_beyond_the_fragment_are_told_apart(kind: DeletionKind) -> None:
    found = decode_deletions(encode_deletions(np.array([3, 10, 12], np.uint32), kind), kind, 10)
    assert (found.within.tolist(), found.recorded, found.beyond) == ([3], 3, 12)


def test_a_bitmap_of_many_rows_is_cut_before_it_is_spelled_out() -> None:
    found = decode_deletions(BitMap(range(2**31)).serialize(), DeletionKind.BITMAP, 10)
    assert (found.within.tolist(), found.recorded, found.beyond) == ([*range(10)], 2**31, 2**31 - 1)


def test_few_deletions_are_an_arrow_file_and_many_a_bitmap() -> None:
    assert preferred_kind(4999) is DeletionKind.ARROW
    assert preferred_kind(5000) is DeletionKind.BITMAP


def test_a_column_name_that_is_no_text() -> None:
    data = encode_deletions(np.array([3], np.uint32), DeletionKind.ARROW)
    with pytest.raises(CorruptFileError, match="Arrow file"):
        decode_deletions(data.replace(b"row_id", b"row\xff\xfed"), DeletionKind.ARROW, 10)
