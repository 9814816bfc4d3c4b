"""Bytes worked out by hand: the reference decoders read the format's own examples."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.format.pb import encodings21_pb2 as pb
from lance_engine.format.pb import file_v2_pb2
from reference import bitpacking, blob, constant, fsst, general, page, rle, variable
from reference.arrow import leaf_array
from reference.levels import Layer, LevelArrays, Lists, unravel
from reference.values import Fixed, Struct, Variable

FE = " fe"


def decode(layout: pb.PageLayout, buffers: list[str], rows: int, arrow_type: pa.DataType) -> LevelArrays:
    raw = [bytes.fromhex(buffer) for buffer in buffers]
    return page.decode_layout(b"", layout, raw, rows, arrow_type)


def leaves(layout: pb.PageLayout, buffers: list[str], rows: int, arrow_type: pa.DataType) -> list[object]:
    arrays, values = decode(layout, buffers, rows, arrow_type)
    slots = unravel(arrays, [None] * len(arrays.layers))
    return leaf_array(values, slots[0].validity, arrow_type).to_pylist()


def flat(bits: int) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))


def variable32() -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(variable=pb.Variable(offsets=flat(32)))


def test_mini_block_with_nulls_in_version_2_2() -> None:
    message = "0a15 1204 0a020810 1a04 0a020820 320103 3801 4803 5001"
    layout = pb.PageLayout.FromString(bytes.fromhex(message))
    chunk = (
        "03 00 06 00 0c 00 00 00  00 00 01 00 00 00 fe fe  01 00 00 00 00 00 00 00 03 00 00 00 fe fe fe fe"
    )
    assert leaves(layout, ["30000000", chunk], 3, pa.int32()) == [1, None, 3]


def test_mini_block_with_nulls_in_version_2_1() -> None:
    message = "0a13 1204 0a020810 1a04 0a020820 320103 3801 4803"
    layout = pb.PageLayout.FromString(bytes.fromhex(message))
    chunk = (
        "03 00 06 00 0c 00 fe fe  00 00 01 00 00 00 fe fe  01 00 00 00 00 00 00 00 03 00 00 00 fe fe fe fe"
    )
    assert leaves(layout, ["3000", chunk], 3, pa.int32()) == [1, None, 3]


def test_mini_block_of_lists() -> None:
    layout = pb.PageLayout(
        mini_block_layout=pb.MiniBlockLayout(
            rep_compression=flat(16),
            def_compression=flat(16),
            value_compression=flat(32),
            layers=[1, 6],
            num_buffers=1,
            repetition_index_depth=1,
            num_items=3,
            has_large_chunk=True,
        )
    )
    chunk = (
        "05 00 0a 00 0a 00 0c 00 00 00"
        + FE * 6
        + "01 00 00 00 01 00 01 00 01 00"
        + FE * 6
        + "00 00 00 00 01 00 02 00 00 00"
        + FE * 6
        + "01 00 00 00 02 00 00 00 03 00 00 00"
        + FE * 4
    )
    index = "0400000000000000 0000000000000000"
    arrays, values = decode(layout, ["70000000", chunk, index], 4, pa.int32())
    items, lists = unravel(arrays, [None, None])
    assert leaf_array(values, items.validity, pa.int32()).to_pylist() == [1, 2, 3]
    assert isinstance(lists, Lists)
    assert lists.offsets.tolist() == [0, 2, 2, 2, 3]
    assert lists.validity is not None
    assert lists.validity.tolist() == [True, False, True, True]


def test_three_levels_of_repetition() -> None:
    # [[[0,1],[],[2]],[[3]],[]], [], [[[4]]]
    repetition = np.array([3, 0, 1, 1, 2, 2, 3, 3], np.uint16)
    definition = np.array([0, 0, 1, 0, 0, 2, 3, 0], np.uint16)
    layers = [Layer.ALL_VALID_ITEM] + [Layer.EMPTYABLE_LIST] * 3
    slots = unravel(LevelArrays(layers, repetition, definition, 8), [None] * 4)
    offsets = [each.offsets.tolist() for each in slots if isinstance(each, Lists)]
    assert offsets == [[0, 2, 2, 3, 4, 5], [0, 3, 4, 4, 5], [0, 3, 3, 4]]


def test_nested_structs_number_their_nulls_outwards() -> None:
    definition = np.array([0, 1, 2, 3], np.uint16)
    slots = unravel(LevelArrays([Layer.NULLABLE_ITEM] * 3, None, definition, 4), [None] * 3)
    validity = [each.validity.tolist() for each in slots if each.validity is not None]
    assert validity == [[True, False, False, False], [True, True, False, False], [True, True, True, False]]


def test_full_zip_of_lists_of_strings() -> None:
    layout = pb.PageLayout(
        full_zip_layout=pb.FullZipLayout(
            bits_rep=1,
            bits_def=2,
            bits_per_offset=32,
            num_items=5,
            num_visible_items=3,
            value_compression=variable32(),
            layers=[3, 6],
        )
    )
    # [["ab"], null, [], ["c", null]]
    data = "04 02000000 6162  06  07  04 01000000 63  01"
    arrays, values = decode(layout, [data, "00 07 08 09 10"], 4, pa.string())
    items, lists = unravel(arrays, [None, None])
    assert leaf_array(values, items.validity, pa.string()).to_pylist() == ["ab", "c", None]
    assert isinstance(lists, Lists)
    assert lists.offsets.tolist() == [0, 1, 1, 1, 3]
    with pytest.raises(CorruptFileError, match="repetition index"):
        decode(layout, [data, "00 07 08 0a 10"], 4, pa.string())


def vector_layout(
    dimension: int, inner: pb.CompressiveEncoding, bits_per_value: int, rows: int, layer: int
) -> pb.PageLayout:
    lists = pb.FixedSizeList(items_per_value=dimension, values=inner, has_validity=True)
    return pb.PageLayout(
        full_zip_layout=pb.FullZipLayout(
            bits_def=int(layer == 3),
            bits_per_value=bits_per_value,
            num_items=rows,
            num_visible_items=rows,
            value_compression=pb.CompressiveEncoding(fixed_size_list=lists),
            layers=[layer],
        )
    )


def test_full_zip_of_nullable_vectors_with_item_validity() -> None:
    layout = vector_layout(2, flat(32), 72, 2, 3)
    data = "00 03 0000803f 00000040  01 00 00000000 00000000"
    assert leaves(layout, [data], 2, pa.list_(pa.float32(), 2)) == [[1.0, 2.0], None]


def test_full_zip_of_a_vector_with_a_null_item() -> None:
    layout = vector_layout(3, flat(32), 104, 1, 1)
    data = "05 0000803f 00000000 00004040"
    assert leaves(layout, [data], 1, pa.list_(pa.float32(), 3)) == [[1.0, None, 3.0]]


def test_full_zip_of_a_vector_of_nulls() -> None:
    layout = vector_layout(2, pb.CompressiveEncoding(constant=pb.Constant()), 8, 1, 1)
    assert leaves(layout, ["00"], 1, pa.list_(pa.float32(), 2)) == [[None, None]]


def test_full_zip_of_packed_structs_with_strings() -> None:
    field = pb.VariablePackedStruct.FieldEncoding
    fields = [field(value=flat(32), bits_per_value=32), field(value=variable32(), bits_per_length=32)]
    layout = pb.PageLayout(
        full_zip_layout=pb.FullZipLayout(
            bits_def=1,
            bits_per_offset=32,
            num_items=2,
            num_visible_items=2,
            value_compression=pb.CompressiveEncoding(variable_packed_struct={"fields": fields}),
            layers=[3],
        )
    )
    data = "00 0a000000 01000000 02000000 7879  01"
    arrow_type = pa.struct([("a", pa.int32()), ("b", pa.string())])
    assert leaves(layout, [data, "00 0f 10"], 2, arrow_type) == [{"a": 1, "b": "xy"}, None]


@pytest.mark.parametrize(
    ("arrow_type", "inline", "expected"),
    [(pa.int32(), "2a000000", 42), (pa.bool_(), "01", True), (pa.bool_(), "00", False)],
)
def test_inline_constants(arrow_type: pa.DataType, inline: str, expected: object) -> None:
    constant_layout = pb.ConstantLayout(layers=[1], inline_value=bytes.fromhex(inline))
    assert leaves(pb.PageLayout(constant_layout=constant_layout), [], 3, arrow_type) == [expected] * 3


def test_a_constant_string_with_nulls() -> None:
    layout = pb.PageLayout(constant_layout=pb.ConstantLayout(layers=[3]))
    scalar = "02000000 08000000 02000000 00000000 02000000 6869"
    assert leaves(layout, [scalar, "", "0000 0100 0000"], 3, pa.string()) == ["hi", None, "hi"]


def test_a_page_of_nulls_has_no_buffers() -> None:
    layout = pb.PageLayout(constant_layout=pb.ConstantLayout(layers=[3]))
    assert leaves(layout, [], 2, pa.string()) == [None, None]


def test_scalar_of_one_buffer() -> None:
    assert constant.parse_scalar(bytes.fromhex("01000000 03000000 010203")) == [b"\1\2\3"]


def test_variable_chunk() -> None:
    data = bytes.fromhex("10000000 12000000 12000000 15000000 6162636465 484848")
    assert variable.decode_chunk(data, 32, 3).items == [b"ab", b"", b"cde"]


def test_variable_block() -> None:
    data = bytes.fromhex("20000000 14000000 00000000 03000000 07000000") + b"redblue"
    assert variable.decode_block(data, 32, 2).items == [b"red", b"blue"]


def test_bitpacked_block_of_alternating_bits() -> None:
    values = np.arange(120, dtype=np.uint32) % 2
    packed = bitpacking.pack_block(values, 1)
    words = [packed[at : at + 4].hex(" ") for at in range(0, 128, 4)]
    assert words[1:24:2] == ["01 01 01 01"] * 12
    assert words[25::2] == ["01 01 01 00"] * 4
    assert not any(any(packed[at : at + 4]) for at in range(0, 128, 8))
    inline = b"\1\0\0\0" + packed
    assert bitpacking.decode_inline(inline, 32, 120).tolist() == values.tolist()


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_every_packed_width(bits: int) -> None:
    rng = np.random.default_rng(bits)
    for packed_bits in range(bits + 1):
        full = rng.integers(0, 2**63, 1024, dtype=np.uint64) * 2 + rng.integers(0, 2, 1024, dtype=np.uint64)
        mask = (1 << packed_bits) - 1
        values = np.array([int(value) & mask for value in full]).astype(f"<u{bits // 8}")
        packed = bitpacking.pack_block(values, packed_bits)
        assert len(packed) == bitpacking.block_bytes(packed_bits)
        assert (bitpacking.unpack_block(packed, bits, packed_bits) == values).all()


def test_out_of_line_tails() -> None:
    values = np.arange(1034, dtype=np.uint16) % 8
    head = bitpacking.pack_block(values[:1024], 3)
    raw = head + values[1024:].tobytes()
    padded = head + bitpacking.pack_block(values[1024:], 3)
    for data in (raw, padded):
        assert bitpacking.decode_out_of_line(data, 16, 3, 1034).tolist() == values.tolist()
    assert bitpacking.decode_out_of_line(b"", 16, 0, 1500).tolist() == [0] * 1500


def test_runs() -> None:
    values = b"".join(number.to_bytes(4, "little") for number in (5, 5, 5, 7))
    decoded = rle.decode(values, bytes.fromhex("ffff5a03"), 32, 603)
    assert decoded.integers().tolist() == [5] * 600 + [7] * 3
    framed = (16).to_bytes(8, "little") + values + bytes.fromhex("ffff5a03")
    assert rle.decode_block(framed, 32, 601).integers().tolist() == [5] * 600 + [7]


def test_fsst_symbols_and_escapes() -> None:
    symbols = [b"http://", b"ab", b"c"]
    head = bytes([3, 0, 0, 1]) + b"TSSF" + b"".join(symbol.ljust(8, b"\0") for symbol in symbols)
    table = (head + bytes(map(len, symbols))).ljust(2312, b"\0")
    assert fsst.decode([bytes([0, 1, 255, 120, 2]), b""], table) == [b"http://abxc", b""]
    verbatim = (bytes(4) + b"TSSF").ljust(2312, b"\0")
    assert fsst.decode([b"\xff as is"], verbatim) == [b"\xff as is"]
    with pytest.raises(CorruptFileError):
        fsst.decode([b""], table[:-1])


def test_general_framings() -> None:
    plain = b"some text " * 50
    frame = pa.Codec("zstd").compress(plain, asbytes=True)
    block = pa.Codec("lz4_raw").compress(plain, asbytes=True)
    assert general.decompress(len(plain).to_bytes(8, "little") + frame, general.ZSTD) == plain
    assert general.decompress(frame, general.ZSTD) == plain
    assert general.decompress(b"", general.ZSTD) == b""
    assert general.decompress(len(plain).to_bytes(4, "little") + block, general.LZ4) == plain
    with pytest.raises(CorruptFileError):
        general.decompress(len(plain).to_bytes(8, "little") + frame[:-5], general.ZSTD)
    with pytest.raises(UnsupportedFeatureError):
        general.decompress(frame, 3)


def test_blob_descriptors() -> None:
    integers = [np.array(column, np.uint64) for column in ([4, 0, 65536], [3, 0, 0])]
    descriptors = Struct(3, tuple(Fixed.from_integers(column) for column in integers))
    arrays, values = blob.decode(b"....blob", [Layer.NULLABLE_ITEM], descriptors)
    assert arrays.definition is not None
    assert arrays.definition.tolist() == [0, 0, 1]
    assert values == Variable([b"blo", b"", b""])


def test_page_of_another_message_family() -> None:
    family = AnyMessage(type_url="/lance.encodings23.PlanarLayout").SerializeToString()
    message = file_v2_pb2.ColumnMetadata.Page(encoding={"direct": {"encoding": family}})
    with pytest.raises(UnsupportedFeatureError, match="encodings23"):
        page.parse_layout(message)
