"""Queries within statements that change datasets, compared with plain DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from lance_engine.errors import SchemaMismatchError, UnsupportedFeatureError

import lance_sql
from lance_sql.errors import SqlError

TABLES = """
CREATE OR REPLACE TABLE t (a INT, b INT); INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);
CREATE OR REPLACE TABLE s (a INT, c INT); INSERT INTO s VALUES (1, 100), (4, 400);
CREATE OR REPLACE TABLE k (a INT PRIMARY KEY, b INT); INSERT INTO k VALUES (1, 1);
CREATE OR REPLACE SEQUENCE seq START 7
"""

#: DuckDB refuses some of them, and so must we.
CHANGES = """
INSERT INTO t SELECT coalesce(t.a, s.a), c FROM t FULL JOIN s ON t.a = s.a
UPDATE t SET b = s.c FROM s FULL JOIN (SELECT 2 AS a) z ON s.a = z.a WHERE t.a = coalesce(s.a, z.a)
DELETE FROM t USING s FULL JOIN (SELECT 2 AS a) z ON s.a = z.a WHERE t.a = coalesce(s.a, z.a)
DELETE FROM t WHERE EXISTS (SELECT 1 FROM s FULL JOIN t t2 ON s.a = t2.a WHERE t2.a = t.a AND s.c IS NULL)
DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.a = t.a) OR b = 10
UPDATE t SET b = CASE WHEN EXISTS (FROM s WHERE s.a = t.a) THEN 1 ELSE 0 END
UPDATE t AS x SET b = (SELECT max(c) FROM s) WHERE EXISTS (SELECT 1 FROM t y WHERE y.a = x.a + 1)
INSERT INTO t VALUES ((SELECT max(a) + 1 FROM t), CASE WHEN EXISTS (FROM s) THEN 1 END)
MERGE INTO t USING s ON t.a = s.a WHEN MATCHED AND EXISTS (FROM s s2 WHERE s2.a = 4) THEN UPDATE SET b = 0
MERGE INTO t USING (SELECT a, c FROM t FULL JOIN s USING (a)) j USING (a) WHEN MATCHED THEN UPDATE SET b = c
WITH n AS (SELECT 1 AS a, 77 AS v) UPDATE t SET b = (SELECT v FROM n) WHERE EXISTS (FROM n WHERE n.a = t.a)
WITH RECURSIVE n(i) AS (SELECT 5 UNION ALL SELECT i + 1 FROM n WHERE i < 8) INSERT INTO t SELECT i, i FROM n
WITH t AS (SELECT 5 AS a, 6 AS b) INSERT INTO t SELECT * FROM t
WITH t AS (SELECT 1 AS a) DELETE FROM t
WITH T AS (SELECT 1 AS a) UPDATE t SET b = 5
WITH t AS (SELECT 1 AS a) MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE
INSERT INTO t (b, a) PIVOT t ON a IN (1, 2) USING sum(b)
INSERT INTO t WITH q AS (FROM t) PIVOT q ON a IN (1, 2) USING sum(b)
CREATE OR REPLACE TABLE t AS UNPIVOT t ON b INTO NAME a VALUE b
CREATE OR REPLACE TABLE t AS SELECT 1, 2, 1 AS "2"
CREATE OR REPLACE TABLE t (x, y) AS FROM s
CREATE OR REPLACE TABLE t (x, X) AS FROM s
INSERT INTO t VALUES (nextval('seq'), 0), (nextval('seq'), 1)
INSERT INTO t SELECT nextval('seq'), currval('seq') FROM s
UPDATE t SET b = nextval('seq') WHERE a = 2
INSERT INTO k VALUES (1, nextval('seq')), (nextval('seq'), 8) ON CONFLICT DO UPDATE SET b = excluded.b
INSERT INTO t (a) VALUES (nextval('nothing'))
""".strip().splitlines()


@pytest.fixture(scope="module")
def connections(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    with lance_sql.connect(tmp_path_factory.mktemp("lake")) as ours, duckdb.connect() as plain:
        yield ours, plain


def outcome(connection: Any, change: str) -> Any:
    for text in TABLES.split(";"):
        connection.execute(text)
    try:
        connection.execute(change)
    except (lance_sql.LanceError, duckdb.Error):
        return "refused"
    tables = [connection.sql(f"FROM {name}") for name in ("t", "k")]
    return [(table.columns, sorted(table.fetchall(), key=repr)) for table in tables]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_means_what_it_means_in_duckdb(connections: tuple[Any, Any], change: str) -> None:
    ours, plain = connections
    assert outcome(ours, change) == outcome(plain, change)


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            "WITH n AS (DELETE FROM t RETURNING *) INSERT INTO s SELECT * FROM n",
            UnsupportedFeatureError,
            r"DELETE \.\.\. RETURNING first",
        ),
        (
            "CREATE TABLE n AS WITH x AS (DELETE FROM t RETURNING a) FROM x",
            UnsupportedFeatureError,
            r"RETURNING first",
        ),
        (
            "WITH x AS (INSERT INTO t VALUES (1, 2) RETURNING a) UPDATE t SET b = 1 FROM x",
            UnsupportedFeatureError,
            r"INSERT \.\.\. RETURNING first",
        ),
        (
            "INSERT INTO t (PIVOT s ON a USING sum(c))",
            UnsupportedFeatureError,
            r"SELECT \.\.\. FROM \(query\)",
        ),
        ("CREATE TABLE g (a INT, x INT AS (a + 1) VIRTUAL)", UnsupportedFeatureError, r"Create a view"),
        (
            "CREATE TABLE g (a INT, x INT GENERATED ALWAYS AS (a + 1) STORED)",
            UnsupportedFeatureError,
            r"Create a view",
        ),
        (
            "ALTER TABLE t ADD COLUMN x INT GENERATED ALWAYS AS (a + b)",
            UnsupportedFeatureError,
            r"ADD COLUMN c type AS",
        ),
        ("CREATE TABLE g (a INT DEFAULT nextval('s'))", UnsupportedFeatureError, r"Write it in each INSERT"),
        (
            "CREATE TABLE g AS SELECT a AS _rowid FROM t",
            SchemaMismatchError,
            r"_rowid' is reserved",
        ),
        ("INSERT INTO t VALUES (1", SqlError, r"syntax error|Expected"),
    ],
)
def test_what_is_refused_names_the_remedy_and_changes_nothing(
    tmp_path: Any, engine: str, change: str, error: type[Exception], message: str
) -> None:
    with lance_sql.connect(tmp_path, engine) as session:
        session.sql(
            "CREATE TABLE t (a INT, b INT); INSERT INTO t VALUES (1, 10); CREATE TABLE s (a INT, c INT)"
        )
        with pytest.raises(error, match=message):
            session.sql(change)
        assert (session.tables(), session.sql("FROM t").fetchall()) == (["s", "t"], [(1, 10)])


@pytest.mark.parametrize("name", ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version"])
def test_reserved_names_are_refused_for_data_of_any_kind(tmp_path: Any, name: str) -> None:
    with pytest.raises(SchemaMismatchError, match=r"is reserved"):
        lance_sql.write({name: [7, 8], "a": [1, 2]}, tmp_path / "t.lance")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_the_table_of_a_query_has_no_keys_and_defaults_of_others(tmp_path: Any, engine: str) -> None:
    with lance_sql.connect(tmp_path, engine) as session:
        session.sql("CREATE TABLE t (a INT PRIMARY KEY, b INT UNIQUE DEFAULT 5); INSERT INTO t VALUES (1, 2)")
        session.sql(
            "CREATE TABLE n AS SELECT * FROM t; INSERT INTO n SELECT * FROM t; INSERT INTO n (a) VALUES (3)"
        )
        assert session.sql("SHOW CONSTRAINTS FROM n").fetchall() == []
        assert sorted(session.sql("FROM n").fetchall(), key=repr) == [(1, 2), (1, 2), (3, None)]
