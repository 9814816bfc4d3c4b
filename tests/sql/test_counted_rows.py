"""Counts in DuckDB do not decode the column that it asks for in order to count."""

from __future__ import annotations

import datetime

import duckdb
import pyarrow as pa
import pytest

import lance_sql
from lance_sql.engines import pushdown
from lance_sql.text.named_columns import named_columns
from lance_sql.text.statement import Statement

ROWS = 30_000


@pytest.fixture(autouse=True)
def no_table_is_small(monkeypatch):
    monkeypatch.setattr(pushdown, "_SMALL_BYTES", 0)


@pytest.fixture(scope="module")
def table():
    return pa.table(
        {
            "first": pa.array([None if row % 3 == 0 else row for row in range(ROWS)]),
            "k": [row % 97 for row in range(ROWS)],
            "name": [f"name {row % 1009}" for row in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def directory(tmp_path_factory, table):
    place = tmp_path_factory.mktemp("counted")
    lance_sql.write(table, place / "t.lance", max_rows_per_file=8000)
    lance_sql.open(place / "t.lance").delete("k = 12")
    lance_sql.write(pa.table({"sole": range(100)}), place / "one.lance")
    lance_sql.write(pa.table({"s": [{"a": row} for row in range(500)]}), place / "st.lance")
    return place


@pytest.fixture
def connection(directory):
    with lance_sql.connect(directory) as connection:
        yield connection


def columns_of(connection, text):
    """The columns that the scans of `text` read; its answer has to be that over Arrow."""
    result = connection.sql(text)
    found = sorted(map(repr, result.fetchall()))
    with duckdb.connect() as plain:
        for name in ("t", "one", "st"):
            plain.register(name, lance_sql.open(connection.catalog.directory + f"/{name}.lance").to_table())
        assert found == sorted(map(repr, plain.sql(text).fetchall()))
    return [scan["columns"] for scan in result.metrics["scans"]]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM t WHERE k = 5",
        "SELECT COUNT(*) AS c, 7 FROM t WHERE k = 5 AND name <> 'x'",
        "SELECT count( * ) FROM t AS u WHERE u.k = 5",
        'SELECT count(*) FROM "t" u WHERE "K" = 5;',
        "SELECT count(*) FROM (SELECT 1 FROM t WHERE k = 5 LIMIT 30)",
        "SELECT count(*) FROM one, t WHERE t.k = 5 AND one.sole < 3",
    ],
)
def test_no_column_is_read_to_count_rows(connection, text):
    assert [] in columns_of(connection, text)
    assert ["first"] not in columns_of(connection, text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(first) FROM t WHERE k = 5",
        'SELECT count("FIRST") FROM t WHERE k = 5',
        "SELECT count(*) FROM t WHERE k = 5 AND first > 8",
        "SELECT sum(FIRST), count(1) FROM t WHERE k = 5",
        "SELECT max(#1), count(1) FROM t WHERE k = 5",
        "SELECT max(COLUMNS('fir.*')), count(1) FROM t WHERE k = 5",
        "SELECT count(*) FROM (FROM t WHERE k = 5 LIMIT 30) WHERE COLUMNS(*) IS NOT NULL",
        "SELECT sole FROM one WHERE sole IN (SELECT count(*) FROM t WHERE k = 5)",
        "SELECT count(*), count(DISTINCT one) FROM one",
        "SELECT count(*), max(o) FROM one AS o",
        "SELECT count(*), max(s.a) FROM st",
        "SELECT count(*), max(one.sole) FROM one",
        "SELECT count(*) FROM one GROUP BY ALL HAVING max(one.sole) > 5",
        "SELECT count(o), max(o.sole) FROM one AS o",
        "SELECT count(*) FROM one WHERE 5 IN (FROM one)",
        "SELECT count(*) FROM one NATURAL JOIN (SELECT 5 AS sole) AS five",
        "SELECT count(*) FILTER (x.sole > 5) FROM (TABLE one) AS x",
    ],
)
def test_the_first_column_is_read_where_it_is_used(connection, text):
    columns_of(connection, text)


