"""Texts that run again after a change answer as in plain DuckDB, whatever sessions keep of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import pyarrow as pa
import pytest
from lance_engine.errors import LanceError

import lance_sql
import lance_sql.datafusion
import lance_sql.duckdb

SETUP = [
    "CREATE TABLE t AS SELECT i AS x, 'n' || (i % 5) AS s, {'a': i % 7, 'b': 'f' || i % 3} AS st "
    "FROM range(3000) AS r(i)",
    "CREATE TABLE u AS SELECT i AS x, i * 2 AS y FROM range(0, 3000, 3) AS r(i)",
]
LONG = ", ".join(map(str, range(0, 3000, 4)))

#: one text for each way in which statements are answered, and for each that keeps something
QUERIES = [
    "SELECT count(*), min(x), max(x) FROM t",
    "SELECT count(*) FROM t WHERE x > 100",
    "SELECT sum(x) FROM t WHERE s LIKE '%3' OR x = 1",
    "SELECT s, count(*) FROM t GROUP BY s",
    "SELECT sum(y) FROM t JOIN u USING (x) WHERE y > 10",
    "SELECT t.s, count(*) FROM t JOIN u ON t.x = u.x GROUP BY t.s",
    f"SELECT sum(x) FROM t WHERE x IN ({LONG})",
    "SELECT st.a, count(*) FROM t GROUP BY st.a",
    "SELECT x FROM t ORDER BY x DESC LIMIT 3",
    "SELECT count(*) FROM (SELECT x FROM t LIMIT 5)",
    "SELECT * FROM u WHERE x < 9",
    "WITH c AS (SELECT x FROM t WHERE x < 50) SELECT count(*), sum(x) FROM c",
    "SELECT count(*) FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.x = u.x)",
    "SELECT max(x) FROM v",
    "SELECT count(*), sum(y) FROM named('n1')",
]
PREPARED = [
    ("every", "SELECT count(*), sum(x), max(s) FROM t", ""),
    ("few", "SELECT count(*), sum(x) FROM t WHERE x > $1 AND s <> $2", "(10, 'n2')"),
    ("joined", "SELECT sum(y) FROM t JOIN u USING (x)", ""),
    ("star", "SELECT * FROM u WHERE x < 9", ""),
    ("viewed", "SELECT max(x) FROM v", ""),
]
CHANGES = [
    "INSERT INTO t SELECT i, 'n1', {'a': 1, 'b': 'z'} FROM range(5000, 5010) AS r(i)",
    "INSERT INTO u VALUES (1, 1), (4, 4)",
    "DELETE FROM t WHERE x % 10 = 3",
    "DELETE FROM u WHERE x > 1500",
    "UPDATE t SET x = x + 1 WHERE x > 2500",
    "UPDATE t SET s = 'n3' WHERE x < 40",
    "ALTER TABLE u ADD COLUMN z INTEGER",
    "ALTER TABLE u DROP COLUMN z",
    "ALTER TABLE u RENAME COLUMN y TO w",
    "ALTER TABLE u RENAME COLUMN w TO y",
    "DROP TABLE u",
    "CREATE OR REPLACE TABLE u AS SELECT i AS x, i * 3 AS y FROM range(0, 900, 2) AS r(i)",
    "CREATE OR REPLACE TABLE u AS SELECT i::DOUBLE AS x, i * 3 AS y FROM range(0, 900, 2) AS r(i)",
    "TRUNCATE u",
    "CREATE OR REPLACE VIEW v AS SELECT x + 1 AS x FROM t",
    "CREATE OR REPLACE VIEW v AS SELECT x FROM u",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "others",
]


def outcome(run: Callable[[], Any]) -> Any:
    try:
        return tuple(sorted(map(repr, run())))
    except (LanceError, duckdb.Error):
        return "error"


def add_as_others(directory: Path, plain: duckdb.DuckDBPyConnection) -> None:
    """Another writer adds rows to u, if its columns are the usual ones."""
    text = "SELECT x, y FROM u LIMIT 0"
    if outcome(lambda: plain.cursor().sql(f"USE l; {text}").fetchall()) != "error":
        rows = lance_sql.open(directory / "u.lance").scan().to_table().slice(0, 2)
        if rows.schema.names == ["x", "y"] and rows.num_rows == 2:
            added = pa.table({"x": [3, 9], "y": [3, 9]}).cast(rows.schema)
            lance_sql.write(added, directory / "u.lance", mode="append")
            other = plain.cursor()
            other.execute("INSERT INTO l.u VALUES (3, 3), (9, 9)")


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_as_in_plain_duckdb(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    plain = duckdb.connect()
    plain.execute("ATTACH ':memory:' AS l")
    plain.execute("USE l")
    with lance_sql.connect(tmp_path) as session:
        for text in [*SETUP, "CREATE VIEW v AS SELECT x FROM t"]:
            plain.execute(text)
            session.sql(text)
        macro = "CREATE MACRO named(n) AS TABLE SELECT * FROM t JOIN u USING (x) WHERE s = n"
        texts = list(QUERIES)
        for text in [macro, *(f"PREPARE {name} AS {query}" for name, query, _ in PREPARED)]:
            plain.execute(text)
            session.sql(text)
        texts += [f"EXECUTE {name}{values}" for name, _, values in PREPARED]
        changes: list[str] = []
        for _ in range(12):
            for text in texts:
                ours = outcome(lambda text=text: session.sql(text).fetchall())
                expected = outcome(lambda text=text: plain.execute(text).fetchall())
                assert ours == expected, (changes, text)
                if ours == "error" and session.in_transaction:  # plain DuckDB refuses all that follows
                    session.sql("ROLLBACK")
                    plain.execute("ROLLBACK")
            in_transaction = session.in_transaction
            usable = [
                change
                for change in CHANGES
                if in_transaction
                == (change in ("COMMIT", "ROLLBACK"))
                | (in_transaction and change.startswith(("INSERT", "DELETE", "UPDATE")))
            ]
            change = chosen.choice(usable)
            changes.append(change)
            if change == "others":
                add_as_others(tmp_path, plain)
            else:
                done = {
                    outcome(lambda run=run, text=change: run(text) and ())
                    for run in (session.sql, plain.execute)
                }
                assert len(done) == 1, changes


def test_statements_that_are_prepared_on_own_connections(tmp_path: Path) -> None:
    lance_sql.write(pa.table({"x": [1, 2, 3]}), tmp_path / "t.lance")
    own = duckdb.connect()
    lance_sql.duckdb.install(own, tmp_path)
    own.execute("PREPARE p AS SELECT sum(x) FROM t WHERE x > $1")
    assert own.execute("EXECUTE p(1)").fetchall() == [(5,)]
    lance_sql.write(pa.table({"x": [4]}), tmp_path / "t.lance", mode="append")
    assert own.execute("EXECUTE p(1)").fetchall() == [(9,)]
    assert own.execute("EXPLAIN EXECUTE p(1)").fetchall()
    own.execute("DEALLOCATE p")
    with pytest.raises(duckdb.Error, match="does not exist"):
        own.execute("EXECUTE p(1)")


def test_statements_that_are_prepared_in_own_contexts(tmp_path: Path) -> None:
    lance_sql.write(pa.table({"x": [1, 2, 3]}), tmp_path / "t.lance")
    own = datafusion.SessionContext()
    lance_sql.datafusion.install(own, tmp_path)
    own.sql("PREPARE p AS SELECT sum(x) AS s FROM t WHERE x > $1")
    assert own.sql("EXECUTE p(1)").to_pydict() == {"s": [5]}
    lance_sql.write(pa.table({"x": [4]}), tmp_path / "t.lance", mode="append")
    assert own.sql("EXECUTE p(1)").to_pydict() == {"s": [9]}


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_searches_that_are_prepared_after_install(tmp_path: Path, engine: str) -> None:
    def rows(*numbers: int) -> pa.Table:
        return pa.table(
            {"x": numbers, "v": pa.array([[float(n)] * 2 for n in numbers], pa.list_(pa.float32(), 2))}
        )

    def found(text: str) -> list[int]:
        if isinstance(own, datafusion.SessionContext):
            return own.sql(text).to_pydict()["x"]
        return [x for (x,) in own.execute(text).fetchall()]

    lance_sql.write(rows(1, 2, 9), tmp_path / "t.lance")
    own = duckdb.connect() if engine == "duckdb" else datafusion.SessionContext()
    (lance_sql.duckdb if engine == "duckdb" else lance_sql.datafusion).install(own, tmp_path)
    run = own.execute if engine == "duckdb" else own.sql
    run("PREPARE p AS SELECT x FROM lance_vector_search('t', 'v', $1, k := 2) ORDER BY x")
    assert found("EXECUTE p([8.0, 8.0])") == [2, 9]
    lance_sql.write(rows(7), tmp_path / "t.lance", mode="append")
    assert found("EXECUTE p([8.0, 8.0])") == [7, 9]
    assert found("EXECUTE p([1.0, 1.0])") == [1, 2]
    lance_sql.open(tmp_path / "t.lance").delete("x = 7")
    assert found("EXECUTE p([8.0, 8.0])") == [2, 9]
    run("DEALLOCATE p")
    with pytest.raises(Exception, match="p"):
        run("EXECUTE p([1.0, 1.0])")


@pytest.mark.parametrize("name", ["p", "P", '"p"', '"P q"'])
def test_prepared_statements_see_each_version(tmp_path: Path, engine: str, name: str) -> None:
    lance_sql.write(pa.table({"x": [1, 2, 3]}), tmp_path / "t.lance")
    with lance_sql.connect(tmp_path, engine=engine) as session:
        session.sql(f"PREPARE {name} AS SELECT sum(x) FROM t WHERE x > $1")
        assert session.sql(f"EXECUTE {name}(1)").fetchall() == [(5,)]
        session.sql("INSERT INTO t VALUES (10)")
        assert session.sql(f"EXECUTE {name}(1)").fetchall() == [(15,)]
        session.sql("DROP TABLE t")
        for _ in range(2):
            with pytest.raises(LanceError, match="not found"):
                session.sql(f"EXECUTE {name}(1)")
        session.sql("CREATE TABLE t AS SELECT 7 AS x")
        assert session.sql(f"EXECUTE {name}(1)").fetchall() == [(7,)]
        session.sql("BEGIN")
        session.sql("UPDATE t SET x = 8")
        assert session.sql(f"EXECUTE {name}(1)").fetchall() == [(8,)]
        session.sql("ROLLBACK")
        assert session.sql(f"EXECUTE {name}(1)").fetchall() == [(7,)]
        session.sql(f"DEALLOCATE {name}")
        with pytest.raises(LanceError, match="does not exist"):
            session.sql(f"EXECUTE {name}(1)")
