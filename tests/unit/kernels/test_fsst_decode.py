"""Strings coded with FSST: escapes, long streams, empty strings and nulls, decoded and tested as they are."""

from __future__ import annotations

from collections.abc import Sequence

import handmade_files as handmade
import numpy as np
import pyarrow as pa
import pytest
from counts import examples
from handmade_files import Chunk, Encoded
from hypothesis import given, settings
from hypothesis import strategies as st
from lance_engine import kernels
from lance_engine.errors import CorruptFileError
from lance_engine.format.pb import encodings21_pb2 as pb
from lance_engine.format.pb import encodings_pb2 as pb_2_0
from native_files import NativeFile
from reference.levels import Layer, LevelArrays

ESCAPE = b"\xff"
# Values without symbols are escaped byte by byte, others are coded in up to eight bytes at once.
WORDS = [
    b"",
    b"a",
    b"ab",
    b"the abc",
    b"12345678",
    b"\xff",
    b"zz",
    b"12345678" * 9,
    b"q" * 17,
    b"the q 12345678z",
]
# What the kernel decodes at once (`kStream` of decode/fsst.hpp).
STREAM = 32 << 10


def page_2_0(coded: Sequence[bytes], valid: Sequence[bool] | None = None) -> tuple[handmade.Page, str]:
    """A page of version 2.0 of these coded values, which are decoded as one stream."""
    ends = np.cumsum([len(value) for value in coded]).astype("<u8")
    adjustment = int(ends[-1]) + 1
    if valid is not None:
        ends = np.where(valid, ends, ends + adjustment).astype("<u8")

    def flat(bits: int, index: int) -> pb_2_0.ArrayEncoding:
        return pb_2_0.ArrayEncoding(
            flat=pb_2_0.Flat(bits_per_value=bits, buffer=pb_2_0.Buffer(buffer_index=index))
        )

    binary = pb_2_0.Binary(indices=flat(64, 0), bytes=flat(8, 1), null_adjustment=adjustment)
    fsst = pb_2_0.Fsst(binary=pb_2_0.ArrayEncoding(binary=binary), symbol_table=handmade.fsst_table())
    encoding = pb_2_0.ArrayEncoding(fsst=fsst)
    page = handmade.Page(
        encoding, [ends.tobytes(), b"".join(coded)], len(coded), "/lance.encodings.ArrayEncoding"
    )
    return page, "2.0"


def page_2_1(coded: Sequence[bytes], chunk_values: int = 64) -> tuple[handmade.Page, str]:
    """A mini-block page of these coded values."""

    def encoded(part: Sequence[bytes]) -> Encoded:
        inner = handmade.variable(part, 32)
        message = pb.Fsst(symbol_table=handmade.fsst_table(), values=inner.encoding)
        return Encoded(pb.CompressiveEncoding(fsst=message), inner.buffers)

    parts = [coded[at : at + chunk_values] for at in range(0, len(coded), chunk_values)]
    chunks = [Chunk(len(part), len(part), None, None, encoded(part)) for part in parts]
    arrays = LevelArrays([Layer.ALL_VALID_ITEM], None, None, len(coded))
    return handmade.mini_block(arrays, len(coded), chunks, large=False), "2.1"


def open_page(page: handmade.Page, version: str, kind: pa.DataType) -> NativeFile:
    schema = pa.schema([("value", kind)])
    number = {"2.0": (0, 3), "2.1": (2, 1)}[version]
    return NativeFile.in_memory(handmade.make_file(schema, [[page]], page.length, number), schema)


