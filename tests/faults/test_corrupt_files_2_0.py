"""Damaged pages of file version 2.0, one fault at a time, and blobs that lead out of their file."""

from __future__ import annotations

from collections.abc import Sequence

import handmade_files as handmade
import numpy as np
import pyarrow as pa
import pytest
from handmade_files import Page
from lance_engine import kernels
from lance_engine.errors import CorruptFileError
from lance_engine.format.pb import encodings_pb2 as pb
from native_files import NativeFile

ROWS = 100
STRINGS = pa.schema([pa.field("value", pa.string())])
NUMBERS = pa.schema([pa.field("value", pa.int64())])
BLOBS = pa.schema([pa.field("value", pa.large_binary(), metadata={"lance-encoding:blob": "true"})])


def flat(bits: int, buffer: int) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(flat=pb.Flat(bits_per_value=bits, buffer=pb.Buffer(buffer_index=buffer)))


def all_null() -> pb.ArrayEncoding:
    return pb.ArrayEncoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull()))


def dictionary(indices: pb.ArrayEncoding, items: pb.ArrayEncoding, count: int) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(
        dictionary=pb.Dictionary(indices=indices, items=items, num_dictionary_items=count)
    )


def strings(ends: int, data: int, adjustment: int) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(
        binary=pb.Binary(indices=flat(64, ends), bytes=flat(8, data), null_adjustment=adjustment)
    )


def read(encoding: pb.ArrayEncoding, buffers: Sequence[bytes], schema: pa.Schema) -> pa.Table:
    page = Page(encoding, list(buffers), ROWS, "/lance.encodings.ArrayEncoding")
    file = handmade.make_file(schema, [[page]], ROWS, (0, 3))
    return NativeFile.in_memory(file, schema).table()


def check_fault(encoding: pb.ArrayEncoding, buffers: Sequence[bytes], schema: pa.Schema, match: str) -> None:
    with pytest.raises(CorruptFileError, match=match) as caught:
        read(encoding, buffers, schema)
    assert caught.value.place["column"] == "value"
    assert caught.value.place["page"] == 0


CODES = bytes(ROWS)
ENDS = np.full(ROWS, 3, "<u8").tobytes()


def test_pages_without_fault() -> None:
    table = read(strings(0, 1, 4), [ENDS, b"abc"], STRINGS)
    assert table["value"].to_pylist() == ["abc", *[""] * (ROWS - 1)]
    items = np.array([7], "<i8").tobytes()
    schema = pa.schema([pa.field("value", pa.dictionary(pa.int8(), pa.int64()))])
    page = Page(
        dictionary(flat(8, 0), flat(64, 1), 1), [CODES, items], ROWS, "/lance.encodings.ArrayEncoding"
    )
    file = NativeFile.in_memory(handmade.make_file(schema, [[page]], ROWS, (0, 3)), schema)
    assert file.table()["value"].to_pylist() == [7] * ROWS


def test_a_dictionary_where_a_bitmap_should_be() -> None:
    validity = dictionary(flat(8, 0), flat(64, 1), 1)
    some = pb.Nullable.SomeNull(validity=validity, values=flat(64, 2))
    encoding = pb.ArrayEncoding(nullable=pb.Nullable(some_nulls=some))
    check_fault(encoding, [CODES, bytes(8), bytes(8 * ROWS)], NUMBERS, "dictionary|bit")


def test_a_dictionary_of_strings_where_offsets_should_be() -> None:
    offsets = dictionary(flat(8, 0), strings(1, 2, 4), 1)
    encoding = pb.ArrayEncoding(binary=pb.Binary(indices=offsets, bytes=flat(8, 2), null_adjustment=4))
    check_fault(encoding, [CODES, ENDS[:8], b"abc"], STRINGS, "dictionary")


@pytest.mark.parametrize("count", [2, 2**31])
def test_a_dictionary_of_more_nulls_than_codes_can_need(count: int) -> None:
    check_fault(dictionary(flat(8, 0), all_null(), count), [CODES], STRINGS, "dictionary")


@pytest.mark.parametrize(("packed", "plain"), [(5, 2**62), (2**62, 64), (2**32 + 5, 64), (0, 64), (65, 64)])
def test_impossible_widths_of_packed_numbers(packed: int, plain: int) -> None:
    buffer = pb.Buffer(buffer_index=0)
    widths = {"compressed_bits_per_value": packed, "uncompressed_bits_per_value": plain, "buffer": buffer}
    encodings = [
        pb.ArrayEncoding(bitpacked=pb.Bitpacked(**widths)),
        pb.ArrayEncoding(bitpacked_for_non_neg=pb.BitpackedForNonNeg(**widths)),
    ]
    for encoding in encodings:
        check_fault(encoding, [bytes(8 * ROWS)], NUMBERS, "bit-packed values")


