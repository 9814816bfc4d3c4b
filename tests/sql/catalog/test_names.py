"""How statements name datasets: paths, directories, registration, versions; what wrong names say."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine_versions import IS_DUCKDB_1
from lance_engine.errors import ColumnNotFoundError, DatasetNotFoundError, VersionNotFoundError

import lance_sql
from lance_sql.errors import SqlError, TableNotFoundError


def rows(connection, text, params=None):
    return connection.sql(text, params).fetchall()


def test_paths_in_every_position(warehouse, engine):
    text = f"""
        WITH named AS (SELECT customer, name FROM "{warehouse}/customers.lance" WHERE country = 'US')
        SELECT name, count(*) FROM named JOIN '{warehouse}/orders.lance' AS o USING (customer)
        WHERE o.order_id IN (SELECT order_id FROM lance_scan('{warehouse}/orders.lance'))
        GROUP BY name ORDER BY name
    """
    assert lance_sql.sql(text, engine=engine).fetchall() == [("Bob", 1), ("Cyd", 2)]


def test_files_of_other_formats_join(warehouse, engine, tmp_path):
    pq.write_table(
        pa.table({"country": ["US", "UK"], "continent": ["America", "Europe"]}), tmp_path / "c.parquet"
    )
    text = f"""
        SELECT continent, count(*) FROM '{warehouse}/customers.lance' c
        JOIN '{tmp_path}/c.parquet' p ON c.country = p.country GROUP BY continent ORDER BY continent
    """
    assert lance_sql.sql(text, engine=engine).fetchall() == [("America", 2), ("Europe", 1)]


def test_relative_paths_are_relative_to_the_working_directory(warehouse, engine, monkeypatch):
    monkeypatch.chdir(warehouse)
    assert lance_sql.sql("SELECT count(*) FROM 'orders.lance'", engine=engine).fetchall() == [(6,)]


def test_relative_paths_are_relative_to_the_directory_first(warehouse, connection, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    lance_sql.write(pa.table({"x": [1]}), "here.lance")
    assert rows(connection, "SELECT count(*) FROM 'orders.lance'") == [(6,)]
    assert rows(connection, "SELECT x FROM 'here.lance'") == [(1,)]


def test_a_directory_is_a_database(connection):
    assert connection.tables() == ["customers", "events", "measurements", "orders", "stock"]
    assert rows(connection, "SELECT count(*) FROM Customers") == [(4,)]


def test_new_versions_and_new_datasets_appear(tmp_path, engine):
    table = pa.table({"x": [1, 2]})
    lance_sql.write(table, tmp_path / "t.lance")
    with lance_sql.connect(tmp_path, engine=engine) as connection:
        before = connection.sql("SELECT count(*) FROM t")
        lance_sql.write(table, tmp_path / "t.lance", mode="append")
        assert rows(connection, "SELECT count(*) FROM t") == [(4,)]
        assert before.fetchall() == [(2,)], "a result keeps the version it was planned with"
        lance_sql.write(table, tmp_path / "u.lance")
        assert rows(connection, "SELECT count(*) FROM t, u") == [(8,)]


def test_a_dataset_that_was_replaced_is_read_anew(tmp_path, engine):
    """Another dataset at the same place has the same version number, and other rows."""
    with lance_sql.connect(tmp_path, engine=engine) as connection:
        for expected in (1, 2):
            lance_sql.write(pa.table({"x": [expected]}), tmp_path / "t.lance")
            assert rows(connection, "SELECT x FROM t") == [(expected,)]
            shutil.rmtree(tmp_path / "t.lance")
        with pytest.raises(DatasetNotFoundError):
            connection.sql("SELECT x FROM t")


def test_versions(tmp_path, engine):
    for value in (1, 2, 3):
        lance_sql.write(
            pa.table({"x": [value]}), tmp_path / "t.lance", mode="append" if value > 1 else "create"
        )
    with lance_sql.connect(tmp_path, engine=engine) as connection:
        assert rows(connection, "SELECT sum(x) FROM t AT (VERSION => 2)") == [(3,)]
        assert rows(connection, "SELECT sum(x) FROM lance_scan('t.lance', version => 1)") == [(1,)]
        text = (
            "SELECT now.x FROM t now LEFT JOIN t AT (VERSION => 1) old ON now.x = old.x WHERE old.x IS NULL"
        )
        assert sorted(rows(connection, text)) == [(2,), (3,)]
        assert rows(connection, "SELECT sum(t.x) FROM t AT (VERSION => 2) WHERE t.x > 0") == [(3,)]


def test_register(warehouse, engine, tmp_path):
    dataset = lance_sql.open(warehouse / "orders.lance")
    lance_sql.write(pa.table({"x": [1]}), tmp_path / "t.lance")
    with lance_sql.connect(engine=engine) as connection:
        connection.register("o", dataset)
        connection.register("t", tmp_path / "t.lance")
        connection.register("arrow_table", pa.table({"customer": pa.array([1, 3], pa.int32())}))
        text = "SELECT count(*) FROM o JOIN arrow_table USING (customer)"
        assert rows(connection, text) == [(4,)]
        lance_sql.write(pa.table({"x": [2]}), tmp_path / "t.lance", mode="append")
        assert rows(connection, "SELECT sum(x) FROM t") == [(3,)], (
            "a registered path means its newest version"
        )
        connection.register("o", tmp_path / "t.lance")
        assert rows(connection, "SELECT count(*) FROM o") == [(2,)]


def test_row_ids_are_columns_when_named(connection):
    found = rows(connection, "SELECT _rowid, id FROM measurements WHERE id IN (1, 7) ORDER BY id")
    by_id = dict(found)
    assert sorted(by_id.values()) == [1, 7]
    again = rows(connection, f"SELECT id FROM measurements WHERE _rowid = {max(by_id)}")
    assert again == [(by_id[max(by_id)],)]
    assert "_rowid" not in connection.sql("SELECT * FROM measurements").columns
    both = rows(connection, "SELECT count(*) FROM measurements WHERE _rowid = _rowaddr AND _rowid >= 0")
    assert both == [(12,)]


def test_a_result_planned_without_row_ids_stays_without(connection):
    plain = connection.sql("SELECT * FROM customers")
    assert "_rowid" in connection.sql("SELECT * FROM customers WHERE _rowid < 2").columns
    assert plain.columns == ["customer", "name", "country"]


def test_parameters(connection):
    text = "SELECT id FROM measurements WHERE id > ? AND label = ? ORDER BY id"
    assert rows(connection, text, [1, "apple"]) == [(5,)]
    assert rows(connection, "SELECT id FROM measurements WHERE id = $key", {"key": 4}) == [(4,)]
    assert rows(connection, "SELECT id FROM measurements WHERE id = $2 OR id = $1 ORDER BY id", [4, 2]) == [
        (2,),
        (4,),
    ]


def test_views_and_tables_of_the_session(warehouse, engine):
    with lance_sql.connect(engine=engine) as connection:
        connection.sql(f"CREATE VIEW big AS SELECT * FROM '{warehouse}/orders.lance' WHERE total > 6")
        connection.sql("CREATE TABLE copy AS SELECT * FROM big")
        assert (
            rows(connection, "SELECT count(*) FROM big")
            == rows(connection, "SELECT count(*) FROM copy")
            == [(4,)]
        )


def test_an_open_session_of_the_engine_can_be_used(warehouse, engine):
    if engine == "duckdb":
        import duckdb

        session = duckdb.connect()
        session.execute("CREATE TABLE mine AS SELECT 1 AS customer")
    else:
        import datafusion

        session = datafusion.SessionContext()
        session.sql("CREATE TABLE mine AS SELECT 1 AS customer").collect()
    connection = lance_sql.connect(warehouse, engine=session)
    assert rows(connection, "SELECT count(*) FROM orders JOIN mine ON orders.customer = mine.customer") == [
        (2,)
    ]
    connection.close()
    if engine == "duckdb":
        session.close()


def test_missing_dataset(connection, tmp_path):
    with pytest.raises(DatasetNotFoundError, match=r"nothing\.lance"):
        connection.sql(f"SELECT * FROM '{tmp_path}/nothing.lance'")
    with pytest.raises(
        DatasetNotFoundError,
        match=r"'nothing'.*Available tables: customers, events, measurements, "
        r"orders, stock",
    ):
        connection.sql("SELECT * FROM nothing")


def test_missing_directory(tmp_path):
    with pytest.raises(DatasetNotFoundError, match="directory"):
        lance_sql.connect(tmp_path / "nowhere" / "below")


def test_missing_version(connection):
    with pytest.raises(VersionNotFoundError, match="99"):
        connection.sql("SELECT * FROM orders AT (VERSION => 99)")


def test_missing_column(connection):
    with pytest.raises(ColumnNotFoundError, match="nope"):
        connection.sql("SELECT nope FROM orders")


def test_syntax_errors_are_ours(connection):
    with pytest.raises(lance_sql.SqlError, match=r"(?i)selec") as caught:
        connection.sql("SELEC 1")
    assert caught.value.place["engine"] == connection.engine


@pytest.mark.parametrize(
    ("statement", "meant"),
    [
        ("SELEC 1", "SELECT"),
        ("selcet 1", "SELECT"),
        ("SELECT 1 FORM orders", "FROM"),
        ("SELECT id FROM orders WEHRE id = 1", "WHERE"),
        ("SELECT id FROM orders GROPU BY id", "GROUP"),
        ("SELECT id FROM orders ODER BY id", "ORDER"),
        ("UPDAT orders SET id = 1", "UPDATE"),
        ("CREATE TABEL x (a INT)", "TABLE"),
    ],
)
def test_misspelt_keywords(connection, statement, meant):
    with pytest.raises(lance_sql.SqlError) as caught:
        connection.sql(statement)
    assert caught.value.remedy == f"Did you mean {meant}?"


@pytest.mark.parametrize("statement", ["SELECT (1", "SELECT 1 2", "SELECT 'x' 'y' z q", "frobnicate 1"])
def test_other_syntax_errors_name_no_keyword(connection, statement):
    with pytest.raises(lance_sql.SqlError) as caught:
        connection.sql(statement)
    assert "Did you mean" not in caught.value.remedy


def test_run_time_errors_are_ours(connection):
    with pytest.raises(lance_sql.SqlError):
        connection.sql("SELECT CAST(label AS INTEGER) FROM measurements").arrow()


def test_errors_of_a_scan_reach_the_user_as_they_are(tmp_path, engine):
    """A missing data file: the engine's wrapper is removed, and the class of the error is kept."""
    lance_sql.write(pa.table({"x": [1, 2]}), tmp_path / "t.lance")
    with lance_sql.connect(tmp_path, engine=engine) as connection:
        for data_file in (tmp_path / "t.lance" / "data").iterdir():
            data_file.unlink()
        result = connection.sql("SELECT x FROM t")
        for read in (result.arrow, lambda: list(connection.sql("SELECT x FROM t"))):
            with pytest.raises(lance_sql.LanceError) as caught:
                read()
            assert not isinstance(caught.value, lance_sql.SqlError)
            assert "registered" not in str(caught.value)


