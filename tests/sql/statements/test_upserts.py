"""INSERT ... ON CONFLICT, OR REPLACE and OR IGNORE do what they do in plain DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from lance_engine.errors import (
    CommitConflictError,
    ConstraintError,
    LanceError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)

import lance_sql

TABLES = """
    CREATE TABLE r (k INTEGER PRIMARY KEY, v INTEGER, w INTEGER DEFAULT 7);
    CREATE TABLE m (a INTEGER UNIQUE, b INTEGER UNIQUE);
    CREATE TABLE p (a INTEGER, b VARCHAR, v INTEGER, UNIQUE (a, b));
    CREATE TABLE z (a INTEGER);
    CREATE TABLE y (
        k VARCHAR PRIMARY KEY, u UUID UNIQUE, h HUGEINT, d DECIMAL(10, 2), l INTEGER[],
        s STRUCT(a INTEGER, b VARCHAR), e ENUM ('x', 'y'), t TIMESTAMPTZ, j JSON
    )
"""
UUID = "00000000-0000-0000-0000-00000000000"
#: Statements, run in this order; what DuckDB refuses must be refused.
STATEMENTS: list[str | tuple[str, list[Any]]] = [
    "INSERT OR REPLACE INTO r VALUES (1, 1, 1), (1, 2, 1)",
    "INSERT OR REPLACE INTO r VALUES (1, 3, 1), (1, 4, 1)",
    "INSERT INTO r VALUES (1, 5, 1), (1, 6, 1) ON CONFLICT DO UPDATE SET v = excluded.v WHERE excluded.v = 6",
    "INSERT INTO r VALUES (1, 6, 1), (1, 7, 1), (2, 7, 1), (2, 8, 1) "
    "ON CONFLICT DO UPDATE SET v = excluded.v + r.v RETURNING *",
    "INSERT INTO r SELECT n % 10, n, 0 FROM (SELECT unnest(range(0, 5000)) AS n) "
    "ON CONFLICT DO UPDATE SET v = excluded.v",
    ("INSERT INTO r VALUES (1, 6, 1) ON CONFLICT DO UPDATE SET v = $1", [7]),
    ("INSERT INTO r VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET v = ?, w = ? WHERE r.v > ?", [1, 2, 3, 4, 0]),
    "INSERT INTO r AS x VALUES (1, 6, 1) ON CONFLICT DO UPDATE SET v = x.v + 1 RETURNING x.v",
    "INSERT INTO r AS x VALUES (1, 6, 1) ON CONFLICT DO UPDATE SET v = v + w + excluded.v WHERE v < w + 90",
    "INSERT INTO r VALUES (1, 6, 1) ON CONFLICT (k) DO UPDATE SET k = 50 RETURNING v",
    "INSERT INTO r VALUES (3, 6, 1) ON CONFLICT (k) DO UPDATE SET k = 50 RETURNING v",
    "INSERT OR REPLACE INTO r (k, w) VALUES (50, 8) RETURNING *",
    "INSERT OR REPLACE INTO r (k) VALUES (50), (70) RETURNING *",
    "INSERT OR REPLACE INTO r BY NAME SELECT 50 AS k, 9 AS w RETURNING *",
    "INSERT OR IGNORE INTO r VALUES (50, 1, 1), (51, 1, 1), (51, 2, 2) RETURNING *",
    "INSERT INTO r VALUES (1, 6, 1) ON CONFLICT (k) DO UPDATE SET missing = 3",
    "INSERT INTO r VALUES (1, 6, 1) ON CONFLICT (missing) DO NOTHING",
    "INSERT INTO r VALUES (1, 6, 1) ON CONFLICT (v) DO NOTHING",
    "INSERT INTO r VALUES (NULL, 6, 1) ON CONFLICT DO NOTHING",
    "INSERT INTO r DEFAULT VALUES ON CONFLICT DO NOTHING",
    "INSERT INTO r VALUES (1, 2, 3) ON CONFLICT (K) DO UPDATE SET V = excluded.W RETURNING *",
    "INSERT INTO r VALUES (1, 2, 3) ON CONFLICT (k) DO UPDATE SET v = 1, v = 2",
    "INSERT INTO r VALUES (1, 2, 3) ON CONFLICT (k) DO UPDATE SET (v, w) = (excluded.v + 1, excluded.w + 1)",
    "INSERT INTO r VALUES (1, 2, 3) ON CONFLICT (k) WHERE k > 1 DO NOTHING",
    "INSERT INTO r BY NAME SELECT 1 AS k, 77 AS v ON CONFLICT (k) DO UPDATE SET v = excluded.v RETURNING *",
    "INSERT INTO r (VALUES (60, 1, 1), (1, 1, 1)) ON CONFLICT DO NOTHING RETURNING k",
    "INSERT INTO r (VALUES (61, 1, 1))",
    "INSERT INTO r (k, v) (VALUES (62, 1))",
    "WITH q AS (SELECT 1 AS k, 2 AS v, 3 AS w) INSERT INTO r SELECT * FROM q "
    "ON CONFLICT DO UPDATE SET v = excluded.v + 100 RETURNING *",
    "INSERT INTO r SELECT k, v, w FROM r ON CONFLICT DO UPDATE SET v = r.v + excluded.v",
    # Of several new rows that conflict by several keys, DuckDB takes any.
    "INSERT INTO m VALUES (1, 1), (2, 2) ON CONFLICT DO NOTHING RETURNING *",
    "INSERT INTO m VALUES (5, 5), (6, 6), (2, 8), (8, 1) ON CONFLICT DO NOTHING RETURNING *",
    "INSERT INTO m VALUES (1, 7) ON CONFLICT (b) DO NOTHING",
    "INSERT INTO m VALUES (9, 6) ON CONFLICT (b) DO UPDATE SET a = excluded.a RETURNING *",
    "INSERT INTO m VALUES (NULL, NULL), (NULL, NULL) ON CONFLICT DO NOTHING RETURNING *",
    "INSERT OR REPLACE INTO m VALUES (1, 1)",
    "INSERT INTO p VALUES (1, 'a', 1), (1, 'b', 1), (1, NULL, 1), (1, NULL, 1), (1, 'a', 2) "
    "ON CONFLICT DO NOTHING",
    "INSERT INTO p VALUES (1, 'a', 5), (2, 'a', 5), (1, NULL, 5) "
    "ON CONFLICT (b, a) DO UPDATE SET v = excluded.v RETURNING *",
    "INSERT OR REPLACE INTO p VALUES (1, 'b', 9), (3, 'c', 9)",
    "INSERT INTO p VALUES (1, 'b', 9) ON CONFLICT (a) DO NOTHING",
    "INSERT INTO z VALUES (1) ON CONFLICT DO NOTHING",
    "INSERT OR REPLACE INTO z VALUES (1)",
    f"INSERT INTO y VALUES ('a', '{UUID}1', 1::HUGEINT << 100, 1.5, [1], {{'a': 1, 'b': 'z'}}, 'x', "
    "'2020-01-01 00:00:00+00', '{\"a\":1}')",
    f"INSERT INTO y SELECT unnest(['a', 'b']), unnest(['{UUID}2', '{UUID}3'])::UUID, 2::HUGEINT << 100, 2.5, "
    "[2], {'a': 2, 'b': 'z'}, 'y', '2021-01-01 00:00:00+00', '[1]' "
    "ON CONFLICT (k) DO UPDATE SET u = excluded.u, "
    "h = excluded.h + y.h, d = excluded.d, l = excluded.l || y.l, s = excluded.s, e = excluded.e, "
    "t = excluded.t, j = excluded.j RETURNING k, u, h, d, l, s, e::VARCHAR, j::VARCHAR",
    f"INSERT INTO y (k, u) VALUES ('c', '{UUID}3') ON CONFLICT (u) DO UPDATE SET k = excluded.k RETURNING h",
    f"INSERT INTO y (k, u) VALUES ('c', '{UUID}9') ON CONFLICT (u) DO UPDATE SET k = excluded.k",
    "BEGIN",
    "INSERT INTO r VALUES (1, 1, 1), (900, 1, 1) ON CONFLICT DO UPDATE SET v = -5",
    "INSERT INTO r VALUES (900, 2, 2) ON CONFLICT DO UPDATE SET v = r.v + excluded.v",
    "COMMIT",
]


class Both:
    """The same tables as datasets and in plain DuckDB."""

    def __init__(self, folder: Path, engine: str) -> None:
        self.tables = "rmpzy"
        self.ours, self.plain = lance_sql.connect(folder, engine=engine), duckdb.connect()
        for session in (self.ours, self.plain):
            for statement in TABLES.split(";"):
                session.execute(statement)

    def run(self, statement: str, params: list[Any]) -> None:
        try:
            wanted = sorted(map(repr, self.plain.execute(statement, params).fetchall()))
        except duckdb.Error as error:
            violated = (ConstraintError, SchemaMismatchError)
            with pytest.raises(violated if isinstance(error, duckdb.ConstraintException) else LanceError):
                self.ours.execute(statement, params or None)
        else:
            assert sorted(map(repr, self.ours.execute(statement, params or None).fetchall())) == wanted
        for table in self.tables:
            columns = "* REPLACE (CAST(e AS VARCHAR) AS e, CAST(t AS VARCHAR) AS t)" if table == "y" else "*"
            rows = [
                sorted(map(repr, session.execute(f"SELECT {columns} FROM {table}").fetchall()))
                for session in (self.ours, self.plain)
            ]
            assert rows[0] == rows[1], statement


@pytest.fixture(params=["duckdb", "datafusion"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Both]:
    made = Both(tmp_path, request.param)
    yield made
    made.ours.close()
    made.plain.close()


@pytest.mark.sampled(1)
def test_as_in_duckdb(both: Both) -> None:
    if both.ours.engine == "datafusion":  # it does not read all of these types
        both.tables = "rmpz"
    for statement in STATEMENTS:
        text, params = statement if isinstance(statement, tuple) else (statement, [])
        if " y " not in text or "y" in both.tables:
            both.run(text, params)


def _random_statement(random: Random) -> str:
    table = random.choice("rrmp")
    kinds = {"r": "iii", "m": "ii", "p": "isi"}[table]
    names = {"r": "kvw", "m": "ab", "p": "abv"}[table]

    def value(kind: str) -> str:
        if random.random() < 0.1:
            return "NULL"
        return str(random.randrange(12)) if kind == "i" else repr(random.choice("abc"))

    count = 1 if table == "m" else random.choice([1, 1, 2, 3, 8])
    rows = ", ".join(f"({', '.join(value(kind) for kind in kinds)})" for _ in range(count))
    first = random.choice(["INSERT", "INSERT", "INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE"])
    text = f"{first} INTO {table} VALUES {rows}"
    if first == "INSERT" and random.random() < 0.9:
        target = random.choice(
            {"r": ["", "(k)"], "m": ["", "(a)", "(b)"], "p": ["", "(a, b)", "(b, a)"]}[table]
        )
        column = names[-1]
        sums = [f"excluded.{column}", f"{table}.{column} + 1", f"{column} + excluded.{column}"]
        action = random.choice(["DO NOTHING", f"DO UPDATE SET {column} = {random.choice(sums)}"])
        text += f" ON CONFLICT {target} {action}"
        tests = [f"excluded.{column} > 4", f"{table}.{column} < 6", f"{column} <> 3"]
        if "UPDATE" in action and random.random() < 0.4:
            text += f" WHERE {random.choice(tests)}"
    return text + random.choice(["", " RETURNING *"])


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_random_statements(tmp_path: Path, seed: int) -> None:
    random, both = Random(seed), Both(tmp_path, "duckdb")
    for number in range(25 if seed == 1 else 2000):
        if number % 20 == 0:
            for table in "rmp":
                for session in (both.ours, both.plain):
                    session.execute(f"DELETE FROM {table}")
        both.run(_random_statement(random), [])


#: for each type of a key, two values; the second is written in another way where the type has one
KEYS = {
    "BOOLEAN": ("true", "false"),
    "TINYINT": ("1", "-1"),
    "UBIGINT": ("18446744073709551615", "0"),
    "HUGEINT": ("170141183460469231731687303715884105727", "-1"),
    "UHUGEINT": ("340282366920938463463374607431768211455", "1"),
    "BIGNUM": ("123456789012345678901234567890123456789012345", "-1"),
    "FLOAT": ("0.0", "1.5"),
    "DOUBLE": ("'nan'", "'inf'"),
    "DECIMAL(38, 5)": ("1.5", "1.50001"),
    "VARCHAR": ("'a'", "'A'"),
    "BLOB": ("'\\x41'", "''"),
    "BIT": ("'10101'", "'010101'"),
    "UUID": ("'00000000-0000-0000-0000-00000000000a'", "'00000000-0000-0000-0000-00000000000b'"),
    "DATE": ("'2020-01-01'", "'12020-01-01'"),
    "TIME": ("'10:00:00'", "'10:00:00.000001'"),
    "TIMETZ": ("'10:00:00+02'", "'10:00:00+03'"),
    "TIMESTAMP": ("'2020-01-01'", "'2020-01-01 00:00:00.000001'"),
    "TIMESTAMP_S": ("'2020-01-01'", "'2020-01-01 00:00:01'"),
    "TIMESTAMP_MS": ("'2020-01-01'", "'2020-01-01 00:00:00.001'"),
    "TIMESTAMP_NS": ("'2020-01-01'", "'2020-01-01 00:00:00.000000001'"),
    "TIMESTAMPTZ": ("'2020-01-01 00:00:00+00'", "'2020-01-01 00:00:00+01'"),
    "JSON": ("""'{"a":1}'""", """'{"a":2}'"""),
    "mood": ("'sad'", "'ok'"),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", KEYS)
def test_every_type_of_a_key(tmp_path: Path, kind: str) -> None:
    first, second = KEYS[kind]
    both = Both(tmp_path, "duckdb")
    both.run("CREATE TYPE mood AS ENUM ('sad', 'ok')", [])
    both.run(f"CREATE TABLE k (id {kind} PRIMARY KEY, v INT)", [])
    both.run(f"INSERT INTO k VALUES ({first}, 1)", [])
    for statement in (
        f"INSERT INTO k VALUES ({first}, 2)",
        f"INSERT INTO k VALUES ({second}, 3), ({second}, 4)",
        f"INSERT INTO k VALUES ({first}, 5) ON CONFLICT DO UPDATE SET v = excluded.v",
        f"INSERT INTO k VALUES ({second}, 6), ({first}, 7) ON CONFLICT DO NOTHING",
        f"INSERT OR REPLACE INTO k VALUES ({second}, 8)",
        f"MERGE INTO k USING (SELECT CAST({second} AS {kind}) AS id) s ON s.id = k.id "
        "WHEN MATCHED THEN UPDATE SET v = 9 WHEN NOT MATCHED THEN INSERT VALUES (s.id, 10)",
        f"UPDATE k SET id = {first}",
    ):
        both.run(statement, [])
        rows = [
            session.execute("SELECT v FROM k ORDER BY v").fetchall() for session in (both.ours, both.plain)
        ]
        assert rows[0] == rows[1], statement


def test_named_keys(tmp_path: Path) -> None:
    with lance_sql.connect(tmp_path) as session:
        session.execute("CREATE TABLE t (a INT, b INT, v INT, CONSTRAINT pair UNIQUE (a, b))")
        session.execute("INSERT INTO t VALUES (1, 1, 1)")
        upsert = "INSERT INTO t VALUES (1, 1, 5) ON CONFLICT ON CONSTRAINT {} DO UPDATE SET v = excluded.v"
        session.execute(upsert.format("PAIR"))
        assert session.execute("FROM t").fetchall() == [(1, 1, 5)]
        with pytest.raises(LanceError, match=r"no key named other"):
            session.execute(upsert.format("other"))
        with pytest.raises(UnsupportedFeatureError, match=r"INSERT OVERWRITE|OVERWRITE"):
            session.execute("INSERT OVERWRITE t VALUES (1, 1, 5)")


def test_a_key_of_other_tools(tmp_path: Path) -> None:
    """A primary key that is not enforced says which rows conflict."""
    with lance_sql.connect(tmp_path) as session:
        session.execute("CREATE TABLE t (k INT, v INT); INSERT INTO t VALUES (1, 1)")
        session.execute("ALTER TABLE t SET UNENFORCED PRIMARY KEY (k)")
        session.execute("INSERT OR REPLACE INTO t VALUES (1, 2), (2, 2)")
        assert session.execute("FROM t ORDER BY k").fetchall() == [(1, 2), (2, 2)]


@pytest.mark.parametrize("action", ["DO NOTHING", "DO UPDATE SET v = t.v + excluded.v"])
def test_rows_that_others_insert_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    """The statement starts again, and meets the row of the other writer."""
    from lance_sql.statements import changes

    once = changes.apply_changes
    with lance_sql.connect(tmp_path) as session, lance_sql.connect(tmp_path) as other:
        session.execute("CREATE TABLE t (k INT PRIMARY KEY, v INT)")

        def after_another(*args: Any) -> Any:
            monkeypatch.setattr(changes, "apply_changes", once)
            other.execute("INSERT INTO t VALUES (1, 10)")
            return once(*args)

        monkeypatch.setattr(changes, "apply_changes", after_another)
        session.execute(f"INSERT INTO t VALUES (1, 1), (2, 2) ON CONFLICT {action}")
        wanted = 10 if action == "DO NOTHING" else 11
        assert other.execute("FROM t ORDER BY k").fetchall() == [(1, wanted), (2, 2)]
        session.execute("BEGIN; INSERT INTO t VALUES (5, 1) ON CONFLICT DO NOTHING")
        other.execute("INSERT INTO t VALUES (5, 5)")
        with pytest.raises((CommitConflictError, ConstraintError)):
            session.execute("COMMIT")
        assert other.execute("SELECT v FROM t WHERE k = 5").fetchall() == [(5,)]
