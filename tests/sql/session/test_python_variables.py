"""``lance_sql.sql("FROM ds")``: variables of the caller as tables."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lance_sql
from lance_sql.errors import TableNotFoundError

module_table = pa.table({"a": [10, 20]})


@pytest.fixture
def path(tmp_path):
    return lance_sql.write(pa.table({"a": [1, 2, 3]}), tmp_path / "x.lance").uri


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize("kind", ["dataset", "table", "batch", "pandas", "polars", "lazy", "result", "scan"])
def test_every_kind_of_table(path, engine, kind):
    table = pa.table({"a": [1, 2, 3]})
    made = {
        "dataset": lambda: lance_sql.open(path),
        "table": lambda: table,
        "batch": lambda: table.to_batches()[0],
        "pandas": lambda: pd.DataFrame({"a": [1, 2, 3]}, index=[7, 8, 9]),
        "polars": lambda: pl.DataFrame({"a": [1, 2, 3]}),
        "lazy": lambda: pl.LazyFrame({"a": [1, 2, 3]}),
        "result": lambda: lance_sql.sql(f"FROM '{path}'"),
        "scan": lambda: lance_sql.open(path).scan(),
    }
    things = made[kind]()
    assert things is not None
    result = lance_sql.sql("SELECT * FROM things ORDER BY a", engine=engine)
    assert result.columns == ["a"]
    assert result.fetchall() == [(1,), (2,), (3,)]


def test_a_dataset_keeps_its_system_columns(path):
    ds = lance_sql.open(path)
    expected = ds.scan(["_rowid"], "a = 2").to_table()["_rowid"].to_pylist()
    assert lance_sql.sql("SELECT _rowid FROM ds WHERE a = ?", params=[2]).fetchall() == [tuple(expected)]


def test_where_names_are_looked_up(path):
    local = pa.table({"a": [1]})
    assert local is not None
    assert lance_sql.sql("SELECT sum(a) FROM module_table").fetchall() == [(30,)]
    assert lance_sql.sql("CREATE TABLE local AS SELECT 9 AS a; FROM local").fetchall() == [(9,)]
    assert lance_sql.sql("WITH local AS (SELECT 8 AS a) FROM local").fetchall() == [(8,)]
    assert lance_sql.sql(f"SELECT count(*) FROM local JOIN '{path}' USING (a)").fetchall() == [(1,)]
    number = 5
    for name in ("nowhere", "number", "pa"):
        with pytest.raises(TableNotFoundError, match=name):
            lance_sql.sql(f"FROM {name}")
    assert number == 5


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM ds",
        "WITH q AS (SELECT 1) DELETE FROM ds",
        "INSERT INTO ds SELECT 5",
        "UPDATE ds SET a = 1",
        "TRUNCATE ds",
        "DROP TABLE ds",
        "ALTER TABLE ds DROP COLUMN a",
        "ALTER TABLE ds ALTER COLUMN a TYPE DOUBLE",
        "COMMENT ON TABLE ds IS 'x'",
        "MERGE INTO ds USING module_table USING (a) WHEN NOT MATCHED THEN INSERT",
        "CREATE INDEX i ON ds (a)",
    ],
)
def test_a_dataset_in_a_variable_is_only_read(path, text):
    ds = lance_sql.open(path)
    with pytest.raises(lance_sql.LanceError) as caught:
        lance_sql.sql(text)
    assert text.startswith("WITH") or "ds is a Python variable" in str(caught.value)
    assert lance_sql.open(path).version == ds.version


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_variables_in_a_session(path, tmp_path, engine):
    things = pd.DataFrame({"a": [1, 2]})
    with lance_sql.connect(tmp_path, engine) as con:
        first = con.sql("SELECT sum(a) AS s FROM things")
        things = pd.DataFrame({"a": [10, 2]})
        assert con.execute("SELECT sum(a) AS s FROM things").fetchall() == [(12,)]
        assert first.fetchall() == [(3,)]  # as it was
        assert con.table("things").fetchall() == [(10,), (2,)]
        assert con.table_names() == ["x"]
        assert con.table("x").fetchall() == con.table(path).fetchall() == [(1,), (2,), (3,)]
        assert con.sql("INSERT INTO x SELECT a FROM things; SELECT count(*) FROM x").fetchall() == [(5,)]
        with pytest.raises(lance_sql.LanceError):
            con.sql("DROP TABLE things")
        del things
        with pytest.raises(TableNotFoundError, match="things"):
            con.sql("FROM things")
        x = pa.table({"a": [9]})
        assert x.num_rows == 1
        assert con.sql("SELECT max(a) FROM x").fetchall() == [(10,)]  # tables come first
        con.register("x", x)
        assert con.sql("SELECT max(a) FROM x").fetchall() == [(9,)]


def test_variables_in_a_transaction(tmp_path):
    rows = pa.table({"a": [1]})
    with lance_sql.connect(tmp_path) as con:
        con.sql("BEGIN; CREATE TABLE t AS FROM rows; INSERT INTO t FROM rows")
        con.rollback()
        assert con.sql("SELECT count(*) FROM rows").fetchall() == [(1,)]
        rows = pa.table({"a": [1] * (rows.num_rows + 1)})
        assert con.sql("SELECT count(*) FROM rows").fetchall() == [(rows.num_rows,)]
        assert con.tables() == []


def test_statements_of_somebody_else_see_no_variables(tmp_path):
    secret = pa.table({"a": [1]})
    assert secret is not None
    with lance_sql.connect(tmp_path, enable_external_access=False) as con, pytest.raises(TableNotFoundError):
        con.sql("FROM secret")


def test_variables_are_written_elsewhere(path, tmp_path):
    ds = lance_sql.open(path)
    lance_sql.sql(f"INSERT INTO '{path}' FROM ds")
    lance_sql.sql(f"CREATE TABLE '{tmp_path}/y.lance' AS FROM module_table")
    assert lance_sql.open(path).count_rows() == 6
    assert lance_sql.open(tmp_path / "y.lance").count_rows() == 2
    assert len(ds) == 3
