"""Conditions that are tested while values are decoded: those that have no instruction sets of their own."""

from __future__ import annotations

import itertools
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from kernel_checks import COUNTS, file_of
from lance_engine import kernels
from lance_engine.write.dataset import write_dataset
from native_files import NativeFile

NAN = float("nan")


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize(
    ("low", "high"), [(-1.5, 2.25), (0.0, 0.0), (2.0, -2.0), (-np.inf, np.inf), (-np.inf, 0)]
)
def test_ranges_of_floats(kind: str, low: float, high: float) -> None:
    rng = np.random.default_rng(1)
    for count in COUNTS:
        values = rng.choice(
            [-np.inf, -1.5, -1.25, -0.0, 0.0, 1.0, 2.25, 2.5, np.inf, NAN, -NAN], count
        ).astype(kind)
        file = file_of(values)
        inside = (values >= low) & (values <= high)
        negative = np.signbit(values)
        for nan, negative_nan in itertools.product((False, True), repeat=2):
            expected = inside | (np.isnan(values) & np.where(negative, negative_nan, nan))
            for negate in (False, True):
                bits = 8 * values.dtype.itemsize
                test = kernels.float_range_test(bits, low, high, nan, negative_nan, negate)
                assert file.tested("value", test) == (expected ^ negate).tolist()


def written(tmp_path: Path, values: pa.Array, version: str) -> NativeFile:
    table = pa.table({"value": values})
    write_dataset(table, tmp_path / version, data_storage_version=version)
    (path,) = (tmp_path / version).glob("data/*.lance")
    return NativeFile.mapped(path, table.schema)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_ranges_of_wide_decimals(tmp_path: Path, version: str) -> None:
    values = [None if i % 9 == 0 else Decimal(i - 300) * 10**20 for i in range(700)]
    file = written(tmp_path, pa.array(values, pa.decimal128(38, 0)), version)
    for low, high in ((-5 * 10**20, 10**21), (-(2**127), 2**127 - 1), (1, 0), (10**20, 10**20)):
        bounds = [bound.to_bytes(16, "little", signed=True) for bound in (low, high)]
        for negate in (False, True):
            test = kernels.integer_range_test(128, True, *bounds, negate)
            expected = [None if each is None else (low <= each <= high) != negate for each in values]
            assert file.tested("value", test) == expected


TEXTS = [
    "",
    "blue",
    "a blue house",
    "bluebird",
    "BLUEBIRD",
    "BlUe",
    "red",
    None,
    "blu",
    "the end: blue",
    "blue or blue",
    "ünïcödé",
]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("repeats", ["few distinct", "all distinct"])
def test_strings(tmp_path: Path, version: str, repeats: str) -> None:
    rng = np.random.default_rng(4)
    texts = [TEXTS[place] for place in rng.integers(0, len(TEXTS), 900)]
    if repeats == "all distinct":
        texts = [None if text is None else f"{text}{number}{text}" for number, text in enumerate(texts)]
    file = written(tmp_path, pa.array(texts), version)
    tests = {
        kernels.string_test([b"blue"], False, False, False): lambda text: "blue" in text,
        kernels.string_test([b"blue"], True, False, False): lambda text: text.startswith("blue"),
        kernels.string_test([b"blue"], False, True, True): lambda text: not text.endswith("blue"),
        kernels.string_test([b"blue"], True, True, False): lambda text: text == "blue",
        kernels.string_test([b"b", b"ue", b"b"], False, False, False): lambda text: _in_order(
            text, "b", "ue", "b"
        ),
        kernels.string_test([b""], True, True, False): lambda text: text == "",
        kernels.string_test([b"BluE"], False, False, False, True): lambda text: "blue" in text.lower(),
        kernels.string_test([b"b", b"UE"], True, True, True, True): lambda text: (
            not (text[:1].lower() == "b" and text[1:].lower().endswith("ue"))
        ),
        kernels.string_test([b"blue"], True, True, False, True): lambda text: text.lower() == "blue",
        kernels.string_test(["ïC".encode()], False, False, False, True): lambda text: "ïc" in text,
        kernels.string_set_test([b"red", b"", b"blue"], False): lambda text: text in ("red", "", "blue"),
        kernels.string_set_test([], True): lambda text: True,
    }
    for test, expected in tests.items():
        assert file.tested("value", test) == [None if text is None else expected(text) for text in texts]


def _in_order(text: str, *pieces: str) -> bool:
    at = 0
    for piece in pieces:
        at = text.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


def test_tests_that_do_not_fit_their_column() -> None:
    file = file_of(np.arange(10, dtype="i4"))
    wide = kernels.integer_range_test(64, True, bytes(8), bytes(8), False)
    for test in (
        wide,
        kernels.float_range_test(64, 0, 1, False, False, False),
        kernels.string_set_test([b""], False),
    ):
        with pytest.raises(AssertionError, match="cannot be tested"):
            file.tested("value", test)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: kernels.integer_range_test(32, True, bytes(4), bytes(8), False), "another width"),
        (lambda: kernels.integer_range_test(24, True, bytes(3), bytes(3), False), "8, 16, 32, 64 or 128"),
        (lambda: kernels.integer_set_test(32, bytes(6), False), "ends inside a value"),
        (lambda: kernels.integer_set_test(128, bytes(16), False), "8, 16, 32 or 64"),
        (lambda: kernels.float_range_test(16, 0, 1, False, False, False), "32 or 64"),
    ],
)
def test_impossible_tests(call: object, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call()  # type: ignore[operator]
