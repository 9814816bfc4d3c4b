"""Checks of the kernels that exist once per instruction set, against the reference and numpy."""

from __future__ import annotations

from typing import Any

import handmade_files as handmade
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from handmade_files import Chunk
from lance_engine import kernels
from lance_engine.errors import CorruptFileError
from lance_engine.format.pb import encodings21_pb2 as pb
from native_files import NativeFile
from reference import bitpacking
from reference.levels import Layer, LevelArrays

Values = npt.NDArray[np.generic]

# Around what the kernels test at once: 64 values, and 512 of which they first ask whether any passes.
COUNTS = (1, 64, 65, 512, 1300)
INTEGERS = ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")


def file_of(values: Values, chunk_values: int = 1024, dictionary: Values | None = None) -> NativeFile:
    """A file of one column `value` without nulls, in flat mini-blocks; of codes if there is a dictionary."""
    count = len(values)
    parts = [values[at : at + chunk_values] for at in range(0, count, chunk_values)]
    chunks = [Chunk(len(part), len(part), None, None, handmade.flat(part)) for part in parts]
    page = handmade.mini_block(
        LevelArrays([Layer.ALL_VALID_ITEM], None, None, count),
        count,
        chunks,
        large=False,
        dictionary=None if dictionary is None else (handmade.flat(dictionary), len(dictionary)),
    )
    kind = (values if dictionary is None else dictionary).dtype
    schema = pa.schema([("value", pa.from_numpy_dtype(kind))])
    return NativeFile.in_memory(handmade.make_file(schema, [[page]], count, (2, 1)), schema)


def _block(**encoding: Any) -> kernels.BlockDecoder:
    return kernels.block_decoder(pb.CompressiveEncoding(**encoding).SerializeToString())


def check_unpacking() -> None:
    """Packed blocks of every width."""
    rng = np.random.default_rng(1)
    for bits in (8, 16, 32, 64):
        for width in range(1, bits + 1):
            top = (1 << width) - 1
            values = rng.integers(0, top, 2048, dtype=np.uint64, endpoint=True).astype(f"<u{bits // 8}")
            packed = [bitpacking.pack_block(values[at : at + 1024], width) for at in (0, 1024)]
            packed_values = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=width))
            outer = _block(
                out_of_line_bitpacking=pb.OutOfLineBitpacking(
                    uncompressed_bits_per_value=bits, values=packed_values
                )
            )
            assert outer.decode(b"".join(packed), 2048) == values.tobytes(), (bits, width)
            inner = _block(inline_bitpacking=pb.InlineBitpacking(uncompressed_bits_per_value=bits))
            block = width.to_bytes(bits // 8, "little") + packed[1]
            assert inner.decode(block, 1000) == values[1024:2024].tobytes(), (bits, width)


def check_ranges() -> None:
    """Whether integers are in a range: dense, sparse and no hits, and ranges to the ends of the type."""
    rng = np.random.default_rng(2)
    for kind in INTEGERS:
        limits = np.iinfo(kind)
        signed = limits.min < 0
        ranges = [
            (3, 9),
            (limits.min, limits.max),
            (limits.min, 5),
            (limits.max, limits.max),
            (limits.min, limits.min),
            (90, 90),
            (9, 3),
        ]
        for count in COUNTS:
            values = rng.integers(0, 90, count).astype(kind)
            values[rng.integers(0, count, 2)] = [limits.min, limits.max]
            file = file_of(values)
            for low, high in ranges:
                size = values.dtype.itemsize
                bounds = [bound.to_bytes(size, "little", signed=signed) for bound in (low, high)]
                expected = (values >= low) & (values <= high)
                for negate in (False, True):
                    test = kernels.integer_range_test(8 * size, signed, *bounds, negate)
                    found = file.tested("value", test)
                    assert found == (expected ^ negate).tolist(), (kind, count, low, high, negate)


def check_sets() -> None:
    """Whether integers are among some: none, few, which are compared, and many, which are looked up.

    Of many that are close to one another there is a bit for each number between them.
    """
    rng = np.random.default_rng(3)
    for kind in INTEGERS:
        limits = np.iinfo(kind)
        for count in COUNTS:
            values = rng.integers(limits.min, limits.max, count, dtype=kind, endpoint=True)
            values[::3] = rng.integers(0, 100, len(values[::3])).astype(kind)
            file = file_of(values)
            for wanted in (0, 1, 2, 16, 17, 400):
                chosen = rng.integers(0, 100, wanted).astype(kind)
                chosen[wanted // 2 :] = rng.choice(values, wanted - wanted // 2)
                check_set(file, values, chosen)
            for least in {max(0, limits.min), max(-70, limits.min), limits.min, limits.max - 99}:
                check_set(file, values, np.array([least + step for step in range(100)], kind))


def check_set(file: NativeFile, values: Values, chosen: Values) -> None:
    """Which of the values of a file are among those that were chosen, and which are not."""
    expected = np.isin(values, chosen)
    for negate in (False, True):
        test = kernels.integer_set_test(8 * values.dtype.itemsize, chosen.tobytes(), negate)
        found = file.tested("value", test)
        assert found == (expected ^ negate).tolist(), (values.dtype, len(values), len(chosen), negate)


def check_codes() -> None:
    """Codes of few values, which are marked in a word, and of more; a code without a value is an error."""
    rng = np.random.default_rng(4)
    for width in (1, 2, 4, 8):
        for size in (1, 31, 32, 33, 64, 65, 200):
            dictionary = (np.arange(size) * 7919 % 1000).astype("i4")
            for count in COUNTS:
                codes = rng.integers(0, size, count).astype(f"u{width}")
                codes[-1] = size - 1
                chosen = rng.choice(dictionary, rng.integers(0, size, endpoint=True))
                test = kernels.integer_set_test(32, chosen.tobytes(), False)
                found = file_of(codes, dictionary=dictionary).tested("value", test)
                assert found == np.isin(dictionary[codes], chosen).tolist(), (width, size, count)
                wrong = codes.copy()
                wrong[rng.integers(0, count)] = size if width == 1 else size + 2 ** (8 * width - 8)
                with pytest.raises(CorruptFileError, match="out of range"):
                    file_of(wrong, dictionary=dictionary).tested("value", test)


def check_all() -> None:
    """All of them, at the level that was chosen when the process began."""
    check_unpacking()
    check_ranges()
    check_sets()
    check_codes()
