"""DELETE and UPDATE find the rows that a query with the same condition finds."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from lance_engine.errors import InvalidFilterError, LanceError

import lance_sql
from lance_sql.statements.session import LENT

HOURS = [0, 1, 4, 5, 23, 24, 29]
ZONED = [
    "zoned = '1970-01-01 00:00:00'",
    "zoned >= '1970-01-01 01:00:00'",
    "zoned < DATE '1970-01-02'",
    "zoned BETWEEN TIMESTAMP '1970-01-01' AND '1970-01-01 04:00:00'",
    "zoned IN ('1970-01-01 00:00:00', '1970-01-01 05:00:00')",
    "hour(zoned) = 0",
    "day(zoned) = 1 OR zoned IS NULL",
    "holder.moment > '1970-01-01 03:00:00'",
    "naive < TIMESTAMPTZ '1970-01-01 00:00:00+00'",
    "naive > '1970-01-01 05:00:00+05'",
    "naive >= '1970-01-01 05:00:00Z'",
    "year(zoned) = year(naive)",
]


@pytest.fixture
def moments(tmp_path: Path) -> Path:
    start = datetime.datetime(1970, 1, 1)
    naive = pa.array([start + datetime.timedelta(hours=hour) for hour in HOURS], pa.timestamp("us"))
    zoned = naive.cast(pa.timestamp("us", "Europe/Berlin"))
    holder = pa.StructArray.from_arrays([zoned], ["moment"])
    table = pa.table({"id": range(len(HOURS)), "naive": naive, "zoned": zoned, "holder": holder})
    lance_sql.write(table, tmp_path / "t.lance")
    return tmp_path


def test_changes_use_the_time_zone_of_the_session(moments: Path) -> None:
    with lance_sql.connect(moments) as session:
        session.sql("SET TimeZone = 'America/New_York'")
        for condition in ZONED:
            found = session.sql(f"SELECT id FROM t WHERE {condition} ORDER BY id").fetchall()
            session.begin()
            changed = session.sql(f"UPDATE t SET id = id + 100 WHERE {condition}").fetchall()
            updated = session.sql("SELECT id - 100 FROM t WHERE id >= 100 ORDER BY id").fetchall()
            session.rollback()
            session.begin()
            deleted = session.sql(f"DELETE FROM t WHERE {condition}").fetchall()
            left = session.sql("SELECT id FROM t").fetchall()
            session.rollback()
            assert updated == found, condition
            assert changed == deleted == [(len(found),)], condition
            assert sorted([*found, *left]) == [(number,) for number in range(len(HOURS))], condition


def test_values_are_in_the_time_zone_of_the_session(moments: Path) -> None:
    with lance_sql.connect(moments) as session:
        session.sql("SET TimeZone = 'America/New_York'")
        session.sql("UPDATE t SET zoned = TIMESTAMP '2020-01-01 00:00:00' WHERE id = 0")
        session.sql("UPDATE t SET zoned = '2020-01-01 00:00:00' WHERE id = 1")
        assert session.sql("SELECT DISTINCT epoch(zoned) FROM t WHERE id < 2").fetchall() == [(1577854800.0,)]


def test_changes_through_datafusion_do_not_use_the_time_zone_of_the_machine(
    moments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    with lance_sql.connect(moments, engine="datafusion") as session:
        session.sql("DELETE FROM t WHERE zoned >= '1970-01-01 05:00:00'")
        assert session.sql("SELECT id FROM t ORDER BY id").fetchall() == [(0,), (1,), (2,)]


@pytest.mark.parametrize("condition", ["id % 0 IS NULL", "id // 0 IS NULL", "id % (id - id) IS NULL"])
def test_division_by_zero_is_an_error_as_in_queries(moments: Path, condition: str) -> None:
    with lance_sql.connect(moments) as session:
        for text in (f"SELECT * FROM t WHERE {condition}", f"DELETE FROM t WHERE {condition}"):
            with pytest.raises(LanceError, match=r"Division by zero"):
                session.sql(text).fetchall()
        assert session.sql("DELETE FROM t WHERE id % 2 = 1").fetchall() == [(3,)]


@pytest.fixture
def rows(tmp_path: Path, engine: str) -> Iterator[lance_sql.Connection]:
    with lance_sql.connect(tmp_path, engine=engine) as session:
        session.sql("CREATE TABLE t AS SELECT * FROM (VALUES (0, 'a'), (1, 'b'), (2, 'c'), (3, 'd')) v(i, s)")
        session.sql("CREATE TABLE o AS SELECT * FROM (VALUES (1, 10), (2, 20)) v(k, v)")
        yield session


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("DELETE FROM t WHERE _rowid = 1", [0, 2, 3]),
        ("DELETE FROM t WHERE _rowid IN (SELECT k FROM o)", [0, 3]),
        ("DELETE FROM t USING o WHERE t._rowid = o.k AND o._rowid = 0", [0, 2, 3]),
        ("DELETE FROM t WHERE _rowaddr > 1 RETURNING *", [0, 1]),
        ("UPDATE t SET i = i + 100 WHERE _rowid % 3 = 0", [1, 2, 100, 103]),
        ("UPDATE t SET i = 10 * _rowid WHERE s > 'b'", [0, 1, 20, 30]),
        ("UPDATE t SET i = v FROM o WHERE t._rowid = o.k", [0, 3, 10, 20]),
        ("MERGE INTO t USING o ON t._rowid = o.k WHEN MATCHED THEN UPDATE SET i = o.v", [0, 3, 10, 20]),
        (
            "MERGE INTO t USING (SELECT _rowid AS r FROM t) q ON t._rowid = q.r "
            "WHEN MATCHED AND r = 1 THEN DELETE",
            [0, 2, 3],
        ),
    ],
)
def test_changes_find_rows_by_their_ids(rows: lance_sql.Connection, statement: str, left: list[int]) -> None:
    rows.sql(statement)
    assert rows.sql("SELECT i FROM t ORDER BY i").fetchall() == [(number,) for number in left]


def test_rows_are_deleted_by_an_id_that_is_a_parameter(rows: lance_sql.Connection) -> None:
    rows.sql("DELETE FROM t WHERE _rowid = ?", [2])
    assert rows.sql("SELECT i FROM t ORDER BY i").fetchall() == [(0,), (1,), (3,)]


def test_an_error_in_a_transaction_says_what_failed(tmp_path: Path) -> None:
    with lance_sql.connect(tmp_path) as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS i, 'word' AS s")
        for failing in ("UPDATE t SET i = s::INT", "DELETE FROM t WHERE s::INT = 1 RETURNING *"):
            session.begin()
            with pytest.raises(LanceError, match="Could not convert string 'word'"):
                session.sql(failing)
            session.rollback()
        assert session.sql("SELECT * FROM t").fetchall() == [(1, "word")]
        names = session.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        assert not [name for (name,) in names if "lance_sql" in name]


def test_returning_has_the_values_of_queries(tmp_path: Path) -> None:
    maps = pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32()))
    halves = pa.array([2.5], pa.float16())
    lance_sql.write(pa.table({"m": maps, "h": halves, "i": [1]}), tmp_path / "t.lance")
    with lance_sql.connect(tmp_path) as session:
        found = session.sql("SELECT * FROM t").fetchall()
        assert found == [({"k": 1}, 2.5, 1)]
        assert session.sql("UPDATE t SET i = 1 RETURNING *").fetchall() == found
        assert session.sql("DELETE FROM t RETURNING *").fetchall() == found
        session.register("halves", pa.table({"h": halves}))
        assert session.sql("SELECT * FROM halves").fetchall() == [(2.5,)]


FAR = """
    SELECT DATE '9999-12-31' + 1 AS day, TIMESTAMP '9999-12-31 23:00:00' + INTERVAL 2 HOUR AS moment,
        [DATE '9999-12-31' + 1, DATE '2000-01-01', NULL] AS days,
        {'day': DATE '9999-12-31' + 1, 'n': 1} AS holder, MAP {'k': DATE '9999-12-31' + 1} AS named,
        DATE '2000-01-01' AS near, NULL::DATE AS nothing
