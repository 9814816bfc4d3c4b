"""Decimals of more than 38 digits, which DuckDB reads as DOUBLE, are changed exactly or not at all."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from engine_versions import needs_duckdb_2
from lance_engine.errors import LanceError

import lance_sql

WIDE = Decimal("1234567890123456789012345678901234567890.1234567891")

DOUBLE = Decimal("2469135780246913578024691357802469135780.2469135782")


@pytest.fixture
def session(tmp_path):
    kind = pa.decimal256(50, 10)
    rows = {"i": [1, 2], "d": pa.array([WIDE, None], kind), "l": pa.array([[WIDE], None], pa.list_(kind))}
    lance_sql.write(pa.table(rows), tmp_path / "t.lance")
    with lance_sql.connect(tmp_path, engine="duckdb") as session:
        yield session


def _decimals(tmp_path) -> list[Decimal | None]:
    return lance_sql.open(tmp_path / "t.lance").to_table(["d"]).column("d").to_pylist()


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (f"UPDATE t SET d = '{WIDE}'", [WIDE, WIDE]),
        ("UPDATE t SET d = 0.25, l = NULL WHERE i = 2", [WIDE, Decimal("0.25")]),
        ("UPDATE t SET i = 5 WHERE i = 1", [None, WIDE]),
        ("INSERT INTO t VALUES (3, 1.5, NULL), (4, '2', NULL)", [WIDE, None, Decimal("1.5"), Decimal(2)]),
        ("INSERT INTO t (d) VALUES (0.00000000005)", [WIDE, None, Decimal("1e-10")]),
        ("INSERT INTO t (i) VALUES (3)", [WIDE, None, None]),
        ("UPDATE t SET i = 5 WHERE i = 1 RETURNING *", [None, WIDE]),
        ("MERGE INTO t USING (SELECT 2 AS k) s ON k = i WHEN MATCHED THEN UPDATE SET d = 7", [WIDE, 7]),
    ],
)
def test_exact_changes(session, tmp_path, statement, expected):
    session.execute(statement)
    assert _decimals(tmp_path) == expected


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET d = d",
        "UPDATE t SET l = l",
        "UPDATE t SET l = [0.5]",
        "UPDATE t SET d = 'x'",
        "UPDATE t SET d = repeat('9', 50)",
        "INSERT INTO t SELECT * FROM t",
        "MERGE INTO t USING t s ON s.i = t.i WHEN MATCHED THEN UPDATE SET d = s.d",
        "ALTER TABLE t ALTER d TYPE VARCHAR",
    ],
)
def test_changes_that_would_lose_digits_are_refused(session, tmp_path, statement):
    with pytest.raises(LanceError):
        session.execute(statement)
    assert _decimals(tmp_path) == [WIDE, None]


def test_python_computes_them(tmp_path, session):
    dataset = lance_sql.open(tmp_path / "t.lance").update({"d": "d * 2", "l": "l"})
    assert dataset.to_table().to_pydict() == {"i": [1, 2], "d": [DOUBLE, None], "l": [[WIDE], None]}
    for value in ("CAST(1e40 AS FLOAT)", "'x'"):
        with pytest.raises(LanceError):
            dataset.update({"d": value})


@needs_duckdb_2
def test_nulls_of_variants_beside_other_converted_columns(session):
    columns = "1.5::DECIMAL(4, 2) AS d, '[1]'::JSON AS j, CASE WHEN i > 0 THEN 42::VARIANT END AS v"
    session.execute(f"CREATE TABLE v AS SELECT {columns} FROM range(2) r(i)")
    assert session.sql("SELECT v, j FROM v ORDER BY v NULLS FIRST").fetchall() == [(None, "[1]"), (42, "[1]")]