def test_packed_numbers_that_are_not_there() -> None:
    """The claimed number of rows alone must not make the reader ask for memory."""
    packed = pb.Bitpacked(compressed_bits_per_value=3, uncompressed_bits_per_value=64, buffer=pb.Buffer())
    check_fault(pb.ArrayEncoding(bitpacked=packed), [bytes(8)], NUMBERS, "ends before")


def test_an_impossible_width_of_dictionary_codes() -> None:
    check_fault(
        dictionary(flat(2**40, 0), strings(1, 2, 4), 1), [CODES, ENDS[:8], b"abc"], STRINGS, "dictionary|bit"
    )


def test_ends_of_strings_far_behind_their_bytes() -> None:
    ends = np.full(ROWS, 2**33, "<u8").tobytes()
    check_fault(strings(0, 1, 2**34), [ends, b"abc"], STRINGS, "ends before")


def test_fixed_size_strings_far_behind_their_bytes() -> None:
    fixed = pb.ArrayEncoding(fixed_size_binary=pb.FixedSizeBinary(bytes=flat(8, 0), byte_width=2**25))
    check_fault(fixed, [b"abc"], STRINGS, "ends before")


def test_fixed_size_strings_of_nulls() -> None:
    fixed = pb.ArrayEncoding(fixed_size_binary=pb.FixedSizeBinary(bytes=all_null(), byte_width=2**25))
    check_fault(fixed, [], STRINGS, "must not be null")


def test_strings_behind_ends_that_are_all_null() -> None:
    """The bytes are strings themselves, as many as a nonsensical end says: all of their ends are null."""
    inner = pb.ArrayEncoding(binary=pb.Binary(indices=all_null(), bytes=flat(8, 1), null_adjustment=2**62))
    outer = pb.Binary(indices=flat(64, 0), bytes=inner, null_adjustment=2**62)
    ends = np.full(ROWS, 2**61, "<u8").tobytes()
    check_fault(pb.ArrayEncoding(binary=outer), [ends, b"abc"], STRINGS, "null|strings|ends before")


def test_a_packed_struct_that_claims_to_be_a_plain_one() -> None:
    point = pa.struct([pa.field("x", pa.int32(), False), pa.field("y", pa.int32(), False)])
    schema = pa.schema([pa.field("value", point, metadata={"lance-encoding:packed": "true"})])
    with pytest.raises(CorruptFileError, match="no column") as caught:
        read(pb.ArrayEncoding(struct=pb.SimpleStruct()), [], schema)
    assert caught.value.place == {"path": "file.lance", "column": "value.x"}


def test_a_wide_vector() -> None:
    schema = pa.schema([pa.field("value", pa.list_(pa.list_(pa.int64(), 2**30), 2**30))])
    with pytest.raises(CorruptFileError, match="wide"):
        read(all_null(), [], schema)


@pytest.mark.parametrize(
    ("position", "size"), [(0, 2**62), (2**63, 1), (2**64 - 1, 2), (0, 2**40), (10**6, 1)]
)
def test_blobs_outside_the_file(position: int, size: int) -> None:
    rows = np.zeros((ROWS, 2), "<u8")
    rows[50] = position, size
    packed = pb.PackedStruct(inner=[flat(64, 0), flat(64, 0)], buffer=pb.Buffer(buffer_index=0))
    check_fault(pb.ArrayEncoding(packed_struct=packed), [rows.tobytes()], BLOBS, "blob|past the end")


def test_many_blobs_of_the_same_bytes_are_read_a_few_at_a_time() -> None:
    """They must not make a batch of any size out of a small file."""
    block = 40 << 20
    rows = np.zeros((ROWS, 2), "<u8")
    rows[:] = 0, block
    packed = pb.PackedStruct(inner=[flat(64, 0)] * 2, buffer=pb.Buffer(buffer_index=0))
    with pytest.raises(kernels.BatchTooLargeError):
        read(pb.ArrayEncoding(packed_struct=packed), [rows.tobytes(), bytes(block)], BLOBS)


def test_a_list_of_more_nulls_than_fit_a_batch() -> None:
    """Nothing in the file stands for the items: only the claim of one page does."""
    items = 2**31
    schema = pa.schema([pa.field("value", pa.list_(pa.int64()))])
    url = "/lance.encodings.ArrayEncoding"
    ends = pb.List(offsets=flat(64, 0), null_offset_adjustment=items + 1, num_items=items)
    lists = Page(pb.ArrayEncoding(list=ends), [np.array([items], "<u8").tobytes()], 1, url)
    nulls = Page(all_null(), [], items, url)
    file = NativeFile.in_memory(handmade.make_file(schema, [[lists], [nulls]], 1, (0, 3)), schema)
    with pytest.raises((kernels.BatchTooLargeError, CorruptFileError)):
        file.table()
