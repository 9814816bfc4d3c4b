"""Results have DuckDB's types and Python values, whatever Arrow makes of them."""

from __future__ import annotations

import datetime

import duckdb
import pytest
from engine_versions import needs_duckdb_2
from lance_engine.errors import UnsupportedTypeError

import lance_sql

pytestmark = needs_duckdb_2

VALUES = [
    "true", "(-128)::TINYINT", "18446744073709551615::UBIGINT", "'NaN'::DOUBLE", "'-inf'::FLOAT",
    "1::HUGEINT", "170141183460469231731687303715884105727::HUGEINT",
    "(-170141183460469231731687303715884105727 - 1)::HUGEINT",
    "340282366920938463463374607431768211455::UHUGEINT", "7::UHUGEINT",
    "'123456789012345678901234567890123456789012345'::BIGNUM", "1.50::DECIMAL(4, 2)",
    "'-99999999999999999999999999999999999999'::DECIMAL(38, 0)",
    "''", "'äö'", "'\\x00\\xFF'::BLOB", "'1'::BIT", "'101'::BIT", "'10101010111'::BIT",
    "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::UUID", "'x'::ENUM('x', 'y')", "'{\"a\":  1}'::JSON",
    "'2024-02-29'::DATE", "'infinity'::DATE", "'-infinity'::DATE", "'44-03-15 (BC)'::DATE",
    "'5881580-07-10'::DATE", "'12:00:00.123456'::TIME", "'24:00:00'::TIME", "'12:00:00.123456789'::TIME_NS",
    "'12:00:00+05:30'::TIMETZ", "'24:00:00-15:59:59'::TIMETZ", "'2024-02-29 12:30:15'::TIMESTAMP",
    "'infinity'::TIMESTAMP", "'-infinity'::TIMESTAMP", "'44-03-15 (BC)'::TIMESTAMP",
    "'20000-01-01'::TIMESTAMP",
    "'infinity'::TIMESTAMP_S", "'12000-01-01'::TIMESTAMP_S", "'infinity'::TIMESTAMP_MS",
    "'infinity'::TIMESTAMP_NS", "'1960-01-01 00:00:00.123456789'::TIMESTAMP_NS",
    "INTERVAL '1 month 2 days -3 us'", "INTERVAL '200000000 hours'", "INTERVAL '-3 years'",
    "[1, NULL]", "[]", "[1, 2]::INTEGER[2]", "[[1, 2], NULL]::INTEGER[2][]",
    "{'a': 1::HUGEINT, 'b': '1'::BIT}",
    "row(1, 'a')", "MAP {'a': 1::HUGEINT}", "MAP {{'a': 1}: [1]}", "MAP {[1, 2]: 'x'}", "MAP {}",
    "union_value(n := 1)", "'a'::UNION(n INTEGER, s VARCHAR)", "NULL", "'POINT(1 2)'::GEOMETRY",
    "42::VARIANT",
    "[INTERVAL '1 month', NULL]", "{'t': '12:00:00+05:30'::TIMETZ, 'i': INTERVAL '200000000 hours'}",
    "MAP {'a': INTERVAL 1 DAY}", "MAP {INTERVAL 1 DAY: 1}", "[INTERVAL 1 DAY]::INTERVAL[1]",
    "row(INTERVAL 1 DAY, 2)", "['infinity'::DATE]", "{'d': '44-03-15 (BC)'::DATE}", "[{'u': 7::UHUGEINT}]",
    "['24:00:00'::TIME, NULL]", "(INTERVAL 1 DAY)::UNION(i INTERVAL, s VARCHAR)",
]  # fmt: skip


@pytest.fixture(scope="module")
def sessions():
    with lance_sql.connect(engine="duckdb") as ours, duckdb.connect() as theirs:
        yield ours, theirs


@pytest.mark.sampled(12)
@pytest.mark.parametrize("value", VALUES)
def test_values_are_those_of_duckdb(sessions, value):
    ours, theirs = sessions
    query = f"SELECT CASE WHEN i % 3 < 2 THEN {value} END AS v, typeof({value}) AS t FROM range(7) r(i)"
    expected = theirs.sql(query).fetchall()
    assert repr(ours.sql(query).fetchall()) == repr(expected)
    rows = ours.sql(query)
    assert repr([rows.fetchone(), *rows.fetchmany(2), *rows.fetchall()]) == repr(expected)
    frame = ours.sql(query).df()
    assert list(frame.columns) == ["v", "t"]
    assert len(frame) == len(expected)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_moments_beyond_the_calendar_of_python(zone):
    later = ["'12000-01-01 00:00:00+00'::TIMESTAMPTZ", "'44-03-15 (BC) 00:00:00+00'::TIMESTAMPTZ"]
    with lance_sql.connect(engine="duckdb") as connection:
        connection.sql(f"SET TimeZone = '{zone}'")
        for value in later:
            ((moment, text),) = connection.sql(f"SELECT {value}, {value}::VARCHAR").fetchall()
            assert moment == text
        ends = connection.sql("SELECT 'infinity'::TIMESTAMPTZ, '-infinity'::TIMESTAMPTZ").fetchone()
        assert ends == (datetime.datetime.max, datetime.datetime.min)


def test_arrow_is_as_duckdb_exports_it(sessions):
    ours, theirs = sessions
    query = (
        "SELECT 1::HUGEINT AS h, '101'::BIT AS b, '12:00:00+05:30'::TIMETZ AS t, [INTERVAL 1 MONTH] AS i, "
        "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::UUID AS u"
    )
    assert ours.sql(query).arrow().equals(theirs.sql(query).to_arrow_table())
    assert ours.sql(query).reader().read_all().equals(theirs.sql(query).to_arrow_table())


@pytest.mark.parametrize("value", ["u", "[u]", "{'d': -1.5, 'u': u}", "MAP {u: 1}"])
def test_integers_that_arrow_cannot_hold(sessions, value):
    """DuckDB exports them as negative decimals."""
    ours, _ = sessions
    for number, fits in (
        ("2::UHUGEINT ** 0", True),
        ("340282366920938463463374607431768211455::UHUGEINT", False),
    ):
        query = f"SELECT {value} AS v FROM (SELECT ({number})::UHUGEINT AS u)"
        assert len(ours.sql(query).fetchall()) == 1
        for read in (
            lambda query=query: ours.sql(query).arrow(),
            lambda query=query: ours.sql(query).reader().read_all(),
        ):
            if fits:
                assert read().num_rows == 1
            else:
                with pytest.raises(UnsupportedTypeError, match="from 2\\*\\*127 on"):
                    read()