def check(file: NativeFile, expected: Sequence[bytes | None]) -> None:
    assert file.table()["value"].to_pylist() == list(expected)
    count = len(expected)
    for start, stop in ((1, count), (count // 2, count // 2 + 1), (0, count - 1)):
        if start < stop:
            assert file.range(start, stop)["value"].to_pylist() == list(expected[start:stop])
    rows = sorted({0, count // 3, count - 1})
    assert file.rows_at(rows)["value"].to_pylist() == [expected[row] for row in rows]


@pytest.mark.parametrize("page", [page_2_0, page_2_1])
@settings(max_examples=examples(15), deadline=None)
@given(values=st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(b"".join), min_size=1, max_size=130))
def test_coded_values(page: object, values: list[bytes]) -> None:
    coded = [handmade.fsst_code(value) for value in values]
    check(open_page(*page(coded), pa.binary()), values)  # type: ignore[operator]


@pytest.mark.parametrize("page", [page_2_0, page_2_1])
@pytest.mark.parametrize("place", range(18))
def test_an_escape_at_every_place_of_a_word(page: object, place: int) -> None:
    values = [b"a" * place + b"z" + b"a" * rest for rest in (0, 1, 7, 8, 9)]
    coded = [handmade.fsst_code(value) for value in values]
    check(open_page(*page(coded), pa.binary()), values)  # type: ignore[operator]


@pytest.mark.parametrize(
    "lengths",
    [
        [STREAM],
        [STREAM + 1],
        [STREAM - 1, 1, 1],
        [STREAM - 1, 0, 2, STREAM, 0, 1],
        [3 * STREAM, 5, 2 * STREAM],
        [40] * 2000,
        [0] * 3000 + [STREAM] + [0] * 10,
    ],
)
def test_more_codes_than_are_decoded_at_once(lengths: list[int]) -> None:
    # The escape of "z" lies on either side of the border, or across it.
    for shift in range(3):
        coded = [
            (b"\4" * (length - 2 - shift) + ESCAPE + b"z" + b"\3" * shift)[:length] for length in lengths
        ]
        coded = [value + b"z" if value.endswith(ESCAPE) else value for value in coded]
        values = [
            value.replace(ESCAPE, b"").replace(b"\4", b"a").replace(b"\3", b"12345678") for value in coded
        ]
        check(open_page(*page_2_0(coded), pa.large_binary()), values)


def test_nulls_and_empty_values() -> None:
    values = [WORDS[number % len(WORDS)] for number in range(400)]
    valid = [number % 3 > 0 for number in range(400)]
    coded = [
        handmade.fsst_code(value) if is_valid else b"" for value, is_valid in zip(values, valid, strict=True)
    ]
    expected = [value if is_valid else None for value, is_valid in zip(values, valid, strict=True)]
    check(open_page(*page_2_0(coded, valid), pa.large_binary()), expected)


@pytest.mark.parametrize("page", [page_2_0, page_2_1])
@pytest.mark.parametrize("before", [0, 3, 4, 7, 8, 20])
def test_an_escape_without_its_byte(page: object, before: int) -> None:
    for after in ([], [b"\4" * 9], [b""]):  # the byte of the next value is not its byte
        coded = [b"\4" * before + ESCAPE, *after]
        file = open_page(*page(coded), pa.binary())  # type: ignore[operator]
        with pytest.raises(CorruptFileError, match="inside an escape"):
            file.table()
        with pytest.raises(CorruptFileError, match="inside an escape"):
            file.rows_at([0])


@pytest.mark.parametrize("page", [page_2_0, page_2_1])
def test_conditions_on_coded_values(page: object) -> None:
    rng = np.random.default_rng(5)
    values = [b"".join(WORDS[place] for place in rng.integers(0, len(WORDS), 4)) for _ in range(300)]
    file = open_page(*page([handmade.fsst_code(value) for value in values]), pa.binary())  # type: ignore[operator]
    for piece in (b"a", b"abc12", b"zz", b"\xff", b"78123", b"q the"):
        for negate in (False, True):
            inside = kernels.string_test([piece], False, False, negate)
            assert file.tested("value", inside) == [(piece in value) != negate for value in values]
            start = kernels.string_test([piece], True, False, negate)
            assert file.tested("value", start) == [value.startswith(piece) != negate for value in values]
            end = kernels.string_test([piece], False, True, negate)
            assert file.tested("value", end) == [value.endswith(piece) != negate for value in values]
            same = kernels.string_test([values[7]], True, True, negate)
            assert file.tested("value", same) == [(value == values[7]) != negate for value in values]
    for escaped in (kernels.string_test([b"zz"], False, False, False),):
        broken = open_page(*page([b"\4" * 5 + ESCAPE]), pa.binary())  # type: ignore[operator]
        with pytest.raises(CorruptFileError, match="inside an escape"):
            broken.tested("value", escaped)


@pytest.mark.parametrize("page", [page_2_0, page_2_1])
def test_codes_without_a_symbol_decode_to_nothing(page: object) -> None:
    check(open_page(*page([b"\x80" * 3, b"\x80" * 20, b""]), pa.binary()), [b"", b"", b""])  # type: ignore[operator]
