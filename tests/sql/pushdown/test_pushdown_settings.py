"""Pushdowns can be switched off, forced and verified, in sessions of both engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.errors import InvalidArgumentError, LanceError

import lance_sql
from lance_sql.pushdown.limit import LimitedQuery
from lance_sql.pushdown.verification import Verification, check_included, check_same, verification_of
from lance_sql.pushdown_settings import RULES, SETTINGS
from lance_sql.text.statement import Statement

ROWS = 3_000

#: a query for each rule, the engines that use it, and what shows in EXPLAIN or in metrics that they do
QUERIES = {
    "metadata_aggregates": "SELECT count(*), min(x), max(x) FROM t",
    "filters": "SELECT count(*) FROM t WHERE s LIKE '%17%' OR x = 3",
    "join_filters": "SELECT sum(t.x) FROM t JOIN u ON t.x = u.x WHERE u.y < 40",
    "limit": "SELECT x, s FROM t LIMIT 7 OFFSET 90",
    "top_n": "SELECT * FROM t ORDER BY x DESC LIMIT 3",
    "dictionary_keys": "SELECT kind, s, count(*) FROM t GROUP BY kind, s",
}


@pytest.fixture
def con(tmp_path: Path, engine: str) -> Any:
    table = pa.table(
        {
            "x": range(ROWS),
            "s": [f"string {row % 50}" for row in range(ROWS)],
            "kind": ["abc"[row % 3] for row in range(ROWS)],
        }
    )
    lance_sql.write(table, tmp_path / "t.lance")
    lance_sql.write(pa.table({"x": range(0, 900, 3), "y": range(300)}), tmp_path / "u.lance")
    with lance_sql.connect(tmp_path, engine=engine) as connection:
        for name in SETTINGS:
            connection.sql(f"SET {name} = ''")
        yield connection


def used(con: Any, rule: str) -> bool:
    """Whether the query for a rule uses it."""
    text = QUERIES[rule]
    result = con.sql(text)
    result.fetchall()
    scans = result.metrics["scans"]
    match rule:
        case "metadata_aggregates":
            return not scans
        case "filters":
            return sum(scan["rows_out"] for scan in scans) < ROWS
        case "join_filters":
            return any("applied" in key or "in keys of" in key for key in con.explain(text).keys)
        case "limit":
            return isinstance(result._query, LimitedQuery)
        case "top_n":
            return len(scans) == 2
    return "compared as dictionary codes" in str(con.explain(text))


def test_every_rule_has_a_query() -> None:
    assert QUERIES.keys() == RULES.keys()


@pytest.mark.parametrize("rule", QUERIES)
def test_a_rule_can_be_forced_and_switched_off(con: Any, engine: str, rule: str) -> None:
    if rule == "dictionary_keys" and engine == "datafusion":
        pytest.skip("DataFusion groups by strings as fast")
    rows = con.sql(QUERIES[rule]).arrow()
    con.sql("SET lance_force_pushdowns = true")
    assert used(con, rule)
    assert con.sql(QUERIES[rule]).arrow().num_rows == rows.num_rows
    for disabled in (rule, f"{rule}, limit", "ALL"):
        con.sql(f"SET lance_disabled_pushdowns = '{disabled}'")
        assert not used(con, rule), disabled
        assert con.sql(QUERIES[rule]).arrow().num_rows == rows.num_rows
    con.sql("RESET lance_disabled_pushdowns")
    others = ",".join(other for other in RULES if other != rule)
    con.sql(f"SET lance_disabled_pushdowns = '{others}'")
    assert used(con, rule)


def test_settings_are_read_and_reset(con: Any) -> None:
    con.sql("SET lance_disabled_pushdowns = 'Top_N , limit'")
    con.sql("SET SESSION lance_verify TO on")
    text = "SELECT current_setting('lance_disabled_pushdowns') AS d, current_setting('lance_verify') AS v"
    assert con.sql(text).fetchall() == [("limit,top_n", "true")]
    con.sql("SET lance_disabled_pushdowns = 'all'; RESET lance_verify")
    assert con.sql(text).fetchall() == [("all", "false")]
    con.sql("SET lance_isolation = 'serializable'")
    assert con.sql("SELECT current_setting('lance_isolation')").fetchall() == [("serializable",)]
    assert con.cursor()._session.pushdowns == con._session.pushdowns


@pytest.mark.parametrize(
    ("statement", "hint"),
    [
        ("SET lance_disabled_pushdowns = 'topn'", "Did you mean 'top_n'?"),
        ("SET lance_disabled_pushdowns = 'limit,nothing'", "Choose from metadata_aggregates"),
        ("SET lance_verify = 'maybe'", "SET lance_verify = true"),
        ("SET lance_force_pushdowns", "SET lance_force_pushdowns = 'true'"),
    ],
)
def test_invalid_values_are_errors(con: Any, statement: str, hint: str) -> None:
    with pytest.raises(LanceError) as caught:
        con.sql(statement)
    assert hint in str(caught.value)
    assert not con._session.pushdowns.disabled


def test_a_new_session_has_the_settings_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.setenv("LANCE_SQL_DISABLED_PUSHDOWNS", "top_n")
    monkeypatch.setenv("LANCE_SQL_FORCE_PUSHDOWNS", "1")
    con = lance_sql.connect(engine=engine)
    assert (con._session.pushdowns.disabled, con._session.pushdowns.force) == ({"top_n"}, True)
    con.sql("SET lance_disabled_pushdowns = ''; RESET lance_force_pushdowns")
    assert (con._session.pushdowns.disabled, con._session.pushdowns.force) == (set(), True)
    monkeypatch.setenv("LANCE_SQL_DISABLED_PUSHDOWNS", "everything")
    with pytest.raises(InvalidArgumentError, match="everything"):
        lance_sql.connect(engine=engine)


@pytest.mark.parametrize("rule", QUERIES)
def test_verified_queries_have_the_same_rows(con: Any, rule: str) -> None:
    con.sql("SET lance_force_pushdowns = true")
    rows = con.sql(QUERIES[rule]).arrow()
    con.sql("SET lance_verify = true")
    assert con.sql(QUERIES[rule]).arrow().num_rows == rows.num_rows
    assert con.sql(QUERIES[rule]).reader().read_all().num_rows == rows.num_rows


def test_a_wrong_pushdown_is_an_error(con: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    con.sql("SET lance_force_pushdowns = true; SET lance_verify = true")
    text = "SELECT x, s FROM t LIMIT 7"
    assert len(con.sql(text).fetchall()) == 7

    def prepare(query: LimitedQuery, run: Any) -> None:
        run.ranges["t"] = range(3)

    monkeypatch.setattr(LimitedQuery, "prepare", prepare)
    with pytest.raises(LanceError, match="3 rows instead of 7"):
        con.sql(text).fetchall()
    con.sql("SET lance_disabled_pushdowns = 'all'")
    assert len(con.sql(text).fetchall()) == 7


def test_rows_that_differ_are_named() -> None:
    def check(found: list[Any], expected: list[Any], *asked: Any) -> None:
        check_same(pa.table({"a": found}), pa.table({"a": expected}), Verification(*asked))

    check([1, 2, 2], [2, 1, 2])
    check([0.1 + 0.2, float("nan")], [float("nan"), 0.3])
    check([[1, None], None], [None, [1, None]])
    check([1, 2], [3, 4], False)
    check([1, 2], [1, 2], False, (0,))
    with pytest.raises(LanceError, match=r"1 of 3 rows differ, such as \(2,\)"):
        check([1, 2, 2], [1, 1, 2])
    with pytest.raises(LanceError, match="a is in another order"):
        check([1, 2], [2, 1], True, (0,))
    check_included(pa.table({"a": [1]}), pa.table({"a": [3, 1]}))
    with pytest.raises(LanceError, match=r"1 of 2 rows differ"):
        check_included(pa.table({"a": [1, 1]}), pa.table({"a": [3, 1]}))
    with pytest.raises(LanceError, match="2 rows instead of 3"):
        check([1, 2], [1, 1, 2])
    with pytest.raises(LanceError, match="instead of"):
        check([1, 2], ["1", "2"])


@pytest.mark.sampled(13)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a FROM t", Verification()),
        ("SELECT a, b FROM t ORDER BY b DESC NULLS LAST, 1", Verification(True, (1, 0))),
        ("SELECT a FROM t ORDER BY a, b", Verification(True, (0,))),
        ("SELECT a FROM t JOIN u ON b = c ORDER BY c", Verification()),
        ("SELECT * FROM t ORDER BY a", Verification()),
        ("SELECT a, count(*) AS n FROM t GROUP BY a ORDER BY n, a LIMIT 3", Verification(False, (1, 0))),
        ("SELECT * FROM t LIMIT 3 OFFSET 2;", Verification(False, (), "SELECT * FROM t ")),
        ("SELECT * FROM t LIMIT ?", Verification(False)),
        ("SELECT first(a) FROM t", Verification(False)),
        ("SELECT DISTINCT ON (a) b FROM t", Verification(False)),
        ("SELECT random() AS r FROM t ORDER BY r LIMIT 3", Verification(False)),
        ("SELECT count(*) FROM (SELECT a FROM t LIMIT 3)", None),
        ("SELECT a FROM t UNION ALL SELECT b FROM u", Verification()),
    ],
)
def test_what_is_compared(text: str, expected: Verification | None) -> None:
    assert verification_of(Statement(text)) == expected
