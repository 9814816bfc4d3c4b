"""Plans, scanners and errors as people see them: in a terminal, in Python and in notebooks."""

from __future__ import annotations

import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import lance_sql


@pytest.fixture
def uri(tmp_path):
    lance_sql.write(pa.table({"id": range(1000), "price": [0.5] * 1000}), tmp_path / "sales.lance")
    return str(tmp_path / "sales.lance")


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize("prefix", ["EXPLAIN", "EXPLAIN ANALYZE"])
def test_explain_shows_a_plan(uri, engine, prefix, capsys):
    result = lance_sql.sql(f"{prefix} SELECT sum(price) FROM '{uri}' WHERE id > 3", engine=engine)
    lines = repr(result).splitlines()
    assert len(lines) > 3
    assert "\\n" not in repr(result)
    assert "1 row" not in lines
    assert result.arrow().num_columns == 2  # the rows are those of the engine
    result.show()
    assert capsys.readouterr().out == repr(result) + "\n"
    assert result._repr_html_().startswith('<pre style="font-family: ui-monospace')
    assert "white-space: pre" in result._repr_html_()


def test_a_table_with_such_names_is_a_table(uri):
    text = repr(lance_sql.sql("SELECT 1 AS plan_type, 2 AS plan"))
    assert text.splitlines()[-1] == "1 row"


def test_plans_in_notebooks_have_a_font(uri):
    explained = lance_sql.sql(f"FROM '{uri}'").explain()
    scanned = lance_sql.open(uri).scan(filter="id > 3").explain()
    for plan in (explained, scanned):
        assert plan._repr_html_().startswith('<pre style="font-family: ui-monospace')
        assert repr(plan) == str(plan)
    assert scanned.splitlines()[2] == "  filter: id > 3"


def test_a_scanner_says_what_it_scans(uri):
    scanner = lance_sql.open(uri).scan(["price"], filter="id > 3", limit=1000, offset=2)
    shown = f"<Scanner of {uri} version 1: columns price, filter: id > 3, limit 1,000, offset 2>"
    assert repr(scanner) == shown


def test_errors_in_notebooks_show_the_lines_of_the_user(uri, monkeypatch):
    shell = InteractiveShell()
    with capture_output() as captured:
        shell.run_cell(
            "import lance_sql\ndef read(path):\n    return lance_sql.open(path)\n\nread('no.lance')"
        )
    shown = captured.stdout + captured.stderr
    assert "return lance_sql.open(path)" in shown
    assert "read('no.lance')" in shown
    assert "DatasetNotFoundError: " in shown
    assert "lance_engine" not in shown
    monkeypatch.setenv("LANCE_SQL_DEBUG", "1")
    with capture_output() as captured:
        shell.run_cell("lance_sql.open('no.lance')")
    assert "lance_engine" in captured.stdout + captured.stderr
