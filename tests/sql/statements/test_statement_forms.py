"""Forms of statements that other tools write: they run as in DuckDB, or are refused with a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from lance_engine.errors import LanceError, UnsupportedFeatureError

import lance_sql

TABLES = [
    "CREATE TABLE t (id INTEGER, val VARCHAR DEFAULT 'd')",
    "INSERT INTO t SELECT range, 'v' || range FROM range(6)",
    "CREATE TABLE o AS SELECT range::INTEGER AS id, range * 2 AS w FROM range(3, 9)",
]
FORMS: list[str | tuple[str, list[Any]]] = [
    "UPDATE t SET val = 'z' WHERE EXISTS (FROM o WHERE o.id = t.id)",
    "DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.id = t.id) AND id < 2",
    "UPDATE t SET val = coalesce(q.w::VARCHAR, 'none') "
    "FROM (SELECT a.id AS id, o.w FROM t a FULL JOIN o ON a.id = o.id) q WHERE q.id = t.id",
    "DELETE FROM t USING o FULL JOIN t other USING (id) WHERE t.id = o.id AND o.w > 8",
    'MERGE INTO t USING o AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET "val" = s.w::VARCHAR '
    'WHEN NOT MATCHED THEN INSERT ("id", "val") VALUES ("id", \'n\')',
    "MERGE INTO t AS DBT_INTERNAL_DEST USING (SELECT id, w::VARCHAR AS val FROM o) AS DBT_INTERNAL_SOURCE "
    "ON (DBT_INTERNAL_SOURCE.id = DBT_INTERNAL_DEST.id) "
    'WHEN MATCHED THEN UPDATE SET "id" = DBT_INTERNAL_SOURCE."id", "val" = DBT_INTERNAL_SOURCE."val" '
    'WHEN NOT MATCHED THEN INSERT ("id", "val") VALUES (DBT_INTERNAL_SOURCE."id", DBT_INTERNAL_SOURCE."val")',
    "MERGE INTO t USING o ON t.id = o.id WHEN MATCHED THEN UPDATE SET val = DEFAULT",
    "MERGE INTO t USING (SELECT id + 20 AS id FROM o) s ON t.id = s.id "
    "WHEN NOT MATCHED THEN INSERT (id, val) VALUES (s.id, DEFAULT)",
    "MERGE INTO t USING o ON t.id = o.id WHEN MATCHED AND o.w > (SELECT min(w) FROM o) "
    "THEN UPDATE SET val = (SELECT max(w)::VARCHAR FROM o) WHEN MATCHED AND EXISTS (FROM o WHERE w = 6) "
    "THEN UPDATE SET val = 'least'",
    "PREPARE add_row AS INSERT INTO t VALUES ($1, $2)",
    "EXECUTE add_row(100, 'it''s')",
    "EXECUTE add_row(1 + 200, NULL)",
    "PREPARE change_row AS UPDATE t SET val = ? WHERE id = ?",
    "EXECUTE change_row('changed', 100)",
    "PREPARE remove_row AS DELETE FROM t WHERE id > ? RETURNING id",
    "EXECUTE remove_row(200)",
    "DEALLOCATE remove_row",
    "PREPARE remove_old AS WITH q AS (SELECT id FROM o WHERE w < $1) DELETE FROM t USING q WHERE t.id = q.id",
    "EXECUTE remove_old(8)",
    "INSERT INTO t BY POSITION SELECT 77, 'x'",
]


@pytest.fixture(params=["duckdb", "datafusion"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[lance_sql.Session]:
    with lance_sql.connect(tmp_path, engine=request.param) as made, lance_sql.connect(tmp_path) as making:
        for statement in TABLES:
            making.execute(statement)
        yield made


def test_as_in_duckdb(session: lance_sql.Session) -> None:
    plain = duckdb.connect()
    for statement in [*TABLES, *FORMS]:
        if isinstance(statement, str):
            statement = (statement, [])
        wanted = plain.execute(*statement).fetchall()
        if statement[0] in TABLES:
            continue
        found = session.execute(statement[0], statement[1] or None).fetchall()
        if "RETURNING" in statement[0] or statement[0].startswith("EXECUTE"):
            assert sorted(found) == sorted(wanted), statement
        rows = "SELECT * FROM t ORDER BY id, val"
        assert session.execute(rows).fetchall() == plain.execute(rows).fetchall(), statement


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "WITH n AS (INSERT INTO t VALUES (9, 'x') RETURNING id) SELECT * FROM n",
            r"Run the INSERT \.\.\. RETURN",
        ),
        ("WITH n AS (DELETE FROM t RETURNING id) SELECT * FROM n", r"Run the DELETE \.\.\. RETURNING first"),
        (
            "WITH n AS (UPDATE t SET val = 'x' RETURNING id) SELECT * FROM n",
            r"Run the UPDATE \.\.\. RETURNING",
        ),
        ("UPDATE t SET (id, val) = (SELECT 5, 'x')", r"a subquery for each column"),
        ("CREATE TABLE g (a INTEGER DEFAULT nextval('s'))", r"nextval\('s'\), \.\.\.\)"),
        ("CREATE TABLE g (a INTEGER, b INTEGER GENERATED ALWAYS AS (a + 1))", r"Create a view"),
        ("EXPLAIN DELETE FROM t", r"Use EXPLAIN on a SELECT"),
    ],
)
def test_refused(session: lance_sql.Session, statement: str, message: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=message):
        session.execute(statement)
    assert session.execute("SELECT count(*) FROM t").fetchall() == [(6,)]


WRONG = [
    "INSERT INTO nosuch VALUES (1)",
    "INSERT INTO t (id, vla) VALUES (?, ?)",
    "INSERT INTO t VALUES (1, 'x', 3)",
    "INSERT INTO t SELECT id, ww FROM o WHERE id > $1",
    "INSERT INTO t (id) VALUES (1) RETURNING idd",
    "UPDATE t SET vla = 'x'",
    "UPDATE t SET val = $1 WHERE idd = $2",
    "UPDATE t SET val = nosuch(val)",
    "DELETE FROM t WHERE idd = $1",
    "DELETE FROM t USING nosuch WHERE nosuch.id = t.id AND t.id > ?",
    "MERGE INTO t USING o ON t.id = o.id AND o.id > ? WHEN MATCHED THEN UPDATE SET val = ww",
]


def test_changes_are_checked_when_they_are_prepared(session: lance_sql.Session) -> None:
    session.execute("PREPARE p AS DELETE FROM t WHERE id = $1")
    plain = duckdb.connect()
    for table in TABLES:
        plain.execute(table)
    for statement in WRONG:
        with pytest.raises(duckdb.Error):
            plain.execute(f"PREPARE p AS {statement}")
        with pytest.raises(LanceError):
            session.execute(f"PREPARE p AS {statement}")
    # Nothing was changed, and what was prepared before still is.
    assert session.execute("SELECT count(*) FROM t").fetchall() == [(6,)]
    assert session.execute("EXECUTE p(3)").fetchall() == [(1,)]


def test_prepared_changes_of_tables_in_namespaces(session: lance_sql.Session, tmp_path: Path) -> None:
    session.execute(f"ATTACH '{tmp_path}' AS ns (TYPE LANCE)")
    with pytest.raises(LanceError, match="idd"):
        session.execute("PREPARE p AS INSERT INTO ns.t (idd) VALUES ($1)")
    session.execute("PREPARE p AS INSERT INTO ns.t (id) VALUES ($1)")
    assert session.execute("EXECUTE p(7)").fetchall() == [(1,)]
