"""Damaged data files: an error that says where, never a crash, a hang or a broken table."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import handmade_files as handmade
import numpy as np
import pyarrow as pa
import pytest
from handmade_files import Chunk, Encoded, Page
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CorruptFileError, LanceError, UnsupportedFeatureError
from lance_engine.format.pb import encodings21_pb2 as pb
from native_files import NativeFile
from pylance_files import write_dataset
from reference.levels import Layer, LevelArrays
from seeds import SEEDS, SEEDS_2_0, write_seeds

SUPPORT = Path(__file__).parent.parent / "support"


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seeds")
    write_seeds(folder, SEEDS)
    write_seeds(folder, SEEDS_2_0, version_2_0=True)
    return folder


def read_damaged(folder: Path, first: int, count: int) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(SUPPORT)])}
    command = [sys.executable, str(SUPPORT / "damage.py"), str(folder), str(first), str(count)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, f"died reading {(folder / 'current').read_text()}: {done.stderr[-2000:]}"
    assert done.stdout == ""


def test_random_damage(seeds: Path) -> None:
    read_damaged(seeds, 0, 8)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(6))
def test_much_random_damage(seeds: Path, batch: int) -> None:
    read_damaged(seeds, 1000 + 300 * batch, 300)


# ---- one fault at a time ----------------------------------------------------------------------------------

SCHEMA = pa.schema([pa.field("value", pa.int32())])
NUMBERS = np.arange(100, dtype=np.int32)


def plain_page() -> Page:
    arrays = LevelArrays([Layer.ALL_VALID_ITEM], None, None, 100)
    chunks = [Chunk(64, 64, None, None, handmade.flat(NUMBERS[:64]))]
    chunks.append(Chunk(36, 36, None, None, handmade.flat(NUMBERS[64:])))
    return handmade.mini_block(arrays, 100, chunks, large=False)


def page_of(content: Encoded, count: int = 100, schema_layers: tuple[int, ...] = (1,)) -> Page:
    arrays = LevelArrays([Layer(each) for each in schema_layers], None, None, count)
    return handmade.mini_block(arrays, count, [Chunk(count, count, None, None, content)], large=False)


def read(page: Page, schema: pa.Schema = SCHEMA, rows: int = 100) -> pa.Table:
    return NativeFile.in_memory(handmade.make_file(schema, [[page]], rows, (2, 1)), schema).table()


def check_fault(
    page: Page, error: type[LanceError], match: str | None = None, schema: pa.Schema = SCHEMA
) -> None:
    with pytest.raises(error, match=match) as caught:
        read(page, schema, page.length)
    assert caught.value.place["path"] == "file.lance"
    assert str(caught.value.place["column"]).startswith("value")
    assert caught.value.place["page"] == 0


def test_the_page_without_fault() -> None:
    assert read(plain_page())["value"].to_pylist() == NUMBERS.tolist()


def test_unknown_page_encoding() -> None:
    page = plain_page()
    page.type_url = "/lance.encodings23.PlanarLayout"
    check_fault(page, UnsupportedFeatureError, "encodings23")


@pytest.mark.parametrize("outer", ["lz4", "zstd"])
@pytest.mark.parametrize("inner", ["lz4", "zstd"])
def test_values_that_are_compressed_twice(outer: str, inner: str) -> None:
    """No writer does this. Expanding one while reading the other read memory that had been freed."""
    twice = handmade.general(handmade.general(handmade.flat(NUMBERS), inner), outer)
    check_fault(page_of(twice), UnsupportedFeatureError, "compressed twice")


def test_unknown_layout() -> None:
    page = plain_page()
    page.layout = pb.PageLayout(sparse_layout=pb.SparseLayout())
    check_fault(page, UnsupportedFeatureError, "sparse_layout")


def test_a_layout_of_the_future() -> None:
    page = plain_page()
    page.layout = pb.PageLayout()
    check_fault(page, UnsupportedFeatureError, "PageLayout of no kind")


@pytest.mark.parametrize("layer", [0, 7])
def test_unknown_layer(layer: int) -> None:
    page = plain_page()
    page.layout.mini_block_layout.layers[0] = layer
    check_fault(page, UnsupportedFeatureError, "layer")


def test_layers_of_another_type() -> None:
    page = plain_page()
    page.layout.mini_block_layout.layers.append(Layer.NULLABLE_ITEM)
    check_fault(page, CorruptFileError, "layer")


def test_unknown_compressive_encoding() -> None:
    page = plain_page()
    page.layout.mini_block_layout.value_compression.Clear()
    check_fault(page, UnsupportedFeatureError, "encod")


def test_width_of_another_type() -> None:
    check_fault(page_of(handmade.flat(NUMBERS.astype(np.int64))), CorruptFileError, "width")


def test_strings_where_numbers_should_be() -> None:
    check_fault(page_of(handmade.variable([b"x"] * 100, 32)), CorruptFileError)


def test_compression_of_unknown_scheme() -> None:
    content = handmade.general(handmade.flat(NUMBERS), "zstd")
    content.encoding.general.compression.scheme = 0
    check_fault(page_of(content), UnsupportedFeatureError, "scheme|compression")


@pytest.mark.parametrize("scheme", ["lz4", "zstd"])
@pytest.mark.parametrize("declared", [0, 1, 2**31 - 1, 2**32 - 1])
def test_lying_uncompressed_length(scheme: str, declared: int) -> None:
    content = handmade.general(handmade.flat(NUMBERS), scheme)
    width = 4 if scheme == "lz4" else 8
    content.buffers[0] = declared.to_bytes(width, "little") + content.buffers[0][width:]
    check_fault(page_of(content), CorruptFileError)


def test_a_run_of_length_zero() -> None:
    content = handmade.rle(NUMBERS)
    content.buffers[1] = b"\0" + content.buffers[1][1:]
    check_fault(page_of(content), CorruptFileError, "run")


def test_too_few_runs() -> None:
    content = handmade.rle(NUMBERS[:90])
    check_fault(page_of(content), CorruptFileError, "run")


def test_packed_width_wider_than_the_values() -> None:
    content = handmade.inline_bitpacking(NUMBERS)
    content.buffers[0] = b"\x21\0\0\0" + content.buffers[0][4:]
    check_fault(page_of(content), CorruptFileError)


def test_short_value_buffer() -> None:
    content = handmade.flat(NUMBERS[:50])
    check_fault(page_of(content), CorruptFileError)


STRINGS = pa.schema([pa.field("value", pa.string())])


@pytest.mark.parametrize("offset", [2, 50, 100])
@pytest.mark.parametrize("value", [0, 2**31, 2**32 - 1])
def test_string_offsets_out_of_order(offset: int, value: int) -> None:
    content = handmade.variable([b"some text %d" % number for number in range(100)], 32)
    data = content.buffers[0]
    content.buffers[0] = data[: 4 * offset] + value.to_bytes(4, "little") + data[4 * offset + 4 :]
    check_fault(page_of(content), CorruptFileError, "offset", STRINGS)


@pytest.mark.parametrize("encode", [handmade.variable, handmade.fsst])
@pytest.mark.parametrize("first", [0, 4, 403])
def test_string_offsets_that_point_into_themselves(
    encode: Callable[[list[bytes], int], Encoded], first: int
) -> None:
    content = encode([b"some text %d" % number for number in range(100)], 32)
    content.buffers[0] = first.to_bytes(4, "little") + content.buffers[0][4:]
    check_fault(page_of(content), CorruptFileError, "offsets", STRINGS)


@pytest.mark.parametrize("start", [0, 8, 23])
def test_dictionary_of_strings_that_start_inside_their_offsets(start: int) -> None:
    arrays = LevelArrays([Layer.ALL_VALID_ITEM], None, None, 100)
    block = handmade.variable_block([b"a", b"b", b"c"], 32)
    block.buffers[0] = block.buffers[0][:4] + start.to_bytes(4, "little") + block.buffers[0][8:]
    chunks = [Chunk(100, 100, None, None, handmade.flat(np.zeros(100, np.uint8)))]
    page = handmade.mini_block(arrays, 100, chunks, large=False, dictionary=(block, 3))
    check_fault(page, CorruptFileError, "offsets", STRINGS)


@pytest.mark.parametrize("count", [99, 101, 2**31])
def test_levels_without_bits_that_outnumber_the_rows(count: int) -> None:
    """However many there are, they take no bytes in the file."""
    levels = handmade.out_of_line_bitpacking(np.zeros(100, np.uint16), 0, raw_tail=False)
    layout = pb.ConstantLayout(
        layers=[Layer.NULLABLE_ITEM], def_compression=levels.encoding, num_def_values=count
    )
    page = Page(pb.PageLayout(constant_layout=layout), [b"", b""], 100)
    check_fault(page, CorruptFileError, "levels")


def test_repetition_levels_without_bits() -> None:
    levels = handmade.out_of_line_bitpacking(np.zeros(100, np.uint16), 0, raw_tail=False)
    layout = pb.ConstantLayout(
        layers=[Layer.NULLABLE_ITEM, Layer.NULLABLE_LIST],
        rep_compression=levels.encoding,
        num_rep_values=2**31,
    )
    page = Page(pb.PageLayout(constant_layout=layout), [b"", b""], 3)
    check_fault(page, CorruptFileError, "impossible number", LISTS)


@pytest.mark.parametrize(
    "damage", [slice(0, 1), slice(4, 8), slice(2000, 2312)], ids=["count", "magic", "length"]
)
def test_fsst_symbol_table(damage: slice) -> None:
    content = handmade.fsst([b"the cab"] * 100, 32)
    table = bytearray(content.encoding.fsst.symbol_table)
    if damage.stop == 2312:
        table = table[:2000]
    else:
        table[damage] = b"\x02" * len(table[damage])
    content.encoding.fsst.symbol_table = bytes(table)
    check_fault(page_of(content), CorruptFileError, schema=STRINGS)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("place", [0, 57, 99])
@pytest.mark.parametrize("index", ["the last", "one more", "half", "the largest"])
def test_dictionary_index_out_of_range(bits: int, place: int, index: str) -> None:
    arrays = LevelArrays([Layer.ALL_VALID_ITEM], None, None, 100)
    indices = (np.arange(100) % 3).astype(f"<u{bits // 8}")
    numbers = {"the last": 2, "one more": 3, "half": 2 ** (bits - 1), "the largest": 2**bits - 1}
    indices[place] = numbers[index]
    dictionary = (handmade.variable_block([b"a", b"b", b"c"], 32), 3)
    chunks = [Chunk(100, 100, None, None, handmade.flat(indices))]
    page = handmade.mini_block(arrays, 100, chunks, large=False, dictionary=dictionary)
    if index == "the last":
        assert read(page, STRINGS).column("value").to_pylist() == ["abc"[each] for each in indices]
    else:
        check_fault(page, CorruptFileError, "index", STRINGS)


def test_definition_level_without_meaning() -> None:
    levels = np.zeros(100, np.uint16)
    levels[7] = 2
    arrays = LevelArrays([Layer.NULLABLE_ITEM], None, levels, 100)
    chunks = [Chunk(100, 100, None, handmade.flat(levels), handmade.flat(NUMBERS))]
    page = handmade.mini_block(arrays, 100, chunks, large=False)
    check_fault(page, CorruptFileError, "level")


LISTS = pa.schema([pa.field("value", pa.list_(pa.int32()))])


def list_page(repetition: list[int], index: list[int]) -> Page:
    rep = np.array(repetition, np.uint16)
    arrays = LevelArrays([Layer.ALL_VALID_ITEM, Layer.ALL_VALID_LIST], rep, None, len(rep))
    chunks = [Chunk(len(rep), len(rep), handmade.flat(rep), None, handmade.flat(NUMBERS[: len(rep)]))]
    words = np.array(index, "<u8").tobytes()
    return handmade.mini_block(arrays, 3, chunks, large=False, index=words)


def test_the_list_page_without_fault() -> None:
    table = read(list_page([1, 0, 1, 1, 0], [3, 0]), LISTS, 3)
    assert table["value"].to_pylist() == [[0, 1], [2], [3, 4]]


@pytest.mark.parametrize(
    ("repetition", "index"),
    [
        ([1, 0, 1, 1, 0], [2, 0]),
        ([1, 0, 1, 1, 0], [4, 0]),
        ([1, 0, 1, 0, 0], [3, 0]),
        ([0, 0, 1, 1, 1], [3, 0]),
        ([1, 0, 1, 2, 0], [3, 0]),
        ([1, 0, 1, 1, 0], [2**63, 2**63]),
        ([1, 0, 1, 1, 0], []),
    ],
)
def test_repetition_that_contradicts_its_index(repetition: list[int], index: list[int]) -> None:
    check_fault(list_page(repetition, index), CorruptFileError, schema=LISTS)


@pytest.mark.parametrize("rows", [99, 101, 2**40])
def test_another_number_of_rows(rows: int) -> None:
    page = plain_page()
    page.length = rows
    check_fault(page, CorruptFileError, "rows|values")


@pytest.mark.parametrize(
    "words", [b"", b"\x00", b"\xff\xff\xff\xff", b"\x06\x00\x00\x00", b"\xf0\x00\xf0\x00"]
)
def test_chunk_words(words: bytes) -> None:
    page = plain_page()
    page.buffers[0] = words
    check_fault(page, CorruptFileError)


@pytest.mark.parametrize("keep", [0, 10, 200])
def test_cut_off_chunks(keep: int) -> None:
    page = plain_page()
    page.buffers[1] = page.buffers[1][:keep]
    check_fault(page, CorruptFileError)


def test_missing_buffers() -> None:
    page = plain_page()
    del page.buffers[1]
    check_fault(page, CorruptFileError)


# ---- through the dataset ----------------------------------------------------------------------------------


@pytest.fixture
def dataset(tmp_path: Path) -> tuple[str, Path]:
    table = pa.table({"value": pa.array(range(1000)), "text": pa.array(["word"] * 1000)})
    write_dataset(tmp_path / "t.lance", table, "2.1")
    (path,) = (tmp_path / "t.lance" / "data").iterdir()
    return str(tmp_path / "t.lance"), path


@pytest.mark.parametrize("keep", [0, 7, 39, 1000])
def test_truncated_data_file(dataset: tuple[str, Path], keep: int) -> None:
    uri, path = dataset
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(CorruptFileError, match="bytes") as caught:
        DatasetVersion.open(uri).scan().to_table()
    assert path.name in str(caught.value)


def test_data_file_of_another_version(dataset: tuple[str, Path]) -> None:
    uri, path = dataset
    data = path.read_bytes()
    path.write_bytes(data[:-8] + b"\x02\0\x09\0LANC")
    with pytest.raises(LanceError, match=r"2\.9") as caught:
        DatasetVersion.open(uri).scan().to_table()
    assert path.name in str(caught.value)


def test_data_file_without_magic(dataset: tuple[str, Path]) -> None:
    uri, path = dataset
    path.write_bytes(path.read_bytes()[:-4] + b"PAR1")
    with pytest.raises(CorruptFileError) as caught:
        DatasetVersion.open(uri).scan().to_table()
    assert path.name in str(caught.value)


def test_missing_data_file(dataset: tuple[str, Path]) -> None:
    uri, path = dataset
    path.unlink()
    with pytest.raises(CorruptFileError, match="missing") as caught:
        DatasetVersion.open(uri).take([3])
    assert path.name in str(caught.value)
