"""Namespaces of services: tables found, made and removed by the names that a REST server gives them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from engine_versions import IS_DUCKDB_1
from lance_engine.errors import LanceError
from namespace_server import namespace_server

import lance_sql
from lance_sql.errors import SqlError


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_tables_of_a_rest_server(tmp_path, engine):
    with namespace_server(tmp_path) as (endpoint, requests), lance_sql.connect(engine=engine) as session:
        session.sql(f"ATTACH '' AS ns (TYPE LANCE, ENDPOINT '{endpoint}', BEARER_TOKEN 'secret')")
        session.sql("CREATE TABLE ns.t AS SELECT 1 AS id; CREATE TABLE ns.u (id INT)")
        session.sql("INSERT INTO ns.t VALUES (2), (3)")
        session.sql("INSERT INTO ns.main.u SELECT id FROM ns.t WHERE id > 1")
        assert session.sql("SELECT sum(id) FROM ns.main.u").fetchone() == (5,)
        assert lance_sql.open(tmp_path / "t.lance").count_rows() == 3
        session.sql("CREATE SCHEMA ns.s; CREATE TABLE ns.s.t AS SELECT 'x' AS c")
        assert session.sql("SELECT c FROM ns.s.t").fetchall() == [("x",)]
        listed = session.sql(
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_catalog = 'ns' ORDER BY 1, 2"
        ).fetchall()
        assert listed == [("main", "t"), ("main", "u"), ("s", "t")]
        session.sql("USE ns")
        assert session.sql("SHOW TABLES").fetchall() == [("t",), ("u",)]
        assert session.sql("SELECT count(*) FROM t").fetchone() == (3,)
        session.sql("USE ns.s; DROP TABLE t; DROP SCHEMA ns.s")
        assert not (tmp_path / "s_t.lance").exists()
        session.sql("BEGIN; DELETE FROM ns.t WHERE id = 1; COMMIT")
        assert session.sql("SELECT count(*) FROM ns.t").fetchone() == (2,)
        with pytest.raises(LanceError, match="nothing"):
            session.sql("SELECT * FROM ns.nothing").fetchall()
        assert {"table declare", "table deregister"} <= set(requests)


def test_a_server_that_refuses(tmp_path):
    with namespace_server(tmp_path) as (endpoint, _), lance_sql.connect() as session:
        session.sql(f"ATTACH '' AS ns (TYPE LANCE, ENDPOINT '{endpoint}', BEARER_TOKEN 'wrong')")
        with pytest.raises(LanceError, match=r"The namespace refused a request: .*who are you"):
            session.sql("SELECT * FROM ns.t").fetchall()


def test_no_endpoint_and_unknown_kinds():
    with lance_sql.connect() as session:
        with pytest.raises(LanceError, match="needs an ENDPOINT"):
            session.sql("ATTACH '' AS ns (TYPE LANCE, IMPL 'rest')")
        with pytest.raises(LanceError, match="Cannot open a namespace of the kind 'nobodys'"):
            session.sql("ATTACH '' AS ns (TYPE LANCE, IMPL 'nobodys')")


def test_other_attached_databases_are_left_to_duckdb(tmp_path):
    lance_sql.write(pa.table({"id": [1]}), tmp_path / "t.lance")
    with lance_sql.connect(tmp_path) as session:
        session.sql(f"ATTACH '{tmp_path}/own.db' AS own; CREATE TABLE own.main.x AS SELECT id FROM t")
        assert session.sql("SELECT * FROM own.x").fetchall() == [(1,)]
        tables = session.sql("SHOW ALL TABLES").fetchall()
        assert [row[:3] for row in tables] == [("lance", "main", "t"), ("own", "main", "x")]
        assert ("own",) in session.sql("SHOW DATABASES").fetchall()
        session.sql("DETACH own")


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize("use", [False, True])
def test_statements_of_one_table_take_names_with_dots(tmp_path, engine, use):
    lance_sql.write(pa.table({"id": [1, 2], "v": ["a", "b"]}), tmp_path / "t.lance")
    target = tmp_path / "out.csv"
    with lance_sql.connect(engine=engine) as session:
        session.execute(f"ATTACH '{tmp_path}' AS ns (TYPE LANCE)")
        if use:
            session.execute("USE ns")
        session.execute("CREATE INDEX ON ns.t USING BTREE (id)")
        for name in ("ns.t", "ns.main.t"):
            for describe in ("DESCRIBE", "DESC"):
                assert [row[0] for row in session.execute(f"{describe} {name}").fetchall()] == ["id", "v"]
            assert [row[0] for row in session.execute(f"SUMMARIZE {name}").fetchall()] == ["id", "v"]
            assert session.execute(f"SELECT count(*) FROM lance_indexes({name})").fetchone() == (1,)
            session.execute(f"COPY {name} TO '{target}' (HEADER)")
            assert target.read_text().splitlines()[0] == "id,v"
        if engine == "duckdb":
            assert session.execute("TABLE ns.t").fetchall() == [(1, "a"), (2, "b")]
            assert len(session.execute("PIVOT ns.t ON v USING count(*)").fetchall()) == 2
        with pytest.raises(LanceError, match="nosuch"):
            session.execute("DESCRIBE ns.nosuch").fetchall()


def test_execute_of_a_cursor_takes_texts_and_parameters(tmp_path):
    lance_sql.write(pa.table({"id": [1, 2]}), tmp_path / "t.lance")
    with lance_sql.connect(tmp_path) as session, session.cursor() as cursor:
        assert cursor.execute("SELECT id FROM t WHERE id > ?", [1]).fetchall() == [(2,)]
        assert cursor.execute("DELETE FROM t WHERE id = 1; SELECT count(*) FROM t").fetchone() == (1,)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SELECT ns.t.a FROM ns.t ORDER BY ns.t.a", [1, 2, 3]),
        ("SELECT ns.main.t.a FROM ns.main.t WHERE ns.main.t.b = 'y'", [2]),
        ("SELECT main.t.a FROM ns.main.t WHERE t.a > 2", [3]),
        ("SELECT max(NS.T.a) FROM ns.t", [3]),
        ("SELECT ns.t.a FROM ns.t JOIN ns.other.u AS x ON ns.t.a = x.k", [1]),
        ("SELECT ns.other.u.k FROM ns.other.u", [1]),
        ("WITH q AS (SELECT ns.t.a FROM ns.t) SELECT a FROM q WHERE a > 1 ORDER BY a", [2, 3]),
        ("SELECT x.a FROM ns.t AS x WHERE x.a = (SELECT min(ns.t.a) FROM ns.t)", [1]),
        ("SHOW ns.t", ["a", "b"]),
        ("SHOW ns.main.t", ["a", "b"]),
        ("SHOW ns.other.u", ["k"]),
        ("DESCRIBE ns.t", ["a", "b"]),
        ("UPDATE ns.t SET b = 'new' WHERE ns.t.a = 1 RETURNING ns.t.b", ["new"]),
        ("DELETE FROM ns.t WHERE ns.t.a = 3", [1]),
        ("DELETE FROM ns.main.t WHERE main.t.a + 0 = 3 AND NS.MAIN.T.b LIKE '%'", [1]),
    ],
)
def test_names_of_several_parts(tmp_path, engine, statement, expected):
    lance_sql.write(pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}), tmp_path / "t.lance")
    with lance_sql.connect(engine=engine) as session:
        session.sql(f"ATTACH '{tmp_path}' AS ns (TYPE LANCE)")
        session.sql("CREATE SCHEMA ns.other")
        session.sql("CREATE TABLE ns.other.u AS SELECT 1 AS k")
        assert [row[0] for row in session.sql(statement).fetchall()] == expected


def test_an_alias_may_precede_the_name_of_a_table(tmp_path):
    lance_sql.write(pa.table({"a": [1, 2]}), tmp_path / "t.lance")
    with lance_sql.connect() as session:
        session.sql(f"ATTACH '{tmp_path}' AS ns (TYPE LANCE)")
        names = ("ns.t", "ns.t AT (VERSION => 1)", f"'{tmp_path}/t.lance'")
        for name in names:
            query = f"SELECT x.a, y: y.a + 1 FROM x: {name} JOIN y: {name} USING (a) ORDER BY 1"
            assert session.sql(query).fetchall() == [(1, 2), (2, 3)]


def test_a_struct_called_as_a_namespace_is_a_struct(tmp_path):
    lance_sql.write(pa.table({"ns": [{"t": {"a": 5}}], "a": [1]}), tmp_path / "t.lance")
    with lance_sql.connect(tmp_path) as session:
        session.sql(f"ATTACH '{tmp_path}' AS ns (TYPE LANCE)")
        assert session.sql("SELECT ns.t.a AS v FROM t").fetchall() == [(5,)]


def test_schemas_whose_folders_have_other_files_are_kept(tmp_path: Path) -> None:
    with lance_sql.connect(tmp_path) as con:
        con.sql("CREATE SCHEMA lance.s")
        (tmp_path / "s" / "notes.txt").write_text("?")
        with pytest.raises(LanceError, match=r"other files: notes\.txt"):
            con.sql("DROP SCHEMA lance.s")
        (tmp_path / "s" / "notes.txt").unlink()
        con.sql("DROP SCHEMA lance.s")
    assert not (tmp_path / "s").exists()


@pytest.fixture
def spaces(tmp_path, engine):
    """Two tables `t` of one row each: 1 in the directory of the session, 2 in the attached directory."""
    for number, folder in enumerate((tmp_path / "own", tmp_path / "lake"), 1):
        lance_sql.write(pa.table({"a": [number]}), folder / "t.lance")
    with lance_sql.connect(tmp_path / "own", engine) as session:
        session.sql(f"ATTACH '{tmp_path}/lake' AS \"My lake\" (TYPE LANCE)")
        yield session


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_a_use_that_fails_keeps_the_default(spaces):
    spaces.sql('USE "My lake"')
    for name in ("nosuch", "nosuch.s", "lance.nosuch"):
        with pytest.raises(SqlError, match=r"nosuch.*(found|CREATE SCHEMA|SHOW DATABASES)"):
            spaces.sql(f"USE {name}")
        assert spaces.sql("SELECT a FROM t").fetchone() == (2,)
    spaces.sql("USE lance")
    assert spaces.sql("SELECT a FROM t").fetchone() == (1,)


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_schemas_of_the_default_namespace_can_be_used_by_name(spaces):
    spaces.sql('USE "My lake"; CREATE SCHEMA s; USE S; CREATE TABLE u AS SELECT 5 AS b')
    assert spaces.sql('SELECT b FROM "my lake".s.u').fetchone() == (5,)
    spaces.sql("USE main")
    assert spaces.sql("SELECT a FROM t").fetchone() == (2,)


@pytest.mark.parametrize("engine", ["duckdb"])
def test_databases_of_the_engine_can_be_used_after_namespaces(spaces):
    spaces.sql(
        'CREATE SCHEMA memory.m; CREATE TABLE memory.m.v AS SELECT 7 AS c; USE "My lake"; USE memory.m'
    )
    assert spaces.sql("SELECT v.c, t.a FROM v, lance.t").fetchone() == (7, 1)
    with pytest.raises(LanceError, match=r"Did you mean lance.main.t"):
        spaces.sql("SELECT a FROM t")


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_detaching_what_is_not_attached(spaces):
    spaces.sql('DETACH "my LAKE"; DETACH DATABASE IF EXISTS "My lake"; DETACH DATABASE IF EXISTS nosuch')
    if not IS_DUCKDB_1:
        spaces.sql('DETACH IF EXISTS "My lake"')
    with pytest.raises(SqlError, match="My lake") as caught:
        spaces.sql('DETACH "My lake"')
    assert "Unsupported" not in str(caught.value)


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_schemas_and_tables_with_dots_and_spaces_in_their_names(spaces):
    name = '"My lake"."a.b"."x y.z"'
    spaces.sql(f'CREATE SCHEMA "My lake"."a.b"; CREATE TABLE {name} AS SELECT 1 AS "q r"')
    spaces.sql(f"INSERT INTO {name} VALUES (2)")
    assert spaces.sql(f'SELECT sum("q r") FROM {name}').fetchone() == (3,)
    assert spaces.sql("SHOW TABLES").fetchall() == [("t",)]
    spaces.sql(f'DROP TABLE {name}; DROP SCHEMA "My lake"."a.b"')


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_names_written_in_other_cases_are_no_tables_of_the_engine(spaces):
    spaces.sql('SELECT * FROM "My lake".t AS x JOIN T AS y USING (a)').fetchall()
    assert ("t",) in spaces.sql("SELECT table_name FROM INFORMATION_SCHEMA.Tables").fetchall()
    assert spaces.sql("SHOW TABLES").fetchall() == [("t",)]
    found = [(row[0], row[2]) for row in spaces.sql("SHOW ALL TABLES").fetchall()]
    assert sorted(found) == [("My lake", "t"), ("lance", "t")]
