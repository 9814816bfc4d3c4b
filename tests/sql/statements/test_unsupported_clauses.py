"""Every clause of a statement is executed or refused: the parser accepts more than datasets support."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.errors import LanceError

import lance_sql
import lance_sql.dbapi
from lance_sql.text.statement import Statement

REFUSED = [
    "DELETE FROM t LIMIT 1",
    "DELETE FROM t ORDER BY id LIMIT 1",
    "DELETE FROM ONLY t",
    "DELETE FROM t, o WHERE t.id = o.id",
    "DELETE t FROM t JOIN o ON t.id = o.id",
    "DELETE FROM t AT (VERSION => 1)",
    "DELETE FROM t TABLESAMPLE 10%",
    "UPDATE t SET x = 1 LIMIT 1",
    "UPDATE t SET x = 1 ORDER BY id",
    "UPDATE t AT (VERSION => 1) SET x = 1",
    "UPDATE t JOIN o ON t.id = o.id SET x = 1",
    "UPDATE t SET id = 1, id = 2",
    "UPDATE t SET (id, x) = (1, 2, 3)",
    "INSERT INTO t AT (VERSION => 1) VALUES (9, 'z', 1)",
    "INSERT INTO t AT (VERSION => 1) (id) VALUES (9)",
    "INSERT INTO t PARTITION (id = 1) SELECT 'z', 1",
    "INSERT INTO t (id) VALUES (9) RETURNING id INTO z",
    "INSERT INTO t",
    "INSERT INTO t (id)",
    "MERGE INTO t AT (VERSION => 1) USING o ON t.id = o.id WHEN MATCHED THEN DELETE",
    "MERGE INTO t USING (SELECT x, s, id FROM o) o ON t.id = o.id WHEN NOT MATCHED THEN INSERT",
    "TRUNCATE t, o",
    "TRUNCATE t CASCADE",
    "TRUNCATE t RESTART IDENTITY",
    "DROP TABLE t PURGE",
    "COPY t FROM 'a.csv', 'b.csv'",
    "ALTER TABLE t ADD COLUMN ID INT",
    "ALTER TABLE t ADD COLUMN y INT FIRST",
    "ALTER TABLE t RENAME x TO S",
    "ALTER TABLE t RENAME COLUMN x TO ID",
    "ALTER TABLE t RENAME COLUMN IF EXISTS x TO y",
    "ALTER TABLE t ALTER s TYPE VARCHAR COLLATE NOCASE",
    "ALTER TABLE t DROP CONSTRAINT x",
    "ALTER TABLE t DROP x, DROP s",
    "CREATE INDEX i ON t (lower(s))",
    "CREATE INDEX i ON t (id) WHERE id > 1",
    "CREATE INDEX i ON t (id DESC)",
    "CREATE INDEX i ON t (id) INCLUDE (x)",
    "CREATE INDEX CONCURRENTLY i ON t (id)",
    "CREATE TABLE n CLONE t",
    "CREATE TABLE n (a INT) PARTITION BY (a)",
    "CREATE TABLE n (a INT) AS SELECT 'x' AS a",
    "CREATE TABLE n (a INT USING COMPRESSION rle)",
    "CREATE TABLE n (a VARCHAR COLLATE NOCASE)",
    "CREATE UNLOGGED TABLE n (a INT)",
    'CREATE TABLE "a/b" AS SELECT 1 AS a',
    'CREATE TABLE "../b" (a INT)',
    "CREATE EXTERNAL TABLE n (a INT) STORED AS CSV LOCATION 'x.csv'",
    "SELECT * INTO n FROM t",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lance_sql.write(pa.table({"id": [1, 2], "s": ["a", "b"], "x": [1.0, 2.0]}), tmp_path / "t.lance")
    lance_sql.write(pa.table({"id": [2, 3], "s": ["B", "C"], "x": [20.0, 30.0]}), tmp_path / "o.lance")
    return tmp_path


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_unsupported_clauses_are_refused(folder: Path, engine: str) -> None:
    with lance_sql.connect(folder, engine=engine) as session:
        before = session.table_names()
        for statement in REFUSED:
            with pytest.raises(LanceError):
                session.sql(statement).arrow()
            assert session.table_names() == before, statement
    assert [lance_sql.open(folder / name).version for name in ("t.lance", "o.lance")] == [1, 1]


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_forms_of_duckdb(folder: Path, engine: str) -> None:
    with lance_sql.connect(folder, engine=engine) as session:
        session.sql("CREATE TABLE n (a, b) AS SELECT 1, 2")
        assert session.sql("SELECT a, b FROM n").fetchall() == [(1, 2)]
        session.sql(
            "MERGE INTO t USING o ON t.id = o.id WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT"
        )
        rows = [(1, "a", 1.0), (2, "B", 20.0), (3, "C", 30.0)]
        assert session.sql("SELECT * FROM t ORDER BY id").fetchall() == rows
        source = "(SELECT x + 1 AS x, s, id + 1 AS id FROM o)"
        session.sql(
            f"MERGE INTO t USING {source} AS o ON t.id = o.id "
            "WHEN MATCHED THEN UPDATE BY NAME WHEN NOT MATCHED THEN INSERT BY NAME *"
        )
        rows[2:] = [(3, "B", 21.0), (4, "C", 31.0)]
        assert session.sql("SELECT * FROM t ORDER BY id").fetchall() == rows
        session.sql(
            "INSERT INTO t BY POSITION SELECT 5, 'E', 1.5; ALTER TABLE t DROP x; ALTER TABLE t DROP \"s\""
        )
        assert session.sql("FROM t ORDER BY id").fetchall() == [(1,), (2,), (3,), (4,), (5,)]


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_queries_that_begin_with_from(folder: Path, engine: str) -> None:
    with lance_sql.connect(folder, engine=engine) as session:
        rows = [(1, "a", 1.0), (2, "b", 2.0)]
        for query in (
            "FROM t",
            "SELECT * FROM (FROM t)",
            "WITH q AS (FROM t) FROM q",
            "FROM t UNION ALL FROM o WHERE id > 3",
            "FROM t SELECT * WHERE id < 3",
        ):
            assert session.sql(query).fetchall() == rows, query
        session.sql("CREATE VIEW v AS FROM t")
        assert session.sql("FROM v").fetchall() == rows
        assert session.sql("SELECT id FROM t WHERE id IN (FROM o SELECT id)").fetchall() == [(2,)]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT trim(FROM x), extract(year FROM d) FROM t WHERE (a IS DISTINCT FROM b)",
        'SELECT substring("x" FROM 2), (\'x\' IS DISTINCT FROM y), trim(BOTH FROM "x") FROM t',
        "DELETE FROM t",
        "FROM t SELECT id",
        "SELECT substring(s FROM 2 FOR 3) FROM t",
    ],
)
def test_other_uses_of_from(text: str) -> None:
    assert Statement(text).text() == text


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_every_query_of_a_script_runs(folder: Path, engine: str) -> None:
    check = "SELECT CAST(s AS INT) FROM t"
    with lance_sql.connect(folder, engine=engine) as session:
        with pytest.raises(LanceError):
            session.sql(f"{check}; INSERT INTO t (id) VALUES (9)")
        with pytest.raises(LanceError):
            session.sql(f"BEGIN; INSERT INTO t (id) VALUES (9); {check}; COMMIT")
        session.sql("ROLLBACK")
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(2,)]


def test_errors_of_an_aborted_transaction(folder: Path) -> None:
    with lance_sql.connect(folder) as session:
        session.sql("BEGIN; INSERT INTO t (id) VALUES (9)")
        for statement in ("SELECT CAST(s AS INT) FROM t", "SELECT * FROM t", "SELECT * FROM o", "COMMIT"):
            with pytest.raises(LanceError):
                session.sql(statement).arrow()
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(2,)]
    connection = lance_sql.dbapi.connect(folder)
    cursor = connection.cursor()
    cursor.execute("INSERT INTO t (id) VALUES (9)")
    for statement in ("SELECT CAST(s AS INT) FROM t", "SELECT * FROM t", "SELECT * FROM o"):
        with pytest.raises(lance_sql.dbapi.Error):
            cursor.execute(statement)
    connection.rollback()
    assert cursor.execute("SELECT count(*) FROM t").fetchall() == [(2,)]
    connection.close()


def test_procedures_say_what_is_wrong(folder: Path) -> None:
    with lance_sql.connect(folder) as session:
        for call in ("create_tag('t', '../g')", "create_branch('t', '..')", "delete_branch('t', '../data')"):
            with pytest.raises(LanceError, match="not a valid"):
                session.sql(f"CALL {call}")
