"""Targets of ways to decode that have a slower twin: both must give the same, of damaged input, too."""

from __future__ import annotations

import functools
import random
import struct
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from fuzz_files import PagedFile
from fuzz_loop import Target
from fuzz_mutation import mutate_bytes
from lance_engine import kernels
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.scan.dictionary_codes import MOST_BYTES, MOST_STRINGS, DictionaryCodes
from lance_engine.write.dataset import write_dataset
from native_files import NativeFile

# ---- LZ4 blocks of numbers ---------------------------------------------------------------------------------

WIDE = 16  # the bytes of a value
COUNTS = (3, 4, 9, 70)


@dataclass(frozen=True)
class Block:
    """An LZ4 block after the length of what it holds."""

    data: bytes

    def mutated(self, rng: random.Random, others: Sequence[Block]) -> Block:
        if rng.random() < 0.1:
            size = rng.choice([0, 1, WIDE * rng.randrange(80), rng.randrange(2000)])
            return replace(self, data=struct.pack("<I", size) + self.data[4:])
        return replace(self, data=mutate_bytes(rng, self.data, rng.choice(others).data))

    def stored(self) -> bytes:
        return self.data


def _blocks() -> list[Block]:
    """Blocks whose sequences are equally long, and others of the same values."""
    rng = np.random.default_rng(3)
    codec, found = pa.Codec("lz4_raw"), []
    for literals in range(1, 9):
        for count in COUNTS:
            values = np.full((count, WIDE), count, np.uint8)
            values[:, :literals] = rng.integers(0, 256, (count, literals))
            rows = [row.tobytes() for row in values]
            length, match = struct.pack("<I", WIDE * count), 12 - literals
            out = bytes([0xF0 | match, literals + 1]) + rows[0]
            for row in rows[1:-1]:
                out += row[:literals] + b"\x10\x00" + bytes([literals << 4 | match])
            found.append(Block(length + out[:-1] + b"\xf0\x01" + rows[-1]))
            found.append(Block(length + codec.compress(values.tobytes()).to_pybytes()))
    return found


def _expanded(data: bytes, *wanted: int) -> bytes | None:
    try:
        return kernels.expand_lz4(data, *wanted)
    except kernels.CorruptDataError:
        return None


def _read_block(input: Block) -> str:
    """All ways of reading a block give what the library gives, or refuse what it refuses."""
    data = input.data
    if len(data) < 4 or len(data) > 1 << 16:
        return ""
    library = _expanded(data)
    count = struct.unpack_from("<I", data)[0] // WIDE
    for begin, end in ((0, count), (0, 1), (count // 2, count // 2 + 1), (1, count - 1), (count - 1, count)):
        if not 0 <= begin < end:
            continue
        found = kernels.uniform_values(data, begin, end, False)
        if found is None:
            continue
        whole = library or _expanded(data, WIDE * end)
        if whole is None or found != whole[WIDE * begin : WIDE * end]:
            return "single values differ from those of the library"
        narrow = kernels.uniform_values(data, begin, end, True)
        numbers = [
            int.from_bytes(found[at : at + WIDE], "little", signed=True) for at in range(0, len(found), WIDE)
        ]
        fits = all(-(1 << 63) <= number < 1 << 63 for number in numbers)
        if narrow != (struct.pack(f"<{len(numbers)}q", *numbers) if fits else None):
            return "values of 64 bits differ from those of 128"
    return ""


# ---- columns -----------------------------------------------------------------------------------------------

ROWS = 1500
WORDS = ["", "a", "été", "two words", "long " * 9]


def _files(columns: dict[str, pa.Array]) -> list[PagedFile]:
    found = []
    for version in ("2.1", "2.2"):
        for name, values in columns.items():
            table = pa.table({name: values})
            with tempfile.TemporaryDirectory() as folder:
                write_dataset(table, folder, data_storage_version=version, zone_maps=False)
                (path,) = Path(folder).glob("data/*.lance")
                found.append(PagedFile.of(path.read_bytes(), table.schema))
    return found


@functools.cache
def _decimals() -> list[PagedFile]:
    """Prices as the writer stores them: of one sign, of both, few, with nulls."""
    prices = np.random.default_rng(4).integers(90_000, 10_000_000, ROWS).tolist()
    kinds: dict[str, list[int | None]] = {
        "prices": prices,
        "both signs": [n - 5_000_000 for n in prices],
        "negative at last": [-n if i > ROWS // 2 else n for i, n in enumerate(prices)],
        "few": [n % 11 for n in prices],
        "nulls": [None if n % 3 == 0 else n for n in prices],
        "same": [7] * ROWS,
    }
    return _files({name: pa.array(values).cast(pa.decimal128(21, 0)) for name, values in kinds.items()})


@functools.cache
def _words() -> list[PagedFile]:
    """Strings with a dictionary."""
    picks = np.random.default_rng(5).integers(0, len(WORDS), ROWS).tolist()
    words = [WORDS[pick] for pick in picks]
    return _files(
        {
            "words": pa.array(words),
            "nulls": pa.array([None if i % 4 == 0 else word for i, word in enumerate(words)]),
            "same": pa.array(["a"] * ROWS),
        }
    )


Reading = Callable[[NativeFile], pa.ChunkedArray]


def _same(input: PagedFile, twin: Reading, expected: Callable[[NativeFile], list[object]]) -> str:
    """`twin` reads what is `expected`, or both meet an error for bad files."""
    results: list[list[object] | None] = []
    for read in (expected, lambda file: twin(file).to_pylist()):
        try:
            file = NativeFile.in_memory(input.data, input.schema)
            results.append([] if file.rows > 10 * ROWS else read(file))
        except (CorruptFileError, UnsupportedFeatureError, kernels.BatchTooLargeError):
            results.append(None)
    return "" if results[0] == results[1] else "the fast way gives another result"


def _read_decimals(input: PagedFile) -> str:
    def expected(file: NativeFile) -> list[object]:
        column = file.table().column(0).chunk(0)
        words = np.frombuffer(column.buffers()[1], "<i8")[: 2 * len(column)].reshape(-1, 2)
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        fits = words[:, 1] == words[:, 0] >> 63
        if not (fits | ~valid).all():
            raise CorruptFileError("a decimal has more digits than its type")
        return [int(low) if here else None for low, here in zip(words[:, 0], valid, strict=True)]

    return _same(input, lambda file: file.narrowed(), expected)


def _read_words(input: PagedFile) -> str:
    def mapped(file: NativeFile) -> pa.ChunkedArray:
        strings = DictionaryCodes(kernels.StringNumbers(MOST_STRINGS, MOST_BYTES), MOST_STRINGS)
        numbers = file.numbered(strings.native, pa.int32())
        return strings.strings(numbers).cast(pa.binary())

    def expected(file: NativeFile) -> list[object]:
        values: list[object] = file.table().column(0).cast(pa.binary()).to_pylist()
        return values

    return _same(input, mapped, expected)


TARGETS = [
    Target("lz4 blocks of numbers", _blocks, _read_block),
    Target("decimals in 64 bits", _decimals, _read_decimals),
    Target("strings as numbers", _words, _read_words),
]
