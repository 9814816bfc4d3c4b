"""The shell in a terminal, used through pexpect as a user would type."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys

import pexpect
import pyarrow as pa
import pytest

import lance_sql
from lance_sql.shell.loop import Shell, is_complete
from lance_sql.text.script import statements

UP = "\x1b[A"

# A terminal is a forked process, which pylance warns of if other tests imported it.
pytestmark = pytest.mark.filterwarnings("ignore:lance is not fork-safe")


@pytest.fixture
def warehouse(tmp_path):
    table = pa.table({"id": range(2000), "price": [row / 4 for row in range(2000)]})
    lance_sql.write(table, tmp_path / "sales.lance")
    return tmp_path


@pytest.fixture
def shell(warehouse):
    child = pexpect.spawn(
        sys.executable,
        ["-m", "lance_sql.cli", "shell", "-d", ".", "--history", "history"],
        cwd=str(warehouse),
        encoding="utf-8",
        timeout=30,
        dimensions=(40, 120),
        env={**os.environ, "TERM": "xterm", "PAGER": "cat", "PROMPT_TOOLKIT_NO_CPR": "1"},
        # Tests that run in the background ignore Ctrl-C; a shell at a terminal does not.
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    child.expect("lance>")
    yield child
    child.close(force=True)


def test_a_session(shell, warehouse):
    shell.send("SELECT count(*)\r")  # no semicolon yet: another line
    shell.send("AS answer FROM sales;\r")
    shell.expect("2000")
    shell.expect(r"\d\.\d{3} s")
    shell.send("SELECT pri\tFROM sales WHERE id = 8;")  # Tab: too early, no table is named yet
    shell.send("\x15\x0b")
    shell.send("\\d sales\r")
    shell.expect("price")
    shell.expect("version 1, 2,000 rows")
    shell.send("\\timing off\r")
    shell.expect("timing is off")
    shell.send("SELECT nothing_like FROM sales;\r")
    shell.expect('"nothing_like" not found')
    shell.send("DELETE FROM sal\t")  # Tab completes the table
    shell.send(" WHERE id < 1000;\r")
    shell.expect("1000")
    shell.send("\\dt\r")
    shell.expect(r"sales +1000 +1 +2")
    shell.send("\\engine datafusion\r")
    shell.expect("engine is now datafusion")
    shell.send("\\nonsense\r")
    shell.expect("Unknown command")
    shell.send(UP + UP + "\r")  # history
    shell.expect("engine is now datafusion")
    shell.send("\\?\r")
    shell.expect("list tables with rows")
    shell.send(".tables\r")
    shell.expect("sales")
    shell.send("SELEC 1\r")  # an error at once, without a semicolon
    shell.expect("error:")
    shell.send("EXPLAIN SELECT id FROM sales;\r")
    shell.expect("physical plan\r\n")
    shell.send(".nonsense\r")
    shell.expect("Unknown command")
    shell.send(".schema sales\r")  # of another shell
    shell.expect("price")
    shell.send(".headers on\r")
    shell.expect("names in the first line")
    shell.send("SELEC 1;\r")
    shell.expect(r"Did you mean SELECT\?")
    shell.send("\\d sale\r")
    shell.expect("Did you mean sales")
    shell.send("\\timing maybe\r")
    shell.expect("timing on or off")
    shell.send("SELECT 'first' AS a; SELECT 'second' AS b;\r")
    shell.expect("first.*first")  # as typed, and as a result
    shell.expect("second")
    shell.send("HELP;\r")
    shell.expect("also exit, quit and Ctrl-D")
    shell.send("exit\r")
    shell.expect(pexpect.EOF)
    shell.close()
    assert shell.exitstatus == 0
    assert lance_sql.open(warehouse / "sales.lance").count_rows() == 1000
    assert "DELETE FROM sales WHERE id < 1000;" in (warehouse / "history").read_text()


def test_a_script_with_commands_of_a_shell(warehouse):
    (warehouse / "more.sql").write_text("SELECT 'from a file' AS place;\n")
    script = ".timer off\n.open .\n.schema sales\nSELECT count(*)\n  AS rows FROM sales;\n.read more.sql\n"
    command = [sys.executable, "-m", "lance_sql.cli", "shell", "--history", "history"]
    done = subprocess.run(command, input=script, cwd=warehouse, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    first = [line.split()[0] for line in done.stdout.splitlines()]
    assert [word for word in first if word in ("price", "2000", "from")] == ["price", "2000", "from"]
    script = "\\nonsense\nSELECT 1;"
    failed = subprocess.run(command, input=script, cwd=warehouse, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert "Unknown command" in failed.stderr
    assert "1 row" in failed.stdout


@pytest.fixture
def run_script(warehouse, monkeypatch, capsys):
    """Runs a script in a shell, and returns the lines of its output and of its errors."""
    monkeypatch.chdir(warehouse)

    def run(script, directory=None):
        shell = Shell(
            lambda engine, place: lance_sql.connect(place), "duckdb", directory, max_rows=9, history="h"
        )
        shell.timing = False
        shell.run_script("\n".join(line.strip() for line in script.splitlines()))
        shell.write_to(None)
        shell.connection.close()
        done = capsys.readouterr()
        return [line.strip() for line in done.out.splitlines()], done.err.splitlines()

    return run


def test_how_and_where_rows_are_shown(warehouse, run_script):
    shown, errors = run_script(
        r"""
        .mode csv
        SELECT id, price FROM 'sales.lance' WHERE id = 3;
        \x
        SELECT id, price FROM 'sales.lance' WHERE id = 4;
        .mode box
        .once 'first file.csv'
        SELECT id FROM 'sales.lance' LIMIT 2;
        .output both.ndjson
        SELECT 5 AS five;
        SELECT 6 AS six;
        .output
        SELECT 7 AS seven;
        .import 'first file.csv' 'new.lance'
        .import 'first file.csv' new.lance
        \d new.lance
        CREATE VIEW seen AS SELECT count(*) AS rows FROM 'new.lance';
        FROM seen;
        .mode parquet
        .mode jsn
        \o rows.parquet
        """
    )
    assert shown[:3] == ["id,price", "3,0.75", "rows are shown as lines"]
    assert shown[3:6] == ["── row 1 ──", "id     4", "price  1.0"]
    assert not {"five", "5"} & set(shown)
    assert (warehouse / "first file.csv").read_text().splitlines() == ["id", "0", "1"]
    assert (warehouse / "both.ndjson").read_text().splitlines() == ['{"five": 5}', '{"six": 6}']
    assert shown[shown.index("seven") + 2] == "7"
    assert shown[shown.index("rows") + 2] == "4"
    assert any(line.endswith("new.lance, version 2, 4 rows") for line in shown)
    assert [line.partition(".")[0] for line in errors] == [
        "error: parquet is not text",
        "error: Unknown mode 'jsn'",
        "error: parquet is not text",
    ]
    assert "Did you mean json?" in errors[1]
    assert not (warehouse / "rows.parquet").exists()


def test_a_table_in_memory_is_named(run_script):
    _, errors = run_script(
        "CREATE TABLE t AS SELECT 1; CREATE TEMP TABLE u AS SELECT 1; CREATE TABLE 'v.lance' AS SELECT 1;"
    )
    assert len(errors) == 1
    assert errors[0].startswith("The table t is only in memory. To keep it")
    assert run_script("CREATE TABLE t AS SELECT 1;", "new")[1] == []


def test_ctrl_c_stops_the_statement_and_keeps_the_shell(shell):
    shell.send("SELECT sum(a.id * b.id + c.id) FROM sales a, sales b, sales c, sales d;\r")
    # What is typed while the editor of the line is about to end does not reach the statement: again, then.
    for _ in range(20):
        if shell.expect(["stopped", pexpect.TIMEOUT], timeout=1.5) == 0:
            break
        shell.sendintr()
    else:
        pytest.fail("the statement goes on")
    shell.send("SELECT 'still ' || 'here';\r")
    shell.expect("still here")
    shell.send("half a statem")
    shell.sendintr()  # drops what was typed
    shell.send("SELECT 40 + 2;\r")
    shell.expect("1 row")
    for _ in range(20):  # the next line may not be read yet
        shell.expect("lance>")
        shell.sendeof()
        if shell.expect([pexpect.EOF, pexpect.TIMEOUT], timeout=1.5) == 0:
            break
        shell.send("\r")
    else:
        pytest.fail("the shell goes on")


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT ';", False),
        ("SELECT 1; -- done", True),
        ("SELECT 1 -- ;", False),
        ("SELEC 1", True),  # an error at once
        ("help me", True),
        ("(SELECT 1)", False),
        ("-- a comment", False),
        ("FROM t", False),
        ("\\d", True),
        ("exit", True),
        (" quit ", True),
        ("help;", True),
        (".tables", True),
        ("exit FROM t", True),
        ("", False),
    ],
)
def test_when_a_statement_is_complete(text, complete):
    assert is_complete(text) is complete


def test_what_tab_offers(warehouse, monkeypatch):
    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from lance_sql.shell.completion import SqlCompleter

    monkeypatch.chdir(warehouse)
    completer = SqlCompleter(
        lambda: ["sales"],
        lambda table: ["price"] if table == "sales" else [],
        ["\\dt"],
        lambda: ["array_distance"],
    )

    def offered(text: str, cursor: int | None = None) -> list[str]:
        document = Document(text, len(text) if cursor is None else cursor)
        return [found.text for found in completer.get_completions(document, CompleteEvent())]

    assert offered("SELECT * FROM s") == ["sales"]
    assert offered("SELECT pr FROM sales", 9) == ["price", "pragma", "prepare"]
    assert offered("sel") == ["select"]
    assert offered("SEL") == ["SELECT"]
    assert offered("\\d") == ["\\dt"]
    assert offered("SELECT * FROM 'sal") == ["sales.lance"]
    assert offered("\\d s") == ["sales"]
    assert offered("SELECT s. FROM sales AS s", 9) == ["price"]
    assert offered("SELECT t.p FROM 'x.lance' t", 10) == []
    assert offered("SELECT sum(price) AS total FROM sales ORDER BY tot") == ["total"]
    assert offered("SELECT arr") == ["array_distance("]
    assert offered("SELECT sums.pr FROM sales sums WHERE 1", 14) == ["price"]


def test_tab_quotes_names_of_others(tmp_path, monkeypatch):
    """Enter runs the line: a name must not become a statement."""
    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from lance_sql.text.statement import Statement

    monkeypatch.chdir(tmp_path)
    hostile = 'x FROM t; DROP TABLE "victim"; --'
    lance_sql.write(pa.table({hostile: [1], "x y": [1]}), "t.lance")
    lance_sql.write(pa.table({"a": [1]}), f"{hostile}.lance")
    lance_sql.write(pa.table({"a": [1]}), "y'; DROP TABLE victim; --.lance")
    monkeypatch.setattr("lance_sql.shell.loop.PromptSession", lambda **options: options)
    lines = [
        "SELECT x",
        'SELECT "x',
        "SELECT * FROM ",
        "SELECT * FROM x",
        "SELECT * FROM 'y",
        "DROP TABLE 'y",
    ]
    texts = []
    for directory in (".", None):
        shell = Shell(
            lambda engine, place: lance_sql.connect(place), "duckdb", directory, max_rows=1, history="h"
        )
        for line in lines:
            text = f"{line} FROM t" if line.endswith("x") and "*" not in line else line
            for found in shell._session["completer"].get_completions(
                Document(text, len(line)), CompleteEvent()
            ):
                made = line[: len(line) + found.start_position] + found.text
                texts.append(made + ("'" if line.count("'") % 2 else ""))
        shell.connection.close()
    assert len(texts) > 8
    for text in texts:
        assert len(statements(text)) == 1, text
        assert not any(token.upper == "VICTIM" for token in Statement(text).tokens), text
    assert 'SELECT "x FROM t; DROP TABLE ""victim""; --"' in texts


def test_statements_on_standard_input_run_without_prompts(warehouse):
    done = subprocess.run(
        [sys.executable, "-m", "lance_sql.cli", "shell", "."],
        input="SELECT count(*) AS answer FROM sales;\nSELECT 'second' AS b; -- the end\n",
        cwd=warehouse,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "2000" in done.stdout
    assert "second" in done.stdout
    assert "lance>" not in done.stdout


def test_an_error_on_standard_input_is_the_exit_code(warehouse):
    done = subprocess.run(
        [sys.executable, "-m", "lance_sql.cli", "shell"],
        input="SELEC 1;",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "SELEC" in done.stderr
