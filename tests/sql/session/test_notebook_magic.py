"""What notebooks use: the magic, progress in a cell, and the cancelling of operations by ``progress=``."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest
from IPython.core.formatters import DisplayFormatter
from lance_engine.progress import ProgressEvent

import lance_sql
from lance_sql.notebook import Magic, load_ipython_extension
from lance_sql.progress import NotebookProgress, TerminalProgress, bar, described


class Notebook:
    """The part of IPython's shell that an extension uses."""

    def __init__(self) -> None:
        self.user_ns: dict[str, object] = {}
        self.magics: dict[str, object] = {}
        self.display_formatter = DisplayFormatter()

    def register_magic_function(self, function, magic_kind, magic_name):
        assert magic_kind == "line_cell"
        self.magics[magic_name] = function


@pytest.fixture
def things(tmp_path):
    return lance_sql.write(pa.table({"id": range(1000)}), tmp_path / "things.lance", max_rows_per_file=100)


def test_the_magic_runs_cells_and_keeps_results(things, tmp_path, capsys):
    notebook = Notebook()
    load_ipython_extension(notebook)
    magic = notebook.magics["lance_sql"]
    result = magic(f"-d '{tmp_path}' --out found", "SELECT count(*) AS n FROM things;")
    assert result.fetchall() == [(1000,)]
    assert notebook.user_ns["found"] is result
    assert "<table" in result._repr_html_()
    magic("", "CREATE TEMP TABLE kept AS SELECT 7 AS x")
    assert magic("SELECT x FROM kept").fetchall() == [(7,)]  # the same session, as a line
    options = f"-d '{tmp_path}' -e datafusion --progress"
    assert magic(options, "SELECT max(id) AS m FROM things").fetchall() == [(999,)]
    with pytest.raises(lance_sql.LanceError, match="'things' not found"):
        magic("", "FROM things")  # the directory was that of another cell
    notebook.user_ns |= {"things": pa.table({"id": [3, 4]}), "least": 3}
    assert magic("", "SELECT count(*) FROM things WHERE id > $least").fetchall() == [(1,)]
    assert magic(f"-d '{tmp_path}'", "SELECT count(*) FROM things").fetchall() == [(1000,)]
    with pytest.raises(lance_sql.LanceError, match="most is not one"):
        magic("", "SELECT count(*) FROM things WHERE id > $most")
    with pytest.raises(lance_sql.LanceError, match="--nonsense"):
        magic("--nonsense", "SELECT 1")
    with pytest.raises(lance_sql.LanceError, match="'1x' is not the name of a variable"):
        magic("--out 1x", "SELECT 1")
    with pytest.raises(lance_sql.LanceError):
        magic("", "SELECT nothing FROM things")


def test_the_magic_in_ipython(things, tmp_path):
    testing = pytest.importorskip("IPython.testing.globalipapp", reason="pip install ipython has the magic")
    shell = testing.start_ipython()
    shell.run_line_magic("load_ext", "lance_sql.notebook")
    result = shell.run_cell_magic("lance_sql", f"-d {tmp_path}", "SELECT min(id) FROM things")
    assert result.fetchall() == [(0,)]
    text, _ = shell.display_formatter.format(things.head(2))
    assert text["text/plain"] == str(lance_sql.sql("SELECT * FROM things LIMIT 2"))
    html = shell.display_formatter.formatters["text/html"].lookup(things.head(2))
    assert "<table" in html(things.head(2))


def test_datasets_plans_and_results_show_themselves(things):
    assert "things.lance" in things._repr_html_()
    with lance_sql.connect() as connection:
        plan = connection.explain(f"SELECT id FROM '{things.uri}' WHERE id > 5")
        assert plan._repr_html_().startswith("<pre ")


EVENT = ProgressEvent("write", 250, 1000, 2_000_000, 3, 1.0)


def test_progress_in_words():
    assert described(EVENT) == "250 of 1,000 rows, 2.0 MB, 3 files, 1.0 s, 3.0 s left"
    assert described(ProgressEvent("scan", 5, None, 0, 0, 0.0)) == "5 rows, 0.0 s"


def test_progress_on_a_terminal():
    stream = io.StringIO()
    shown = TerminalProgress(stream)
    shown(EVENT)
    shown(ProgressEvent("x", 1, None, 0, 0, 0.0))
    shown.close()
    lines = stream.getvalue().split("\r")
    assert lines[1].startswith("write [########......................] 250 of 1,000 rows")
    assert lines[2].rstrip() == "x 1 rows, 0.0 s"
    assert not lines[-2].strip()


def test_progress_in_a_cell():
    displayed = []

    class Handle:
        def update(self, shown):
            displayed.append(shown._repr_html_())

    def display(shown, display_id):
        assert display_id
        displayed.append(shown._repr_html_())
        return Handle()

    shown = NotebookProgress(display)
    shown(EVENT)
    shown(ProgressEvent("<b>", 1, None, 0, 0, 0.0))
    assert 'value="0.2500"' in displayed[0]
    assert "&lt;b&gt;" in displayed[1]
    assert "value" not in displayed[1]


def test_there_is_no_bar_where_nobody_looks():
    with bar() as progress:
        assert progress is None
    with bar(True) as progress:
        assert isinstance(progress, TerminalProgress)


@pytest.mark.parametrize(
    "operation",
    [
        lambda ds, progress: ds.compact(progress=progress),
        lambda ds, progress: ds.update({"id": "id + 1"}, progress=progress),
        lambda ds, progress: ds.add_columns({"twice": "id * 2"}, progress=progress),
        lambda ds, progress: ds.create_index("id", progress=progress),
        lambda ds, progress: ds.replace_columns({"id": "id + 1"}, progress=progress),
        lambda ds, progress: ds.delete("id = 1", progress=progress),
        lambda ds, progress: ds.delete(row_ids=[0], progress=progress),
        lambda ds, progress: ds.merge(ds, on="id").when_matched_update_all().execute(progress=progress),
        lambda ds, progress: ds.alter_column("id", type=pa.float64(), progress=progress),
    ],
    ids=[
        "compact",
        "update",
        "add_columns",
        "create_index",
        "replace_columns",
        "delete",
        "delete row ids",
        "merge",
        "alter_column",
    ],
)
def test_a_cancelled_operation_leaves_no_version(things, tmp_path, operation):
    class CancelledError(Exception):
        pass

    def cancel(event):
        raise CancelledError

    def files():
        return sorted(path for path in (tmp_path / "things.lance").rglob("*") if path.is_file())

    before = files()
    with pytest.raises(CancelledError):
        operation(things, cancel)
    assert files() == before
    assert lance_sql.open(things.uri).version == 1
    assert operation(things, None).version > 1


def test_magic_without_a_notebook(things):
    assert Magic({}).cell("SELECT 1 AS one").fetchall() == [(1,)]


@pytest.mark.parametrize("statement", ["SELECT nothing FROM t", "SELECT 1 FROM nowhere", "SELEC 1"])
def test_errors_show_the_frames_of_the_user_only(statement):
    with lance_sql.connect() as connection:
        connection.sql("CREATE TABLE t (a INTEGER)")
        with pytest.raises(lance_sql.LanceError) as caught:
            connection.sql(statement)
    shown = caught.value._render_traceback_()
    assert [line.split('"')[1] for line in shown if line.startswith("  File")] == [__file__]
