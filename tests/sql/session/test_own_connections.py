"""Sessions on the user's connections: their tables and databases, and secrets for datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import datafusion
import duckdb
import pyarrow as pa
import pytest
from lance_engine.errors import InvalidArgumentError, LanceError

import lance_sql

if TYPE_CHECKING:
    from conftest import ObjectStore


@pytest.fixture
def folder(tmp_path):
    lance_sql.write(pa.table({"id": [1, 2, 3]}), tmp_path / "t.lance")
    return tmp_path


def test_a_duckdb_connection(folder):
    own = duckdb.connect()
    own.execute("CREATE TEMP TABLE wanted AS SELECT 2 AS id; CREATE TABLE kept (n INT)")
    own.execute(
        f"ATTACH '{folder}/other.db' AS other; CREATE TABLE other.names AS SELECT 2 AS id, 'two' AS name"
    )
    with lance_sql.connect(folder, duckdb=own) as session:
        assert session.sql(
            "SELECT name FROM t JOIN wanted USING (id) JOIN other.names USING (id)"
        ).fetchall() == [("two",)]
        session.sql("INSERT INTO t SELECT id + 10 FROM wanted; INSERT INTO kept VALUES (1)")
        session.sql("UPDATE t SET id = 0 FROM other.names n WHERE t.id = n.id")
        session.sql("CREATE TABLE made AS SELECT * FROM other.names")
        session.sql("BEGIN; DELETE FROM t; DELETE FROM kept; ROLLBACK")
        assert sorted(session.sql("SELECT id FROM t").fetchall()) == [(0,), (1,), (3,), (12,)]
    assert own.execute("SELECT count(*) FROM kept").fetchone() == (1,)
    assert lance_sql.open(folder / "made.lance").count_rows() == 1


def test_a_transaction_that_the_user_began(folder):
    own = duckdb.connect()
    own.execute("BEGIN")
    with lance_sql.connect(folder, duckdb=own) as session:
        session.sql("INSERT INTO t VALUES (4)")
        with pytest.raises(LanceError, match="transaction"):
            session.sql("BEGIN")
        assert not session.in_transaction
    own.execute("ROLLBACK")
    assert lance_sql.open(folder / "t.lance").count_rows() == 4


def test_a_datafusion_context(folder):
    own = datafusion.SessionContext()
    own.register_record_batches("wanted", [[pa.record_batch({"id": [2]})]])
    with lance_sql.connect(folder, datafusion=own) as session:
        assert session.sql("SELECT t.id FROM t JOIN wanted ON t.id = wanted.id").fetchall() == [(2,)]
        session.sql("INSERT INTO t SELECT id + 10 FROM wanted")
        assert session.sql("SELECT max(id) FROM t").fetchone() == (12,)
    assert own.table("wanted").count() == 1


def test_only_one_engine():
    with pytest.raises(InvalidArgumentError, match="only one of"):
        lance_sql.connect(duckdb=duckdb.connect(), datafusion=datafusion.SessionContext())


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_secrets_are_used_for_datasets(object_store: ObjectStore, engine, monkeypatch):
    uri = object_store.s3("shop/t.lance")
    lance_sql.write(pa.table({"id": [1, 2]}), uri, storage_options=object_store.options)
    endpoint = object_store.options["aws_endpoint"].partition("://")[2]
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name)
    place = uri.removesuffix("/t.lance")
    with lance_sql.connect(engine=engine) as session:
        session.sql("CREATE SECRET elsewhere (TYPE S3, KEY_ID 'x', SECRET 'y', SCOPE 's3://elsewhere')")
        session.sql(
            "CREATE SECRET (TYPE S3, KEY_ID 'test', SECRET 'test', REGION 'us-east-1', "
            f"ENDPOINT '{endpoint}', USE_SSL false, URL_STYLE 'path')"
        )
        assert session.sql(f"SELECT count(*) FROM '{uri}'").fetchone() == (2,)
        session.sql(f"INSERT INTO '{uri}' VALUES (3)")
        session.sql(f"ATTACH '{place}' AS shop (TYPE LANCE)")
        assert session.sql("SELECT sum(id) FROM shop.t").fetchone() == (6,)
        session.sql("CREATE TABLE shop.u AS SELECT 1 AS id")
        assert session.sql("SHOW TABLES FROM shop").fetchall() == [("t",), ("u",)]
        with pytest.raises(LanceError, match="already exists"):
            session.sql("CREATE SECRET elsewhere (TYPE S3, KEY_ID 'x', SECRET 'y')")
        session.sql("DROP SECRET elsewhere")


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t RENAME TO other",
        "ALTER VIEW IF EXISTS t RENAME TO other",
        "CREATE TABLE t (a INTEGER)",
        "CREATE OR REPLACE TABLE T AS SELECT 1 AS a",
        'CREATE TEMP VIEW IF NOT EXISTS "t" AS SELECT 1 AS a',
        "DROP TABLE IF EXISTS t",
        "INSERT INTO t VALUES (1)",
        "UPDATE t SET id = 1",
        "DELETE FROM t",
        "TRUNCATE t",
        "COMMENT ON COLUMN t.id IS 'x'",
        "SELECT 1; DELETE FROM t",
        "PREPARE p AS INSERT INTO t VALUES (?)",
        "WITH q AS (SELECT 1 AS id) DELETE FROM t USING q WHERE t.id = q.id",
        "CREATE INDEX i ON t (id)",
        "CREATE UNIQUE INDEX i ON 't.lance' (id)",
        "DROP INDEX i ON t",
        "ALTER INDEX i ON t OPTIMIZE",
        "REINDEX i ON t",
        "OPTIMIZE t",
        "VACUUM t RETAIN 7 DAYS",
        "VACUUM LANCE t",
        "ATTACH '.' AS ns (TYPE LANCE)",
        "COPY t FROM 'x.csv'",
        "COPY t TO 'o.lance'",
        "COPY (SELECT 1 AS a) TO 'o' (FORMAT lance)",
        "EXPORT DATABASE 'folder'",
    ],
)
def test_a_connection_of_ones_own_only_reads_datasets(folder, statement):
    own = duckdb.connect()
    lance_sql.duckdb.install(own, str(folder))
    for _ in range(2):  # before and after DuckDB knows the name
        for run in (own.sql, own.execute):
            with pytest.raises(LanceError, match=r"lance_sql\.connect"):
                run(statement)
        assert own.sql("SELECT count(*) FROM t").fetchall() == [(3,)]
    own.execute("CREATE TABLE kept (t INTEGER); INSERT INTO kept SELECT id FROM t")
    own.execute("DELETE FROM kept WHERE t = 1; CREATE VIEW seen AS FROM t; CREATE INDEX t ON kept (t)")
    own.execute(
        f"COPY t TO '{folder}/o.csv'; COPY kept FROM '{folder}/o.csv'; ATTACH ':memory:' AS other; VACUUM"
    )
    assert own.sql("SELECT t FROM kept ORDER BY t").fetchall() == [(1,), (2,), (2,), (3,), (3,)]
    assert not list(folder.glob("o.lance"))


@pytest.mark.parametrize("is_session", [False, True])
def test_names_outlive_a_transaction_that_the_user_ends(folder, is_session):
    own = duckdb.connect()
    if is_session:
        run = lance_sql.connect(folder, duckdb=own).sql
    else:
        lance_sql.duckdb.install(own, folder)
        run = own.sql
    for table in ("t", f"'{folder}/t.lance'"):
        for end in (own.rollback, own.commit, lambda: own.execute("ROLLBACK")):
            own.begin()
            assert run(f"SELECT count(*) FROM {table}").fetchall() == [(3,)]
            end()
            for _ in range(2):
                assert run(f"SELECT count(*) FROM {table}").fetchall() == [(3,)]
    own.execute("BEGIN; DROP VIEW IF EXISTS t; COMMIT")
    assert run("SELECT count(*) FROM t").fetchall() == [(3,)]


def test_a_session_leaves_no_names_but_those_of_its_views(folder):
    own = duckdb.connect()
    own.execute("CREATE TABLE kept (n INT)")
    for number in range(2):
        with lance_sql.connect(folder, duckdb=own) as session:
            assert session.sql("SELECT count(*) FROM t").fetchall() == [(3,)]
            session.sql(f"CREATE VIEW v{number} AS SELECT id FROM t")
            session.sql("BEGIN; DELETE FROM t; ROLLBACK")
    assert own.sql("SELECT count(*) FROM v0 JOIN v1 USING (id)").fetchall() == [(3,)]
    with pytest.raises(duckdb.CatalogException):
        own.sql("FROM t")


def test_a_session_replaces_what_was_installed(folder):
    own = duckdb.connect()
    for _ in range(2):
        lance_sql.duckdb.install(own, folder)
        assert own.sql("SELECT count(*) FROM t").fetchall() == [(3,)]
    with pytest.raises(LanceError, match=r"Use a session around the connection"):
        own.sql("SHOW INDEXES ON t")
    cursor = own.cursor()
    with lance_sql.connect(folder, duckdb=own) as session:
        session.sql("INSERT INTO t VALUES (4)")
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(4,)]
    assert cursor.sql("SELECT count(*) FROM t").fetchall() == [(4,)]


def test_a_cell_of_a_notebook_opens_its_session_again(folder):
    own = duckdb.connect()
    for rows in range(3, 6):
        session = lance_sql.connect(folder, duckdb=own)
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(rows,)]
        session.sql("INSERT INTO t VALUES (9)")
    other = lance_sql.connect(folder, duckdb=own)
    with pytest.raises(LanceError, match=r"ambiguous"):  # an open session may still read it
        other.sql("SELECT count(*) FROM t")
    assert session.sql("SELECT count(*) FROM t").fetchall() == [(6,)]


@pytest.mark.parametrize(
    "statement", ["INSERT INTO memory.main.t VALUES (1)", "UPDATE memory.main.t SET id = 1"]
)
def test_a_missing_table_is_named_as_the_statement_does(folder, statement):
    with (
        lance_sql.connect(folder) as session,
        pytest.raises(LanceError, match=r"'memory\.main\.t' not found"),
    ):
        session.sql(statement)