"""


def test_dates_that_python_cannot_hold_are_text(tmp_path: Path) -> None:
    near = datetime.date(2000, 1, 1)
    with lance_sql.connect(tmp_path) as session:
        result = session.sql(FAR)
        [(day, moment, days, holder, named, *others)] = result.fetchall()
        assert day == duckdb.sql(FAR).fetchall()[0][0] == "10000-01-01"
        assert moment.startswith("10000-01-01 01:00:00")
        assert others == [near, None]
        assert (days, holder, named) == ([day, near, None], {"day": day, "n": 1}, {"k": day})
        assert day in str(result)
        session.sql("CREATE TABLE t AS SELECT DATE '9999-12-31' + 1 AS day, 5 AS n")
    dataset = lance_sql.open(tmp_path / "t.lance")
    assert dataset[0] == {"day": day, "n": 5}
    assert list(dataset) == [dataset[0]]


@pytest.mark.parametrize("value", ["n = abs(n)", "price = ceil(price)", "price = floor(price)"])
def test_values_that_do_not_fit_are_errors(tmp_path: Path, value: str) -> None:
    prices = pa.array([decimal.Decimal("99.99"), decimal.Decimal("-99.99")], pa.decimal128(4, 2))
    table = pa.table({"n": pa.array([-128, 5], pa.int8()), "price": prices})
    dataset = lance_sql.write(table, tmp_path / "t.lance")
    with lance_sql.connect(tmp_path) as session:
        with pytest.raises(LanceError, match=r"Overflow on abs|out of range"):
            session.sql(f"UPDATE t SET {value}")
        assert session.sql("SELECT * FROM t").arrow().equals(table)
    column, expression = value.split(" = ")
    with pytest.raises(InvalidFilterError, match=r"overflow|does not fit"):
        dataset.update({column: expression})
    assert dataset.count_rows("ceil(price) = 100 AND floor(price) = 99") == 1


def test_membership_in_a_list_column_is_left_to_the_engine(tmp_path: Path) -> None:
    dataset = lance_sql.write(pa.table({"n": [1, 2, 3], "l": [[1], [2, 3], [1, 3]]}), tmp_path / "t.lance")
    with pytest.raises(InvalidFilterError, match="IN needs values in parentheses"):
        dataset.count_rows("1 IN l")
    with lance_sql.connect(tmp_path) as session:
        assert session.sql("DELETE FROM t WHERE 1 IN l").fetchall() == [(2,)]
        assert session.sql("SELECT n FROM t").fetchall() == [(2,)]
        session.sql("CREATE TABLE f AS SELECT -2.5::DOUBLE AS x")
        session.sql("UPDATE f SET x = x // 2")
        assert session.sql("SELECT x FROM f").fetchall() == duckdb.sql("SELECT -2.5::DOUBLE // 2").fetchall()


LITERALS = [
    "DATE '2020-01-01'::VARCHAR || '!'",
    "TIMESTAMP '2020-01-01 10:11:12'::DATE",
    "TIMESTAMP '2020-01-01 10:11:12'::TIME",
    "TIMESTAMP WITH TIME ZONE '2020-01-01 10:11:12+00'::VARCHAR",
    "timestamptz '2020-01-01 10:11:12+00'::TIMESTAMP::VARCHAR",
    "INTERVAL '1 day'::VARCHAR",
    "typeof(DATE '2020-01-01'::TIMESTAMP)",
    "X'0aFF'",
    "octet_length(X'')",
    "'it''s DATE ''2020'''",
]


def test_literals_have_the_values_of_queries(tmp_path: Path) -> None:
    with lance_sql.connect(tmp_path) as session:
        values = ", ".join(f"{literal} AS c{place}" for place, literal in enumerate(LITERALS))
        session.sql("SET TimeZone = 'UTC'")
        found = session.sql(f"SELECT {values}").fetchall()
        session.sql(f"CREATE TABLE t AS SELECT {values}")
        assert session.sql("FROM t").fetchall() == found
        session.sql(f"INSERT INTO t VALUES ({', '.join(LITERALS)})")
        assert session.sql("FROM t").fetchall() == found * 2
        changes = ", ".join(f"c{place} = {literal}" for place, literal in enumerate(LITERALS))
        session.sql(f"UPDATE t SET {changes}")
        assert session.sql("FROM t").fetchall() == found * 2
        equal = " AND ".join(f"c{place} = ({literal})" for place, literal in enumerate(LITERALS))
        assert session.sql(f"DELETE FROM t WHERE {equal}").fetchall() == [(2,)]


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        ("INSERT INTO t VALUES (?,?)", [1, "a"]),
        ("INSERT INTO t VALUES ($1,$2)", [1, "a"]),
        ("INSERT INTO t(n,s)VALUES($n,$s)", {"n": 1, "s": "a"}),
        ("INSERT INTO t SELECT ?+?,concat(?,'')", [0, 1, "a"]),
        ("MERGE INTO t USING (SELECT $1,$2) q(n,s) ON q.n=t.n WHEN NOT MATCHED THEN INSERT *", [1, "a"]),
    ],
)
def test_parameters_need_no_spaces(rows: lance_sql.Connection, statement: str, values: object) -> None:
    rows.sql("CREATE OR REPLACE TABLE t (n INT, s VARCHAR)")
    assert rows.sql(statement, values).fetchall() == [(1,)]
    assert rows.sql("SELECT * FROM t WHERE n=? AND s IN (?,?)", [1, "a", "b"]).fetchall() == [(1, "a")]
    rows.sql("UPDATE t SET n=?+?,s=? WHERE n IN (?,?)", [2, 3, "c", 1, 7])
    rows.sql("DELETE FROM t WHERE (n,s)=(?,?)", [9, "c"])
    assert rows.sql("SELECT * FROM t").fetchall() == [(5, "c")]


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET i = {value}",
        "UPDATE t SET i = {value} RETURNING *",
        "INSERT INTO t SELECT {value} FROM s t",
        "INSERT INTO t SELECT {value} FROM s t RETURNING *",
        "MERGE INTO t USING (SELECT i, {value} AS k FROM s t) q ON t.i = q.i "
        "WHEN MATCHED THEN UPDATE SET i = q.k",
        "COPY (SELECT {value} AS i FROM s t) TO '{path}' (FORMAT lance, MODE append)",
    ],
)
def test_a_session_goes_on_while_the_error_of_a_change_is_kept(
    tmp_path: Path, engine: str, text: str
) -> None:
    """As a notebook keeps the last one: its frames hold the rows that were not written."""
    schema = pa.schema([pa.field("i", pa.int64(), nullable=False)])
    for name in "ts":
        lance_sql.write(pa.table([range(20_000)], schema=schema), tmp_path / f"{name}.lance")
    with lance_sql.connect(tmp_path, engine=engine) as session:
        value = "CASE WHEN t.i = 250 THEN NULL ELSE t.i END"
        with pytest.raises(LanceError, match=r"(?i)null value in a") as kept:
            session.sql(text.format(value=value, path=tmp_path / "t.lance")).fetchall()
        assert session.sql("SELECT count(*), count(i) FROM t").fetchone() == (20_000, 20_000)
        assert not [name for name in session._session.computing()._engine._tables if name.startswith(LENT)]
    assert kept.value
