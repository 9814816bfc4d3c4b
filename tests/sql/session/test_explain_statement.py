"""``EXPLAIN SELECT ...`` shows the scans of datasets as well as the plan of the engine."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lance_sql

ROWS = 600_000


@pytest.fixture(scope="module")
def uri(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("explained") / "t.lance"
    table = pa.table({"id": range(ROWS), "price": [0.5] * ROWS, "text": ["abc"] * ROWS})
    lance_sql.write(table, path, max_rows_per_file=ROWS // 3)
    return str(path)


def rows_of(statement: str, engine: str) -> list[tuple[str, str]]:
    return [(str(title), str(text)) for title, text in lance_sql.sql(statement, engine=engine).fetchall()]


def test_explain_shows_the_scan(uri, engine):
    rows = rows_of(f"EXPLAIN SELECT max(price) FROM '{uri}' WHERE id < 5000", engine)
    assert rows[0][0] == {"duckdb": "physical_plan", "datafusion": "logical_plan"}[engine]
    ((_, scan),) = [row for row in rows if row[0] == "lance_scan"]
    lines = scan.splitlines()
    assert lines[0] == f"{uri}  version 1, 600,000 rows, 3 fragments, 3 files"
    assert lines[1].startswith("columns   price (1 of 3)")
    assert lines[2].startswith("pushed    ")
    assert "id" in lines[2]
    assert "5000" in lines[2]
    (left,) = [line for line in lines if line.startswith("left")]
    assert "1 of 3 fragments" in left
    zones = left.rpartition(", ")[2]  # "1 of 75 zones"
    assert int(zones.split()[0]) < int(zones.split()[2])
    assert not [row for row in rows if row[0] == "lance_read"]


def test_explain_analyze_shows_what_was_read(uri, engine):
    rows = rows_of(f"EXPLAIN ANALYZE SELECT max(price) FROM '{uri}' WHERE id < 5000", engine)
    ((_, read),) = [row for row in rows if row[0] == "lance_read"]
    lines = read.splitlines()
    assert "price" in lines[0]
    assert "id < 5000" in lines[0]
    assert lines[1].startswith("rows      5,000 out of ")
    assert lines[2].startswith("pruned    ")
    assert lines[3].startswith("bytes     ")
    assert [row[0] for row in rows].count("lance_scan") == 1


def test_explain_of_a_join_shows_both_scans(uri, engine):
    rows = rows_of(
        f"EXPLAIN WITH few AS (SELECT id FROM '{uri}' WHERE id < 5000) "
        f"SELECT count(*) FROM '{uri}' t JOIN few USING (id)",
        engine,
    )
    assert len([row for row in rows if row[0] == "lance_scan"]) == 2


def test_explain_takes_parameters(uri):
    with lance_sql.connect() as session:
        rows = session.sql(f"EXPLAIN SELECT price FROM '{uri}' WHERE id = ?", [7]).fetchall()
        assert "id = 7" in rows[-1][1].replace('"', "")
        rows = session.sql(f"EXPLAIN (FORMAT JSON) SELECT price FROM '{uri}'").fetchall()
        assert len(rows) == 1
        assert session.sql("EXPLAIN SELECT 1").fetchall()[0][0] == "physical_plan"
        with pytest.raises(lance_sql.LanceError, match="nothing"):
            session.sql(f"EXPLAIN SELECT nothing FROM '{uri}'")


def test_explain_says_what_metadata_answer(uri):
    rows = rows_of(f"EXPLAIN SELECT count(*) FROM '{uri}'", "duckdb")
    assert rows == [("physical_plan", "answered from metadata, without a scan: count(*)")]
