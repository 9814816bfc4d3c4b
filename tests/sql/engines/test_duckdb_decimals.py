"""Decimals of up to 18 digits reach DuckDB in 64 bits, with the type and the values they have."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import lance_sql

ROWS = 3_000


@pytest.fixture(scope="module", params=["2.0", "2.1", "2.2"])
def decimals(request, tmp_path_factory):
    """(connection with the table d, the same rows in Arrow): few values, many values, nulls, wide ones."""
    largest = 10**18 - 1
    rows = range(ROWS)
    exact = [Decimal((-1) ** row * (largest - row)).scaleb(-4) for row in rows]
    table = pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "few": pa.array([Decimal(row % 7 - 3).scaleb(-2) for row in rows], pa.decimal128(15, 2)),
            "edge": pa.array(exact, pa.decimal128(18, 4)),
            "holes": pa.array([None if row % 3 else exact[row] for row in rows], pa.decimal128(18, 4)),
            "none": pa.nulls(ROWS, pa.decimal128(9, 1)),
            "wide": pa.array([Decimal(10**18 + row) for row in rows], pa.decimal128(19, 0)),
        }
    )
    path = tmp_path_factory.mktemp("decimals") / "d.lance"
    dataset = lance_sql.write(table, path, data_storage_version=request.param)
    with duckdb.connect() as connection:
        lance_sql.duckdb.register(connection, "d", dataset)
        lance_sql.duckdb.register(connection, "pushed", dataset, pushdown="all")
        yield connection, table


def test_types_stay(decimals):
    connection, _ = decimals
    kinds = [row[1] for row in connection.sql("DESCRIBE d").fetchall()]
    assert kinds[1:] == ["DECIMAL(15,2)", "DECIMAL(18,4)", "DECIMAL(18,4)", "DECIMAL(9,1)", "DECIMAL(19,0)"]


def test_values_stay(decimals):
    connection, table = decimals
    assert connection.sql("FROM d").to_arrow_table().equals(table)
    found = connection.sql("SELECT edge, holes FROM d LIMIT 5 OFFSET 2000").to_arrow_table()
    assert found.equals(table.select(["edge", "holes"]).slice(2000, 5))


def test_filters_are_pushed_over_them(decimals):
    connection, _ = decimals
    query = "SELECT id, few, holes FROM {} WHERE few > 0.01 AND edge < 0 AND holes IS NOT NULL"
    found = connection.sql(query.format("pushed")).fetchall()
    assert found == connection.sql(query.format("d")).fetchall()
    assert len(found) == sum(row % 7 > 4 and row % 2 == 1 and row % 3 == 0 for row in range(ROWS))
    assert "Expression:" not in connection.sql("EXPLAIN " + query.format("pushed")).fetchall()[0][1]


def test_deleted_rows_are_left_out(tmp_path):
    table = pa.table({"d": pa.array([Decimal(row) for row in range(100)], pa.decimal128(10, 0))})
    dataset = lance_sql.write(table, tmp_path / "d.lance")
    dataset.delete("d >= 50")
    with duckdb.connect() as connection:
        lance_sql.duckdb.register(connection, "d", lance_sql.open(tmp_path / "d.lance"))
        assert connection.sql("SELECT count(*), sum(d) FROM d").fetchall() == [(50, Decimal(1225))]


def test_a_value_with_more_digits_than_its_type_is_an_error(tmp_path):
    words = np.array([[1, 0], [5, 7], [9, 0]], dtype=np.uint64)
    column = pa.Array.from_buffers(pa.decimal128(18, 0), 3, [None, pa.py_buffer(words.tobytes())])
    lance_sql.write(pa.table({"d": column}), tmp_path / "d.lance")
    with duckdb.connect() as connection:
        lance_sql.duckdb.register(connection, "d", lance_sql.open(tmp_path / "d.lance"))
        with pytest.raises(duckdb.Error, match=r"fit|precision|digits"):
            connection.sql("SELECT sum(d) FROM d").fetchall()
