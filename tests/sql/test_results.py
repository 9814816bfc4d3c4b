"""Query results and explanations."""

from __future__ import annotations

import pyarrow as pa

import lance_sql


def test_shapes_of_a_result(connection):
    result = connection.sql("SELECT id, label FROM measurements WHERE id < 3 ORDER BY id")
    assert result.columns == ["id", "label"]
    assert result.arrow().column("id").to_pylist() == [0, 1, 2]
    assert list(result.df()["label"])[:2] == ["apple", "Banana"]
    assert result.fetchone() == (0, "apple")
    assert result.fetchall() == [(1, "Banana"), (2, None)]
    assert result.fetchone() is None
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
    assert "<td>o&#x27;hara</td>" in result._repr_html_()
    long = connection.sql("SELECT id FROM measurements")
    long.show(max_rows=5)
    assert "12 rows, the first 5 shown" in capsys.readouterr().out


def test_empty_results(connection):
    assert connection.sql("").fetchall() == []
    assert connection.sql("SELECT id FROM measurements WHERE id < 0").fetchone() is None


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
    assert "<pre>" in explanation._repr_html_()


def test_explanation_tells_residual_filters(connection):
    result = connection.sql("SELECT id FROM measurements WHERE label LIKE '%an%'")
    (scan,) = result.explain().scans
    assert scan.pushed == ()
    assert "label" in " ".join(scan.residual)


def test_explanation_of_a_join(connection):
    explanation = connection.explain(
        "SELECT name FROM customers c JOIN orders o ON c.customer = o.customer WHERE o.total > $1", [5.0]
    )
    assert sorted(scan.name for scan in explanation.scans) == ["customers", "orders"]
