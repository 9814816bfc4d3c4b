"""Statements on tables with durations, which DuckDB knows as intervals only."""

from __future__ import annotations

import datetime
from pathlib import Path

import pyarrow as pa
import pytest

import lance_sql

SECONDS = [5, None, 86_400 * 400]


def seconds(count: int | None) -> datetime.timedelta | None:
    return None if count is None else datetime.timedelta(seconds=count)


@pytest.fixture
def session(tmp_path: Path) -> lance_sql.Connection:
    durations = pa.array([seconds(count) for count in SECONDS], pa.duration("ms"))
    lance_sql.write(pa.table({"a": [1, 2, 3], "d": durations}), tmp_path / "t.lance")
    return lance_sql.connect(str(tmp_path))


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE t SET a = a + 10", {11: 5, 12: None, 13: SECONDS[2]}),
        (
            "UPDATE t SET a = s.b FROM (SELECT 1 AS k, 7 AS b) AS s WHERE t.a = s.k",
            {7: 5, 2: None, 3: SECONDS[2]},
        ),
        ("UPDATE t SET d = INTERVAL 3 DAYS WHERE a = 2", {1: 5, 2: 3 * 86_400, 3: SECONDS[2]}),
        ("UPDATE t SET d = d + INTERVAL 1 SECOND WHERE a = 1", {1: 6, 2: None, 3: SECONDS[2]}),
        ("UPDATE t SET a = 9 WHERE a = 3 RETURNING a, d", {1: 5, 2: None, 9: SECONDS[2]}),
        ("INSERT INTO t VALUES (4, INTERVAL '90 minutes')", {1: 5, 2: None, 3: SECONDS[2], 4: 5400}),
        ("INSERT INTO t SELECT a + 3, d FROM t WHERE a < 3", {1: 5, 2: None, 3: SECONDS[2], 4: 5, 5: None}),
        (
            "MERGE INTO t USING (SELECT 3 AS a, INTERVAL 1 HOUR AS d) AS s ON t.a = s.a "
            "WHEN MATCHED THEN UPDATE SET d = s.d",
            {1: 5, 2: None, 3: 3600},
        ),
        ("DELETE FROM t WHERE d > INTERVAL 1 DAY", {1: 5, 2: None}),
    ],
)
def test_statements(
    session: lance_sql.Connection, tmp_path: Path, statement: str, expected: dict[int, int | None]
) -> None:
    session.sql(statement)
    found = lance_sql.open(tmp_path / "t.lance").scan().to_table()
    assert found.schema.field("d").type == pa.duration("ms")
    assert dict(zip(found["a"].to_pylist(), found["d"].to_pylist(), strict=True)) == {
        key: seconds(count) for key, count in expected.items()
    }


def test_months_have_no_length(session: lance_sql.Connection) -> None:
    for statement in ("INSERT INTO t VALUES (4, INTERVAL 2 MONTHS)", "UPDATE t SET d = INTERVAL 1 YEAR"):
        with pytest.raises(lance_sql.LanceError, match="month"):
            session.sql(statement)
    assert session.sql("SELECT count(*) FROM t").fetchall() == [(3,)]
