"""Queries that only compare strings: engines get numbers in their place, and results have the strings."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from counts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lance_engine.errors import LanceError

import lance_sql
from lance_sql.engines.duckdb import settings as duckdb_settings
from lance_sql.pushdown import dictionary_keys
from lance_sql.pushdown.filters import NarrowedQuery

ROWS = 6_000
FLAGS = ["A", "", "it's", 'N"', "Zoë", "R", "a much longer string than fits in twelve bytes"]


@pytest.fixture(autouse=True)
def of_small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary_keys, "_LEAST_ROWS", 1)
    monkeypatch.setattr(dictionary_keys, "_LEAST_FILTERED_ROWS", 1)


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
            "name": pa.array([f"name {i % 300}" for i in range(rows)]),
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


CODED = [
    'SELECT flag, "State", count(*) AS n, sum(price) FROM t GROUP BY flag, "State"',
    "SELECT name, count(*) AS c FROM t GROUP BY name ORDER BY c DESC, min(id) LIMIT 10",
    "SELECT x.flag AS f, count(*) FROM t x WHERE name LIKE '%7%' GROUP BY x.flag, x.state "
    "ORDER BY f, state NULLS FIRST",
    "SELECT FLAG, state, max(name) FROM t WHERE id > 9 GROUP BY flag, t.State ORDER BY flag DESC, state",
    "SELECT flag f, state, 1 FROM t WHERE flag <> 'A' GROUP BY f, state ORDER BY 1 DESC NULLS LAST, state",
    "SELECT count(*) FROM t GROUP BY state, flag ORDER BY flag, state NULLS FIRST",
    "SELECT flag, id % 5 AS five, flag AS again, state FROM t GROUP BY flag, state, id",
    "SELECT state, flag, avg(price) FILTER (WHERE id < 900) FROM t GROUP BY flag, state LIMIT 1000",
    "SELECT flag, upper(state), count(*) FROM t GROUP BY flag, state",
    "SELECT flag, state, max(flag), min(state), name FROM t GROUP BY flag, state, name",
    "SELECT flag, state s, count(*) FROM t WHERE flag <> 'A' GROUP BY flag, state",
    "SELECT flag, name FROM t WHERE flag = 'A' AND state IS NULL GROUP BY flag, name",
    "SELECT flag, state FROM t GROUP BY 1, 2",
    "SELECT 1, name, count(*) FROM t GROUP BY 1, name",
    "SELECT flag AS f, id // 10 AS tens, max(price) FROM t GROUP BY tens, f HAVING count(*) > 3",
    "SELECT flag, state, count(*) FROM t GROUP BY ALL",
    "SELECT DISTINCT flag, state FROM t GROUP BY flag, state",
    "SELECT DISTINCT name FROM t WHERE id < 77",
    "SELECT DISTINCT flag, id % 3 FROM t",
    "SELECT count(DISTINCT name), count(DISTINCT state), count(*) FROM t",
    "SELECT id % 3, count(DISTINCT flag) d, count(DISTINCT name) * 2 FROM t WHERE state <> 'O' GROUP BY 1 "
    "HAVING count(DISTINCT flag) > 2 ORDER BY count(DISTINCT name) DESC, d, 1",
    "SELECT name, count(*) FROM t WHERE id < 0 GROUP BY name",
    "SELECT count(DISTINCT name) FROM t WHERE id < 0",
]
AS_THEY_ARE = [
    "SELECT flag, count(*) FROM t GROUP BY flag",  # DuckDB groups by the codes of one dictionary
    "SELECT id, count(DISTINCT flag) FROM t GROUP BY id, price",
    "SELECT state, max(flag), min(state) FROM t GROUP BY state",
    "SELECT flag || '!', lower(state) FROM t GROUP BY flag, state",
    "SELECT flag, count(*) FROM t GROUP BY flag HAVING flag > 'A'",
    "SELECT flag, state, count(*) FROM t GROUP BY ROLLUP (flag, state)",
    "SELECT a.flag, b.state FROM t a JOIN t b USING (id) GROUP BY a.flag, b.state",
    "SELECT flag AS state, state AS flag, count(*) FROM t GROUP BY flag, state",
    "SELECT name, count(*) FROM t GROUP BY name ORDER BY name",
    "SELECT id, flag FROM t WHERE id < 100",
    "SELECT flag, count(*) FROM (SELECT * FROM t WHERE id > 9) GROUP BY flag",
    "WITH t AS (SELECT 'x' AS flag) SELECT flag, count(*) FROM t GROUP BY flag",
]


def rows(found: pa.Table) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


def query_of(result: lance_sql.QueryResult) -> object:
    """The query that a result is made of, without what others do with it."""
    query: object = result._query
    while isinstance(query, NarrowedQuery):
        query = query._query
    return query


def is_coded(result: lance_sql.QueryResult) -> bool:
    """Whether a result comes from a query over numbers."""
    return isinstance(query_of(result), dictionary_keys.CodedQuery)


def answers(place: Path, text: str) -> tuple[pa.Table, pa.Table, bool]:
    """The rows of a query, those of DuckDB over an Arrow table, and whether it compared numbers."""
    own = duckdb.connect()
    own.register("t", lance_sql.open(str(place / "t.lance")).scan().to_table())
    with lance_sql.connect(str(place)) as con:
        result = con.sql(text)
        return result.arrow(), own.sql(text).to_arrow_table(), is_coded(result)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("text", [*CODED, *AS_THEY_ARE])
def test_groups_are_those_of_the_strings(place: Path, text: str) -> None:
    found, expected, numbered = answers(place, text)
    assert found.schema.names == expected.schema.names
    assert found.schema.types == expected.schema.types
    if "LIMIT 10" not in text or "ORDER" in text:
        assert rows(found) == rows(expected)
    if "ORDER BY" in text:
        assert found.to_pylist() == expected.to_pylist()
    assert numbered == (text in CODED)


@pytest.mark.parametrize("engine", ["duckdb"])
def test_the_plan_shows_the_numbers(place: Path, engine: str) -> None:
    with lance_sql.connect(str(place), engine=engine) as con:
        assert "flag, State: compared as dictionary codes" in str(con.explain(CODED[0]))
        assert "compared as dictionary codes" not in str(
            con.explain("SELECT flag, min(flag) FROM t GROUP BY flag")
        )
        plan = con.sql("EXPLAIN " + CODED[0]).arrow()
    assert any("compared as dictionary codes" in value for value in plan.column(1).to_pylist())


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
        assert con._session._planner._pushdowns.names()
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


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ("SET arrow_large_buffer_size = true", pa.large_string()),
        ("SET produce_arrow_string_view = true; SET arrow_output_version = '1.4'", pa.string_view()),
    ],
)
def test_strings_have_the_type_of_the_settings(place: Path, change: str, kind: pa.DataType) -> None:
    with lance_sql.connect(str(place)) as con:
        con.sql(change).fetchall()
        result = con.sql("SELECT name, count(*) AS n FROM t GROUP BY name")
        assert is_coded(result)
        assert result.types == [kind, pa.int64()]
        assert result.reader().schema.types == [kind, pa.int64()]
        assert con.sql("SELECT name, count(*) AS n FROM t GROUP BY name").reader().schema.types[0] == kind


def test_all_ways_to_read_a_result(place: Path) -> None:
    text = "SELECT flag, state AS s, count(*) AS n FROM t WHERE id < ? GROUP BY flag, s"
    with lance_sql.connect(str(place)) as con:
        expected = rows(con.sql(text.replace("flag,", "flag || '' AS flag,", 1) + ", state", [999]).arrow())

        def result() -> lance_sql.QueryResult:
            found = con.sql(text, [999])
            assert is_coded(found)
            return found

        assert sorted(result().fetchall(), key=repr) == expected
        found = result()
        assert sorted([found.fetchone(), *found.fetchmany(2), *found.fetchall()], key=repr) == expected
        assert (
            rows(pa.Table.from_batches(result().reader()))
            == rows(pa.Table.from_batches(result()))
            == expected
        )
        assert rows(pa.table(result())) == expected
        assert rows(pa.Table.from_pandas(result().df())) == expected
        assert rows(result().pl().to_arrow()) == expected
        assert result().columns == ["flag", "s", "n"]
        assert result().types == [pa.string(), pa.string(), pa.int64()]
    with lance_sql.dbapi.connect(str(place)) as connection, connection.cursor() as cursor:
        cursor.execute(text, [999])
        assert [column[:2] for column in cursor.description] == [
            ("flag", pa.string()),
            ("s", pa.string()),
            ("n", pa.int64()),
        ]
        assert sorted(map(tuple, cursor.fetchall()), key=repr) == expected


def test_cursors_transactions_and_own_connections(tmp_path: Path) -> None:
    lance_sql.write(table(), str(tmp_path / "t.lance"))
    text = "SELECT flag, count(DISTINCT name) AS n FROM t GROUP BY flag"
    with lance_sql.connect(str(tmp_path)) as con:
        before = rows(con.sql(text).arrow())
        con.begin()
        con.sql("INSERT INTO t SELECT id, 'added ' || id % 2, state, price, name FROM t")
        inside = con.sql(text)
        assert is_coded(inside)
        assert rows(inside.arrow()) == sorted([*before, ("added 0", 150), ("added 1", 150)], key=repr)
        con.rollback()
        with con.cursor() as other:
            assert rows(other.sql(text).arrow()) == before
        con.sql("PREPARE p AS SELECT flag, count(*) FROM t WHERE id < $1 GROUP BY flag")
        assert sum(n for _, n in con.sql("EXECUTE p(70)").fetchall()) == 70
    own = duckdb.connect()
    with lance_sql.connect(str(tmp_path), duckdb=own) as con:
        found = con.sql(text)
        assert is_coded(found)
        assert rows(found.arrow()) == before


def test_views_of_the_session(place: Path) -> None:
    with lance_sql.connect(str(place)) as con:
        expected = rows(con.sql("SELECT flag, count(*) FROM t WHERE id < 50 GROUP BY flag").arrow())
        con.sql("CREATE VIEW few AS SELECT * FROM t WHERE id < 50")
        assert rows(con.sql("SELECT flag, count(*) FROM few GROUP BY flag").arrow()) == expected


def test_macros_may_scan_the_table_whose_strings_are_codes(place: Path) -> None:
    text = "SELECT flag, state, max(above(id)) FROM t GROUP BY flag, state"
    with lance_sql.connect(str(place)) as con:
        con.sql("CREATE MACRO above(x) AS x + 0")
        numbered = con.sql(text)
        assert isinstance(query_of(numbered), dictionary_keys.CodedQuery)
        assert numbered.arrow().num_rows
        con.sql("CREATE OR REPLACE MACRO above(x) AS x + (SELECT count(DISTINCT name) FROM t)")
        found = con.sql(text)
        assert rows(found.arrow()) == [(f, s, n + 300) for f, s, n in rows(numbered.arrow())]


@pytest.mark.parametrize(
    ("least", "filtered", "expected"), [(1, ROWS * 3, [1, 0, 0]), (ROWS * 3, 1, [0, 0, 0])]
)
def test_small_tables_keep_their_strings(
    place: Path, monkeypatch: pytest.MonkeyPatch, least: int, filtered: int, expected: list[int]
) -> None:
    monkeypatch.setattr(dictionary_keys, "_LEAST_ROWS", least)
    monkeypatch.setattr(dictionary_keys, "_LEAST_FILTERED_ROWS", filtered)
    texts = [
        "GROUP BY name",
        "WHERE id > 7 GROUP BY name",
        "WHERE id > 7 GROUP BY name HAVING max(id) > 0",
    ]
    with lance_sql.connect(str(place)) as con:
        assert [is_coded(con.sql(f"SELECT name, max(id) FROM t {text}")) for text in texts] == expected


_SELECTED = [
    "flag",
    "state AS s",
    "t.flag AS x",
    '"State"',
    "id % 3 AS m",
    "count(*)",
    "count(DISTINCT flag)",
]
_SELECTED += ["avg(length(flag))", "max(strpos(state, 'a'))"]
_SELECTED += ["count(DISTINCT t.state) AS d", "sum(id) AS ids", "max(name)", "upper(flag)", "min(state)"]


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Texts, many of which are not valid queries: the plain query decides."""
    selected = draw(st.lists(st.sampled_from(_SELECTED), min_size=1, max_size=4))
    keys = draw(st.lists(st.sampled_from(["flag", "s", "x", "state", "m", "1", "2", "ALL"]), max_size=3))
    condition = draw(st.sampled_from(["", "", " WHERE id % 3 = 1", " WHERE flag <> 'A'", " WHERE id < 0"]))
    having = draw(st.sampled_from(["", "", " HAVING count(DISTINCT flag) > 1", " HAVING flag > 'B'"]))
    order = draw(
        st.sampled_from(["", "", " ORDER BY 1", " ORDER BY flag", " ORDER BY s DESC", " ORDER BY d"])
    )
    distinct = draw(st.sampled_from(["", "", "DISTINCT "]))
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    return f"SELECT {distinct}{', '.join(selected)} FROM t{condition}{group}{having}{order}"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("engine", ["duckdb"])
@settings(max_examples=examples(7), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    flags=st.lists(st.one_of(st.none(), st.text(max_size=20)), min_size=1, max_size=6),
    states=st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=1, max_size=6),
    deleted=st.sampled_from([None, "id % 2 = 0", "id > 10"]),
    appended=st.booleans(),
    texts=st.lists(queries(), min_size=6, max_size=12),
)
def test_any_values_and_queries(
    tmp_path_factory: pytest.TempPathFactory,
    engine: str,
    flags: list[str | None],
    states: list[str | None],
    deleted: str | None,
    appended: bool,
    texts: list[str],
) -> None:
    place = tmp_path_factory.mktemp("any")
    count = 2_000
    data = pa.table(
        {
            "id": range(count),
            "flag": pa.array([flags[i % len(flags)] for i in range(count)], pa.string()),
            "State": pa.array([states[i * 7 % len(states)] for i in range(count)], pa.string()),
            "name": pa.array([f"name {i}" for i in range(count)]),
        }
    )
    dataset = lance_sql.write(data, str(place / "t.lance"), max_rows_per_file=800)
    if deleted is not None:
        dataset.delete(deleted)
    if appended:
        lance_sql.write(data.slice(0, 10).drop_columns("State"), str(place / "t.lance"), mode="append")
    with (
        lance_sql.connect(str(place), engine=engine) as con,
        lance_sql.connect(str(place), engine=engine) as plain,
    ):
        engine_of = plain._session._engine
        engine_of.capabilities = engine_of.capabilities._replace(groups_by_numbers=False)
        for text in texts:
            try:
                expected = plain.sql(text).arrow()
            except LanceError:
                with pytest.raises(LanceError):
                    con.sql(text).arrow()
                continue
            found = con.sql(text).arrow()
            assert found.schema == expected.schema
            assert rows(found) == rows(expected), text
