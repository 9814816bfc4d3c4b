"""Fields of structs are read alone: what statements read that use a part of a struct, and that they answer
as those do that read all of it.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import lance_sql
from lance_sql.session import struct_parts
from lance_sql.text.tokens import tokenize
from lance_sql.text.used_fields import field_path, used_fields

ROWS = 20_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    number = np.random.default_rng(5)
    small = number.integers(0, 50, ROWS)
    inner = pa.StructArray.from_arrays(
        [pa.array(number.integers(0, 9, ROWS)), pa.array([f"inner {n}" for n in small])],
        ["x", "Y"],
        mask=pa.array(number.random(ROWS) < 0.1),
    )
    fields = [
        pa.array(np.arange(ROWS)),
        pa.array(small, mask=number.random(ROWS) < 0.1),
        pa.array([f"a rather long text, number {n}" for n in number.integers(0, 10**6, ROWS)]),
        inner,
        pa.array([[int(n), int(n) + 1] for n in small]),
    ]
    st = pa.StructArray.from_arrays(
        fields, ["sorted", "a", "c", "inner", "list"], mask=pa.array(number.random(ROWS) < 0.1)
    )
    return pa.table({"id": np.arange(ROWS), "a": small[::-1].copy(), "st": st})


@pytest.fixture(scope="module")
def directory(table, tmp_path_factory) -> Path:
    place: Path = tmp_path_factory.mktemp("nested")
    lance_sql.write(table, place / "t.lance", max_rows_per_file=8_000)
    return place


@pytest.fixture(scope="module")
def oracle(table) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("t", table)
    return connection


def read_of(session: lance_sql.Connection, statement: str) -> tuple[list[Any], list[dict[str, Any]]]:
    """The rows of a statement, and what its scans read."""
    result = session.sql(statement)
    rows = [tuple(row.values()) for row in result.arrow().to_pylist()]
    metrics = result.metrics
    assert metrics is not None
    return rows, metrics["scans"]


#: Statements, and the fields that they need of the struct at most.
STATEMENTS = {
    "SELECT sum(st.a) FROM t": {"st.a"},
    "SELECT count(*) FROM t WHERE st.a = 5": {"st.a"},
    "SELECT st.a, st.inner.x FROM t WHERE st.sorted < 100 ORDER BY st.sorted": {
        "st.a",
        "st.inner.x",
        "st.sorted",
    },
    "SELECT st.a AS v, count(*) AS n FROM t GROUP BY st.a ORDER BY n DESC, v LIMIT 5": {"st.a"},
    "SELECT x.st.a FROM t AS x WHERE x.st.sorted BETWEEN 10 AND 20 ORDER BY x.id": {"st.a", "st.sorted"},
    "SELECT count(*) FROM t x JOIN t y ON x.id = y.st.sorted WHERE x.st.a = 3": {"st.a", "st.sorted"},
    "WITH part AS (SELECT st.a AS v, id FROM t) SELECT max(v), count(v) FROM part WHERE id > 7": {"st.a"},
    "SELECT count(*) FROM t WHERE st.inner IS NULL": {"st.inner.x", "st.inner.Y"},
    "SELECT count(*) FROM t WHERE st['a'] = 5 OR st.a IS NULL": {"st.a"},
    "SELECT max(st.a * 2) AS m FROM t UNION ALL SELECT min(st.sorted) FROM t ORDER BY m": {
        "st.a",
        "st.sorted",
    },
    "SELECT extract(year FROM DATE '2024-01-01') AS y, min(st.a) FROM t GROUP BY y": {"st.a"},
}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_only_used_fields_are_read(engine, statement, directory, oracle, monkeypatch):
    monkeypatch.setattr(struct_parts, "_LEAST_BYTES", 0)
    with lance_sql.connect(directory, engine=engine) as session:
        rows, scans = read_of(session, statement)
        read = {column for scan in scans for column in scan["columns"] if column.startswith("st")}
        assert scans
        assert read <= STATEMENTS[statement]
        assert {scan["table"] for scan in scans} == {"t"}
        assert session.table_names() == ["t"]
        monkeypatch.setattr(struct_parts, "_LEAST_BYTES", 1 << 60)
        whole, scans_of_all = read_of(session, statement)
    assert rows == whole
    if engine == "duckdb":
        assert rows == oracle.execute(statement).fetchall()
    saved = sum(scan["bytes_read"] for scan in scans_of_all) - sum(scan["bytes_read"] for scan in scans)
    assert saved > 0 or scans_of_all[0]["columns"] == scans[0]["columns"]


#: What uses more of the struct than it names.
WHOLE = (
    "SELECT * FROM t WHERE st.a = 5 ORDER BY id LIMIT 3",
    "SELECT st, st.a FROM t ORDER BY id LIMIT 3",
    "SELECT t.*, st.a FROM t ORDER BY id LIMIT 3",
    "SELECT st.*, st.a FROM t ORDER BY id LIMIT 3",
    "SELECT t, st.a FROM t ORDER BY id LIMIT 3",
    "SELECT x AS y, st.a FROM t x ORDER BY id LIMIT 3",
    "FROM t WHERE st.a = 5 ORDER BY id LIMIT 3",
    "SELECT st.a, s2 FROM t, (SELECT st AS s2, id AS i2 FROM t) WHERE id = i2 ORDER BY id LIMIT 3",
    "SELECT st.a, #3 FROM t ORDER BY id LIMIT 3",
    "SELECT st.a, COLUMNS('s.*') FROM t ORDER BY id LIMIT 3",
    "SELECT count(*) FROM t NATURAL JOIN (SELECT id, st FROM t WHERE st.a = 5)",
    "SELECT st.a, c3 FROM t, (SELECT c1, c3 FROM t AS y(c1, c2, c3)) WHERE c1 = id ORDER BY id LIMIT 3",
    "SELECT DISTINCT ON (st.a) * FROM t ORDER BY st.a, id LIMIT 3",
    "SELECT v.st, t.st.a FROM v JOIN t USING (id) ORDER BY id LIMIT 3",
    "SELECT v.st.c, t.st.a FROM v JOIN t USING (id) ORDER BY id LIMIT 3",
    "WITH t AS (SELECT st, id FROM v) SELECT t.st.a FROM t ORDER BY id LIMIT 3",
    "SELECT count(DISTINCT t), max(st.a) FROM t",
    "SELECT to_json(st), st.a FROM t ORDER BY id LIMIT 3",
    "SELECT st.nothing FROM t",
    "SELECT list(st.a ORDER BY st)[1], max(st.sorted) FROM t WHERE st.sorted < 30",
    "SELECT sum(n), min(k) FROM (PIVOT t ON a IN (3) USING count(*) AS n GROUP BY st) u(k, n)",
)


@pytest.mark.parametrize("statement", WHOLE)
def test_structs_used_whole_are_whole(statement, directory, oracle, monkeypatch):
    monkeypatch.setattr(struct_parts, "_LEAST_BYTES", 0)
    view = "CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM t"
    oracle.execute(view)
    with lance_sql.connect(directory) as session:
        session.sql(view)
        try:
            expected = oracle.sql(statement).to_arrow_table()
        except duckdb.Error:
            with pytest.raises(lance_sql.LanceError):
                session.sql(statement).arrow()
        else:
            assert session.sql(statement).arrow().to_pylist() == expected.to_pylist()


def test_random_statements_answer_alike(engine, directory, oracle, monkeypatch):
    number = random.Random(11)
    values = ("st.a", "st.sorted", "st.inner.x", "x.st.a", 'st.inner."Y"', "a", "id", "st.c")
    conditions = (
        "st.a = 7", "st.inner.x IS NULL", "st.sorted > 500", "x.st.a IS NOT NULL", "st.c LIKE '%99%'",
        "st.inner IS NOT NULL", "a < 5", "NOT (st.a < 30)", "st.a IN (1, 2, 3)", "st IS NULL",
    )  # fmt: skip
    with lance_sql.connect(directory, engine=engine) as session:
        for _ in range(25):
            chosen = number.sample(values, 2)
            tested = number.choice((" AND ", " OR ")).join(number.sample(conditions, number.randint(1, 3)))
            statement = number.choice(
                (
                    f"SELECT count(*) AS n, min({chosen[0]}) AS low, max({chosen[1]}) AS high "
                    f"FROM t x WHERE {tested}",
                    f"SELECT {chosen[0]} AS v, count(*) AS n FROM t x WHERE {tested} "
                    "GROUP BY 1 ORDER BY 2, 1 LIMIT 9",
                    f"SELECT id, {chosen[1]} AS v FROM t AS x WHERE {tested} ORDER BY id LIMIT 9 OFFSET 3",
                    f"WITH q AS (SELECT id, {chosen[0]} AS v, {chosen[1]} AS w FROM t x WHERE {tested}) "
                    "SELECT count(v), count(w), count(*) FROM q WHERE id % 3 = 1",
                )
            )
            answers = []
            for least in (0, 1 << 60):
                monkeypatch.setattr(struct_parts, "_LEAST_BYTES", least)
                answers.append(session.sql(statement).arrow().to_pylist())
            assert answers[0] == answers[1], statement
            if engine == "duckdb":
                assert answers[0] == oracle.sql(statement).to_arrow_table().to_pylist(), statement


def test_a_result_keeps_its_table(directory, monkeypatch):
    """Results that were planned are run later, after other statements."""
    monkeypatch.setattr(struct_parts, "_LEAST_BYTES", 0)
    with lance_sql.connect(directory) as session:
        fields = ("a", "sorted", "c", "inner.x", "list", 'inner."Y"')
        planned = [
            session.sql(f"SELECT count(st.{first}), count(st.{second}) FROM t")
            for first in fields
            for second in fields
        ]
        counts = {result.fetchall()[0] for result in planned}
        assert len(counts) > 1
        assert len(session.known_to_engine()) > 20
        del planned
        session.sql("SELECT count(st.a), count(st.c), count(st.list) FROM t").fetchall()
        assert len(session.known_to_engine()) < 12


def test_an_older_statement_sees_newer_versions(directory, table, tmp_path, monkeypatch):
    monkeypatch.setattr(struct_parts, "_LEAST_BYTES", 0)
    lance_sql.write(table.slice(0, 100), tmp_path / "t.lance")
    with lance_sql.connect(tmp_path) as session:
        assert session.sql("SELECT count(st.sorted) + count(*) FROM t").fetchone()[0] < 200
        before = session.sql("SELECT count(st.sorted) AS n FROM t").fetchone()[0]
        session.sql("DELETE FROM t WHERE st.sorted < 50")
        assert session.sql("SELECT min(st.sorted) FROM t").fetchone()[0] == 50
        assert session.sql("SELECT count(st.sorted) AS n FROM t").fetchone()[0] < before
        session.sql(
            "UPDATE t SET st = {'sorted': 3, 'a': 4, 'c': 'x', 'inner': NULL, 'list': NULL} WHERE id = 60"
        )
        assert session.sql("SELECT st.a FROM t WHERE st.sorted = 3").fetchall() == [(4,)]


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_scans_of_parts_take_the_keys_of_a_join(engine, tmp_path):
    made = np.random.default_rng(3)
    prices = made.integers(0, 100, 400_000)
    parts = made.integers(0, 4000, 400_000)
    st = pa.StructArray.from_arrays([prices, ["a note of a sale"] * 400_000], ["price", "note"])
    lance_sql.write(pa.table({"id": range(4000), "kind": np.arange(4000) % 50}), tmp_path / "parts.lance")
    lance_sql.write(pa.table({"part": parts, "st": st}), tmp_path / "sales.lance")
    text = "SELECT count(*) AS n, sum(st.price) AS s FROM sales JOIN parts ON part = id WHERE kind = 7"
    with lance_sql.connect(tmp_path, engine=engine) as session:
        rows, scans = read_of(session, text)
        (scan,) = [scan for scan in scans if scan["table"] == "sales"]
        matching = prices[parts % 50 == 7]
        assert rows == [(len(matching), int(matching.sum()))]
        assert (scan["columns"], scan["rows_out"]) == (["part", "st.price"], rows[0][0])
        assert "lance_keys" in session.sql(f"EXPLAIN {text}").arrow().column(0).to_pylist()


def test_statements_that_change_something_run_once(directory, monkeypatch):
    monkeypatch.setattr(struct_parts, "_LEAST_BYTES", 0)
    with lance_sql.connect(directory) as session:
        session.sql("CREATE TEMP TABLE kept AS SELECT 1 AS k")
        text = "WITH c AS (SELECT max(st.a) AS m FROM t) UPDATE kept SET k = k + 1 FROM c WHERE m > 0"
        session.sql(text)
        session.explain(text)
        session.explain("INSERT INTO kept SELECT st.a FROM t")
        assert session.sql("SELECT k FROM kept").fetchall() == [(2,)]


def used(text: str) -> dict[str, frozenset[tuple[str, ...]]] | None:
    found = used_fields(tokenize(text), {"t"}, {"st": field_path})
    return None if found is None else found.paths


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("SELECT st.a FROM t", {("a",)}),
        ('SELECT "st"."A b", t.st[\'c\'].d FROM t', {("A b",), ("c", "d")}),
        ("SELECT st.a.upper() FROM t", {("a",)}),
        ("SELECT 2 * st.a, count(*) FROM t", {("a",)}),
        ("SELECT a IS DISTINCT FROM st.b FROM t", {("b",)}),
        ("SELECT trim(both FROM st.b) FROM t ORDER BY st.a DESC", {("a",), ("b",)}),
    ],
)
def test_fields_that_a_text_uses(text, paths):
    assert used(text) == {"st": frozenset(paths)}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM t",
        "SELECT st FROM t",
        "SELECT st.a, (st).b FROM t",
        "SELECT st.a, st[1] FROM t",
        "SELECT st.a, st.b() FROM t",
        "SELECT st.a, * FROM t",
        "SELECT st.a, max(*) FROM t",
        "SELECT st.a FROM t UNION SELECT b FROM (FROM t)",
        "SELECT st.a, t FROM t",
        "SELECT st.a FROM t JOIN t AS y USING (st)",
        "SELECT st.a FROM t AS x(st)",
        "SELECT st.a FROM (SUMMARIZE t)",
        "SELECT st.a FROM (DESC t)",
        "EXPLAIN SELECT st.a FROM t",
    ],
)
def test_texts_that_may_use_all(text):
    assert not used(text)


def test_structs_that_macros_use_as_well_are_whole(directory, monkeypatch):
    monkeypatch.setattr(struct_parts, "_LEAST_BYTES", 0)
    with lance_sql.connect(directory) as session:
        session.sql("CREATE MACRO above(x) AS x + (SELECT count(*) FROM t)")
        rows, scans = read_of(session, "SELECT max(above(st.a)) AS m FROM t")
        assert rows == [(49 + ROWS,)]
        assert ["st"] in [scan["columns"] for scan in scans]
