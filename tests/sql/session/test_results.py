"""Query results and explanations."""

from __future__ import annotations

import gc
import itertools
import signal
import subprocess
import sys
import weakref

import datafusion
import numpy as np
import pyarrow as pa
import pytest
from engine_versions import needs_duckdb_2

import lance_sql


def test_shapes_of_a_result(connection):
    result = connection.sql("SELECT id, label FROM measurements WHERE id < 3 ORDER BY id")
    assert result.columns == ["id", "label"]
    assert result.arrow().column("id").to_pylist() == [0, 1, 2]
    assert list(result.df()["label"])[:2] == ["apple", "Banana"]
    assert result.fetchone() == (0, "apple")
    assert result.fetchmany(5) == [(1, "Banana"), (2, None)]
    assert result.fetchone() is None
    assert result.fetchmany() == result.fetchall() == []
    assert result.pl()["label"].to_list() == ["apple", "Banana", None]
    assert result.types[0] == pa.int64()
    assert pa.table(result).num_rows == 3


def test_streaming(connection):
    result = connection.sql("SELECT id FROM measurements")
    batches = list(result)
    assert sum(batch.num_rows for batch in batches) == 12
    assert all(isinstance(batch, pa.RecordBatch) for batch in batches)
    assert sum(batch.num_rows for batch in result) == 12, "iterating again runs the statement again"


def test_another_statement_while_streaming(connection):
    stream = iter(connection.sql("SELECT id FROM measurements ORDER BY id"))
    first = next(stream)
    assert connection.sql("SELECT count(*) FROM orders").fetchall() == [(6,)]
    assert first.num_rows + sum(batch.num_rows for batch in stream) == 12


def test_a_result_outlives_its_connection(warehouse, engine):
    result = lance_sql.sql(f"SELECT sum(id) FROM '{warehouse}/measurements.lance'", engine=engine)
    assert result.fetchall() == [(66,)]


def test_display(connection, capsys):
    result = connection.sql("SELECT label, id FROM measurements WHERE id IN (2, 7) ORDER BY id")
    result.show()
    shown = capsys.readouterr().out
    assert "o'hara" in shown
    assert "NULL" in shown
    assert "2 rows" in shown
    assert repr(result) == shown.rstrip("\n")
    assert '<td style="text-align: left">o&#x27;hara</td>' in result._repr_html_()
    long = connection.sql("SELECT id FROM measurements")
    long.show(max_rows=5)
    assert "12 rows, the first 5 shown" in capsys.readouterr().out


def test_empty_results(connection):
    assert connection.sql("SELECT id FROM measurements WHERE id < 0").fetchone() is None


@needs_duckdb_2
def test_explanation_names_the_scan(connection):
    explanation = connection.explain("SELECT label FROM measurements WHERE _rowid < 100 AND label LIKE 'a%'")
    (scan,) = explanation.scans
    assert scan.name == "measurements"
    assert "label" in scan.columns
    assert "amount" not in scan.columns
    assert any("_rowid" in predicate for predicate in scan.pushed)
    text = str(explanation)
    assert "Lance scan  measurements  version 1, 12 rows, 3 fragments" in text
    assert f"Plan of {connection.engine}" in text
    assert "<pre" in explanation._repr_html_()


@needs_duckdb_2
def test_explanation_tells_residual_filters(connection):
    result = connection.sql("SELECT id FROM measurements WHERE label LIKE '%an%'")
    (scan,) = result.explain().scans
    assert scan.pushed == ()
    assert "label" in " ".join(scan.residual)


@needs_duckdb_2
def test_explanation_of_a_join(connection):
    explanation = connection.explain(
        "SELECT name FROM customers c JOIN orders o ON c.customer = o.customer WHERE o.total > $1", [5.0]
    )
    assert sorted(scan.name for scan in explanation.scans) == ["customers", "orders"]


def test_notebook_display_has_types_and_cuts_long_values(connection):
    html = connection.sql("SELECT id, repeat('ab', 600) AS long FROM measurements WHERE id = 0")._repr_html_()
    assert "<small>int64</small>" in html
    assert "ab…</td>" in html or "aba…</td>" in html
    assert len(html) < 2500
    assert "text-align: right" in html


def test_metrics(connection):
    result = connection.sql("SELECT label FROM measurements WHERE _rowid >= 0 AND id > 2")
    assert result.metrics is None
    result.arrow()
    assert result.metrics["rows_read"] == 12
    assert result.metrics["seconds"] > 0
    (scan,) = result.metrics["scans"]
    assert scan["table"] == "measurements"
    assert scan["rows_out"] >= 9
    assert "_rowid" in scan["filter"]
    assert scan["fragments"] == 3
    streamed = connection.sql("SELECT id FROM measurements")
    assert sum(batch.num_rows for batch in streamed) == 12
    assert streamed.metrics["rows_read"] == 12


def test_an_analysed_plan_tells_what_was_read(connection):
    text = "SELECT name, total FROM customers c JOIN orders o ON c.customer = o.customer WHERE o.total > ?"
    explanation = connection.sql(text, [6.0]).explain(analyze=False)
    assert explanation.runs == ()
    explanation = connection.explain(text, [6.0], analyze=True)
    assert {run["table"] for run in explanation.runs} == {"customers", "orders"}
    shown = str(explanation)
    assert "Lance read  orders" in shown
    assert "out of 6 decoded, of 6" in shown
    assert "bytes " in shown
    assert str(connection.sql(text, [6.0]).explain(analyze=True)).count("Lance read") == 2


