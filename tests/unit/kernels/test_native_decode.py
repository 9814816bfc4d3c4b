"""The native decoders against the reference decoders and against what was written."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import handmade_files as handmade
import numpy as np
import pytest
from corpus import multi_page_table
from counts import examples
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from lance_engine import kernels
from native_files import NativeFile, check_everywhere
from pylance_files import write_file
from random_files import RandomFile, random_files
from reference import bitpacking, compressive
from reference.values import Fixed, Variable


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_columns_of_many_pages(tmp_path: Path, version: str) -> None:
    table = multi_page_table().slice(0, 3000)
    data = write_file(tmp_path / "file.lance", table, version, batch_rows=500, cache_bytes=30_000)
    ranges = [[0, 3000], [499, 501], [400, 2600], [2999, 3000]]
    rows = [0, 499, 500, 501, 1000, 2999]
    check_everywhere(NativeFile.in_memory(data, table.schema), table, ranges, rows)
    check_everywhere(NativeFile.mapped(tmp_path / "file.lance", table.schema), table, ranges, rows)


@settings(max_examples=examples(62), deadline=None, suppress_health_check=list(HealthCheck))
@given(random_files(), st.data())
def test_random_layouts(file: RandomFile, data: st.DataObject) -> None:
    note("\n".join(file.notes))
    count = file.table.num_rows
    if count == 0:
        return
    start = data.draw(st.integers(0, count - 1), label="start")
    stop = data.draw(st.integers(start + 1, count), label="stop")
    rows = sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=6), label="rows"))
    check_everywhere(NativeFile.in_memory(file.data, file.table.schema), file.table, [[start, stop]], rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.lance"
        path.write_bytes(file.data)
        check_everywhere(NativeFile.mapped(path, file.table.schema), file.table, [[start, stop]], rows)


@pytest.mark.parametrize("level", kernels.simd_levels())
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_unpacking_with_every_instruction_set(bits: int, level: str) -> None:
    rng = np.random.default_rng(bits)
    for width in range(bits + 1):
        packed = rng.bytes(bitpacking.block_bytes(width))
        expected = bitpacking.unpack_block(packed, bits, width)
        actual = np.frombuffer(kernels.unpack_block(packed, bits, width, level), f"<u{bits // 8}")
        assert (actual == expected).all(), width


def block_of(encoding: Any) -> kernels.BlockDecoder:
    """The native decoder for a block encoding message."""
    return kernels.block_decoder(encoding.SerializeToString())


@settings(max_examples=examples(37), deadline=None)
@given(
    st.sampled_from([8, 16, 32, 64]),
    st.sampled_from(["flat", "rle_block", "inline_bitpacking", "out_of_line", "out_of_line raw"]),
    st.sampled_from(["", "lz4", "zstd"]),
    st.integers(1, 3000),
    st.integers(0, 64),
    st.integers(1, 400),
)
def test_blocks(bits: int, kind: str, scheme: str, count: int, width: int, repeats: int) -> None:
    if kind == "inline_bitpacking":
        count = min(count, 1024)
    width = min(width, bits)
    rng = np.random.default_rng(count)
    wide = rng.integers(0, 2**width, count, dtype=np.uint64, endpoint=False) if width else np.zeros(count)
    values = np.repeat(wide, repeats)[:count].astype(f"<u{bits // 8}")
    if kind.startswith("out_of_line"):
        needed = int(np.bitwise_or.reduce(values)).bit_length()
        block = handmade.out_of_line_bitpacking(values, needed, kind.endswith("raw"))
    else:
        block = getattr(handmade, kind)(values)
    if scheme and kind != "rle_block":
        block = handmade.general(block, scheme)
    expected = compressive.decode_block(block.encoding, block.buffers[0], count)
    assert isinstance(expected, Fixed)
    assert (expected.integers() == values).all()
    actual = block_of(block.encoding).decode(block.buffers[0], count)
    assert actual == values.tobytes()


@pytest.mark.parametrize("offset_bits", [32, 64])
def test_blocks_of_strings(offset_bits: int) -> None:
    strings = [b"", b"red", b"", b"a much longer string", b"blue"]
    block = handmade.variable_block(strings, offset_bits)
    assert compressive.decode_block(block.encoding, block.buffers[0], 5) == Variable(strings)
    native = block_of(block.encoding).decode(block.buffers[0], 5)
    assert native == block.buffers[0]
