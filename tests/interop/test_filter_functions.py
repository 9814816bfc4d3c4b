"""Every scalar function of DataFusion in filters returns the same as in pylance, or is refused by name."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from filter_calls import REFUSED, calls, conditions, knowing
from lance_engine.errors import LanceError

import lance_sql

MOMENTS = [
    datetime.datetime(2024, 5, 6, 7, 8, 9, 123456),
    datetime.datetime(1969, 12, 31),
    datetime.datetime(2024, 2, 29),
    None,
    datetime.datetime(2000, 1, 1),
]
CLOCKS = [
    datetime.time(1, 2, 3),
    None,
    datetime.time(0),
    datetime.time(23, 59, 59, 999999),
    datetime.time(12),
]
NAN = float("nan")
TABLE = pa.table(
    {
        "n": pa.array(range(5)),
        "i": pa.array([7, -7, 0, None, 9], pa.int64()),
        "j": pa.array([2, 2, 3, 4, None], pa.int32()),
        "u": pa.array([1, 2, 3, 4, None], pa.uint8()),
        "f": pa.array([1.5, NAN, -0.0, None, 2.25]),
        "g": pa.array([2.5, -1.25, 0.5, 4.0, None]),
        "h": pa.array([0.5, 0.25, None, 0.75, -0.5], pa.float32()),
        "t": pa.array(["foo", "Bar baz", "", None, "héllo"]),
        "tj": pa.array(["2024-05-06 07:08:09", "1969-12-31", "x", None, "12"]),
        "b": pa.array([b"a", b"bc", b"", None, b"\xff"]),
        "x": pa.array([True, False, None, True, False]),
        "l": pa.array([[1, 2], [], None, [3, None], [2]], pa.list_(pa.int64())),
        "ls": pa.array([["a", "b"], ["a"], None, [None], []], pa.list_(pa.string())),
        "lf": pa.array([[1.5, NAN], [0.0], None, [], [2.5, 2.5, None]], pa.list_(pa.float64())),
        "ll": pa.array([[[1], [2, 3]], [], None, [[4]], [[None]]], pa.list_(pa.list_(pa.int64()))),
        "fl": pa.array([[1.0, 2.0], [3.0, 4.0], None, [0.0, 0.0], [1.0, 1.0]], pa.list_(pa.float32(), 2)),
        "ts": pa.array(MOMENTS, pa.timestamp("us")),
        "tz": pa.array(MOMENTS, pa.timestamp("us", "UTC")),
        "d": pa.array([moment and moment.date() for moment in MOMENTS], pa.date32()),
        "tm": pa.array(CLOCKS, pa.time64("us")),
        "s": pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "y"}, None, {"a": 3, "b": None}, {"a": 5}]),
        "de": pa.array([1, 2, None, 4, 5], pa.decimal128(10, 2)),
        "js": pa.array(
            ['{"a":1,"b":"x","c":[1,2],"d":{"e":true}}', '{"a":2.5}', "null", None, '{"a":"1","c":["x"]}'],
            pa.json_(),
        ),
    }
)
PLAIN = knowing(TABLE.drop_columns(["js"]))


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("functions") / "t.lance")
    lance.write_dataset(TABLE, path, data_storage_version="2.2")
    return path


def rows(find: Any) -> list[int] | None:
    """The rows that pass; None if the filter is refused."""
    try:
        found: list[int] = find().to_pylist()
    except (LanceError, ValueError, OSError, NotImplementedError, pa.ArrowException):
        return None
    return found


def compare(uri: str, only_first: bool) -> None:
    theirs, ours = lance.dataset(uri), lance_sql.open(uri)
    wrong, compared = [], 0
    for _, each in calls():
        for call in each[:1] if only_first else each:
            for where in conditions(call, PLAIN):
                expected = rows(lambda: theirs.to_table(columns=["n"], filter=where)["n"])  # noqa: B023
                if expected is None:
                    continue  # what pylance refuses may work here
                found = rows(lambda: ours.scan(columns=["n"], filter=where).to_table()["n"])  # noqa: B023
                compared += 1
                if found != expected or ours.count_rows(where) != len(expected):
                    wrong.append((where, expected, found))
    assert not wrong
    assert compared > (500 if only_first else 1500)


def test_functions(uri: str) -> None:
    compare(uri, only_first=True)


@pytest.mark.slow
def test_functions_with_all_arguments(uri: str) -> None:
    compare(uri, only_first=False)


def test_deletes(tmp_path: Path) -> None:
    wheres = [next(iter(list(conditions(each[0], PLAIN))[-1:])) for _, each in calls()][::12]
    for number, where in enumerate(wheres):
        theirs = lance.write_dataset(TABLE, str(tmp_path / f"theirs{number}"), data_storage_version="2.2")
        ours = lance_sql.write(TABLE, tmp_path / f"ours{number}", data_storage_version="2.2")
        try:
            theirs.delete(where)
        except (ValueError, OSError, pa.ArrowException):
            continue
        assert (
            ours.delete(where).to_table(["n"])["n"].to_pylist() == theirs.to_table(["n"])["n"].to_pylist()
        ), where


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused(uri: str, call: str) -> None:
    with pytest.raises(LanceError):
        lance_sql.open(uri).count_rows(f"{call} IS NOT NULL")


@pytest.mark.parametrize(
    "where",
    [
        *(
            "btrim(t) = 'a'",
            "ltrim(t) = 'a'",
            "rtrim(t) = 'a'",
            "CAST(k AS bigint) = 2",
            "CAST(f AS string) = '4.0'",
        ),
        *("CAST(f AS string) = '1e16'", "CAST(f AS string) = 'NaN'", "concat_ws('-', t, NULL) = 'a'"),
        *(
            "concat_ws('-', o, o) = ''",
            "replace(t, '', 'x') = 'xax'",
            "array_to_string(make_array(f), ',') = '4.0'",
        ),
        *(
            "-f > 0",
            "signum(f) > 0",
            "acos(f) IS NOT NULL",
            "nullif(f, 0.0) IS NULL",
            "greatest(f, 0.5) = 0.5",
        ),
        "CAST(ts AS string) = '1970-01-01T00:00:00.000001'",
    ],
)
def test_spaces_casts_and_texts_of_numbers(tmp_path: Path, where: str) -> None:
    table = pa.table(
        {
            "n": range(7),
            "t": ["\ta", " a ", "a\n", "\u00a0a", "a", "  ", None],
            "o": ["x", None, None, "", "y", None, None],
            "f": [1.5, 2.5, -1.5, 4.0, NAN, 1e16, None],
            "k": [1.5, 2.5, -1.5, 4.0, 2.0, 1e16, None],
            "ts": pa.array([1, 1999999, -1, None, 0, 5, 6], pa.timestamp("us")),
        }
    )
    theirs = lance.write_dataset(table, str(tmp_path / "t.lance"))
    expected = theirs.to_table(["n"], where)["n"].to_pylist()
    assert lance_sql.open(theirs.uri).scan(["n"], where).to_table()["n"].to_pylist() == expected
