"""Indices both ways: pylance uses those that we build, we use those that it builds, with equal answers."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion

from tests.support.indices import KINDS, addresses, nullable

ROWS = 9000
DAY = datetime.date(2020, 1, 1)
TIME = datetime.datetime(2020, 1, 1)

FILTERS = {
    "i": ["i = 7", "i IN (3, 190, 191)", "i < 10", "i IS NULL", "i BETWEEN 5 AND 9", "i >= 299"],
    "u": ["u = 3", "u IN (0, 18446744073709551615)"],
    "s": ["s = 'k3'", "s LIKE 'k29%'", "s > 'k298'", "s IS NULL", "s = ''"],
    "ls": ["ls = 'k3'"],
    "f": ["f = 0.25", "f > 124.5", "f < -124", "f IS NULL", "f = 0.0"],
    "f32": ["f32 = 0.25", "f32 <= 0.0"],
    "b": ["b", "NOT b", "b IS NULL"],
    "d": ["d = DATE '2020-03-01'", "d > DATE '2021-03-01'"],
    "ts": ["ts = TIMESTAMP '2020-01-03 05:00:00'", "ts < TIMESTAMP '2020-01-01 02:00:00'"],
    "p": ["p = 3.17", "p < 0.05"],
    "st.a": ["st.a = 5", "st.a < 3"],
}
# As pylance's SQL has it.
THEIRS = {"p = 3.17": "p = decimal(9,2) '3.17'", "p < 0.05": "p < decimal(9,2) '0.05'"}
# Where an index of this kind answers, in pylance as well.
EXPECTED_USES = {
    "btree": {
        "i = 7",
        "i < 10",
        "s = 'k3'",
        "f = 0.25",
        "b",
        "p = 3.17",
        "d = DATE '2020-03-01'",
        "st.a = 5",
    },
    "bitmap": {"i = 7", "i IN (3, 190, 191)", "s = 'k3'", "b", "p = 3.17"},
    "zonemap": {"i = 7", "s = 'k3'", "d > DATE '2021-03-01'"},
    "bloomfilter": {"i = 7", "s = 'k3'", "f = 0.25", "d = DATE '2020-03-01'"},
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(7)

    def some(low: int, high: int) -> np.ndarray[Any, Any]:
        return rng.integers(low, high, ROWS)

    floats = np.where(rng.random(ROWS) < 0.01, np.nan, some(-500, 500) / 4)
    columns = {
        "i": pa.array(some(0, 300)),
        "u": pa.array(np.append(some(0, 300)[:-1].astype(np.uint64), np.uint64(2**64 - 1))),
        "s": pa.array([f"k{value}" for value in some(0, 300)]),
        "ls": pa.array([f"k{value}" for value in some(0, 300)], pa.large_string()),
        "f": pa.array(floats),
        "f32": pa.array(floats.astype(np.float32)),
        "b": pa.array(rng.random(ROWS) < 0.5),
        "d": pa.array([DAY + datetime.timedelta(int(day)) for day in np.sort(some(0, 500))]),
        "ts": pa.array(
            [TIME + datetime.timedelta(hours=int(hour)) for hour in some(0, 300)], pa.timestamp("us")
        ),
        "p": pa.array([Decimal(int(cents)).scaleb(-2) for cents in some(0, 400)], pa.decimal128(9, 2)),
    }
    held = {name: nullable(column, rng) for name, column in columns.items()}
    held["st"] = pa.array([{"a": int(value)} for value in some(0, 300)])
    return pa.table(held)


def build(path: Path, table: pa.Table, kind: str, *, stable: bool, by_pylance: bool) -> str:
    uri = str(path / "t.lance")
    lance.write_dataset(table, uri, max_rows_per_file=2500, enable_stable_row_ids=stable)
    lance.dataset(uri).delete("i = 150 OR i = 4")
    for column in FILTERS:
        if kind == "bloomfilter" and column in ("b", "p"):
            continue  # neither side has these
        if by_pylance:
            dataset: Any = lance.dataset(uri)
            dataset.create_scalar_index(column, kind.upper())
        else:
            DatasetVersion.open(uri).create_index(column, kind)
    lance.write_dataset(table.slice(0, 300), uri, mode="append")
    return uri


@pytest.mark.sampled(5)
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("kind", KINDS)
def test_pylance_uses_our_indices(tmp_path: Path, table: pa.Table, kind: str, stable: bool) -> None:
    uri = build(tmp_path, table, kind, stable=stable, by_pylance=False)
    ours, theirs = DatasetVersion.open(uri), lance.dataset(uri)
    described = {index.name for index in theirs.describe_indices()}
    assert described == {row["name"] for row in ours.inspect.indices().to_pylist()}
    for filters in FILTERS.values():
        for text in filters:
            expected = addresses(ours.scan(["_rowaddr"], filter=text, indices=False))
            found = theirs.to_table(["_rowaddr"], THEIRS.get(text, text))
            assert sorted(found["_rowaddr"].to_pylist()) == expected, text
            plan = theirs.scanner(columns=["i"], filter=THEIRS.get(text, text)).explain_plan()
            if text in EXPECTED_USES[kind] and not (kind == "bloomfilter" and "." in text.split()[0]):
                assert "ScalarIndex" in plan, text


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("kind", KINDS)
def test_we_use_indices_of_pylance(tmp_path: Path, table: pa.Table, kind: str, stable: bool) -> None:
    uri = build(tmp_path, table, kind, stable=stable, by_pylance=True)
    ours = DatasetVersion.open(uri)
    used = set()
    for filters in FILTERS.values():
        for text in filters:
            scan = ours.scan(["_rowaddr"], filter=text)
            assert addresses(scan) == addresses(ours.scan(["_rowaddr"], filter=text, indices=False)), text
            used |= {text for _ in scan.metrics.indices} if scan.metrics is not None else set()
    selective = {"btree": "i = 7", "bitmap": "s = 'k3'", "zonemap": "d = DATE '2020-03-01'"}
    assert selective.get(kind, "s = ''") in used


@pytest.mark.sampled(1)
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_taking_turns_with_pylance(tmp_path: Path, table: pa.Table, stable: bool) -> None:
    """Appending, deleting, updating, compacting and optimizing by both sides."""
    uri = str(tmp_path / "t.lance")
    part = table.select(["i", "s", "d"]).append_column("id", pa.array(range(ROWS)))
    lance.write_dataset(part, uri, max_rows_per_file=2500, enable_stable_row_ids=stable)
    DatasetVersion.open(uri).create_index("i", "btree").create_index("s", "bitmap")
    theirs: Any = lance.dataset(uri)
    theirs.create_scalar_index("d", "ZONEMAP")

    def check(step: str) -> None:
        ours, official = DatasetVersion.open(uri), lance.dataset(uri)
        for text in (
            "i = 7",
            "i = 8",
            "i = 90 AND s > 'k2'",
            "s = 'k3'",
            "d = DATE '2020-03-01'",
            "i IS NULL",
        ):
            expected = addresses(ours.scan(["_rowaddr"], filter=text, indices=False))
            assert addresses(ours.scan(["_rowaddr"], filter=text)) == expected, (step, text)
            found = official.to_table(["_rowaddr"], text)["_rowaddr"].to_pylist()
            assert sorted(found) == expected, (step, text)

    steps: dict[str, Any] = {
        "append": lambda: lance.write_dataset(part.slice(0, 400), uri, mode="append"),
        "delete": lambda: DatasetVersion.open(uri).delete("i BETWEEN 20 AND 60 OR id < 50"),
        "update": lambda: DatasetVersion.open(uri).update({"i": "i + 1"}, "i = 7"),
        "update of another column": lambda: DatasetVersion.open(uri).update({"s": "'k3'"}, "i = 90"),
        "compact": lambda: DatasetVersion.open(uri).compact(),
        "optimize": lambda: DatasetVersion.open(uri).optimize_indices(),
        "update by pylance": lambda: lance.dataset(uri).update({"i": "i - 1"}, "i = 8"),
        "optimize again": lambda: DatasetVersion.open(uri).optimize_indices(),
        "compact by pylance": lambda: lance.dataset(uri).optimize.compact_files(),
        "optimize by pylance": lambda: lance.dataset(uri).optimize.optimize_indices(),
        "drop": lambda: DatasetVersion.open(uri).drop_index("i_idx"),
    }
    for name, step in steps.items():
        step()
        check(name)
    assert {index.name for index in lance.dataset(uri).describe_indices()} == {"s_idx", "d_idx"}
