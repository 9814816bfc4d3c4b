"""Answers from metadata are kept for texts that run again, until anything changes what they mean."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from counts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lance_sql
from lance_sql.engines.duckdb.session import DuckDBEngine
from lance_sql.engines.duckdb.settings import Changes
from lance_sql.session.connection import Connection

TEXTS = [
    "SELECT count(*) FROM t",
    "SELECT max(n) AS highest FROM t",
    "SELECT min(word), max(word), COUNT(*) FROM t",
    "SELECT min(day), max(amount) FROM t",
    "SELECT count(*) FROM t AT (VERSION => 1)",
]


def rows(numbers: range = range(4)) -> pa.Table:
    return pa.table(
        {
            "n": pa.array(numbers, pa.int32()),
            "word": [("a", "B", "c", "D")[number % 4] for number in numbers],
            "day": pa.array(numbers, pa.date32()),
            "amount": pa.array(numbers, pa.decimal128(9, 2)),
        }
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    lance_sql.write(rows(), tmp_path / "t.lance")
    return tmp_path


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that DuckDB plans."""
    found: list[str] = []
    query = DuckDBEngine.query

    def noted(engine: DuckDBEngine, text: str, *others: Any) -> Any:
        found.append(text)
        return query(engine, text, *others)

    monkeypatch.setattr(DuckDBEngine, "query", noted)
    return found


def answer(con: Connection, text: str) -> Any:
    """The rows with names and types; the type of the error if it fails."""
    try:
        table = con.sql(text).arrow()
    except lance_sql.LanceError as error:
        return type(error)
    return table.schema, table.to_pylist()


def computed(con: Connection, text: str) -> Any:
    """The same, without metadata."""
    return answer(con, f"{text} WHERE 1 = 1")


@pytest.mark.parametrize("text", TEXTS)
def test_texts_that_run_again_are_not_planned(place: Path, text: str, planned: list[str]) -> None:
    with lance_sql.connect(place) as con:
        first = con.sql(text).arrow()
        assert len(planned) == 1
        again = con.sql(text)
        assert again.arrow() == first
        assert again.fetchall() == [tuple(first.to_pylist()[0].values())]
        assert con.sql(text).reader().read_all() == first
        assert again.metrics is not None
        assert again.metrics["scans"] == []
        assert len(planned) == 1
        assert "answered from metadata" in con.explain(text).plan
        assert computed(con, text) == (first.schema, first.to_pylist())


def macro(body: str, kind: str = "") -> Callable[[Connection], Any]:
    return lambda con: con.sql(f"CREATE {kind} MACRO {body}")


def in_a_transaction_undone(con: Connection) -> None:
    con.begin()
    con.sql("CREATE MACRO max(x) AS min(x)")
    con.rollback()


def dropped_in_a_transaction_undone(con: Connection) -> None:
    con.sql("CREATE OR REPLACE MACRO max(x) AS min(x)")
    con.begin()
    con.sql("DROP MACRO max")
    for text in TEXTS:
        con.sql(text).arrow()
    con.rollback()


def run(*texts: str) -> Callable[[Connection], Any]:
    return lambda con: [con.sql(text).fetchall() for text in texts]


def by_cursor(*texts: str) -> Callable[[Connection], Any]:
    def change(con: Connection) -> None:
        with con.cursor() as other:
            for text in texts:
                other.sql(text).fetchall()

    return change


def dataset(con: Connection) -> Any:
    return lance_sql.open(Path(con._session.catalog.directory or "") / "t.lance")


def written_again(con: Connection) -> None:
    lance_sql.write(rows(range(7, 11)), dataset(con).uri, mode="overwrite")