@needs_duckdb_2
def test_cardinalities_of_a_join_are_true(warehouse):
    """What DuckDB plans with are the live rows, not the one row that it takes other Arrow objects for."""
    with lance_sql.connect(warehouse) as connection:
        plan = connection.explain(
            "SELECT count(*) FROM orders o JOIN customers c ON o.customer = c.customer "
            "JOIN measurements m ON m.id = o.order_id"
        ).plan
    for rows in (6, 4, 12):
        assert f"~{rows} rows" in plan


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    path = tmp_path_factory.mktemp("numbers") / "n.lance"
    lance_sql.write(pa.table({"x": np.arange(400_000)}), path, max_rows_per_file=100_000)
    return path


def test_progress(numbers, engine):
    events = []
    slow = f"SELECT count(DISTINCT md5(CAST(x AS VARCHAR))) FROM '{numbers}'"
    with lance_sql.connect(engine=engine) as connection:
        result = connection.sql(slow, progress=events.append)
        assert result.fetchall() == [(400_000,)]
    assert [event.stage for event in events] == ["query"] * len(events)
    assert events[0].rows == 0
    assert events[-1].rows == events[-1].total_rows == 400_000
    assert all(before.rows <= after.rows for before, after in itertools.pairwise(events))


#: compares every pair of rows: minutes of work
ENDLESS = """SELECT count(*) FROM '{path}' a JOIN '{path}' b ON a.x * 7 > b.x + a.x
JOIN '{path}' c ON b.x * 3 > c.x + 1"""


def test_a_callback_that_raises_ends_the_statement(numbers):
    def stop(event):
        if event.elapsed > 0.2:
            raise RuntimeError("enough")

    with lance_sql.connect() as connection:
        with pytest.raises(RuntimeError, match="enough"):
            connection.sql(ENDLESS.format(path=numbers), progress=stop).arrow()
        assert connection.sql(f"SELECT count(*) FROM '{numbers}'").fetchall() == [(400_000,)]


INTERRUPTED = """
import os, signal, sys, threading
import lance_sql

connection = lance_sql.connect(engine=sys.argv[1])
count = f"SELECT count(*) FROM '{sys.argv[2]}'"
connection.sql(count).arrow()
threading.Timer(1, os.kill, [os.getpid(), signal.SIGINT]).start()
try:
    connection.sql(sys.argv[3]).arrow()
except KeyboardInterrupt:
    print(connection.sql(count).fetchall())
"""


@pytest.mark.sampled(1)
def test_the_user_interrupts(numbers, engine):
    arguments = [engine, str(numbers), ENDLESS.format(path=numbers)]
    found = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *arguments], capture_output=True, text=True, timeout=60
    )
    assert found.stdout == "[(400000,)]\n"
    if engine == "datafusion" and datafusion.__version__.startswith("53."):
        # Its threads panic if they call Python when the interpreter has ended.
        assert found.returncode in (0, -signal.SIGABRT)
        return
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.sampled(1)
def test_sessions_that_are_not_closed_are_freed(numbers, engine):
    session = lance_sql.connect(engine=engine)
    session.sql(f"SELECT count(*) FROM '{numbers}' WHERE x > 5").arrow()
    known = weakref.ref(session._session._engine)
    del session
    gc.collect()
    assert known() is None


def test_conventional_names(connection):
    result = connection.sql("SELECT id, label FROM measurements WHERE id < 3 ORDER BY id")
    assert result.to_pandas().equals(result.df())
    assert result.fetchdf().equals(result.df())
    assert result.to_polars().equals(result.pl())
    assert result.pl(lazy=True).collect().equals(result.pl())


def test_columns_as_numpy_arrays(connection):
    found = connection.sql(
        "SELECT 1 AS a, CAST(NULL AS INT) AS b, 'x' AS c, NULL = 1 AS d "
        "UNION ALL SELECT 2, 3, NULL, TRUE ORDER BY a"
    ).fetchnumpy()
    assert list(found) == ["a", "b", "c", "d"]
    assert found["a"].tolist() == [1, 2]
    assert not np.ma.isMaskedArray(found["a"])
    assert found["b"].tolist() == [None, 3]
    assert found["b"].dtype.kind == "i"
    assert found["c"].tolist() == ["x", None]
    assert found["d"].tolist() == [None, True]
    assert found["d"].dtype == bool


def test_a_result_of_a_closed_session_has_an_error_of_ours(tmp_path):
    lance_sql.write({"id": [1, 2]}, tmp_path / "t.lance")
    with lance_sql.connect(tmp_path) as con:
        unread, read = con.sql("SELECT id FROM t"), con.sql("SELECT id + 1 FROM t")
        assert read.fetchone() == (2,)
    assert read.fetchall() == [(3,)]
    for look in (unread.fetchall, unread.arrow, unread.reader, unread.df, lambda: list(unread)):
        with pytest.raises(lance_sql.LanceError, match="The connection was closed before the rows were read"):
            look()
