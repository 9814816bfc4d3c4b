"""Packed structs whose description contradicts itself, the schema or their rows."""

from __future__ import annotations

import handmade_files as handmade
import numpy as np
import pyarrow as pa
import pytest
from handmade_files import Chunk, Encoded, Page
from lance_engine.errors import CorruptFileError, LanceError, UnsupportedFeatureError
from lance_engine.format.pb import encodings21_pb2 as pb
from native_files import NativeFile
from reference.levels import Layer, LevelArrays

ROWS = 20
PACKED = {"lance-encoding:packed": "true"}
FIXED = pa.schema([pa.field("value", pa.struct([("a", pa.int32()), ("b", pa.int16())]), metadata=PACKED)])
MIXED = pa.schema([pa.field("value", pa.struct([("a", pa.int32()), ("s", pa.string())]), metadata=PACKED)])
ARRAYS = LevelArrays([Layer.ALL_VALID_ITEM], None, None, ROWS)


def fixed_page(bits: list[int], row_bits: int, buffer: bytes | None = None) -> Page:
    """Rows of fixed-width fields, in a mini-block."""
    rows = np.zeros(ROWS, [("a", "<i4"), ("b", "<i2")])
    rows["a"], rows["b"] = np.arange(ROWS), -np.arange(ROWS)
    message = pb.PackedStruct(bits_per_value=bits, values=handmade.flat_encoding(row_bits))
    content = Encoded(
        pb.CompressiveEncoding(packed_struct=message), [rows.tobytes() if buffer is None else buffer]
    )
    return handmade.mini_block(ARRAYS, ROWS, [Chunk(ROWS, ROWS, None, None, content)], large=False)


def mixed_page(
    bits: int = 32, length_bits: int = 32, value_bits: int = 32, lengths: tuple[int, ...] = (3,)
) -> Page:
    """Rows of a number and a string behind its length, in a full-zip page."""
    fields = [
        pb.VariablePackedStruct.FieldEncoding(value=handmade.flat_encoding(value_bits), bits_per_value=bits),
        pb.VariablePackedStruct.FieldEncoding(
            value=handmade.variable_encoding(32), bits_per_length=length_bits
        ),
    ]
    encoding = pb.CompressiveEncoding(variable_packed_struct=pb.VariablePackedStruct(fields=fields))
    rows = [
        row.to_bytes(4, "little") + lengths[row % len(lengths)].to_bytes(4, "little") + b"abc"
        for row in range(ROWS)
    ]
    return handmade.full_zip(ARRAYS, ROWS, encoding, rows, 32)


def read(page: Page, schema: pa.Schema) -> pa.Table:
    version = (2, 1) if schema is FIXED else (2, 2)
    return NativeFile.in_memory(handmade.make_file(schema, [[page]], ROWS, version), schema).table()


def check_fault(page: Page, schema: pa.Schema, error: type[LanceError], match: str) -> None:
    with pytest.raises(error, match=match) as caught:
        read(page, schema)
    assert str(caught.value.place["column"]).startswith("value")
    assert caught.value.place["path"] == "file.lance"


def test_the_pages_without_fault() -> None:
    assert read(fixed_page([32, 16], 48), FIXED)["value"].to_pylist() == [
        {"a": row, "b": -row} for row in range(ROWS)
    ]
    assert read(mixed_page(), MIXED)["value"].to_pylist() == [{"a": row, "s": "abc"} for row in range(ROWS)]


@pytest.mark.parametrize(
    ("bits", "row_bits", "error", "match"),
    [
        ([32, 16], 64, CorruptFileError, "do not add up"),
        ([32, 24], 48, CorruptFileError, "do not add up"),
        ([2**64 - 16, 64], 48, CorruptFileError, "do not add up"),  # the sum is right in 64 bits
        ([33, 15], 48, UnsupportedFeatureError, "whole bytes"),
        ([32, 32], 64, CorruptFileError, "width"),
        ([32], 32, CorruptFileError, "width"),
        ([2**40, 2**40], 2**41, CorruptFileError, "wide|width"),
        ([2**63, 2**62], 2**63 + 2**62, CorruptFileError, "wide|width"),
    ],
)
def test_widths_of_fields(bits: list[int], row_bits: int, error: type[LanceError], match: str) -> None:
    check_fault(fixed_page(bits, row_bits), FIXED, error, match)


def test_rows_that_are_not_there() -> None:
    check_fault(fixed_page([32, 16], 48, bytes(6 * ROWS - 1)), FIXED, CorruptFileError, "ends before")


@pytest.mark.parametrize(
    ("page", "error", "match"),
    [
        (mixed_page(bits=64), CorruptFileError, "contradicts its width"),
        (mixed_page(bits=64, value_bits=64), CorruptFileError, "longer|do not fit|ends|past"),
        (mixed_page(bits=2**33, value_bits=2**33), CorruptFileError, "impossibly wide"),
        (mixed_page(bits=2**64 - 8, value_bits=2**64 - 8), CorruptFileError, "impossibly wide"),
        (mixed_page(bits=2**32, value_bits=2**32), CorruptFileError, "impossibly wide"),
        (mixed_page(bits=36, value_bits=36), UnsupportedFeatureError, "whole bytes"),
        (mixed_page(length_bits=24), CorruptFileError, "8, 16, 32 or 64"),
        (mixed_page(length_bits=128), CorruptFileError, "8, 16, 32 or 64"),
        (mixed_page(length_bits=16), CorruptFileError, "longer"),
        (mixed_page(lengths=(3, 2)), CorruptFileError, "longer"),
        (mixed_page(lengths=(3, 4)), CorruptFileError, "end"),
        (mixed_page(lengths=(3, 2**32 - 1)), CorruptFileError, "end"),
    ],
)
def test_fields_behind_their_length(page: Page, error: type[LanceError], match: str) -> None:
    check_fault(page, MIXED, error, match)


def test_fields_that_are_missing() -> None:
    page = mixed_page()
    del page.layout.full_zip_layout.value_compression.variable_packed_struct.fields[:]
    check_fault(page, MIXED, CorruptFileError, "no fields")
