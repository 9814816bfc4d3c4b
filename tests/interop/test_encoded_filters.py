"""Filters over pages that are tested in their encoded form: constants, runs, dictionaries, symbols, chunks.

The answers are those of pyarrow over the same rows, with pylance as another witness.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.write.dataset import write_dataset

ROWS = 9000
RNG = np.random.default_rng(6)
PICKS = RNG.integers(0, 12, ROWS)
WORDS = [f"word {'x' * (number % 4)}{number}" for number in range(12)]
LONG = [RNG.bytes(300).hex() for _ in range(12)]
LENGTHS = RNG.integers(1, 200, 400)
STEPS = np.repeat(RNG.integers(-(2**40), 2**40, 400), LENGTHS)[:ROWS]
field = ds.field

# Values, a part of the name of their encoding per version ("" where there is another), and conditions.
Case = tuple[pa.Array, dict[str, str], list[tuple[str, Any]]]
BOTH = ("2.1", "2.2")


def everywhere(encoding: str) -> dict[str, str]:
    return dict.fromkeys(BOTH, encoding)


CASES: dict[str, Case] = {
    "runs": (
        pa.array(STEPS),
        everywhere("rle(flat64)"),
        [
            (f"c = {STEPS[100]}", field("c") == int(STEPS[100])),
            ("c < 0", field("c") < 0),
            (f"c IN ({STEPS[0]}, {STEPS[-1]}, 5)", field("c").isin([int(STEPS[0]), int(STEPS[-1]), 5])),
            (f"NOT c >= {STEPS[7]}", field("c") < int(STEPS[7])),
        ],
    ),
    "dictionary of strings": (
        pa.array(WORDS).take(pa.array(PICKS)),
        {"2.0": "dictionary[1", **everywhere("dictionary[1")},
        [
            ("c = 'word xx2'", field("c") == "word xx2"),
            ("c <> 'word xx2'", field("c") != "word xx2"),
            ("c IN ('word 0', 'word x1', 'none')", field("c").isin(["word 0", "word x1", "none"])),
            ("c LIKE 'word x%'", pc.starts_with(field("c"), "word x")),
            ("c LIKE '%1%'", pc.match_substring(field("c"), "1")),
            ("c > 'word x'", field("c") > "word x"),
        ],
    ),
    "dictionary of long strings": (
        pa.array(LONG).take(pa.array(PICKS)),
        everywhere("dictionary[1"),
        [(f"c = '{LONG[3]}'", field("c") == LONG[3]), (f"c < '{LONG[5]}'", field("c") < LONG[5])],
    ),
    "dictionary of decimals": (
        pa.array(RNG.integers(0, 2**60, 12)).cast(pa.decimal128(38, 2)).take(pa.array(PICKS)),
        everywhere("dictionary[1"),
        [("c > 500000000000000000", field("c") > pa.scalar(5 * 10**17).cast(pa.decimal128(38, 2)))],
    ),
    "dictionary of integers": (
        pa.array(RNG.integers(-(2**62), 2**62, 12)).take(pa.array(PICKS)),
        everywhere("dictionary[1"),
        [("c < 0", field("c") < 0), ("c >= 0", field("c") >= 0)],
    ),
    "dictionary of floats": (
        pa.array([*RNG.normal(size=10), float("nan"), -0.0]).take(pa.array(PICKS)),
        everywhere("dictionary["),
        [("c < 0.5", field("c") < 0.5), ("c = 0.0", field("c") == 0.0)],
    ),
    "one number": (
        pa.array(np.full(ROWS, 7)),
        {"2.2": "constant"},
        [("c = 7", field("c") == 7), ("c > 7", field("c") > 7), ("c IN (1, 7)", field("c").isin([1, 7]))],
    ),
    "one string": (
        pa.array(["the same"] * ROWS),
        {"2.2": "constant"},
        [("c = 'the same'", field("c") == "the same"), ("c LIKE 'x%'", pc.starts_with(field("c"), "x"))],
    ),
    "one truth": (pa.array([True] * ROWS), {"2.2": "constant"}, [("c", field("c")), ("NOT c", ~field("c"))]),
    "symbols": (
        pa.array([f"customer number {row * 7} of {row % 170}" for row in range(ROWS)]),
        everywhere("fsst(variable)"),
        [
            ("c LIKE 'customer number 7 %'", pc.starts_with(field("c"), "customer number 7 ")),
            ("c LIKE '%of 16_'", pc.match_like(field("c"), "%of 16_")),
            ("c = 'customer number 700 of 100'", field("c") == "customer number 700 of 100"),
        ],
    ),
    "packed numbers": (
        pa.array(RNG.integers(0, 1000, ROWS), pa.int32()),
        everywhere("bitpacked32"),
        [("c BETWEEN 10 AND 20", (field("c") >= 10) & (field("c") <= 20)), ("c = 5", field("c") == 5)],
    ),
    "compressed decimals": (
        pa.array(RNG.integers(90_000, 10_000_000, ROWS)).cast(pa.decimal128(21, 2)),
        everywhere("lz4(flat128)"),
        [("c < 100000", field("c") < pa.scalar(100_000).cast(pa.decimal128(21, 2)))],
    ),
}


@functools.cache
def column(name: str, nulls: bool) -> pa.Array:
    array = CASES[name][0]
    if not nulls:
        return array
    valid = pa.array(np.arange(ROWS) % 9 != 4)
    return pc.if_else(valid, array, pa.nulls(ROWS, array.type))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("version", ["2.0", *BOTH])
@pytest.mark.parametrize("name", CASES)
def test_filters(tmp_path: Path, name: str, version: str, nulls: bool) -> None:
    uri = str(tmp_path / "t.lance")
    table = pa.table({"row": range(ROWS), "c": column(name, nulls)})
    write_dataset(table, uri, data_storage_version=version, zone_maps=False)
    dataset, theirs = DatasetVersion.open(uri), lance.dataset(uri)
    encodings = dataset.inspect.pages().filter(field("column") == "c")["encoding"].to_pylist()
    expected = CASES[name][1].get(version, "")
    assert all(expected in encoding for encoding in encodings), encodings
    for text, condition in CASES[name][2]:
        wanted = table.filter(condition)
        for columns in (["row"], ["row", "c"]):
            assert dataset.scan(columns=columns, filter=text).to_table().equals(wanted.select(columns)), text
        assert dataset.scan(filter=text).count() == wanted.num_rows
        found = theirs.to_table(columns=["row"], filter=text)["row"]
        assert found.equals(wanted["row"]) or "nan" in str(table["c"].unique()), text
    missing = dataset.scan(columns=["row"], filter="c IS NULL").to_table()["row"].to_pylist()
    assert missing == ([row for row in range(ROWS) if row % 9 == 4] if nulls else [])
