"""Queries that group by strings of few values: DuckDB groups by numbers in their place."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lance_sql
from lance_sql.engines.duckdb import settings as duckdb_settings
from lance_sql.session import numbered_keys
from lance_sql.text.grouped_keys import grouped_keys
from lance_sql.text.tokens import tokenize

ROWS = 6_000
FLAGS = ["A", "", "it's", 'N"', "Zoë", "R", "a much longer string than fits in twelve bytes"]


@pytest.fixture(autouse=True)
def of_small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbered_keys, "_LEAST_ROWS", 1)


def table(seed: int = 1, nulls: bool = True, rows: int = ROWS) -> pa.Table:
    random = np.random.default_rng(seed)
    flags = [FLAGS[i] for i in random.integers(0, len(FLAGS), rows)]
    states = [None if nulls and i == 3 else "OFP"[i % 3] for i in random.integers(0, 5, rows)]
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "flag": pa.array(flags),
            "State": pa.array(states),
            "price": pa.array(random.integers(0, 10**9, rows), pa.int32()).cast(pa.decimal128(15, 0)),
            "name": pa.array([f"name {i}" for i in range(rows)]),
        }
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("numbered")
    dataset = lance_sql.write(table(), str(found / "t.lance"))
    other = table(2).set_column(1, "flag", pa.array(["only here", "A"] * (ROWS // 2)))
    dataset = lance_sql.write(other, str(found / "t.lance"), mode="append")
    dataset.delete("id % 7 = 3 OR flag = 'R'")
    return found


NUMBERED = [
    'SELECT flag, "State", count(*) AS n, sum(price) FROM t GROUP BY flag, "State"',
    "SELECT FLAG, state, max(name) FROM t WHERE id > 100 GROUP BY flag, t.State ORDER BY flag DESC, state",
    "SELECT x.flag AS f, count(*) FROM t AS x WHERE name LIKE '%7%' GROUP BY x.flag, state ORDER BY f",
    "SELECT count(*) FROM t GROUP BY state, flag",
    "SELECT flag, id % 5 AS five, flag AS again, state FROM t GROUP BY flag, state, id",
    "SELECT state, flag, avg(price) FILTER (WHERE id < 900) FROM t GROUP BY flag, state LIMIT 1000",
    "SELECT flag, upper(state), count(*) FROM t GROUP BY flag, state",
    "SELECT flag, state s, count(*) FROM t WHERE flag <> 'A' GROUP BY flag, state ORDER BY s NULLS FIRST",
]
AS_THEY_ARE = [
    "SELECT flag, count(*) FROM t GROUP BY flag",
    "SELECT flag, state, max(flag), min(state) FROM t GROUP BY flag, state",
    "SELECT flag || '!', lower(state) FROM t GROUP BY flag, state",
    "SELECT flag, state FROM t GROUP BY 1, 2",
    "SELECT flag, state, count(*) FROM t GROUP BY flag, state HAVING flag > 'A'",
    "SELECT DISTINCT flag, state FROM t GROUP BY flag, state",
    "SELECT flag, state, count(*) FROM t GROUP BY ROLLUP (flag, state)",
    "SELECT flag, name FROM t WHERE flag = 'A' GROUP BY flag, name",
    "SELECT a.flag, b.state FROM t a JOIN t b USING (id) GROUP BY a.flag, b.state",
    "SELECT flag AS state, state AS flag, count(*) FROM t GROUP BY flag, state",
]


def rows(found: pa.Table) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


def answers(place: Path, text: str) -> tuple[pa.Table, pa.Table, bool]:
    """The rows of a query, those of DuckDB over an Arrow table, and whether it grouped by numbers."""
    own = duckdb.connect()
    own.register("t", lance_sql.open(str(place / "t.lance")).scan().to_table())
    with lance_sql.connect(str(place)) as con:
        found = con.sql(text).arrow()
        return found, own.sql(text).to_arrow_table(), bool(con._parts.names())


@pytest.mark.parametrize("text", [*NUMBERED, *AS_THEY_ARE])
def test_groups_are_those_of_the_strings(place: Path, text: str) -> None:
    found, expected, numbered = answers(place, text)
    assert found.schema.names == expected.schema.names
    assert found.schema.types == expected.schema.types
    assert rows(found) == rows(expected)
    if "ORDER BY flag DESC, state" in text:
        assert found.to_pylist() == expected.to_pylist()
    assert numbered == (text in NUMBERED)


def test_the_plan_shows_the_numbers(place: Path) -> None:
    with lance_sql.connect(str(place)) as con:
        assert "flag, State: grouped by numbers" in str(con.explain(NUMBERED[0]))
        assert "grouped by numbers" not in str(con.explain(AS_THEY_ARE[0]))
        plan = con.sql("EXPLAIN " + NUMBERED[0]).arrow()
    assert any("grouped by numbers" in value for value in plan["explain_value"].to_pylist())


def test_parameters_and_second_runs(place: Path) -> None:
    with lance_sql.connect(str(place)) as con:
        text = "SELECT flag, state, count(*) AS n FROM t WHERE id < ? GROUP BY flag, state"
        first = con.sql(text, [500])
        assert rows(first.arrow()) == rows(first.arrow())
        assert sum(con.sql(text, [500]).arrow()["n"].to_pylist()) != sum(
            con.sql(text, [900]).arrow()["n"].to_pylist()
        )


def test_new_values_are_seen(tmp_path: Path) -> None:
    lance_sql.write(table(), str(tmp_path / "t.lance"))
    with lance_sql.connect(str(tmp_path)) as con:
        text = "SELECT flag, state, count(*) AS n FROM t GROUP BY flag, state"
        before = con.sql(text).arrow().num_rows
        con.sql("INSERT INTO t SELECT id, 'new', 'new', price, name FROM t")
        found = con.sql(text).arrow()
    assert found.num_rows == before + 1
    assert ("new", "new", ROWS) in rows(found)


def test_a_collation_compares_more_than_bytes(tmp_path: Path) -> None:
    data = table(nulls=False)
    data = data.set_column(1, "flag", pa.array(["a", "A"] * (ROWS // 2)))
    lance_sql.write(data, str(tmp_path / "t.lance"))
    with lance_sql.connect(str(tmp_path)) as con:
        con.sql("SET default_collation = 'NOCASE'")
        found = con.sql("SELECT flag, state, count(*) FROM t GROUP BY flag, state").arrow()
    assert found.num_rows == 3


@pytest.mark.parametrize("change", ["SET", "SET GLOBAL", "PRAGMA"])
@pytest.mark.parametrize("elsewhere", ["", "cursor", "own"])
def test_a_collation_is_seen_at_once(tmp_path: Path, change: str, elsewhere: str) -> None:
    text = "SELECT flag, state, count(*) FROM t GROUP BY flag, state"
    data = table(nulls=False).set_column(1, "flag", pa.array(["a", "A"] * (ROWS // 2)))
    lance_sql.write(data, str(tmp_path / "t.lance"))
    own = duckdb.connect() if elsewhere == "own" else None
    connect = lance_sql.connect(str(tmp_path)) if own is None else lance_sql.connect(duckdb=own)
    with connect as con:
        query = text if own is None else text.replace("FROM t", f"FROM '{tmp_path}/t.lance' AS t")
        for _ in range(3):
            assert con.sql(query).arrow().num_rows == 6
        assert con._parts.names()
        command = f"{change} default_collation = 'NOCASE'"
        if own is not None:
            own.execute(command)
        elif elsewhere and change != "SET GLOBAL":
            with con.cursor() as other:  # of which only its own session is changed
                other.sql(command).fetchall()
                assert other.sql(query).arrow().num_rows == 3
            return
        else:
            other = con.cursor() if elsewhere else con
            other.sql(command).fetchall()
        assert con.sql(query).arrow().num_rows == 3
        con.sql("RESET GLOBAL default_collation").fetchall()
        con.sql("RESET default_collation").fetchall()
        assert con.sql(query).arrow().num_rows == 6


def test_settings_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = table(nulls=False).set_column(1, "flag", pa.array(["a", "A"] * (ROWS // 2)))
    lance_sql.write(data, str(tmp_path / "t.lance"))
    read: list[str] = []
    original = duckdb_settings.compares_bytes

    def noted(connection: duckdb.DuckDBPyConnection) -> bool:
        read.append("read")
        return original(connection)

    monkeypatch.setattr(duckdb_settings, "compares_bytes", noted)
    with lance_sql.connect(str(tmp_path)) as con:
        for _ in range(3):
            con.sql("SELECT flag, state, count(*) FROM t GROUP BY flag, state").fetchall()
            con.sql("CREATE OR REPLACE VIEW v AS SELECT 1")
        assert read == ["read"]


@pytest.mark.parametrize("first", ["", "NOCASE"])
def test_a_collation_may_change_before_the_query_runs(tmp_path: Path, first: str) -> None:
    data = table(nulls=False)
    data = data.set_column(1, "flag", pa.array(["a", "A"] * (ROWS // 2)))
    lance_sql.write(data, str(tmp_path / "t.lance"))
    then = "NOCASE" if not first else ""
    with lance_sql.connect(str(tmp_path)) as con:
        con.sql(f"SET default_collation = '{first}'")
        planned = con.sql("SELECT flag, state, count(*) FROM t GROUP BY flag, state")
        streamed = con.sql("SELECT flag, state, count(*) FROM t GROUP BY flag, state")
        con.sql(f"SET default_collation = '{then}'")
        groups = 3 if then else 6
        assert planned.arrow().num_rows == groups
        assert sum(batch.num_rows for batch in streamed.reader()) == groups


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    flags=st.lists(st.one_of(st.none(), st.text(max_size=20)), min_size=1, max_size=6),
    states=st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=1, max_size=6),
    condition=st.sampled_from(["", "WHERE id % 3 = 1", "WHERE id < 50", "WHERE id < 0"]),
    deleted=st.sampled_from([None, "id % 2 = 0", "id > 10"]),
)
def test_any_values(
    tmp_path_factory: pytest.TempPathFactory,
    flags: list[str | None],
    states: list[str | None],
    condition: str,
    deleted: str | None,
) -> None:
    place = tmp_path_factory.mktemp("any")
    count = 2_000
    data = pa.table(
        {
            "id": range(count),
            "flag": pa.array([flags[i % len(flags)] for i in range(count)], pa.string()),
            "state": pa.array([states[i * 7 % len(states)] for i in range(count)], pa.string()),
        }
    )
    dataset = lance_sql.write(data, str(place / "t.lance"), max_rows_per_file=800)
    if deleted is not None:
        dataset.delete(deleted)
    text = f"SELECT state, flag, sum(id) AS ids FROM t {condition} GROUP BY flag, state"
    found, expected, _ = answers(place, text)
    assert rows(found) == rows(expected)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t, u GROUP BY a, b",
        "SELECT a FROM (SELECT * FROM t) GROUP BY a, b",
        "WITH t AS (SELECT 1) SELECT a FROM t GROUP BY a, b",
        "SELECT a FROM t GROUP BY a, b UNION SELECT a FROM t",
        "SELECT a FROM t GROUP BY a, lower(b)",
        "SELECT a FROM t WHERE a IN (SELECT b FROM t) GROUP BY a, b",
    ],
)
def test_other_shapes_are_left_alone(text: str) -> None:
    assert grouped_keys(tokenize(text), "t", {"a", "b"}) is None