CHANGES: dict[str, Callable[[Connection], Any]] = {
    "macro": macro("max(x) AS min(x)"),
    "temporary macro": macro("min(x) AS max(x)", "TEMP"),
    "macro count": macro("count_star() AS 42"),
    "macro replaced": run("CREATE OR REPLACE MACRO max(x) AS sum(x)"),
    "macro of a cursor": by_cursor("CREATE OR REPLACE MACRO max(x) AS count(x)"),
    "macros dropped": run(
        *(f"CREATE OR REPLACE MACRO {name}(x) AS 1; DROP MACRO {name}" for name in ("min", "max"))
    ),
    "collation": run("SET default_collation = 'NOCASE'"),
    "collation of a cursor": by_cursor("SET GLOBAL default_collation = 'NOCASE'"),
    "no collation": run("RESET default_collation", "RESET GLOBAL default_collation"),
    "types": run("SET arrow_large_buffer_size = true"),
    "other types": run("SET arrow_large_buffer_size = false"),
    "view": run("CREATE OR REPLACE VIEW v AS SELECT max(n) FROM t"),
    "view of the name": run("CREATE OR REPLACE TEMP VIEW other AS SELECT 1 AS n"),
    "rows": lambda con: lance_sql.write(rows(range(20, 23)), dataset(con).uri, mode="append"),
    "no rows": lambda con: dataset(con).delete("n % 2 = 0"),
    "insert": run("INSERT INTO t VALUES (99, 'Z', DATE '2030-01-01', 3.5)"),
    "update": run("UPDATE t SET n = n + 1000, word = 'b' WHERE n = (SELECT max(n) FROM t)"),
    "written again": written_again,
    "other data": lambda con: con.register("t", rows(range(5, 6))),
    "another dataset": lambda con: con.register("t", lance_sql.open(dataset(con).uri, version=1)),
    "undone": in_a_transaction_undone,
    "drop undone": dropped_in_a_transaction_undone,
    "explained": lambda con: con.explain("CREATE OR REPLACE MACRO max(x) AS min(x)", analyze=True),
    "undone rows": run("BEGIN", "DELETE FROM t", "SELECT count(*) FROM t", "ROLLBACK"),
    "a type": run("DROP TYPE IF EXISTS INTEGER_; CREATE TYPE INTEGER_ AS VARCHAR"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_answers_after_a_change(place: Path, change: str) -> None:
    with lance_sql.connect(place) as con:
        for text in TEXTS:
            assert answer(con, text) == computed(con, text)
        CHANGES[change](con)
        for text in TEXTS * 2:
            assert answer(con, text) == computed(con, text)


@settings(max_examples=examples(4), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(sorted(CHANGES)), min_size=2, max_size=5))
def test_answers_after_many_changes(tmp_path_factory: pytest.TempPathFactory, changes: list[str]) -> None:
    place = tmp_path_factory.mktemp("many")
    lance_sql.write(rows(), place / "t.lance")
    with lance_sql.connect(place) as con:
        for change in changes:
            with suppress(lance_sql.LanceError):  # a macro that already exists
                CHANGES[change](con)
            for text in TEXTS * 2:
                assert answer(con, text) == computed(con, text)


def test_a_planned_statement_runs_with_the_collation_and_macros_of_then(place: Path) -> None:
    for change in ("SET default_collation = 'NOCASE'", "CREATE MACRO max(x) AS min(x)"):
        with lance_sql.connect(place) as con:
            result = con.sql(TEXTS[2])
            con.sql(change)
            assert result.arrow().to_pylist() == computed(con, TEXTS[2])[1]
            assert answer(con, TEXTS[2]) == computed(con, TEXTS[2])


def test_a_transaction_that_failed_answers_nothing(place: Path) -> None:
    with lance_sql.connect(place) as con:
        con.sql("CREATE TABLE memory.own (a INTEGER PRIMARY KEY)")
        before = answer(con, TEXTS[0])
        con.begin()
        for _ in range(2):
            assert answer(con, TEXTS[0]) == before
        with pytest.raises(lance_sql.LanceError):
            con.sql("INSERT INTO memory.own VALUES (1), (1)").fetchall()
        assert answer(con, TEXTS[0]) == computed(con, TEXTS[0])
        con.rollback()
        assert answer(con, TEXTS[0]) == before


def test_parameters_are_checked(place: Path) -> None:
    with lance_sql.connect(place) as con:
        assert con.sql(TEXTS[0], params=[]).fetchall() == [(4,)]
        with pytest.raises(lance_sql.LanceError):
            con.sql(TEXTS[0], params=[1]).fetchall()


def test_your_own_connection_may_change_anything(place: Path, planned: list[str]) -> None:
    with duckdb.connect() as own, lance_sql.connect(place, duckdb=own) as con:
        assert answer(con, TEXTS[1]) == computed(con, TEXTS[1])
        own.execute("CREATE MACRO max(x) AS min(x)")
        assert answer(con, TEXTS[1])[1] == [{"highest": 0}]
        own.execute("DROP MACRO max")
        assert answer(con, TEXTS[1])[1] == [{"highest": 3}]
        own.execute("SET default_collation = 'NOCASE'")
        assert answer(con, TEXTS[2]) == computed(con, TEXTS[2])
        assert answer(con, TEXTS[2])[1] == [{"min(word)": "a", "max(word)": "D", "count_star()": 4}]
        assert planned.count(TEXTS[1]) == 3


def test_types_of_results_are_asked_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    limit = duckdb.DuckDBPyRelation.limit

    def noted(relation: duckdb.DuckDBPyRelation, *arguments: Any) -> Any:
        asked.append(relation.columns)
        return limit(relation, *arguments)

    monkeypatch.setattr(duckdb.DuckDBPyRelation, "limit", noted)
    with lance_sql.connect(place) as con:
        assert con.sql("SELECT max(n) AS a, count(*) AS b FROM t").arrow().schema.names == ["a", "b"]
        assert con.sql("SELECT min(n) AS c, max(n) AS d FROM t").arrow().schema.names == ["c", "d"]
        assert asked == [["a", "b"]]
        con.sql("SET arrow_large_buffer_size = true")
        con.sql("SELECT min(n) AS e FROM t").arrow()
        assert asked == [["a", "b"], ["e"]]


@pytest.mark.parametrize(
    ("text", "changes", "is_known"),
    [
        ("SELECT 1", False, True),
        (" -- first\n (SELECT 1)", False, True),
        ("WITH a AS (SELECT 1) FROM a", False, True),
        ("CREATE OR REPLACE TEMP TABLE a AS SELECT 1", False, True),
        ("DROP VIEW a", False, True),
        ("INSERT INTO a VALUES (1)", False, True),
        ("SET threads = 1", True, True),
        ("CREATE TEMP MACRO a() AS 1", True, True),
        ("CREATE /* a */ FUNCTION a() AS 1", True, True),
        ("DROP SCHEMA a CASCADE", True, True),
        ("ROLLBACK", True, True),
        ("/* /* a */ SELECT 1 */ SET threads = 1", True, False),
        ("CALL a()", True, False),
        ("PRAGMA a = 1", True, False),
        ("", True, False),
    ],
)
def test_which_statements_change_settings_or_functions(text: str, changes: bool, is_known: bool) -> None:
    found = Changes(own=True)
    before = found.state
    with found.during(text):
        assert (found.state != before) is changes
        within = found.state
    assert (found.state is not None) is is_known
    assert (found.state != before) is changes
    assert not is_known or (found.state != within) is changes
    with found.during("SELECT 1"):
        assert (found.state is not None) is is_known
