"""The scripts of queries/conformance/statements on every engine; pylance reads along."""

from __future__ import annotations

from pathlib import Path

import conformance_page
import duckdb
import lance
import pyarrow as pa
import pytest
from engine_versions import IS_DUCKDB_1, needs_today, of_today, without_tables
from lance_engine.errors import LanceError
from script_cases import read_cases, same, text

import lance_sql

SCRIPTS = sorted((Path(__file__).parents[3] / "queries" / "conformance" / "statements").glob("*.test"))
ENGINES = ("duckdb", "datafusion")


def outcome(connection, statement):
    try:
        rows = connection.sql(statement).fetchall()
    except LanceError as error:
        return f"error: {error}"
    return ["|".join(text(value) for value in row) for row in rows]


def result_of(session, statement):
    """The rows and names of a result, in any order unless the statement has one; "error" if it fails."""
    try:
        result = session.execute(statement)
        rows = result.fetchall()
    except (LanceError, duckdb.Error):
        return "error"
    # DuckDB counts the rows of some, and not of others.
    if statement.startswith(("CREATE", "COPY") if IS_DUCKDB_1 else "CREATE"):
        return "created"
    names = (
        result.columns if isinstance(session, lance_sql.Connection) else [c[0] for c in result.description]
    )
    in_order = rows if "ORDER BY" in statement else sorted(rows, key=repr)
    return of_today(repr((in_order, names if rows else ())))


@pytest.mark.parametrize("script", conformance_page.DUCKDB, ids=lambda path: path.stem)
def test_statements_of_duckdb_mean_the_same_on_datasets(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with lance_sql.connect(tmp_path) as ours, duckdb.connect() as theirs:
        for statement, refusal, difference, _ in conformance_page.compared(script):
            if refusal and not needs_today(statement):
                assert refusal in outcome(ours, statement), statement
                continue
            found, expected = result_of(ours, statement), result_of(theirs, statement)
            if needs_today(statement):
                continue
            if difference:
                assert "error" not in (found, expected), statement
                assert found != expected, f"{statement} is the same now"
            else:
                assert found == expected, statement


@pytest.mark.parametrize("script", conformance_page.EXTENSION, ids=lambda path: path.stem)
def test_statements_of_the_extension(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with lance_sql.connect(tmp_path) as connection:
        for one in conformance_page.compared(script):
            found = outcome(connection, one.statement)
            if needs_today(one.statement):
                continue
            if isinstance(found, str):
                assert one.rows, f"{one.statement}: {found}"
                assert one.rows[0].startswith("error: "), f"{one.statement}: {found}"
                assert without_tables(one.rows[0]) in found, one.statement
            else:
                assert same(found, one.rows), f"{one.statement}: {found}"
    assert seen_by_us(tmp_path) == seen_by_pylance(tmp_path)


def seen_by_pylance(folder):
    return {path.stem: lance.dataset(path).to_table().to_pylist() for path in sorted(folder.glob("*.lance"))}


def seen_by_us(folder):
    return {path.stem: lance_sql.open(path).to_table().to_pylist() for path in sorted(folder.glob("*.lance"))}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(script, engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with lance_sql.connect(tmp_path, engine) as connection:
        for case in read_cases(script):
            if engine in case.gaps:
                continue
            found = outcome(connection, case.statement)
            if case.rows and case.rows[0].startswith("error: "):
                assert isinstance(found, str), f"{case.name} was not refused: {found}"
                assert case.rows[0].removeprefix("error: ").lower() in found.lower(), case.name
            else:
                assert same(found, case.rows), f"{case.name}: {found}"
            assert seen_by_us(tmp_path) == seen_by_pylance(tmp_path), case.name


def test_there_is_a_script_for_each_kind_of_statement():
    changes = {"insert", "delete", "update", "merge", "copy", "truncate", "transactions", "namespaces"}
    kinds = changes | {"create", "alter", "drop", "index", "optimize", "vacuum", "show", "call"}
    assert {path.stem for path in SCRIPTS} == kinds


@pytest.mark.parametrize("engine", ENGINES)
def test_parameters_reach_every_part(engine, tmp_path):
    with lance_sql.connect(tmp_path, engine) as connection:
        connection.sql("CREATE TABLE t (id INT, name VARCHAR)")
        connection.sql("INSERT INTO t VALUES (?, ?), (2, ?)", [1, "a", "b"])
        connection.sql("UPDATE t SET name = ? WHERE id = ?", ["z", 2])
        connection.sql("DELETE FROM t WHERE id = $1", [1])
        connection.sql(
            "MERGE INTO t USING (SELECT CAST(? AS INT) AS id) AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET name = t.name || ?",
            [2, "!"],
        )
        assert connection.sql("SELECT * FROM t").fetchall() == [(2, "z!")]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_registered_dataset_follows_its_changes(engine, tmp_path):
    dataset = lance_sql.write(pa.table({"x": [1, 2]}), tmp_path / "n.lance")
    with lance_sql.connect(engine=engine) as connection:
        connection.register("n", dataset)
        connection.sql("INSERT INTO n VALUES (3)")
        connection.sql("DELETE FROM n WHERE x = 1")
        assert sorted(connection.sql("SELECT x FROM n").fetchall()) == [(2,), (3,)]
    assert dataset.count_rows() == 2  # the object is the version that it was


def test_tables_of_the_engine_are_left_to_it():
    with lance_sql.connect() as connection:
        connection.sql("CREATE TABLE own (id INT PRIMARY KEY)")
        connection.sql("INSERT INTO own VALUES (1) ON CONFLICT DO NOTHING")
        connection.sql("UPDATE own SET id = 5")
        assert connection.sql("DELETE FROM own RETURNING id").fetchall() == [(5,)]
        connection.sql("DROP TABLE own")


def test_a_failed_write_leaves_no_version(tmp_path):
    with lance_sql.connect(tmp_path) as connection:
        connection.sql("CREATE TABLE t AS SELECT 1 AS x")
        files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
        with pytest.raises(LanceError):
            connection.sql("INSERT INTO t SELECT error('no') FROM range(10)")
        assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == files


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_texts_with_escapes_end_where_the_engine_ends_them(tmp_path: Path, engine: str) -> None:
    with lance_sql.connect(tmp_path, engine=engine) as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS a")
        text = r"SELECT E'\'; DROP TABLE t; --' AS x FROM t WHERE 'y' <> E'it\'s ''t'''"
        assert session.sql(text).fetchall() == [("'; DROP TABLE t; --",)]
        session.sql(r"UPDATE t SET a = length(E'\'; --') WHERE E'\\' <> 'a'")
        assert session.sql("SELECT a FROM t").fetchall() == [(5,)]
