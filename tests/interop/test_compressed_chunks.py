"""General compression inside of chunks, at every place and level that readers accept: pylance reads along."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import handmade_files as handmade
import numpy as np
import pyarrow as pa
import pytest
from corpus import difference, one_column
from handmade_files import Chunk, Encoded
from lance.file import LanceFileReader
from native_files import NativeFile
from reference import mini_block
from reference.levels import Items, LevelArrays, Lists, choose_layers, ravel, visible

CHUNK = 512
ROWS = 4 * CHUNK
VERSIONS = [(2, 1), (2, 2)]
LEVELS = [("lz4", None), *(("zstd", level) for level in (None, -7, 0, 1, 3, 9, 19, 22))]
RNG = np.random.default_rng(8)
RUNS = np.repeat(RNG.integers(0, 2**31, ROWS // 32), 32)
TEXT = [b"row %d of the " % (row % 97) for row in range(ROWS)]
Encode = Callable[[slice], Encoded]


def check(path: Path, table: pa.Table, page: handmade.Page, version: tuple[int, int]) -> None:
    """Scans, ranges and single rows of a file of this page, by both libraries."""
    path.write_bytes(handmade.make_file(table.schema, [[page]], table.num_rows, version))
    file, theirs = NativeFile.mapped(path, table.schema), LanceFileReader(str(path))
    count = table.num_rows
    rows = [0, 1, count // 3, count - 1]
    assert not difference(file.table(), table)
    assert not difference(theirs.read_all().to_table(), table)
    assert not difference(file.range(count // 4, count // 2 + 7), table.slice(count // 4, count // 4 + 7))
    assert not difference(file.rows_at(rows), table.take(pa.array(rows)))
    assert not difference(theirs.take_rows(rows).to_table(), table.take(pa.array(rows)))


def values_page(encode: Encode, version: tuple[int, int]) -> handmade.Page:
    """Values without nulls in equal chunks."""
    arrays = ravel([Items(ROWS, None)], choose_layers([Items(ROWS, None)]))
    parts = [slice(start, start + CHUNK) for start in range(0, ROWS, CHUNK)]
    chunks = [Chunk(CHUNK, CHUNK, None, None, encode(part)) for part in parts]
    return handmade.mini_block(arrays, ROWS, chunks, version == (2, 2))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize(("scheme", "level"), LEVELS)
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_runs(tmp_path: Path, bits: int, scheme: str, level: int | None, version: tuple[int, int]) -> None:
    """In run-length encoding, the values are compressed and the lengths are not."""
    values = RUNS.astype(f"u{bits // 8}")

    def encode(part: slice) -> Encoded:
        return handmade.general(handmade.rle(values[part]), scheme, level)

    check(tmp_path / "file.lance", one_column(pa.array(values)), values_page(encode, version), version)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize(("scheme", "level"), LEVELS)
@pytest.mark.parametrize("inner", ["flat", "byte_stream_split", "inline_bitpacking", "variable", "fsst"])
def test_other_values(
    tmp_path: Path, inner: str, scheme: str, level: int | None, version: tuple[int, int]
) -> None:
    make = getattr(handmade, inner)
    if inner in ("variable", "fsst"):
        table = one_column(pa.array(TEXT, pa.string()))
        encoded = lambda part: make(TEXT[part], 32)  # noqa: E731
    else:
        numbers = RUNS.astype(np.uint32)
        table = one_column(pa.array(numbers))
        encoded = lambda part: make(numbers[part])  # noqa: E731

    def encode(part: slice) -> Encoded:
        return handmade.general(encoded(part), scheme, level)

    check(tmp_path / "file.lance", table, values_page(encode, version), version)


@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize("level", [level for scheme, level in LEVELS if scheme == "zstd"])
@pytest.mark.parametrize("nested", [False, True])
def test_levels(tmp_path: Path, nested: bool, level: int | None, version: tuple[int, int]) -> None:
    """Repetition and definition levels in zstd, at each of its own levels."""
    valid = np.arange(ROWS) % 5 != 2
    leaf = pa.array(np.where(valid, np.arange(ROWS), None), pa.int32())
    slots: list[Items | Lists] = [Items(ROWS, valid)]
    array = leaf
    if nested:
        offsets = np.arange(0, ROWS + 1, 4)
        array = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), leaf)
        slots.append(Lists(offsets.astype(np.int64), np.ones(len(array), np.bool_)))
    arrays: LevelArrays = ravel(slots, choose_layers(slots))
    entries = handmade.cut_levels(arrays, [CHUNK] * (ROWS // CHUNK))
    numbers = leaf.fill_null(0).to_numpy()
    chunks = []
    for number, part in enumerate(entries):
        content = handmade.flat(numbers[number * CHUNK : (number + 1) * CHUNK])
        rep, definition = (
            None if each is None else handmade.general(handmade.flat(each[part]), "zstd", level)
            for each in (arrays.repetition, arrays.definition)
        )
        chunks.append(Chunk(CHUNK, part.stop - part.start, rep, definition, content))
    assert int(visible(arrays).sum()) == ROWS
    index = None
    if nested:
        counts = [part.stop - part.start for part in entries]
        index = mini_block.repetition_index(arrays, counts).astype("<u8").tobytes()
    page = handmade.mini_block(arrays, len(array), chunks, version == (2, 2), index)
    check(tmp_path / "file.lance", one_column(array), page, version)