def test_unknown_engine():
    with pytest.raises(lance_sql.LanceError, match="duckdb, datafusion"):
        lance_sql.connect(engine="oracle")


def test_closed_connection(connection):
    connection.close()
    connection.close()
    with pytest.raises(lance_sql.LanceError, match="closed"):
        connection.sql("SELECT 1")


def test_a_view_of_duckdb_shows_the_newest_version(tmp_path):
    lance_sql.write(pa.table({"x": [1]}), tmp_path / "t.lance")
    with lance_sql.connect(tmp_path) as connection:
        connection.sql("CREATE VIEW v AS SELECT x + 1 AS y FROM t")
        assert connection.sql("SELECT * FROM v").fetchall() == [(2,)]
        lance_sql.write(pa.table({"x": [5]}), tmp_path / "t.lance", mode="append")
        assert sorted(connection.sql("SELECT * FROM v").fetchall()) == [(2,), (6,)]
        connection.sql("INSERT INTO t VALUES (9)")
        assert sorted(connection.sql("SELECT * FROM v").fetchall()) == [(2,), (6,), (10,)]


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_rowid_names_the_columns_of_datasets(tmp_path: Path, engine: str) -> None:
    lance_sql.write(pa.table({"id": [1]}), tmp_path / "t.lance")
    session = lance_sql.connect(tmp_path, engine=engine)
    for text in ("SELECT rowid FROM t", "SELECT t.rowid FROM t WHERE t.RowId = 0"):
        with pytest.raises(ColumnNotFoundError, match="Datasets have _rowid"):
            session.sql(text).fetchall()


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("EXECUTE p(1)", "t"),
        ("SELECT * FROM v", "t"),
        ("SELECT * FROM t", "t"),
        ("SELECT * FROM T", "T"),
        ("SELECT * FROM main.t", "main.t"),
        ("SELECT * FROM lance.main.t", "lance.main.t"),
        ("SELECT * FROM nosuch.t", "nosuch.t"),
        ('SELECT * FROM nosuch.main."t"', "nosuch.main.t"),
        ("SELECT t.id FROM other JOIN main.t USING (id)", "main.t"),
    ],
)
def test_errors_name_a_missing_table_as_the_statement_does(tmp_path, engine, statement, name):
    with lance_sql.connect(tmp_path, engine=engine) as con:
        for created in ("other", "t"):
            con.sql(f"CREATE TABLE {created} AS SELECT 1 AS id")
        con.sql("PREPARE p AS SELECT * FROM t WHERE id = $1")
        con.sql("CREATE VIEW v AS SELECT * FROM t")
        con.sql("DROP TABLE t")
        if IS_DUCKDB_1 and engine == "duckdb" and ".main." in name:
            with pytest.raises(SqlError, match=r"^Catalog \".+\" does not exist"):
                con.sql(statement).fetchall()
            return
        with pytest.raises(TableNotFoundError, match=rf"^Table '{name}' not found") as caught:
            con.sql(statement).fetchall()
        assert caught.value.name == name