@pytest.mark.parametrize(
    "text",
    [
        "FROM one",
        "SELECT count(*) FROM (FROM one)",
        "SELECT count(*) FROM t WHERE 5 IN (FROM one)",
        "SELECT count(*), max(#1) FROM one",
        "SELECT count(*), one FROM one",
        "SELECT count(*), max(o) FROM one AS o",
        "SELECT count(*) FROM one NATURAL JOIN t",
        "SELECT count(*) FROM (TABLE one)",
        "SELECT count(*), max(COLUMNS('so.*')) FROM one",
        "SELECT count(*), * FROM one",
        "SELECT count(*), one.* FROM one",
        "SELECT count(*) FROM (SELECT DISTINCT * FROM one)",
        "SELECT count(*) FROM (PIVOT one ON k)",
    ],
)
def test_statements_that_may_use_columns_without_naming_them(text):
    assert named_columns(Statement(text)) is None


def test_words_and_tables_that_a_statement_names():
    found = named_columns(Statement('SELECT count(*), max(s.a) FROM T JOIN "U" u2 ON T.x = u2.Y'))
    assert found is not None
    assert {"s", "a", "x", "y"} <= found.words
    assert found.tables == {"T": 1, "U": 1}


def test_macros_and_views_use_columns_that_a_statement_does_not_name(connection):
    connection.sql("CREATE VIEW v AS SELECT * FROM t")
    connection.sql("CREATE MACRO most() AS (SELECT max(first) FROM t)")
    connection.sql("CREATE MACRO firsts() AS TABLE SELECT first AS f FROM t")
    highest = ROWS - 1 - (ROWS - 1) % 3 - 1 if (ROWS - 1) % 3 == 0 else ROWS - 1
    assert connection.sql("SELECT most(), count(*) FROM t WHERE k = 5").fetchall()[0][0] == highest
    count = connection.sql("SELECT count(*) FROM t WHERE k = 5").fetchall()[0][0]
    assert connection.sql("SELECT count(*) FROM v WHERE k = 5").fetchall() == [(count,)]
    used = "SELECT count(*), sum(f) FROM firsts() WHERE f > 5"
    assert (
        connection.sql(used).fetchall()[0][1]
        == connection.sql("SELECT sum(first) FROM t WHERE first > 5").fetchall()[0][0]
    )


@pytest.mark.parametrize(
    "kind",
    [
        pa.int8(),
        pa.bool_(),
        pa.string(),
        pa.large_binary(),
        pa.float16(),
        pa.decimal128(9, 2),
        pa.decimal256(50, 2),
        pa.date32(),
        pa.timestamp("us", "UTC"),
        pa.list_(pa.int32()),
        pa.list_(pa.float32(), 4),
        pa.struct([("x", pa.int32()), ("y", pa.string())]),
        pa.map_(pa.string(), pa.int32()),
        pa.dictionary(pa.int32(), pa.string()),
    ],
    ids=str,
)
@pytest.mark.parametrize("nullable", [True, False])
def test_first_columns_of_any_type(tmp_path, kind, nullable):
    if nullable:
        first = pa.nulls(9000, kind)
    elif kind == pa.dictionary(pa.int32(), pa.string()):
        first = pa.array([f"{row % 3}" for row in range(9000)]).dictionary_encode()
    else:
        first = pa.array([_value(kind)] * 9000, kind)
    schema = pa.schema([pa.field("first", first.type, nullable), ("k", pa.int64())])
    table = pa.table([first, pa.array(range(9000))], schema=schema)
    lance_sql.write(table, tmp_path / "t.lance")
    with lance_sql.connect(tmp_path) as connection:
        result = connection.sql("SELECT count(*) FROM t WHERE k < 100 AND k + 0 >= 40")
        assert result.fetchall() == [(60,)]
        assert connection.sql("SELECT count(*) FROM t WHERE k < 100").fetchall() == [(100,)]


def _value(kind):
    if pa.types.is_floating(kind):
        return 1.0
    if pa.types.is_temporal(kind):
        moment = datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC)
        return moment.date() if pa.types.is_date(kind) else moment
    values = {
        pa.bool_(): True,
        pa.string(): "text",
        pa.large_binary(): b"bytes",
        pa.list_(pa.int32()): [1, 2],
        pa.list_(pa.float32(), 4): [1.0] * 4,
        pa.struct([("x", pa.int32()), ("y", pa.string())]): {"x": 1, "y": "z"},
        pa.map_(pa.string(), pa.int32()): [("a", 1)],
    }
    return values.get(kind, 1)


def test_bytes_of_the_first_column_are_not_read(connection):
    counted = connection.sql("SELECT count(*) FROM t WHERE k = 5")
    counted.fetchall()
    used = connection.sql("SELECT count(first) FROM t WHERE k = 5")
    used.fetchall()
    assert 0 < counted.metrics["bytes_read"] < used.metrics["bytes_read"]
