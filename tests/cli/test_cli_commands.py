"""The command line: output formats, exit codes, errors on one line."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys

import pyarrow as pa
import pytest
from click.testing import CliRunner

import lance_sql
from lance_sql.cli.app import app
from lance_sql.display.tables import text_table


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    directory = tmp_path_factory.mktemp("cli")
    table = pa.table(
        {
            "id": [1, 2, 3],
            "label": ["a,b", None, 'say "hi"'],
            "value": [0.5, float("nan"), None],
            "tags": [["x"], [], None],
        }
    )
    lance_sql.write(table, directory / "things.lance")
    lance_sql.write(table.slice(0, 1), directory / "things.lance", mode="append")
    return directory


@pytest.fixture
def run(warehouse, monkeypatch):
    monkeypatch.chdir(warehouse)
    return lambda *arguments, **options: CliRunner().invoke(app, list(arguments), **options)


QUERY = "SELECT * FROM 'things.lance' ORDER BY id, label LIMIT 4"


def test_table(run):
    found = run("SELECT count(*) AS n, max(label) AS m FROM 'things.lance'")
    assert found.exit_code == 0
    lines = found.stdout.splitlines()
    assert [lines[0].split(), lines[2].split(), lines[3]] == [["n", "m"], ["4", "say", '"hi"'], "1 row"]


def test_rows_beyond_the_shown_are_counted(run):
    assert "4 rows, the first 2 shown" in run(QUERY, "--max-rows", "2").stdout


def test_each_column_in_a_line(run):
    shown = run("SELECT id, label FROM 'things.lance' ORDER BY ALL LIMIT 2", "--format", "line").stdout
    assert shown.splitlines() == [
        "── row 1 ──",
        "id     1",
        "label  a,b",
        "── row 2 ──",
        "id     1",
        "label  a,b",
        "2 rows",
    ]
    assert run("SELECT 1 AS a", "--format", "line", "--max-rows", "0").stdout == "1 row, the first 0 shown\n"


def test_json(run):
    rows = json.loads(run(QUERY, "--format", "json").stdout)
    assert [row["id"] for row in rows] == [1, 1, 2, 3]
    assert rows[2] == {"id": 2, "label": None, "value": "nan", "tags": []}
    assert json.loads(run("SELECT 1 WHERE false", "--format", "json").stdout) == []


def test_csv(run):
    rows = list(csv.reader(io.StringIO(run("--format", "csv", QUERY).stdout)))
    assert rows[0] == ["id", "label", "value", "tags"]
    assert rows[1] == ["1", "a,b", "0.5", '["x"]']
    assert rows[3] == ["2", "", "nan", "[]"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("-c", "SELECT count(*) AS n FROM 'things.lance'", "--format", "csv"),
        ("-csv", "SELECT count(*) AS n FROM 'things.lance'"),
    ],
)
def test_habits_of_other_shells(run, arguments):
    assert run(*arguments).stdout == "n\n4\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["count", "things.lance"], "SELECT count"),
        (["export", "things.lance", "x.parquet"], "Use lance-sql convert"),
        (["inspct", "things.lance"], "Did you mean 'inspect'"),
        (["nonsense", "things.lance"], "No such command 'nonsense'"),
    ],
)
def test_unknown_commands_name_the_one_that_was_meant(run, words, says):
    found = run(*words)
    assert found.exit_code == 2
    assert says in found.stderr


def test_arrow(run):
    table = pa.ipc.open_stream(run(QUERY, "--format", "arrow").stdout_bytes).read_all()
    assert table.column("id").to_pylist() == [1, 1, 2, 3]


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_engines_directory_and_standard_input(run, engine):
    found = run(
        "-", "-d", ".", "--engine", engine, "--format", "csv", input="SELECT sum(id) AS s FROM things"
    )
    assert found.stdout == "s\n7\n"


def test_explain(run):
    found = run("--explain", "SELECT id FROM 'things.lance' WHERE _rowid = 1")
    assert "Lance scan  things.lance  version 2, 4 rows, 2 fragments" in found.stdout
    assert "pushed" in found.stdout


def test_inspect(run):
    found = run("inspect", "things.lance")
    assert found.exit_code == 0
    assert "version 2, 4 rows" in found.stdout
    for part in ("fragments", "columns"):
        assert f"\n{part}\n" in found.stdout


def test_inspect_json(run):
    report = json.loads(run("inspect", "things.lance", "--json").stdout)
    assert (report["version"], report["rows"]) == (2, 4)
    assert len(report["versions"]) == len(report["fragments"]) == 2
    assert report["columns"]
    assert json.loads(run("inspect", "things.lance", "--at", "1", "--json").stdout)["rows"] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["SELECT * FROM 'nothing.lance'"], "nothing.lance"),
        (["SELECT nope FROM 'things.lance'"], "nope"),
        (["SELEC 1"], "SELEC"),
        (["inspect", "nothing.lance"], "nothing.lance"),
        (["inspect", "things.lance", "--at", "9"], "9"),
        (["-d", "nowhere", "FROM t"], "nowhere does not exist"),
        (["-d", "nowhere/below", "SELECT 1"], "nowhere/below"),
    ],
)
def test_errors_go_to_standard_error(run, arguments, message):
    found = run(*arguments)
    assert found.exit_code == 1
    assert found.stdout == ""
    assert found.stderr.startswith("error: ")
    assert message in found.stderr
    assert "Traceback" not in found.stderr


def test_debug_shows_the_exception(run):
    found = run("--debug", "SELECT * FROM 'nothing.lance'")
    assert found.exit_code == 1
    assert isinstance(found.exception, lance_sql.LanceError)


def test_wrong_usage(run):
    assert run("--format", "xml", "SELECT 1").exit_code == 2
    assert run("SELECT 1", "SELECT 2").exit_code == 2


def test_help_and_version(run):
    assert "inspect" in run("--help").stdout
    assert run("--version").stdout.startswith("lance-sql ")


def test_a_directory_and_a_statement(tmp_path, monkeypatch):
    """As in `duckdb FILE SQL`; the name of the directory resembles a command."""
    monkeypatch.chdir(tmp_path)
    lance_sql.write(pa.table({"id": [1, 2]}), tmp_path / "lake" / "t.lance")
    found = CliRunner().invoke(app, ["lake", "SELECT sum(id) AS n FROM t", "--json"])
    assert json.loads(found.stdout) == [{"n": 3}]
    assert "t.lance" in CliRunner().invoke(app, ["lake"]).stdout
    found = CliRunner().invoke(app, ["lake/t.lance", "-csv", "SELECT sum(id) AS n FROM t"])
    assert found.stdout == "n\n3\n"


def test_as_a_process(warehouse):
    def lance_sql_process(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "lance_sql.cli", *arguments]
        return subprocess.run(command, cwd=warehouse, capture_output=True, text=True)

    found = lance_sql_process("--format", "json", "SELECT count(*) AS n FROM 'things.lance'")
    assert (found.returncode, found.stderr) == (0, "")
    assert json.loads(found.stdout) == [{"n": 4}]
    found = lance_sql_process("SELECT * FROM 'nothing.lance'")
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("statement", "meant"),
    [
        ("SELECT * FROM 'thigs.lance'", "things.lance?"),
        ("SELECT * FROM thigs", "FROM 'things.lance'?"),
        ("SELECT t.labl FROM 'things.lance' t", "'label'?"),
        ("SELECT * FROM 'things.lance'.fragmets", "'fragments'?"),
        ("CALL restor('things.lance', 1)", "restore?"),
        ("inspct", "'inspect'?"),
    ],
)
def test_errors_name_what_is_probably_meant(run, statement, meant):
    found = run(statement)
    assert found.exit_code in (1, 2)
    assert re.search(f"Did you mean (/.*/)?{re.escape(meant)}", found.stderr)


def test_a_directory_of_datasets_is_told_as_such(run, warehouse):
    assert "It is a directory of datasets: things.lance" in run("inspect", str(warehouse)).stderr


def test_an_error_in_a_made_up_statement_shows_no_part_of_it(run):
    found = run("CREATE TABLE 'new.lance' (a frobnicator)")
    assert (found.exit_code, found.stderr.count("\n")) == (1, 1)
    assert run("UPDATE 'things.lance' SET").stderr == (
        "error: UPDATE SET needs at least one column. Write UPDATE t SET column = expression\n"
    )


def test_nested_values_are_shown_as_duckdb_does(run):
    found = run("SELECT {'a': [1, NULL]} s, MAP {'k': 1} m, INTERVAL '1 day 90 seconds' i, 'a\\x00'::BLOB b")
    shown = re.split(" {3,}", found.stdout.splitlines()[2])
    assert shown == ["{'a': [1, NULL]}", "{k=1}", "1 day 00:01:30", "a\\x00"]


def test_pipes_get_utf_8_in_any_locale(warehouse):
    command = [sys.executable, "-m", "lance_sql.cli", "SELECT chr(228) AS x"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    found = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert "ä" in found.stdout.decode("utf-8")


def test_a_narrow_terminal_leaves_columns_out_and_numbers_whole(monkeypatch):
    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "40")
    table = pa.table({f"column_{number}": [123456789012] for number in range(9)} | {"text": ["x" * 50]})
    lines = text_table(table, 5).splitlines()
    assert all(len(line) <= 40 for line in lines[:-1])
    assert lines[0].split() == ["column_0", "column_1", "…", "text"]
    assert lines[2].split()[0] == "123456789012"
    assert lines[-1] == "1 row, 10 columns, 3 shown"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_table_that_would_end_with_the_command_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lost = CliRunner().invoke(app, ["CREATE TABLE lost AS SELECT 1 AS a"])
    assert (lost.exit_code, lost.stdout) == (1, "")
    assert "lost is only in memory" in lost.stderr
    assert "--directory" in lost.stderr
    kept = CliRunner().invoke(app, ["-d", ".", "CREATE TABLE kept AS SELECT 1 AS a"])
    assert kept.exit_code == 0
    assert lance_sql.open("kept.lance").count_rows() == 1
