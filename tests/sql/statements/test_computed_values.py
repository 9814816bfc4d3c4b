"""Values of updates and new columns that only a SQL engine can compute."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.errors import ColumnNotFoundError, InvalidFilterError, SchemaMismatchError

import lance_sql


@pytest.fixture
def dataset(tmp_path: Path) -> lance_sql.Dataset:
    table = pa.table({"id": range(10), "name": ["a b"] * 10, "x": [i / 4 for i in range(10)]})
    return lance_sql.write(table, tmp_path / "t.lance")


def test_expressions_beyond_filters(dataset: lance_sql.Dataset) -> None:
    after = dataset.delete("id = 3").update(
        {"x": "CASE WHEN id % 2 = 0 THEN 100 ELSE x END", "name": "replace(name, ' ', '-') || id"}, "id > 6"
    )
    rows = {row["id"]: (row["name"], row["x"]) for row in after.to_table().to_pylist()}
    assert (rows[6], rows[7], rows[8]) == (("a b", 1.5), ("a-b7", 1.75), ("a-b8", 100.0))
    assert after.schema == dataset.schema
    added = after.add_columns({"words": "string_split(name, ' ')", "Y": "greatest(X, 2)", "one": "pi()"})
    assert added.schema.field("words").type == pa.list_(pa.string())
    assert added.to_table(filter="id = 6").to_pylist()[0] | {"one": 0} == {
        "id": 6, "name": "a b", "x": 1.5, "words": ["a", "b"], "Y": 2.0, "one": 0
    }  # fmt: skip
    assert isinstance(after, lance_sql.Dataset)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("sum(x)", InvalidFilterError, "own row"),
        ("row_number() OVER ()", InvalidFilterError, "own row"),
        ("(SELECT 1)", InvalidFilterError, "own row"),
        ("CASE WHEN nope THEN 1 END", ColumnNotFoundError, "nope"),
        ("no_such_function(x)", InvalidFilterError, "no_such_function"),
        ("x, id", InvalidFilterError, "Not a valid SQL expression"),
        ("unnest([x, x])", SchemaMismatchError, "20 values for 10 rows"),
        ("replace(name, 'a', 'b')", InvalidFilterError, "to double"),
    ],
)
def test_what_is_refused(
    dataset: lance_sql.Dataset, value: str, error: type[Exception], message: str
) -> None:
    before = dataset.snapshot.store.list("")
    with pytest.raises(error, match=message):
        dataset.update({"x": value})
    assert dataset.snapshot.store.list("") == before


STORED: list[tuple[pa.DataType, Any]] = [
    (pa.binary(3), b"abc"),
    (pa.list_(pa.binary(3)), [b"abc", None]),
    (pa.struct([("a", pa.binary(3))]), {"a": b"abc"}),
    (pa.float16(), 1.5),
    (pa.duration("s"), datetime.timedelta(5)),
    (pa.duration("ns"), datetime.timedelta(microseconds=5)),
    (pa.time32("ms"), datetime.time(1, 2)),
    (pa.time64("ns"), datetime.time(1, 2)),
    (pa.date64(), datetime.date(2024, 2, 29)),
    (pa.timestamp("ns", "UTC"), datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC)),
]


@pytest.mark.parametrize(("kind", "value"), STORED, ids=[str(kind) for kind, _ in STORED])
@pytest.mark.parametrize("text", ["NULL", "c", "coalesce(c, c)", "CASE WHEN id = 0 THEN c END"])
def test_values_of_every_type_stay_as_they_are(
    tmp_path: Path, kind: pa.DataType, value: Any, text: str
) -> None:
    rows = pa.table({"id": [0, 1], "c": pa.array([value, None], kind)})
    after = lance_sql.write(rows, tmp_path / "t.lance").update({"c": text})
    assert after.schema.field("c").type == kind
    assert after.to_table()["c"].to_pylist() == [None if text == "NULL" else value, None]


@pytest.mark.parametrize("nested", [False, True])
def test_durations_keep_their_nanoseconds_or_are_refused(tmp_path: Path, nested: bool) -> None:
    """DuckDB's intervals have microseconds."""
    rows = pa.table(
        {
            "id": [0],
            "c": pa.array(
                [[5]] if nested else [5], pa.duration("ns") if not nested else pa.list_(pa.duration("ns"))
            ),
        }
    )
    dataset = lance_sql.write(rows, tmp_path / "t.lance")
    with pytest.raises(lance_sql.LanceError, match="would lose data"):
        dataset.update({"c": "CASE WHEN id = 0 THEN c END"})
    for engine in ("duckdb", "datafusion"):
        with lance_sql.connect(tmp_path, engine=engine) as session:
            with pytest.raises(lance_sql.LanceError, match="would lose data"):
                session.sql("UPDATE t SET c = CASE WHEN id = 0 THEN c END")
            session.sql("UPDATE t SET id = id + 1")
    with pytest.raises(lance_sql.LanceError, match="would lose data"):
        lance_sql.sql(f"SELECT c FROM '{tmp_path}/t.lance'").fetchall()
    after = lance_sql.open(tmp_path / "t.lance").to_table()
    assert after["c"].equals(rows["c"])
    assert after["id"].to_pylist() == [2]
