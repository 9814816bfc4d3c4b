"""Finite numbers that a cast made infinite are found at any depth."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from lance_engine.errors import InvalidFilterError, SchemaMismatchError
from lance_engine.finite import check_finite

import lance_sql

NARROW = [
    (1e40, pa.float64(), pa.float32()),
    (1e10, pa.float64(), pa.float16()),
    (10**6, pa.int64(), pa.float16()),
]


def at_depths(value: object, kind: pa.DataType) -> list[pa.Array]:
    plain = pa.array([None, value, None], kind)
    lists = pa.array([None, [None, value], []], pa.list_(kind))
    return [
        plain,
        lists,
        pa.array([None, [value, value], None], pa.list_(kind, 2)),
        pa.array([None, {"a": value}, {"a": None}], pa.struct([("a", kind)])),
        pa.array([None, [{"a": [value]}], None], pa.list_(pa.struct([("a", pa.list_(kind))]))),
        pa.array([None, [("k", value)], []], pa.map_(pa.string(), kind)),
    ]


@pytest.mark.parametrize(("value", "wide", "narrow"), NARROW)
def test_infinite_values_are_refused(value: object, wide: pa.DataType, narrow: pa.DataType) -> None:
    for values, fits, target in zip(
        at_depths(value, wide), at_depths(1, wide), at_depths(None, narrow), strict=True
    ):
        for begin in (0, 1):
            check_finite(fits[begin:], fits[begin:].cast(target.type))
            with pytest.raises(pa.ArrowInvalid, match="out of the range"):
                check_finite(values[begin:], values[begin:].cast(target.type))
        check_finite(values[2:], values[2:].cast(target.type))  # not in this part


def test_texts_are_numbers_too() -> None:
    check_finite(pa.array(["1e30", "inf", None]), pa.array(["1e30", "inf", None]).cast(pa.float32()))
    with pytest.raises(pa.ArrowInvalid, match="out of the range"):
        check_finite(pa.array(["1e40"]), pa.array(["1e40"]).cast(pa.float32()))


def test_infinite_and_missing_numbers_stay() -> None:
    values = pa.array([float("inf"), float("-inf"), float("nan"), None])
    check_finite(values, values.cast(pa.float32()))


def test_appended_numbers_do_not_become_infinite(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([1.0], pa.float32()), "l": pa.array([[1.0]], pa.list_(pa.float32()))})
    lance_sql.write(table, tmp_path / "t.lance")
    for x, items in ((1e40, [1.0]), (1.0, [1e40])):
        with pytest.raises(SchemaMismatchError, match="out of the range of float"):
            lance_sql.write(pa.table({"x": [x], "l": [items]}), tmp_path / "t.lance", mode="append")
    found = lance_sql.write(pa.table({"x": [2.0], "l": [[None]]}), tmp_path / "t.lance", mode="append")
    assert found.scan().to_table().to_pydict() == {"x": [1.0, 2.0], "l": [[1.0], [None]]}


@pytest.mark.parametrize(
    "value", ["CAST(x AS float)", "CAST(1e40 AS float)", "CAST(x AS float) + 1", "-CAST(x AS float)"]
)
def test_values_of_updates_are_cast_as_in_duckdb(tmp_path: Path, value: str) -> None:
    rows = pa.table({"x": [1e40, -1e40, 2.0, None, float("inf")], "y": pa.array([0.5] * 5, pa.float32())})
    ds = lance_sql.write(rows, tmp_path / "t.lance")
    with pytest.raises(duckdb.Error, match="out of range"):
        duckdb.sql(f"SELECT {value} FROM rows").fetchall()
    with pytest.raises(InvalidFilterError, match="out of the range of float"):
        ds.update({"y": value})
    wanted = duckdb.sql(f"SELECT TRY_{value.lstrip('-')} FROM rows").fetchall()
    found = ds.update({"y": f"TRY_{value.lstrip('-')}"}).scan(["y"]).to_table()["y"].to_pylist()
    assert found == [row[0] for row in wanted]
