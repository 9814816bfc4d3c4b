"""The DuckDB side: planning facts, pushdown with DuckDB's semantics, types, plain connections."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
import sql_tables
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lance_sql


@pytest.fixture(scope="module")
def plain(warehouse):
    """A plain DuckDB connection: m is the dataset with every filter pushed, a the same rows in Arrow."""
    with duckdb.connect() as connection:
        dataset = lance_sql.open(warehouse / "measurements.lance")
        lance_sql.duckdb.register(connection, "m", dataset, pushdown="all")
        connection.register("a", sql_tables.measurements())
        yield connection


def plan(connection, text: str) -> str:
    return connection.sql("EXPLAIN " + text).fetchall()[0][1]


def test_the_optimiser_knows_the_row_count(plain):
    assert "~12 rows" in plan(plain, "SELECT id FROM m")


def test_columns_are_projected(plain):
    text = plan(plain, "SELECT sum(id) FROM m")
    assert "Projections: id" in text
    assert "label" not in text


def test_pushed_filters_are_gone_from_the_plan(plain):
    text = plan(plain, "SELECT id FROM m WHERE id < 5 AND label IS NOT NULL")
    assert "Filters:" in text
    assert "Expression:" not in text


_COLUMN_VALUES = {
    "id": ["0", "5", "11", "-1", "6"],
    "value": ["0.0", "2", "-1.5", "'NaN'::DOUBLE", "'Infinity'::DOUBLE", "10"],
    "amount": ["0", "2.50", "-3.75", "100", "12345678.90"],
    "label": ["''", "'apple'", "'b'", "'äpfel'", "'o''hara'"],
    "day": ["DATE '2024-02-29'", "DATE '2024-03-05'", "DATE '1900-01-01'"],
    "taken": ["TIMESTAMP '2024-02-28 09:00:00.25'", "TIMESTAMP '2024-02-29'"],
    "small": ["0", "1", "2"],
}


@st.composite
def _comparisons(draw):
    column = draw(st.sampled_from(sorted(_COLUMN_VALUES)))
    value = st.sampled_from(_COLUMN_VALUES[column])
    kind = draw(st.sampled_from(["compare", "compare", "in", "null", "between"]))
    if kind == "in":
        negation = draw(st.sampled_from(["", "NOT "]))
        return f"{column} {negation}IN ({', '.join(draw(st.lists(value, min_size=1, max_size=4)))})"
    if kind == "null":
        return f"{column} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    if kind == "between":
        return f"{column} BETWEEN {draw(value)} AND {draw(value)}"
    return f"{column} {draw(st.sampled_from(['=', '<>', '<', '<=', '>', '>=']))} {draw(value)}"


_PREDICATES = st.recursive(
    _comparisons(),
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(predicate=_PREDICATES)
def test_pushed_filters_select_what_duckdb_selects(plain, predicate):
    expected = plain.sql(f"SELECT id FROM a WHERE {predicate} ORDER BY id").fetchall()
    assert plain.sql(f"SELECT id FROM m WHERE {predicate} ORDER BY id").fetchall() == expected


def test_types_that_duckdb_cannot_read_are_widened(tmp_path):
    table = pa.table(
        {
            "half": pa.array([1.5, None, -2.0], pa.float16()),
            "halves": pa.array([[0.5, 1.5], None, [2.0, 4.0]], pa.list_(pa.float16(), 2)),
            "x": [1, 2, 3],
        }
    )
    dataset = lance_sql.write(table, tmp_path / "t.lance")
    with duckdb.connect() as connection:
        lance_sql.duckdb.register(connection, "t", dataset, pushdown="all")
        assert connection.sql(
            "SELECT sum(half), sum(halves[2]) FROM t WHERE half > -1 OR x > 2"
        ).fetchall() == [(-0.5, 5.5)]
        assert connection.sql("SELECT x FROM t WHERE half IS NULL").fetchall() == [(2,)]


def test_install_for_plain_connections(warehouse):
    path = f"{warehouse}/orders.lance"
    text = f"SELECT count(*) FROM lance_scan('{path}') JOIN '{path}' AS o USING (order_id)"
    with duckdb.connect() as connection:
        lance_sql.duckdb.install(connection)
        assert connection.sql(text).fetchall() == [(6,)]
