"""PRIMARY KEY, UNIQUE and CHECK in SQL: declared, shown, enforced and dropped as in DuckDB."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from lance_engine.errors import ConstraintError, LanceError
from lance_engine.table.constraints import CHECKS

import lance_sql
from lance_sql import dbapi

TABLE = """
    CREATE TABLE t (
        k INTEGER PRIMARY KEY, v INTEGER UNIQUE, w INTEGER CHECK (w > 3), s VARCHAR DEFAULT 'x',
        UNIQUE (v, w), CHECK (k < v AND s IN ('x', 'y'))
    )
"""
#: Statements that plain DuckDB accepts or refuses for its constraints; run one after the other.
STATEMENTS = [
    "INSERT INTO t VALUES (1, 10, 5, 'x'), (2, 20, 5, 'y')",
    "INSERT INTO t VALUES (3, 30, 5, 'x'), (3, 31, 5, 'x')",
    "INSERT INTO t VALUES (3, 30, 5, 'x'), (1, 31, 5, 'x')",
    "INSERT INTO t VALUES (3, 20, 6, 'x')",
    "INSERT INTO t VALUES (3, NULL, NULL, NULL), (4, NULL, NULL, NULL)",
    "INSERT INTO t (v) VALUES (50)",
    "INSERT INTO t VALUES (5, 50, 3, 'x')",
    "INSERT INTO t VALUES (50, 5, 5, 'x')",
    "INSERT INTO t VALUES (5, 50, 5, 'z')",
    "INSERT INTO t BY NAME SELECT 6 AS k, 60 AS v, 4 AS w",
    "INSERT INTO t SELECT 100 + n, 1000 + n, 4, 'y' FROM (SELECT unnest(range(0, 300)) AS n)",
    "INSERT INTO t SELECT 100 + n, 2000 + n, 4, 'y' FROM (SELECT unnest(range(299, 600)) AS n)",
    "UPDATE t SET w = 2 WHERE k = 1",
    "UPDATE t SET s = 'y'",
    "UPDATE t SET v = 10 WHERE k = 2",
    "UPDATE t SET v = v + 5000 WHERE k > 5",
    "UPDATE t SET k = 1 WHERE k = 2",
    "DELETE FROM t WHERE k = 1",
    "INSERT INTO t VALUES (1, 10, 5, 'x')",
    "MERGE INTO t USING (VALUES (2, 20), (700, 9000)) AS s(k, v) ON t.k = s.k "
    "WHEN MATCHED THEN UPDATE SET w = 9 WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v)",
    "MERGE INTO t USING (VALUES (2, 20)) AS s(a, b) ON t.k = s.b WHEN NOT MATCHED THEN INSERT (k) VALUES (a)",
    "MERGE INTO t USING (VALUES (800), (800)) AS s(a) ON t.k = a WHEN NOT MATCHED THEN INSERT (k) VALUES (a)",
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_as_in_duckdb(tmp_path: Path, engine: str) -> None:
    plain = duckdb.connect()
    with lance_sql.connect(tmp_path, engine=engine) as ours:
        for session in (plain, ours):
            session.execute(TABLE)
        for statement in STATEMENTS:
            try:
                plain.execute(statement)
            except duckdb.ConstraintException as error:
                kind = ConstraintError if "NOT NULL" not in str(error) else LanceError
                with pytest.raises(kind):
                    ours.execute(statement)
            else:
                ours.execute(statement)
            rows = "SELECT * FROM t ORDER BY k"
            assert ours.execute(rows).fetchall() == plain.execute(rows).fetchall(), statement
    with lance_sql.connect(tmp_path) as reading:
        keys = [row[:4] for row in reading.execute("DESCRIBE t").fetchall()]
        assert keys == [row[:4] for row in plain.execute("DESCRIBE t").fetchall()]
        described = "SELECT constraint_type, constraint_column_names FROM {} WHERE constraint_type <> 'CHECK'"
        found = reading.execute(described.format("t.constraints")).fetchall()
        assert sorted(found) == sorted(plain.execute(described.format("duckdb_constraints()")).fetchall())


@pytest.fixture
def session(tmp_path: Path) -> lance_sql.Session:
    made = lance_sql.connect(tmp_path)
    made.execute("CREATE TABLE t AS SELECT range AS k, range % 3 AS v, NULL::INTEGER AS n FROM range(5)")
    return made


def names(session: lance_sql.Session) -> list[str]:
    return [name for (name,) in session.execute("SELECT constraint_name FROM t.constraints").fetchall()]


def test_added_and_dropped(session: lance_sql.Session) -> None:
    session.execute("ALTER TABLE t ADD CONSTRAINT pair UNIQUE (k, v)")
    session.execute('ALTER TABLE t ADD CHECK (k + v >= 0 AND "k" <> 77)')
    session.execute("ALTER TABLE IF EXISTS t ADD PRIMARY KEY (K)")
    session.execute("ALTER TABLE IF EXISTS missing ADD UNIQUE (x)")
    assert names(session) == ["k_pkey", "pair", "k_v_check", "k_not_null"]
    session.execute("ALTER TABLE t RENAME COLUMN n TO m")
    session.execute("ALTER TABLE t DROP CONSTRAINT PAIR")
    session.execute("ALTER TABLE t DROP CONSTRAINT IF EXISTS pair")
    session.execute("ALTER TABLE t DROP PRIMARY KEY")
    assert names(session) == ["k_v_check", "k_not_null"]
    session.execute("ALTER TABLE t SET UNENFORCED PRIMARY KEY (k, v)")
    session.execute("INSERT INTO t SELECT * FROM t")
    assert "k_v_pkey" in names(session)
    session.execute("ALTER TABLE t UNSET UNENFORCED PRIMARY KEY")
    assert names(session) == ["k_v_check", "k_not_null", "v_not_null"]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("ALTER TABLE t ADD UNIQUE (v)", r'Duplicate keys "v: 0", "v: 1" violate unique constraint'),
        ("ALTER TABLE t ADD PRIMARY KEY (n)", r"5 rows are null \[column: n\]"),
        ("ALTER TABLE t ADD PRIMARY KEY (x)", r"Column 'x' not found"),
        ("ALTER TABLE t ADD PRIMARY KEY (k, k)", r"listed twice"),
        ("ALTER TABLE t ADD UNIQUE ()", r"A key is a list of columns"),
        ("ALTER TABLE t ADD UNIQUE (k + 1)", r"A key is a list of columns"),
        ("ALTER TABLE t ADD UNIQUE (k), ADD UNIQUE (v)", r"cannot be combined"),
        ("ALTER TABLE t ADD CHECK (v > 0)", r"CHECK constraint failed: CHECK\(v > 0\)"),
        ("ALTER TABLE t ADD CHECK (k IN (SELECT 1))", r"cannot be checked: .*subquer"),
        ("ALTER TABLE t ADD CHECK (read_text('x') = 'y')", r"cannot be checked"),
        ("ALTER TABLE t ADD CHECK (_rowid > 3)", r"cannot be checked|not found"),
        ("ALTER TABLE t DROP CONSTRAINT x", r"has no constraint 'x'"),
        ("ALTER TABLE t DROP PRIMARY KEY", r"has no primary key"),
        ("ALTER TABLE t ADD COLUMN x INTEGER UNIQUE", r"ALTER TABLE t ADD UNIQUE"),
        ("CREATE TABLE u (k INTEGER PRIMARY KEY, n INTEGER PRIMARY KEY)", r"more than one primary key"),
        ("CREATE TABLE u (k INTEGER[] PRIMARY KEY)", r"Invalid type for index key"),
        ("CREATE TABLE u (k INTEGER CHECK (k > (SELECT 1)))", r"subquer"),
        ("CREATE TABLE u (k INTEGER CHECK (k > random()))", r"random"),
    ],
)
def test_refused(session: lance_sql.Session, statement: str, message: str) -> None:
    with pytest.raises(LanceError, match=message):
        session.execute(statement)
    assert names(session) == []
    assert session.table_names() == ["t"]


def test_in_a_transaction(session: lance_sql.Session) -> None:
    session.execute("BEGIN; ALTER TABLE t ADD UNIQUE (k); INSERT INTO t VALUES (9, 9, 9)")
    with pytest.raises(ConstraintError, match=r'"k: 9"'):
        session.execute("INSERT INTO t VALUES (9, 1, 1)")
    session.execute("ROLLBACK; INSERT INTO t VALUES (9, 9, 9), (9, 9, 9)")
    session.execute("BEGIN; DELETE FROM t WHERE k = 9; ALTER TABLE t ADD UNIQUE (k)")
    session.execute("INSERT INTO t VALUES (9, 9, 9); COMMIT")
    with pytest.raises(ConstraintError, match=r'"k: 9"'):
        session.execute("INSERT INTO t VALUES (9, 1, 1)")


def test_copy(session: lance_sql.Session, tmp_path: Path) -> None:
    session.execute("ALTER TABLE t ADD UNIQUE (k)")
    (tmp_path / "x.csv").write_text("k,v,n\n7,1,1\n3,1,1\n")
    with pytest.raises(ConstraintError, match=r'"k: 3"'):
        session.execute(f"COPY t FROM '{tmp_path}/x.csv'")
    with pytest.raises(ConstraintError, match=r'"k: 3"'):
        session.execute(f"COPY (SELECT 3 AS k) TO '{tmp_path}/t.lance' (FORMAT lance, MODE append)")


def test_the_error_of_the_db_api(session: lance_sql.Session, tmp_path: Path) -> None:
    session.execute("ALTER TABLE t ADD UNIQUE (k)")
    with dbapi.connect(str(tmp_path)) as connection, pytest.raises(dbapi.IntegrityError, match=r"k: 3"):
        connection.cursor().execute("INSERT INTO t VALUES (3, 3, 3)")


@pytest.mark.parametrize(
    "text",
    [
        "(SELECT count(*) FROM read_text('{secret}')) > 0",
        "k > 0); COPY (SELECT 1) TO '{secret}'; --",
        "getenv('HOME') <> ''",
        "k > 0 OR error('executed') IS NULL",
        "nextval('s') > 0",
        "k.x.y > 1",
        "missing > 1",
        "(" * 3000 + "k > 0" + ")" * 3000,
    ],
)
def test_texts_of_strangers_are_not_executed(session: lance_sql.Session, tmp_path: Path, text: str) -> None:
    secret = tmp_path / "secret.txt"
    dataset = lance_sql.open(tmp_path / "t.lance")
    stored = json.dumps({"c": text.format(secret=secret)})
    with pytest.raises(LanceError):  # the commit that would store it checks it
        dataset.update_schema_metadata({CHECKS: stored})
    assert not secret.exists()
    assert names(session) == []


@pytest.mark.parametrize("kind", ["STRUCT(a INT)", "INT[]", "INT[2]"])
def test_a_key_keeps_a_type_that_keys_can_have(tmp_path: Path, kind: str) -> None:
    with lance_sql.connect(tmp_path) as session:
        session.sql("CREATE TABLE k (id INT UNIQUE)")
        session.sql("INSERT INTO k VALUES (1), (2)")
        with pytest.raises(LanceError, match=r"cannot be used in a key"):
            session.sql(f"ALTER TABLE k ALTER id TYPE {kind} USING NULL::{kind}")
        assert session.sql("SELECT typeof(id) FROM k").fetchall() == [("INTEGER",)] * 2
