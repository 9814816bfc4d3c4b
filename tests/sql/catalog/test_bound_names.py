"""Pushdowns know what names mean: what looks alike is not taken for another column, table or string."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from bound_queries import bound
from datafusion import SessionConfig, SessionContext
from sqlglot import exp

import lance_sql
from lance_sql.session.connection import Connection
from lance_sql.syntax.scopes import BoundQuery, Names

ROWS = 2_000
TABLES = {"t": ["a", "b", "st"], "u": ["a", "c"], "Mixed": ["a", "A", "Both"]}


def places(query: BoundQuery | None) -> list[str | None]:
    """What the columns of a query mean, in the order of the text: ``t.a``, or ``t1.a`` for a second t."""
    assert query is not None
    found = []
    for node in query.tree.root.find_all(exp.Column, bfs=False):
        scope = query.scope(node.parent_select)
        place = None if scope is None else query.column(scope, node)
        number = "" if place is None or not place.occurrence.number else str(place.occurrence.number)
        found.append(place and f"{place.occurrence.table}{number}.{place.column}")
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a, T.B FROM t", ["t.a", "t.b"]),
        ("SELECT x.a FROM t AS x", ["t.a"]),
        ("SELECT t.a FROM t AS x", [None]),
        ("SELECT missing, b.c FROM t", [None, None]),
        ("SELECT a, c, b FROM t, u", [None, "u.c", "t.b"]),
        ("SELECT a, c FROM t JOIN u USING (a)", [None, "u.c"]),
        ("SELECT x.a, y.a FROM t x, t y", ["t.a", "t1.a"]),
        ("SELECT st.a FROM t st", [None]),  # perhaps a field
        ("SELECT st FROM t st", [None]),
        ("SELECT t FROM t", [None]),  # the whole row
        ("SELECT b FROM t, (SELECT 1 AS b) s", [None]),
        ("SELECT t.b FROM t, (SELECT 1 AS b) s", ["t.b"]),
        ("SELECT b FROM t, v", [None]),
        ("SELECT b FROM t NATURAL JOIN u", [None]),
        ("SELECT b FROM t FULL JOIN u ON t.a = u.a", [None, None, None]),
        ("SELECT b FROM t AS x(b, a)", [None]),
        ("SELECT b FROM t, LATERAL (SELECT c FROM u) s", [None, "u.c"]),
        ("SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM u WHERE c = b)", ["u.c", "t.b"]),
        ("SELECT 1 FROM t WHERE EXISTS (SELECT c AS b FROM u WHERE b = 1)", ["u.c", None]),
        ("SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM v WHERE b = 1)", [None]),
        ("SELECT s.t.a FROM t", [None]),
        ("SELECT a FROM db.t", [None]),
        ("SELECT a FROM f('t')", [None]),
    ],
)
def test_columns_of_any_case(text: str, expected: list[str | None]) -> None:
    assert places(bound(text, TABLES)) == expected


@pytest.mark.parametrize(
    ("names", "text", "expected"),
    [
        ("any case", "SELECT a, both FROM Mixed", [None, "Mixed.Both"]),
        ("any case", 'SELECT "BOTH" FROM "mixed"', ["Mixed.Both"]),
        ("lower case", 'SELECT A, "A", Both, "Both" FROM Mixed', ["Mixed.a", "Mixed.A", None, "Mixed.Both"]),
        ("lower case", 'SELECT x."a", X.a FROM "Mixed" AS "X", t', [None, None]),
        ("exact", "SELECT A, a, Both, both FROM Mixed", ["Mixed.A", "Mixed.a", "Mixed.Both", None]),
    ],
)
def test_the_case_of_names(names: Names, text: str, expected: list[str | None]) -> None:
    assert places(bound(text, TABLES, names)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t TABLESAMPLE 10%",
        "SELECT a FROM t USING SAMPLE 3",
        "PIVOT t ON a USING sum(b)",
        "INSERT INTO t SELECT a FROM u",
        "SELECT E'a' FROM t",
        "SELECT $$a$$ FROM t",
    ],
)
def test_what_is_not_understood(text: str) -> None:
    query = bound(text, TABLES)
    assert query is None or not list(query.scopes)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    numbers = range(ROWS)
    structs = pa.array([{"x": ROWS - row, "name": f"field {row % 7}"} for row in numbers])
    table = pa.table(
        {
            "x": pa.array([None if row % 19 == 0 else row for row in numbers], pa.int64()),
            "name": [f"name {row % 11}" for row in numbers],
            "kind": ["abc"[row % 3] for row in numbers],
            "st": structs,
        }
    )
    lance_sql.write(table, tmp_path / "orders.lance", max_rows_per_file=700)
    lance_sql.write(table, tmp_path / "st.lance", max_rows_per_file=700)
    lance_sql.write(pa.table({"x": range(0, 60, 2), "st": range(30)}), tmp_path / "few.lance")
    return tmp_path


def check(con: Connection, text: str) -> None:
    """The rows with all pushdowns are those without any."""
    con.sql("RESET lance_verify")
    con.sql("SET lance_disabled_pushdowns = 'all'")
    expected = con.sql(text).arrow()
    con.sql("SET lance_disabled_pushdowns = ''")
    con.sql("SET lance_force_pushdowns = true")
    for _ in range(2):  # also with what is kept
        found = con.sql(text).arrow()
        assert found.schema == expected.schema, text
        if "ORDER BY" in text:
            assert found.to_pylist() == expected.to_pylist(), text
        else:
            assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist())), text
    con.sql("SET lance_verify = true")
    assert con.sql(text).arrow().num_rows == expected.num_rows


ALIKE = [
    "SELECT st.x FROM orders st ORDER BY st.x LIMIT 5",
    "SELECT st.x FROM st ORDER BY st.x DESC NULLS LAST LIMIT 5",
    "SELECT orders.st['x'] AS f, x FROM orders ORDER BY x LIMIT 5",
    "SELECT st.name, count(*) FROM orders st GROUP BY st.name",
    "SELECT st.name, kind, count(*) FROM st GROUP BY st.name, kind",
    "SELECT st.st['name'] AS name, kind, count(*) FROM st GROUP BY st.st['name'], kind",
    "SELECT max(st.x) FROM st",
    "SELECT min(st.x), count(*) FROM orders st",
    "SELECT count(*) FROM orders st WHERE st.name LIKE '%7' OR st.x = 3",
    "SELECT count(*) FROM st WHERE st.st['name'] LIKE '%3' OR x = 3",
    "SELECT sum(st.x) FROM orders st JOIN few ON st.x = few.x WHERE few.st < 7",
    "SELECT sum(few.st) FROM st JOIN few ON st.x = few.st WHERE few.x < 9",
    "SELECT count(DISTINCT st) FROM orders st",
    "SELECT name AS kind, kind AS name, count(*) FROM orders GROUP BY orders.name, orders.kind",
    "SELECT kind AS name, count(*) FROM orders GROUP BY kind, name ORDER BY 1, 2",
    "SELECT -x AS x FROM orders WHERE x > 5 ORDER BY x LIMIT 5",
    "SELECT x FROM orders WHERE (SELECT max(few.x) FROM few WHERE few.st = orders.x) = 4",
    "SELECT count(*) FROM orders o WHERE EXISTS (SELECT 1 FROM few WHERE few.x = o.x AND few.st < 9)",
]


@pytest.mark.parametrize("text", ALIKE)
def test_names_that_are_alike(place: Path, engine: str, text: str) -> None:
    with lance_sql.connect(place, engine=engine) as con:
        check(con, text)


ORDERED = [
    "SELECT x, name FROM orders WHERE x > 30 ORDER BY x LIMIT 5",
    "SELECT x, name FROM orders ORDER BY x, name LIMIT 120",
    "SELECT x, name FROM orders ORDER BY x NULLS LAST, name LIMIT 5",
    "SELECT x, name FROM orders ORDER BY x NULLS FIRST, name LIMIT 120 OFFSET 100",
    "SELECT x, name FROM orders ORDER BY x ASC, name NULLS LAST LIMIT 120 OFFSET 3",
    "SELECT x FROM orders ORDER BY x DESC LIMIT 120",
    "SELECT name, kind, count(*) FROM orders GROUP BY name, kind ORDER BY name, kind",
]


@pytest.mark.parametrize("order", ["ASC", "DESC"])
@pytest.mark.parametrize(
    "nulls",
    ["NULLS_LAST", "NULLS_FIRST", "NULLS_FIRST_ON_ASC_LAST_ON_DESC", "NULLS_LAST_ON_ASC_FIRST_ON_DESC"],
)
def test_orders_that_settings_decide(place: Path, order: str, nulls: str) -> None:
    with lance_sql.connect(place) as con:
        con.sql(f"SET default_order = '{order}'; SET default_null_order = '{nulls}'")
        for text in ORDERED:
            check(con, text)


def test_an_order_may_change_before_the_query_runs(place: Path) -> None:
    with lance_sql.connect(place) as con:
        con.sql("SET lance_force_pushdowns = true")
        changes = ["default_order = 'DESC'", "default_null_order = 'NULLS_FIRST'", "default_order = 'ASC'"]
        for change in changes:
            planned = con.sql(ORDERED[0].replace("x > 30", "x > 30 OR x IS NULL"))
            con.sql(f"SET {change}")
            found = planned.arrow().to_pylist()
            con.sql("SET lance_disabled_pushdowns = 'all'")
            assert (
                found
                == con.sql(planned_text := ORDERED[0].replace("x > 30", "x > 30 OR x IS NULL"))
                .arrow()
                .to_pylist()
            ), planned_text
            con.sql("SET lance_disabled_pushdowns = ''")


DIALECTS = ["generic", "mysql", "bigquery", "databricks", "hive", "postgresql", "snowflake", "duckdb"]
QUOTED = [
    """SELECT count(*) FROM orders WHERE "name" LIKE 'na%' OR x = 1""",
    """SELECT count(*) FROM orders WHERE name LIKE '%7' OR "kind" = 'kind'""",
    """SELECT x, "name" AS n FROM orders ORDER BY "x", x, n LIMIT 3""",
    """SELECT max("x") AS m FROM orders""",
    """SELECT count(*) FROM orders, few WHERE orders.x = few.x AND "kind" = 'kind'""",
]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_dialects_of_datafusion(place: Path, dialect: str) -> None:
    config = SessionConfig().set("datafusion.sql_parser.dialect", dialect)
    with lance_sql.connect(place, datafusion=SessionContext(config)) as con:
        for text in QUOTED:
            check(con, text)


def test_a_dialect_may_change_in_between(place: Path) -> None:
    own = SessionContext()
    with lance_sql.connect(place, datafusion=own) as con:
        for dialect in ("generic", "mysql", "generic"):
            own.sql(f"SET datafusion.sql_parser.dialect = '{dialect}'").collect()
            for text in QUOTED:
                check(con, text)


MACROS: dict[str, Callable[[Connection], Any]] = {
    "aggregate": lambda con: con.sql("CREATE MACRO max(x) AS min(x)"),
    "pattern": lambda con: con.sql("CREATE MACRO contains(a, b) AS NOT starts_with(a, b)"),
    "collation": lambda con: con.sql("SET default_collation = 'NOCASE'"),
    "view": lambda con: con.sql("CREATE VIEW more AS SELECT few.*, o.kind FROM few JOIN orders o USING (x)"),
}


@pytest.mark.parametrize("change", MACROS)
def test_what_sessions_redefine(place: Path, change: str) -> None:
    texts = [
        "SELECT max(x) FROM orders",
        "SELECT max(name), count(*) FROM orders",
        "SELECT count(*) FROM orders WHERE contains(name, 'name 7') OR x = 3",
        "SELECT count(*) FROM orders WHERE name = 'NAME 7' OR kind = 'A'",
        "SELECT count(*) FROM orders WHERE name LIKE 'NAME%' OR x = 3",
        "SELECT name, kind, count(*) FROM orders GROUP BY name, kind",
        "SELECT sum(orders.x) FROM orders JOIN few ON orders.x = few.x WHERE few.st < 7",
    ]
    with lance_sql.connect(place) as con:
        for text in texts:
            check(con, text)
        MACROS[change](con)
        for text in texts:
            check(con, text)
            if change == "view" and "few" in text:
                check(con, text.replace("few", "more"))
