"""Duplicates of a key are found among new rows and existing ones, for every type, and nothing else is."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.constraints import uniqueness
from lance_engine.constraints.candidates import KeyBounds, possible_rows
from lance_engine.constraints.hashes import HashSet, check_key_type, key_hashes
from lance_engine.errors import ConstraintError, UnsupportedTypeError
from lance_engine.scan.partial import shared_readers

import lance_sql

NAN = float("nan")
#: Three different values of each type of which a key can consist, the last two nearly equal.
VALUES: dict[str, pa.Array] = {
    "int8": pa.array([-1, 0, 1], pa.int8()),
    "int64": pa.array([-(1 << 63), 0, 1], pa.int64()),
    "uint64": pa.array([(1 << 64) - 1, 0, 1], pa.uint64()),
    "double": pa.array([NAN, 0.0, 5e-324], pa.float64()),
    "float": pa.array([NAN, 1.0, 1.0000001], pa.float32()),
    "bool": pa.array([None, False, True], pa.bool_()),
    "text": pa.array(["a", "", "\0"], pa.string()),
    "large text": pa.array(["a", "ä", "a\u0308"], pa.large_string()),
    "bytes": pa.array([b"a", b"", b"\0"], pa.binary()),
    "fixed bytes": pa.array([b"ab", b"ba", b"bb"], pa.binary(2)),
    "date": pa.array([datetime.date(1, 1, 1), datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)]),
    "timestamp": pa.array([0, 1, 2], pa.timestamp("us", "UTC")),
    "time": pa.array([0, 1, 2], pa.time64("us")),
    "duration": pa.array([0, 1, 2], pa.duration("us")),
    "decimal": pa.array([decimal.Decimal(text) for text in ("-1.5", "0.00", "0.01")], pa.decimal128(20, 2)),
    "wide decimal": pa.array([decimal.Decimal(text) for text in ("-1.5", "0", "1")], pa.decimal256(60, 2)),
}


def keyed(path: Path, rows: pa.Table, columns: list[str]) -> str:
    place = str(path / "t.lance")
    lance_sql.write(rows, place).add_key(columns)
    return place


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("nulls", [False, True], ids=["", "with nulls"])
def test_every_type(tmp_path: Path, kind: str, nulls: bool) -> None:
    values = VALUES[kind]
    if nulls:
        values = pa.concat_arrays([values, pa.nulls(2, values.type)])
    place = keyed(tmp_path, pa.table({"k": values}), ["k"])
    for number in range(3):
        twice = pa.table({"k": values.slice(number, 1)})
        if values[number].as_py() is None:  # compares with nothing
            lance_sql.write(twice, place, mode="append")
            continue
        with pytest.raises(ConstraintError, match=r'Duplicate key "k: .*" violates unique constraint'):
            lance_sql.write(twice, place, mode="append")
    empty = lance_sql.open(place).delete("true")
    with pytest.raises(ConstraintError):
        lance_sql.write(pa.table({"k": pa.concat_arrays([values, values.slice(1, 1)])}), place, mode="append")
    assert empty.count_rows() == lance_sql.open(place).count_rows() == 0


def test_zeros_are_equal(tmp_path: Path) -> None:
    place = keyed(tmp_path, pa.table({"k": [0.0]}), ["k"])
    with pytest.raises(ConstraintError):
        lance_sql.write({"k": [-0.0]}, place, mode="append")


def test_columns_are_compared_together(tmp_path: Path) -> None:
    rows = pa.table({"a": ["x", "x", "xy", None, None], "b": ["y", "yz", "z", "y", "y"]})
    place = keyed(tmp_path, rows, ["a", "b"])
    lance_sql.write({"a": ["y", None, "xyz"], "b": ["x", "y", ""]}, place, mode="append")
    with pytest.raises(ConstraintError, match=r'"a: xy, b: z" violates unique constraint'):
        lance_sql.write({"a": ["new", "xy"], "b": ["z", "z"]}, place, mode="append")


def test_the_keys_are_named_and_few(tmp_path: Path) -> None:
    place = keyed(tmp_path, pa.table({"k": range(1000)}), ["k"])
    with pytest.raises(ConstraintError) as caught:
        lance_sql.write({"k": range(990, 2000)}, place, mode="append")
    assert caught.value.message.count('"k: 99') == 5


@pytest.mark.parametrize("place_of_second", [7, 4999])
def test_more_rows_than_are_held_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place_of_second: int
) -> None:
    place = keyed(tmp_path, pa.table({"k": [-1, -2]}), ["k"])
    monkeypatch.setattr(uniqueness, "TURN_ROWS", 700)
    keys = np.arange(5000)
    lance_sql.write({"k": keys[:2500]}, place, mode="append")
    keys = np.arange(2500, 7500)
    keys[place_of_second] = 2500  # a duplicate among the new rows
    with pytest.raises(ConstraintError, match=r'"k: 2500"'):
        lance_sql.write({"k": keys}, place, mode="append")
    keys[place_of_second] = 11  # and of an existing one
    with pytest.raises(ConstraintError, match=r'"k: 11"'):
        lance_sql.write({"k": keys}, place, mode="append")
    keys[place_of_second] = 99_999
    assert lance_sql.write({"k": keys}, place, mode="append").count_rows() == 7502


def test_equal_hashes_of_different_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def few(columns: list[pa.Array]) -> Any:
        hashes, rows = key_hashes(columns)
        return hashes % np.uint64(3), rows

    monkeypatch.setattr(uniqueness, "key_hashes", few)
    place = keyed(tmp_path, pa.table({"k": range(100)}), ["k"])
    lance_sql.write({"k": range(100, 200)}, place, mode="append")
    with pytest.raises(ConstraintError, match=r'Duplicate key "k: 150" violates'):
        lance_sql.write({"k": [150, 500]}, place, mode="append")


def test_a_set_of_hashes() -> None:
    hashes = np.array([0, 5, 1 << 63, (1 << 64) - 1], np.uint64)
    others = np.array([1, 0, (1 << 64) - 1, (1 << 63) + 1, 1 << 63, 6, 5], np.uint64)
    assert HashSet(hashes).among(others).tolist() == [False, True, True, False, True, False, True]


@pytest.mark.parametrize("indexed", [False, True], ids=["zone maps", "index"])
@pytest.mark.parametrize("keys", [[77_777], range(70_000, 80_000)], ids=["few", "many"])
def test_only_rows_that_may_have_a_key_are_read(tmp_path: Path, indexed: bool, keys: Any) -> None:
    dataset = lance_sql.write({"k": range(200_000), "v": ["x"] * 200_000}, tmp_path / "t.lance")
    if indexed:
        dataset = dataset.create_index("k", kind="BTREE")
    bounds = KeyBounds(["k"])
    bounds.add([pa.array(keys)])
    snapshot = dataset.snapshot
    filter = bounds.filter(snapshot.schema.to_arrow())
    read = list(possible_rows(snapshot, ["k"], filter, shared_readers(snapshot)))
    assert set(keys) <= {value for batch in read for value in batch.column(0).to_pylist()}
    assert sum(batch.num_rows for batch in read) < 30_000


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.null()])
def test_types_without_equality_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedTypeError, match=r"cannot be used in a key"):
        check_key_type("k", kind)
