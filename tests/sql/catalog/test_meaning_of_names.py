"""One name means one thing: USE, views, macros, temporary tables and datasets, as in a plain DuckDB."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from lance_engine.errors import LanceError, UnsupportedFeatureError

import lance_sql
import lance_sql.datafusion
import lance_sql.duckdb
from lance_sql.errors import SqlError, TableNotFoundError

#: Statements that run in a session over a directory, and in a DuckDB whose default database is `lance`.
WALKS = {
    "USE of a database": """
        USE d; CREATE TABLE k AS SELECT 1 AS a; INSERT INTO k VALUES (2); FROM d.main.k ORDER BY a;
        FROM k ORDER BY a; FROM t; FROM lance.t; FROM lance.main.t; CREATE TABLE t AS SELECT 'd' AS
        a; FROM t; FROM d.t; FROM LANCE.T; SELECT "T".a FROM d."main"."T"; DROP TABLE k; FROM k; USE
        lance; FROM t; FROM d.t; CREATE TABLE k AS SELECT 3 AS a; FROM lance.k; FROM d.k; FROM k;
        DROP TABLE d.t; FROM t
    """,
    "SET schema": """
        SET schema = 'd'; CREATE TABLE k AS SELECT 1 AS a; FROM d.k; USE lance; FROM k; SET
        search_path = 'd.main'; FROM k; FROM t; SET schema = 'lance'; FROM t; FROM k; PRAGMA
        search_path = 'd'; FROM k; FROM t; USE lance.main; FROM t; USE main; FROM t
    """,
    "schemas": """
        CREATE SCHEMA d.s; CREATE TABLE d.s.t AS SELECT 's' AS a; USE d.s; FROM t; USE lance; FROM
        t; FROM d.s.t
    """,
    "views": """
        CREATE VIEW v AS FROM t; CREATE VIEW w AS FROM v JOIN t USING (a); FROM v; FROM w; INSERT
        INTO t VALUES (2); FROM v ORDER BY a; FROM w ORDER BY a; BEGIN; INSERT INTO t VALUES (3);
        FROM w ORDER BY a; ROLLBACK; FROM w ORDER BY a; BEGIN; DELETE FROM t WHERE a = 1; COMMIT;
        FROM w; FROM V; CREATE OR REPLACE TABLE t AS SELECT 9 AS a; FROM w; ALTER TABLE t RENAME TO
        u; FROM v; FROM u; ALTER TABLE u RENAME TO t; FROM v; DROP TABLE t; FROM v; FROM w; CREATE
        TABLE t AS SELECT 5 AS a; FROM w; SELECT count(*) FROM v
    """,
    "macros": """
        CREATE MACRO m() AS (SELECT sum(a) FROM t); CREATE MACRO f() AS TABLE SELECT a + 1 AS b FROM
        t; SELECT m(); FROM f(); BEGIN; INSERT INTO t VALUES (4); SELECT m(); COMMIT; SELECT m();
        FROM f() ORDER BY b; BEGIN; ROLLBACK; SELECT m(); CREATE VIEW v AS SELECT m() AS m, b FROM
        f(); FROM v ORDER BY b
    """,
    "the other kind": """
        CREATE VIEW v AS FROM t; CREATE TABLE v AS SELECT 1 AS a; CREATE OR REPLACE TABLE v AS
        SELECT 1 AS a; FROM v; CREATE TABLE V(a INT); CREATE TABLE IF NOT EXISTS v AS SELECT 8 AS a;
        FROM v; CREATE VIEW t AS SELECT 1; CREATE OR REPLACE VIEW t AS SELECT 1; DROP VIEW t; DROP
        VIEW IF EXISTS t; DROP TABLE v; DROP TABLE IF EXISTS v; ALTER VIEW v RENAME TO t; ALTER
        TABLE t RENAME TO v; FROM t; FROM v; DROP VIEW v; CREATE TABLE v AS SELECT 7 AS a; FROM v;
        DROP TABLE v; FROM v
    """,
    "what hides datasets": """
        WITH t AS (SELECT 8 AS a) FROM t; SELECT t.a FROM (SELECT 7 AS a) AS t; CREATE VIEW v AS
        WITH t AS (SELECT 6 AS a) SELECT * FROM t; FROM v; FROM u AS t; SELECT t.b FROM u AS t;
        CREATE VIEW w AS WITH t(a) AS (SELECT 5) SELECT * FROM t; FROM w; SELECT (SELECT max(t.b)
        FROM u t WHERE t.b > s.a) FROM t AS s; SELECT a FROM t WHERE a IN (FROM t)
    """,
    "names that need quotes": """
        CREATE TABLE "Odd name" AS SELECT 1 AS a; FROM "odd NAME"; CREATE VIEW "a.b" AS FROM "Odd
        name"; FROM "a.b"; CREATE TABLE "c.d" AS SELECT 2 AS a; FROM "c.d"; CREATE VIEW v AS FROM
        "c.d" JOIN t USING (a); FROM v; USE d; FROM lance."c.d"; FROM lance."Odd name"; CREATE TABLE
        "c.d" AS SELECT 3 AS a; FROM "c.d"; FROM d."c.d"
    """,
    "prepared": """
        PREPARE p AS SELECT count(*) FROM t; EXECUTE p; INSERT INTO t VALUES (2); EXECUTE p; BEGIN;
        DELETE FROM t; EXECUTE p; ROLLBACK; EXECUTE p; DROP TABLE t; EXECUTE p; CREATE TABLE t AS
        FROM range(5); EXECUTE p
    """,
}  # fmt: skip


def outcome(session, text):
    """The rows; of an error only that there is one, because the texts differ."""
    try:
        found = session.execute(text)
    except (LanceError, duckdb.Error):
        return "error"
    words = text.split()
    reads = words[0].upper() in ("FROM", "SELECT", "WITH", "EXECUTE")
    return found.fetchall() if reads else "done"


def walked(session, walk):
    return {text: outcome(session, text) for text in enumerated(walk)}


def enumerated(walk):
    seen: dict[str, int] = {}
    for text in (" ".join(part.split()) for part in walk.split(";")):
        seen[text] = seen.get(text, 0) + 1
        yield text + " " * (seen[text] - 1)  # the same statement again is another key


def plain(tmp_path):
    connection = duckdb.connect()
    connection.execute(f"ATTACH ':memory:' AS lance; ATTACH '{tmp_path}/plain.db' AS d; USE lance")
    connection.execute("CREATE TABLE t AS SELECT 1 AS a; CREATE TABLE u AS SELECT 2 AS b")
    return connection


@pytest.fixture
def folder(tmp_path):
    lance_sql.write(pa.table({"a": pa.array([1], pa.int32())}), tmp_path / "own" / "t.lance")
    lance_sql.write(pa.table({"b": pa.array([2], pa.int32())}), tmp_path / "own" / "u.lance")
    return tmp_path / "own"


@pytest.mark.parametrize("kind", ["new", "around a connection"])
@pytest.mark.parametrize("walk", WALKS)
def test_names_mean_the_same_as_in_duckdb(walk, kind, folder, tmp_path):
    around = duckdb.connect() if kind == "around a connection" else "duckdb"
    with lance_sql.connect(folder, around) as session, plain(tmp_path) as other:
        session.sql(f"ATTACH '{tmp_path}/ours.db' AS d")
        assert walked(session, WALKS[walk]) == walked(other, WALKS[walk])


def test_tables_of_a_database_of_duckdb_are_in_its_file(folder, tmp_path):
    with lance_sql.connect(folder) as session:
        session.sql(
            f"ATTACH '{tmp_path}/d.db' AS d; USE d; CREATE TABLE k AS SELECT 1 AS a; USE lance; DETACH d"
        )
    assert sorted(entry.name for entry in folder.iterdir()) == ["t.lance", "u.lance"]
    with duckdb.connect(tmp_path / "d.db") as connection:
        assert connection.execute("FROM k").fetchall() == [(1,)]


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_views_show_their_datasets_in_every_cursor_and_after_use(folder, tmp_path, engine):
    lance_sql.write(pa.table({"a": ["other"]}), tmp_path / "lake" / "t.lance")
    with lance_sql.connect(folder, engine) as session:
        early = session.cursor()
        session.sql("CREATE VIEW v AS SELECT a FROM t; CREATE VIEW w AS SELECT a + 1 AS b FROM v")
        session.sql("CREATE VIEW old AS SELECT a FROM t AT (VERSION => 1)")
        late = session.cursor()
        lance_sql.write(pa.table({"a": pa.array([5], pa.int32())}), folder / "t.lance", mode="append")
        for cursor in (early, late, session):
            assert cursor.sql("SELECT b FROM w ORDER BY b").fetchall() == [(2,), (6,)]
            assert cursor.sql("SELECT a FROM old").fetchall() == [(1,)]
        session.sql(f"ATTACH '{tmp_path}/lake' AS lake (TYPE LANCE); USE lake")
        assert session.sql("SELECT a FROM t").fetchall() == [("other",)]
        assert session.sql("SELECT sum(a) FROM v").fetchall() == [(6,)]
        assert late.sql("SELECT count(*) FROM w").fetchall() == [(2,)]


def test_views_in_files_of_duckdb_are_found_by_later_sessions(folder, tmp_path):
    for expected in (1, 2):
        with lance_sql.connect(folder) as session:
            session.sql(f"ATTACH '{tmp_path}/d.db' AS d")
            session.sql("CREATE VIEW IF NOT EXISTS d.v AS SELECT count(*) FROM t")
            assert session.sql("FROM d.v").fetchall() == [(expected,)]
            session.sql("INSERT INTO t VALUES (0)")


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_names_that_differ_in_case_are_two_datasets(folder, engine):
    lance_sql.write(pa.table({"a": [100]}), folder / "T.lance")
    with lance_sql.connect(folder, engine) as session:
        for _ in range(2):
            assert session.sql("SELECT a FROM t").fetchall() == [(1,)]
            assert session.sql('SELECT a FROM "T"').fetchall() == [(100,)]
        with pytest.raises(LanceError, match="t and T are two datasets"):
            session.sql('SELECT * FROM t JOIN "T" USING (a)')


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_row_ids_are_no_columns_of_the_same_table_in_another_case(folder, engine):
    with lance_sql.connect(folder, engine) as session:
        for name in ("U", "u", "U"):
            assert session.sql(f"SELECT _rowid, b FROM {name}").fetchall() == [(0, 2)]
            assert session.sql(f"SELECT * FROM {name.swapcase()}").fetchall() == [(2,)]


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_registered_data_hides_a_dataset_until_it_is_dropped(folder, engine):
    with lance_sql.connect(folder, engine) as session:
        assert session.sql("SELECT * FROM t").fetchall() == [(1,)]
        session.register("T", pa.table({"a": [7]}))
        assert session.sql("SELECT * FROM t").fetchall() == [(7,)]
        with pytest.raises(LanceError):
            session.sql("DELETE FROM t WHERE true").fetchall()
        session.sql("DROP VIEW t" if engine == "duckdb" else "DROP TABLE t")
        assert session.sql("SELECT * FROM t").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("definition", "name"),
    [
        ("CREATE TEMP TABLE x AS SELECT 0 AS a", "temp.x"),
        ("CREATE TEMP VIEW x AS SELECT 0 AS a", "temp.x"),
        ("CREATE TABLE memory.main.x AS SELECT 0 AS a", "memory.x"),
        ("CREATE VIEW x AS SELECT 0 AS a", "memory.main.x"),
    ],
)
def test_a_dataset_that_somebody_else_creates_hides_nothing(folder, definition, name):
    with lance_sql.connect(folder) as session:
        session.sql(definition)
        lance_sql.write(pa.table({"a": [1]}), folder / "x.lance")
        for text in ("FROM x", "INSERT INTO x VALUES (2)", "DELETE FROM main.x", "FROM t JOIN X USING (a)"):
            with pytest.raises(LanceError, match=r"ambiguous.*Write lance\.main\.[xX]"):
                session.sql(text)
        assert session.sql(f"SELECT a AS x FROM {name}").fetchall() == [(0,)]
        assert session.sql("SELECT a AS x FROM lance.x").fetchall() == [(1,)]
        shutil.rmtree(folder / "x.lance")
        assert session.sql("FROM x").fetchall() == [(0,)]


def test_own_connections(folder, tmp_path):
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 'own' AS a")
    lance_sql.duckdb.install(connection, folder)
    with pytest.raises(LanceError, match="ambiguous"):
        connection.execute("FROM t")
    assert connection.execute("FROM memory.t").fetchall() == [("own",)]
    connection.execute("CREATE VIEW v AS FROM u")
    assert connection.cursor().execute("FROM v").fetchall() == [(2,)]
    connection.execute(f"ATTACH '{tmp_path}/d.db' AS d; USE d")
    connection.execute("CREATE TABLE u AS SELECT 'd' AS b")
    assert connection.execute("FROM u").fetchall() == [("d",)]
    connection.execute("USE memory")
    assert connection.execute("FROM u").fetchall() == [(2,)]
    connection.close()


def test_own_contexts(folder):
    datafusion = pytest.importorskip("datafusion")
    context = datafusion.SessionContext()
    context.sql("CREATE TABLE t AS SELECT 'own' AS a").collect()
    lance_sql.datafusion.install(context, folder)
    with pytest.raises(LanceError, match="ambiguous"):
        context.sql("SELECT * FROM t")
    context.sql("CREATE VIEW v AS SELECT sum(b) AS b FROM u").collect()
    lance_sql.write(pa.table({"b": pa.array([5], pa.int32())}), folder / "u.lance", mode="append")
    assert context.sql("SELECT * FROM v").to_pydict() == {"b": [7]}


def test_databases_and_directories_have_different_names(folder, tmp_path):
    with lance_sql.connect(folder) as session:
        for text in (f"ATTACH '{tmp_path}/x.db' AS lance", f"ATTACH '{folder}' AS memory (TYPE LANCE)"):
            with pytest.raises(LanceError, match="already attached"):
                session.sql(text)


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize(
    ("directory", "name", "suggested"),
    [
        (None, "sales.lance", "Did you mean FROM 'sales.lance'? Write paths in single quotes"),
        (None, "salse", "Did you mean FROM 'sales.lance'?"),
        (".", "sales.lance", "Did you mean sales?"),
        (".", "salse", "Did you mean sales?"),
        (".", "salesx.lance", "Did you mean sales?"),
    ],
)
def test_unknown_tables_suggest_what_can_be_written(
    tmp_path, monkeypatch, engine, directory, name, suggested
):
    monkeypatch.chdir(tmp_path)
    lance_sql.write(pa.table({"id": [1]}), "sales.lance")
    with (
        lance_sql.connect(directory, engine=engine) as session,
        pytest.raises(lance_sql.LanceError) as caught,
    ):
        session.sql(f"SELECT * FROM {name}")
    assert suggested in str(caught.value)
    assert f"Table {name!r} not found" in str(caught.value)


@pytest.mark.parametrize(
    ("definition", "use"),
    [
        ("CREATE VIEW v AS SELECT id FROM t", "SELECT * FROM v"),
        ("CREATE MACRO m() AS TABLE SELECT id FROM t", "SELECT * FROM m()"),
        ("PREPARE p AS SELECT id FROM t", "EXECUTE p"),
    ],
)
@pytest.mark.parametrize("other", ["TEMP TABLE t AS SELECT 5 AS id", "VIEW t AS SELECT 5 AS id"])
def test_a_table_of_the_engine_does_not_take_the_place_of_a_dropped_dataset(
    tmp_path: Path, definition: str, use: str, other: str
) -> None:
    with lance_sql.connect(tmp_path) as session:
        for text in ("CREATE TABLE t (id INTEGER)", definition, "DROP TABLE t", f"CREATE {other}"):
            session.execute(text)
        with pytest.raises(UnsupportedFeatureError, match="reads the dataset t, which was dropped"):
            session.execute(use).fetchall()
        assert session.execute("SELECT * FROM t").fetchall() == [(5,)]
        session.execute("DROP TABLE IF EXISTS t" if "TABLE" in other else "DROP VIEW t")
        session.execute("CREATE TABLE t AS SELECT 7 AS id")
        assert session.execute(use).fetchall() == [(7,)]


@pytest.mark.parametrize("kind", ["TABLE", "VIEW"])
def test_a_temporary_table_is_not_the_table_that_if_not_exists_looks_for(tmp_path: Path, kind: str) -> None:
    with lance_sql.connect(tmp_path) as session:
        session.execute(f"CREATE TEMP {kind} t AS SELECT 5 AS id")
        for rest in ("(id INTEGER)", "AS SELECT 1 AS id"):
            with pytest.raises(SqlError, match=f"t is a temporary {kind.lower()} of the SQL engine"):
                session.execute(f"CREATE TABLE IF NOT EXISTS t {rest}")
        session.execute("CREATE TABLE d AS SELECT 1 AS id")
        # As in DuckDB, nothing was created, and no count is returned.
        assert session.execute("CREATE TABLE IF NOT EXISTS d AS SELECT 2 AS id").fetchall() == []


@pytest.mark.parametrize("name", ["nosuch.t", "lance.main.t", "lance.t", "memory.main.t"])
def test_a_wrong_name_is_not_that_of_a_dropped_dataset(tmp_path: Path, name: str) -> None:
    with lance_sql.connect(tmp_path) as session:
        session.execute("CREATE TEMP TABLE t AS SELECT 1 AS a")
        with pytest.raises(TableNotFoundError, match=f"Table '{name}' not found"):
            session.execute(f"SELECT * FROM {name}")
