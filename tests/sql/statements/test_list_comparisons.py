"""Comparing lists with lists, on both engines and in filters of pyarrow."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_sql

TAGS = [["t1", "u1"], ["u1", "t1"], [], None, ["t1", None], ["t1"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("lists")
    table = pa.table({"a": range(6), "tags": TAGS, "n": [[number, 7] for number in range(6)]})
    lance_sql.write(table, place / "t.lance")
    return str(place)


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("tags = ['t1', 'u1']", [0]),
        ("['t1'] = tags", [5]),
        ("tags <> ['t1', 'u1'] AND a < 3", [1, 2]),
        ("tags = ['t1', 'u1'] OR a = 3", [0, 3]),
        ("tags IN (['t1'], ['u1', 't1'])", [1, 5]),
        ("n = [2, 7]", [2]),
        ("tags = ['x']", []),
    ],
)
def test_in_sql(folder: str, engine: str, condition: str, expected: list[int]) -> None:
    found = lance_sql.connect(folder, engine=engine).sql(f"SELECT a FROM t WHERE {condition} ORDER BY a")
    assert [row[0] for row in found.fetchall()] == expected


def test_in_filters(folder: str) -> None:
    dataset = lance_sql.open(f"{folder}/t.lance")
    wanted = pa.scalar(["t1", "u1"], pa.list_(pa.string()))
    assert dataset.scan(["a"], pc.field("tags") == wanted).to_table()["a"].to_pylist() == [0]
    assert dataset.scan(["a"], "tags = ['t1', 'u1']").to_table()["a"].to_pylist() == [0]
