"""LZ4 blocks in which every value is one sequence: LZ4 blocks like any other, read value by value."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from lance_engine import kernels
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import LanceError
from lance_engine.kernels import LevelBuilder
from lance_engine.scan.projection import narrowed_schema
from lance_engine.scan.stream import ScanStream
from lance_engine.write.dataset import write_dataset

LZ4 = pa.Codec("lz4_raw")
ROWS = 1000


def plain(numbers: Sequence[int]) -> bytes:
    return b"".join(number.to_bytes(16, "little", signed=True) for number in numbers)


def block(numbers: Sequence[int], literals: int) -> bytes:
    """What the writer makes of numbers that differ in their lowest `literals` bytes."""
    values = [plain([number]) for number in numbers]
    match = 12 - literals
    out = bytes([0xF0 | match, literals + 1]) + values[0]
    for value in values[1:-1]:
        out += value[:literals] + b"\x10\x00" + bytes([literals << 4 | match])
    return struct.pack("<I", 16 * len(values)) + out[:-1] + b"\xf0\x01" + values[-1]


def numbers_of(literals: int, count: int, above: int = 0) -> list[int]:
    random = np.random.default_rng(100 * literals + count)
    low = random.integers(0, 256, (count, literals), dtype=np.uint8)
    return [int.from_bytes(row.tobytes(), "little") + (above << 8 * literals) for row in low]


def library(data: bytes) -> bytes | None:
    """What the LZ4 library expands a block to; None where it refuses."""
    try:
        return kernels.expand_lz4(data)
    except kernels.CorruptDataError:
        return None


@pytest.mark.sampled(40)
@pytest.mark.parametrize("literals", range(1, 9))
@pytest.mark.parametrize("count", [3, 4, 5, 6, 64, 1000])
@pytest.mark.parametrize("above", [0, -1, 1 << 60])
def test_every_reader_of_lz4_reads_them(literals: int, count: int, above: int) -> None:
    numbers = numbers_of(literals, count, above)
    data = block(numbers, literals)
    assert library(data) == plain(numbers)
    assert LZ4.decompress(data[4:], 16 * count).to_pybytes() == plain(numbers)
    assert kernels.uniform_values(data, 0, count, False) == plain(numbers)
    narrow = kernels.uniform_values(data, 0, count, True)
    fits = all(-(1 << 63) <= number < 1 << 63 for number in numbers)
    assert narrow == (b"".join(n.to_bytes(8, "little", signed=True) for n in numbers) if fits else None)


@settings(max_examples=examples(50), deadline=None)
@given(
    literals=st.integers(1, 8),
    count=st.integers(3, 40),
    above=st.sampled_from([0, -1, 77, 1 << 62]),
    last=st.sampled_from([0, -5, 1 << 100]),
    place=st.tuples(st.integers(0, 40), st.integers(1, 40)),
    changes=st.lists(st.tuples(st.integers(0, 700), st.integers(0, 255)), max_size=3),
    cut=st.integers(-3, 3),
)
def test_damaged_blocks_are_what_the_library_makes_of_them(
    literals: int,
    count: int,
    above: int,
    last: int,
    place: tuple[int, int],
    changes: list[tuple[int, int]],
    cut: int,
) -> None:
    data = bytearray(block([*numbers_of(literals, count - 1, above), last], literals))
    for at, value in changes:
        data[at % len(data)] = value
    data = data[:-cut] if cut > 0 else data + bytes(-cut)
    begin, end = min(place[0], count - 1), min(place[0] + place[1], count)
    found = kernels.uniform_values(bytes(data), begin, end, False)
    narrow = kernels.uniform_values(bytes(data), begin, end, True)
    if found is None:  # read as other blocks are
        assert narrow is None
        return
    # Where single values are read, what is behind them is not looked at, as in other blocks.
    expected = library(bytes(data)) or kernels.expand_lz4(bytes(data), 16 * end)
    assert found == expected[16 * begin : 16 * end]


def compressed(numbers: Sequence[int], weight: float = 0.5) -> tuple[bytes, float]:
    """A chunk as the writer stores it, and the share of chunks with equally long sequences."""
    values = kernels.FlatValues(plain(numbers), 128, 0, len(numbers), 1 << 14)
    wrapped = kernels.CompressedValues(values, kernels.Scheme.LZ4, 0, True, weight)
    levels = LevelBuilder(len(numbers))
    levels.add_item(None, 0, len(numbers))
    page = kernels.encode_mini_block(wrapped, levels.finish(), False)
    return page.take_chunk_data().tobytes(), wrapped.uniform_share()


PRICES = [int(n) for n in np.random.default_rng(5).integers(90_000, 10_000_000, 400)]


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param(PRICES, id="positive"),
        pytest.param([-n for n in PRICES], id="negative"),
        pytest.param([*PRICES, -1], id="another last"),
        pytest.param([(1 << 90) + n for n in PRICES], id="many digits"),
    ],
)
def test_where_values_share_their_upper_bytes_sequences_are_equally_long(numbers: list[int]) -> None:
    data, share = compressed(numbers)
    assert share == 1
    assert block(numbers, 3) in data


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param([7] * 400, id="constant"),
        pytest.param(sorted(n % 5 for n in PRICES), id="runs"),
        pytest.param([n * (-1) ** n for n in PRICES], id="both signs"),
        pytest.param([n**5 for n in PRICES], id="differ in all bytes"),
        pytest.param(PRICES[:2], id="two"),
    ],
)
def test_other_values_are_compressed_as_always(numbers: list[int]) -> None:
    data, share = compressed(numbers)
    assert share == 0
    assert LZ4.compress(plain(numbers)).to_pybytes() in data


def test_where_decoding_time_does_not_count_blocks_are_as_small_as_possible() -> None:
    assert compressed(PRICES, 0.0)[1] == 0
    assert len(compressed(PRICES, 0.0)[0]) < len(compressed(PRICES)[0])


def decimals(kind: str, count: int) -> list[Decimal | None]:
    random = np.random.default_rng(7)
    prices = [int(n) for n in random.integers(90_000, 10_000_000, count)]
    made: dict[str, Any] = {
        "prices": prices,
        "negative": [-n for n in prices],
        "both signs": [n - 5_000_000 for n in prices],
        "nulls": [None if n % 3 == 0 else n for n in prices],
        "some of 38 digits": [10**37 + n if n % 2 else n for n in prices],
        "all of 38 digits": [10**37 + n for n in prices],
        "constant": [123_456] * count,
        "small": [n % 200 + count * (n % 7) for n in prices],
        "of 18 digits": [n * 10**10 + m for n, m in zip(prices, reversed(prices), strict=True)],
    }
    return [None if n is None else Decimal(n) for n in made[kind]]


KINDS = (
    "prices",
    "negative",
    "both signs",
    "nulls",
    "some of 38 digits",
    "all of 38 digits",
    "constant",
    "small",
    "of 18 digits",
)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("count", [2, 3, 700, 6000])
def test_pylance_and_the_engine_read_them(tmp_path: Path, version: str, count: int) -> None:
    columns = {kind: pa.array(decimals(kind, count), pa.decimal128(38, 0)) for kind in KINDS}
    pieces = np.linspace(0, count, 5).astype(np.int32)
    table = pa.table(columns)
    lists = pa.table({"lists": pa.ListArray.from_arrays(pieces, columns["prices"])})
    rows = sorted({0, 1, count // 2, count - 2, count - 1, min(count - 1, 511)})
    for name, data, taken in (("flat", table, rows), ("lists", lists, [0, 3])):
        write_dataset(data, tmp_path / name, data_storage_version=version)
        if name == "flat" and count == 6000:
            (file,) = (tmp_path / name / "data").iterdir()
            assert file.read_bytes().count(b"\x10\x00\x39") > count  # offset and token of three literals
        theirs = lance.dataset(tmp_path / name)
        ours = DatasetVersion.open(str(tmp_path / name))
        assert theirs.to_table().equals(data)
        assert ours.scan().to_table().equals(data)
        assert theirs.take(taken).equals(data.take(taken))
        assert ours.take(taken).equals(data.take(taken))
        assert ours.scan(offset=1, limit=1).to_table().equals(data.slice(1, 1))


@pytest.mark.parametrize("kind", KINDS)
def test_decimals_in_64_bits(tmp_path: Path, kind: str) -> None:
    numbers = [None if n is None else int(n) for n in decimals(kind, 3000)]
    small = pa.decimal128(18, 0)
    validity = pa.array([n is not None for n in numbers]).buffers()[1]
    data = pa.py_buffer(plain([n or 0 for n in numbers]))  # for some kinds more digits than the type has
    table = pa.table({"id": range(3000), "n": pa.Array.from_buffers(small, 3000, [validity, data])})
    write_dataset(table, tmp_path / "d", zone_maps=False)
    scanner = DatasetVersion.open(str(tmp_path / "d")).scan(filter="id % 1000 <> 3 AND id < 2900")
    schema = narrowed_schema(scanner.schema, {"n"})
    batches = ScanStream(scanner, schema, narrowed=frozenset({"n"})).batches()
    if "38" in kind:
        with pytest.raises((LanceError, pa.ArrowInvalid), match="more digits"):
            list(batches)
        return
    expected = [n for i, n in enumerate(numbers) if i % 1000 != 3 and i < 2900]
    found = pa.Table.from_batches(batches, schema).column("n").to_pylist()
    assert [None if n is None else int(n) for n in found] == expected
