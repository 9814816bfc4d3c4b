"""Pages byte by byte: mini-block chunks, full-zip entries, encodings (format 2.1, worked examples)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from lance_engine import kernels
from lance_engine.encodings.page import EncodedPage
from lance_engine.encodings.v2_1.column import encode_column
from lance_engine.format.pb import encodings21_pb2 as pb
from lance_engine.kernels import LevelBuilder, Levels
from lance_engine.schema_tree import Schema
from reference import bitpacking


def encode(
    array: pa.Array, version: tuple[int, int] = (2, 1), metadata: dict[str, str] | None = None
) -> EncodedPage:
    """The only page of a column with one leaf."""
    schema = Schema.from_arrow(pa.schema([pa.field("c", array.type, metadata=metadata)]))
    ((page,),) = encode_column(array, schema.fields[0], version)
    return page


def raw(page: EncodedPage) -> list[str]:
    return [bytes(memoryview(buffer)).hex() for buffer in page.buffers]


def spaced(text: str) -> str:
    return text.replace(" ", "")


def plain_levels(count: int) -> Levels:
    builder = LevelBuilder(count)
    builder.add_item(None, 0, count)
    return builder.finish()


PLAIN = {"lance-encoding:compression": "none"}

# ---- mini-block --------------------------------------------------------------------------------------


def test_nullable_integers_in_both_versions() -> None:
    array = pa.array([1, None, 3], pa.int32())
    values = "01000000 01000000 03000000 fefefefe"  # the null repeats its neighbour
    page = encode(array, metadata=PLAIN)
    assert page.layout.mini_block_layout.SerializeToString().hex() == spaced(
        "1204 0a020810 1a04 0a020820 320103 3801 4803"
    )
    assert raw(page) == ["3000", spaced("0300 0600 0c00 fefe 000001000000 fefe" + values)]
    page = encode(array, (2, 2), PLAIN)
    assert raw(page) == ["30000000", spaced("0300 0600 0c000000 000001000000 fefe" + values)]
    assert page.layout.mini_block_layout.has_large_chunk


def test_list_with_repetition_index() -> None:
    page = encode(pa.array([[1, 2], None, [], [3]], pa.list_(pa.int32())), (2, 2))
    chunk = (
        "0500 0a00 0a00 0c000000 fefefefefefe"
        "0100 0000 0100 0100 0100 fefefefefefe"
        "0000 0000 0100 0200 0000 fefefefefefe"
        "01000000 02000000 03000000 fefefefe"
    )
    assert raw(page) == ["70000000", spaced(chunk), spaced("0400000000000000 0000000000000000")]
    layout = page.layout.mini_block_layout
    assert list(layout.layers) == [pb.REPDEF_ALL_VALID_ITEM, pb.REPDEF_NULL_AND_EMPTY_LIST]
    assert (layout.num_items, layout.repetition_index_depth, page.rows) == (3, 1, 4)


def test_strings_count_offsets_from_the_start_of_the_buffer() -> None:
    page = encode(pa.array(["ab", "", "cde"]))
    value = "10000000 12000000 12000000 15000000 6162636465 484848"
    assert raw(page)[1] == spaced("0000 1800 fefefefe" + value)


def test_bytes_below_null_strings_are_not_stored() -> None:
    hidden = pa.Array.from_buffers(
        pa.string(),
        3,
        [pa.py_buffer(b"\x05"), pa.array([0, 2, 6, 7], pa.int32()).buffers()[1], pa.py_buffer(b"absecrx")],
    )
    page = encode(hidden)
    assert b"secr" not in bytes(memoryview(page.buffers[1]))
    assert raw(page)[1].endswith(spaced("10000000 12000000 12000000 13000000 616278 48 fefefefe"))


def test_run_lengths() -> None:
    page = encode(pa.array([5] * 600 + [7] * 3, pa.int32()))
    chunk = raw(page)[1]
    values = spaced("05000000 05000000 05000000 07000000")
    assert chunk == spaced("0000 1000 0400 fefe") + values + spaced("ffff5a03 fefefefe")
    assert page.layout.mini_block_layout.num_buffers == 2


def test_chunks_are_powers_of_two_and_the_last_takes_the_rest() -> None:
    rng = np.random.default_rng(3)
    page = encode(pa.array(rng.integers(-(2**63), 2**63 - 1, 1100)))
    words = np.frombuffer(page.buffers[0], "<u2")
    assert (words & 15).tolist() == [9, 9, 0]
    sizes = ((words >> 4) + 1) * 8
    assert sizes.tolist() == [8 + 512 * 8, 8 + 512 * 8, 8 + 76 * 8]
    assert sizes.sum() == len(memoryview(page.buffers[1]))


def test_a_repetition_index_follows_rows_over_chunks() -> None:
    # Rows of 1000 straddle the chunks of 512 values.
    numbers = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 3000).reshape(3, 1000)
    page = encode(pa.array(numbers.tolist(), pa.list_(pa.int64())))
    index = np.frombuffer(page.buffers[-1], "<u8").reshape(-1, 2)
    assert index.tolist() == [[0, 512], [1, 24], [0, 512], [1, 48], [0, 512], [1, 0]]


def test_levels_are_packed_to_the_bits_they_need() -> None:
    page = encode(pa.array([None if i % 3 else i for i in range(5000)]))
    encoding = page.layout.mini_block_layout.def_compression
    assert encoding.out_of_line_bitpacking.uncompressed_bits_per_value == 16
    assert encoding.out_of_line_bitpacking.values.flat.bits_per_value == 1


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_packed_blocks_equal_the_reference(bits: int) -> None:
    dtype = np.dtype(f"<u{bits // 8}")
    levels = plain_levels(1024)
    for width in range(bits + 1):
        mask = (1 << width) - 1
        values = (
            (np.arange(1, 1025, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)) & np.uint64(mask)
        ).astype(dtype)
        values[7] = mask  # the width is really used
        page = kernels.encode_mini_block(kernels.BitpackedValues(values, bits, 0, 1024), levels, False)
        chunk = page.take_chunk_data().tobytes()
        assert int.from_bytes(chunk[8 : 8 + bits // 8], "little") == width
        packed = np.frombuffer(chunk[8 + bits // 8 :][: width * 128], dtype)
        assert np.array_equal(bitpacking.unpack_block(packed, bits, width), values)


# ---- full-zip ----------------------------------------------------------------------------------------

FULL_ZIP = {"lance-encoding:structural-encoding": "fullzip"}


def test_full_zip_list_of_strings() -> None:
    builder = LevelBuilder(4)
    array = pa.array([["ab"], None, [], ["c", None]], pa.list_(pa.string()))
    builder.add_list(array.buffers()[0], array.buffers()[1], 32, 0, 4, 3)
    builder.add_item(array.values.buffers()[0], 0, 3)
    levels = builder.finish()
    items = array.values
    values = kernels.VariableInput(items.buffers()[1], items.buffers()[2], 32, 0, 3, levels)
    page = kernels.encode_full_zip_variable(values, levels)
    assert (page.bits_rep, page.bits_def) == (1, 2)
    assert page.take_data().tobytes().hex() == spaced("04 02000000 6162 06 07 04 01000000 63 01")
    assert page.take_repetition_index().tobytes().hex() == spaced("00 07 08 09 10")


def test_full_zip_vectors_with_item_validity() -> None:
    page = encode(pa.array([[1.0, None, 3.0]], pa.list_(pa.float32(), 3)), metadata=FULL_ZIP)
    assert page.layout.full_zip_layout.bits_per_value == 104
    assert raw(page) == [spaced("05 0000803f 00000000 00004040")]


def test_full_zip_vectors_with_null_row() -> None:
    page = encode(pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)), metadata=FULL_ZIP)
    layout = page.layout.full_zip_layout
    assert (layout.bits_per_value, layout.bits_def, layout.bits_rep) == (64, 1, 0)
    assert raw(page)[0].startswith(spaced("00 0000803f 00000040 01"))
    assert len(page.buffers) == 1


def test_vectors_without_nulls_are_written_from_where_they_lie() -> None:
    items = pa.array(np.arange(4 * 100, dtype=np.float32))
    vectors = pa.FixedSizeListArray.from_arrays(items, 100)
    page = encode(vectors)
    (buffer,) = page.buffers
    start = np.frombuffer(buffer, np.uint8).__array_interface__["data"][0]
    assert start == items.buffers()[1].address
    assert page.layout.full_zip_layout.bits_per_value == 3200


# ---- other layouts -----------------------------------------------------------------------------------


def test_pages_of_nulls() -> None:
    page = encode(pa.nulls(5, pa.int64()))
    assert page.buffers == ()
    assert list(page.layout.constant_layout.layers) == [pb.REPDEF_NULLABLE_ITEM]
    page = encode(pa.array([[], None], pa.list_(pa.int8())))
    assert raw(page) == ["01000100", "02000100"]


def test_dictionary_items_in_order_of_appearance() -> None:
    page = encode(pa.array(["red", "blue"] * 100))
    layout = page.layout.mini_block_layout
    assert layout.num_dictionary_items == 2
    assert raw(page)[2] == spaced("20000000 14000000 00000000 03000000 07000000") + b"redblue".hex()


@pytest.mark.parametrize("offset_type", [pa.string(), pa.large_binary()])
def test_dictionary_gives_up_when_values_hardly_repeat(offset_type: pa.DataType) -> None:
    unique = pa.array([b"%08d" % i for i in range(5000)]).cast(offset_type)
    assert not encode(unique).layout.mini_block_layout.HasField("dictionary")
    assert encode(pa.array([b"a", b"bc"] * 60).cast(offset_type)).layout.mini_block_layout.HasField(
        "dictionary"
    )


def test_decimals_use_a_dictionary_but_are_never_packed() -> None:
    few = pa.array(np.random.default_rng(1).integers(0, 7, 2000)).cast(pa.decimal128(21, 2))
    layout = encode(few).layout.mini_block_layout
    assert layout.dictionary.flat.bits_per_value == 128
    many = pa.array(np.arange(2000)).cast(pa.decimal128(21, 2))
    assert encode(many, metadata=PLAIN).layout.mini_block_layout.value_compression.flat.bits_per_value == 128


def test_compression_is_kept_only_if_it_helps() -> None:
    zstd = {"lance-encoding:compression": "zstd", "lance-encoding:compression-level": "7"}
    same = pa.array(np.tile(np.random.default_rng(1).integers(0, 2**60, 16), 500))
    compression = encode(same, metadata=zstd).layout.mini_block_layout.value_compression.general
    assert (compression.compression.scheme, compression.compression.level) == (2, 7)
    noise = pa.array(np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 5000))
    assert encode(noise, metadata=zstd).layout.mini_block_layout.value_compression.HasField("flat")


def test_long_runs_of_empty_lists_force_more_pages() -> None:
    rows = [[1, 2, 3], *[[]] * 200_000, [4], *[None] * 100_000, [5]]
    array = pa.array(rows, pa.list_(pa.int32()))
    field = Schema.from_arrow(pa.schema([("c", array.type)])).fields[0]
    (pages,) = encode_column(array, field, (2, 1))
    assert len(pages) > 3
    assert sum(page.rows for page in pages) == len(array)


# ---- what the kernels refuse -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [kernels.FlatValues, kernels.BitpackedValues, kernels.RunLengthValues, kernels.ByteStreamSplitValues],
)
def test_values_outside_their_buffer(values: type[kernels.FlatValues]) -> None:
    eight = np.zeros(8, np.int32)
    values(eight, 32, 0, 8)
    for offset, count in ((0, 9), (1, 8), (9, 0), (2**60, 1), (0, 2**60)):
        with pytest.raises(ValueError, match=r"shorter|out of bounds"):
            values(eight, 32, offset, count)
    with pytest.raises(ValueError, match="bit"):
        values(eight, 12, 0, 1)


def test_string_offsets_outside_the_data() -> None:
    for offsets in ([0, 5], [3, 2], [-1, 1]):
        with pytest.raises(ValueError, match="offsets"):
            kernels.VariableInput(np.array(offsets, np.int32), b"abc", 32, 0, 1, None)
    with pytest.raises(ValueError, match="shorter"):
        kernels.VariableInput(np.array([0, 1], np.int32), b"abc", 32, 0, 2, None)


def test_levels_and_values_of_different_length() -> None:
    values = kernels.FlatValues(np.zeros(8, np.int32), 32, 0, 8)
    for count in (7, 9):
        with pytest.raises(ValueError, match="disagree"):
            kernels.encode_mini_block(values, plain_levels(count), False)


def test_unaligned_buffers_are_copied() -> None:
    data = np.frombuffer(b"\0" + np.arange(300, dtype="<i8").tobytes(), np.uint8)[1:]
    array = pa.Array.from_buffers(pa.int64(), 300, [None, pa.py_buffer(data)])
    aligned = encode(pa.array(np.arange(300)))
    assert raw(encode(array)) == raw(aligned)


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_symbols_shorten_text(share: float) -> None:
    rng = np.random.default_rng(5)
    words = ["lance", "columnar", "format", "encoding", "random", "access", "é", "日本"]
    picks = rng.integers(0, len(words), (4000, 6))
    text = [
        " ".join(words[p] for p in row) if rng.random() >= share or not i else ""
        for i, row in enumerate(picks)
    ]
    array = pa.array(text)
    values = kernels.VariableInput(array.buffers()[1], array.buffers()[2], 32, 0, len(array), None)
    coder = kernels.FsstCoder.train(values)
    assert coder is not None
    table = coder.symbol_table().tobytes()
    assert len(table) == 2312
    assert 0 < table[0] <= 255
    ends = pairwise(np.frombuffer(array.buffers()[1], np.int32))
    plain = sum(stop - start for start, stop in ends)
    coded = coder.encode(values).total_bytes
    assert coded < 0.6 * plain
    assert coder.share == pytest.approx(coded / plain, rel=0.1)


def test_escaped_bytes_count_twice() -> None:
    """Some bytes are too rare for symbols: the estimate must match the written size."""
    rng = np.random.default_rng(6)
    text = [b"columnar format " + rng.integers(0, 256, 12, np.uint8).tobytes() for _ in range(4000)]
    array = pa.array(text, pa.binary())
    values = kernels.VariableInput(array.buffers()[1], array.buffers()[2], 32, 0, len(array), None)
    coder = kernels.FsstCoder.train(values)
    assert coder is not None
    assert coder.share == pytest.approx(coder.encode(values).total_bytes / values.total_bytes, rel=0.02)


def test_symbols_are_not_used_for_noise() -> None:
    noise = np.random.default_rng(1).integers(0, 256, 100_000, np.uint8).tobytes()
    offsets = np.arange(0, 100_001, 50, dtype=np.int32)
    assert kernels.FsstCoder.train(kernels.VariableInput(offsets, noise, 32, 0, 2000, None)) is None


# ---- what the choice of encodings asks -----------------------------------------------------------------


def test_sizes_are_estimated_from_chunks() -> None:
    numbers = np.random.default_rng(1).integers(0, 2**20, 50_000)
    packed = kernels.BitpackedValues(numbers, 64, 0, len(numbers))
    page = kernels.encode_mini_block(packed, plain_levels(len(numbers)), False)
    exact = len(page.take_chunk_data())
    assert kernels.estimated_bytes(packed, 8) == pytest.approx(exact, rel=0.02)
    few = kernels.FlatValues(numbers, 64, 0, 100)
    assert kernels.estimated_bytes(few, 8) == 800
    assert packed.chunk_length(0) == 1024
    with pytest.raises(ValueError, match="after the last"):
        packed.chunk_length(50_000)


@pytest.mark.parametrize("scheme", [kernels.Scheme.LZ4, kernels.Scheme.ZSTD])
def test_a_compressor_can_be_used_again(scheme: kernels.Scheme) -> None:
    # Chunks of different length and content through one state.
    text = b"".join(b"line %d of %d;" % (n, n % 7) for n in range(3000))
    offsets = np.array(
        [0, *sorted(np.random.default_rng(1).integers(0, len(text), 2000)), len(text)], np.int32
    )
    values = kernels.VariableInput(offsets, text, 32, 0, len(offsets) - 1, None)
    levels = plain_levels(len(offsets) - 1)
    pages = []
    for _ in range(2):
        wrapped = kernels.CompressedValues(kernels.VariableValues(values), scheme, 0)
        pages += [
            kernels.encode_mini_block(wrapped, levels, False).take_chunk_data().tobytes() for _ in range(2)
        ]
    assert len(set(pages)) == 1
    assert len(pages[0]) < len(text)
