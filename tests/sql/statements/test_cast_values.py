"""Every statement casts values to the type of the column as DuckDB does, or fails as DuckDB does."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import LanceError

import lance_sql

#: A type, a value of it, and an expression for other values, which may not fit.
VALUES = [
    ("STRUCT(Name VARCHAR, age INT)", "{'Name': 'a', 'age': 1}", "{'name': 'bob', 'AGE': 2}"),
    ("STRUCT(Name VARCHAR, age INT)", "{'Name': 'a', 'age': 1}", "{'age': 1.5, 'name': 'bob'}"),
    ("STRUCT(Name VARCHAR, age INT)", "{'Name': 'a', 'age': 1}", "{'name': 'bob'}"),
    ("STRUCT(Name VARCHAR, age INT)", "{'Name': 'a', 'age': 1}", "{'other': 'bob'}"),
    ("STRUCT(Name VARCHAR)[]", "[]", "[{'name': 'bob'}, NULL]"),
    ("STRUCT(Name VARCHAR)[2]", "NULL", "[{'name': 'bob'}, NULL]"),
    ("MAP(VARCHAR, STRUCT(Name VARCHAR))", "MAP {}", "MAP {'k': {'NAME': 'bob'}}"),
    ("STRUCT(A STRUCT(B INT[]))", "NULL", "{'a': {'b': ['1', '2']}}"),
    ("BLOB", "'a'", r"'\x42\x43'"),
    ("BLOB", "'a'", r"'\x4'"),
    ("BLOB", "'a'", "'é'"),
    ("GEOMETRY", "'POINT (1 2)'", "'POINT (3 4)'"),
    ("GEOMETRY", "'POINT (1 2)'", "'x'"),
    ("FLOAT", "1", "1e40"),
    ("FLOAT[]", "[1]", "[1e40]"),
    ("VARCHAR", "'a'", "1e3"),
    ("VARCHAR", "'a'", "[1.50, NULL]"),
    ("INTEGER", "1", "2.5"),
    ("INTEGER", "1", "3.5e0"),
    ("UTINYINT", "1", "256"),
    ("DECIMAL(5, 2)", "1", "2.345"),
    ("DECIMAL(5, 2)", "1", "1000"),
    ("TIMESTAMP_S", "'2020-01-01'", "TIMESTAMP '2020-01-01 00:00:01.7'"),
    ("TIMESTAMP_MS", "'2020-01-01'", "TIMESTAMP '2020-01-01 00:00:01.7777'"),
    ("DATE", "'2020-01-01'", "TIMESTAMP '2020-01-02 23:59:59'"),
    ("INTEGER[2]", "[1, 2]", "[1.5, 2.5]"),
    ("INTEGER[2]", "[1, 2]", "[1]"),
    ("MAP(INT, VARCHAR)", "MAP {1: 'a'}", "MAP {'2': 3}"),
    ("JSON", "'{}'", "{'a': 1}"),
    ("JSON", "'{}'", "'{'"),
]
#: Statements that store the value {new}.
STATEMENTS = [
    "INSERT INTO t VALUES (2, {new})",
    "INSERT INTO t SELECT 2, {new}",
    "INSERT INTO t BY NAME SELECT {new} AS v, 2 AS id",
    "UPDATE t SET v = {new}",
    "UPDATE t SET v = {new} FROM (VALUES (1), (1)) s(k) WHERE k = id",
    "MERGE INTO t USING (VALUES (1), (2)) s(k) ON k = id WHEN MATCHED THEN UPDATE SET v = {new} "
    "WHEN NOT MATCHED THEN INSERT VALUES (k, {new})",
]


def _answer(connection: Any, statements: list[str], reading: Any) -> object:
    """The rows after statements, and whether the last one failed."""
    *before, last = statements
    for statement in before:
        connection.execute(statement)
    failed = False
    try:
        connection.execute(last)
    except (duckdb.Error, LanceError):
        failed = True
    return failed, reading.execute("SELECT * FROM t ORDER BY ALL").fetchall()


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("kind", "first", "new"), VALUES)
def test_values_are_cast_as_in_duckdb(tmp_path: Path, engine: str, kind: str, first: str, new: str) -> None:
    with (
        lance_sql.connect(tmp_path, engine=engine) as ours,
        lance_sql.connect(tmp_path) as reading,
        duckdb.connect() as plain,
    ):
        for statement in STATEMENTS:
            if engine == "datafusion" and statement.startswith("INSERT") and "SELECT" in statement:
                continue  # DataFusion computes the query, in its own dialect
            texts = [
                f"CREATE OR REPLACE TABLE t (id INT, v {kind})",
                f"INSERT INTO t VALUES (1, {first})",
                statement.format(new=new),
            ]
            assert _answer(ours, texts, reading) == _answer(plain, texts, plain), texts


def test_an_update_leaves_what_duckdb_cannot_hold_as_it_is(tmp_path: Path) -> None:
    """Durations of nanoseconds and decimals of 50 digits pass DuckDB only if a statement sets them."""
    exact = pa.array([1_000_001, None, 3], pa.duration("ns"))
    wide = pa.array([10**45 + 1, None, 7], pa.decimal256(50, 0))
    rows = pa.table({"id": [1, 2, 3], "exact": exact, "wide": wide})
    lance_sql.write(rows, tmp_path / "t.lance")
    with lance_sql.connect(tmp_path) as session:
        session.sql("UPDATE t SET id = id + 10")
        session.sql(
            "MERGE INTO t USING (VALUES (11), (13)) s(k) ON k = id "
            "WHEN MATCHED AND k = 11 THEN UPDATE SET id = 21 "
            "WHEN MATCHED THEN UPDATE SET exact = INTERVAL 1 DAY"
        )
        with pytest.raises(LanceError, match="would lose data"):
            session.sql(
                "MERGE INTO t USING (VALUES (21)) s(k) ON k = id WHEN MATCHED THEN UPDATE SET id = k "
                "RETURNING exact"
            )
    found = lance_sql.open(tmp_path / "t.lance").to_table().sort_by("id")
    assert found["id"].to_pylist() == [12, 13, 21]
    assert found["exact"].cast(pa.int64()).to_pylist() == [None, 86_400 * 10**9, 1_000_001]
    assert found["wide"].to_pylist() == [None, 7, 10**45 + 1]


@pytest.mark.parametrize("statement", ["UPDATE t SET h = {}", "INSERT INTO t VALUES ({})"])
def test_numbers_of_16_bits_do_not_become_infinite(tmp_path: Path, statement: str) -> None:
    lance_sql.write(pa.table({"h": pa.array([np.float16(1.5)], pa.float16())}), tmp_path / "t.lance")
    with lance_sql.connect(tmp_path) as session:
        with pytest.raises(LanceError, match="out of range for 16 bits"):
            session.sql(statement.format("-65520"))
        session.sql(statement.format("65519"))
        session.sql(statement.format("'infinity'"))
        assert max(value for (value,) in session.sql("SELECT h FROM t").fetchall()) == math.inf


def test_nulls_do_not_enter_fields_that_are_not_null(tmp_path: Path) -> None:
    struct = pa.struct([pa.field("a", pa.int32(), nullable=False)])
    rows = pa.table({"s": pa.array([{"a": 1}], struct)})
    lance_sql.write(rows, tmp_path / "t.lance")
    with lance_sql.connect(tmp_path) as session:
        for statement in ("UPDATE t SET s = {'a': NULL}", "INSERT INTO t VALUES ({'A': NULL})"):
            with pytest.raises(LanceError, match="NOT NULL"):
                session.sql(statement)
        session.sql("UPDATE t SET s = NULL")
        assert session.sql("SELECT * FROM t").fetchall() == [(None,)]


def test_maps_whose_keys_have_no_type_are_refused(tmp_path: Path) -> None:
    with (
        lance_sql.connect(tmp_path) as session,
        pytest.raises(LanceError, match=r"MAP\(\"NULL\", \"NULL\"\).*MAP {}::MAP"),
    ):
        session.sql("CREATE TABLE t AS SELECT MAP {} AS m")


def test_maps_with_keys_of_json(tmp_path: Path) -> None:
    with lance_sql.connect(tmp_path) as session:
        session.sql("CREATE TABLE t (m MAP(JSON, INT)); INSERT INTO t VALUES (MAP {'[1,null]': 2}), (NULL)")
        assert session.sql("SELECT * FROM t").fetchall() == [({"[1,null]": 2},), (None,)]


def test_defaults_of_another_type_are_refused(tmp_path: Path) -> None:
    with lance_sql.connect(tmp_path) as session:
        session.sql("CREATE TABLE t (s STRUCT(a INT), i INT)")
        with pytest.raises(LanceError, match="STRUCT"):
            session.sql("ALTER TABLE t ALTER s SET DEFAULT row(1, 2)")
        session.sql("ALTER TABLE t ALTER i SET DEFAULT '7'; INSERT INTO t DEFAULT VALUES")
        assert session.sql("SELECT * FROM t").fetchall() == [(None, 7)]
