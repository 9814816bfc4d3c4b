"""Reading Lance references off the tokens of a statement."""

from __future__ import annotations

import pytest
from lance_engine.errors import UnsupportedFeatureError

from lance_sql.query.statement import parse


def certain(text: str) -> list[tuple[str, int | None]]:
    return [(found.location, found.version) for found in parse(text).references if found.certain]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM 'a.lance'", [("a.lance", None)]),
        ("SELECT * FROM \"a.lance\" t JOIN 'b.lance' USING (x)", [("a.lance", None), ("b.lance", None)]),
        ("FROM 'it''s.lance'", [("it's.lance", None)]),
        ("SELECT 1 -- FROM 'a.lance'\n", []),
        ("SELECT /* FROM 'a.lance' */ 1", []),
        ("SELECT $$FROM 'a.lance'$$", []),
        ("SELECT 'FROM ''a.lance'''", []),
        ("WITH q AS (SELECT * FROM 'a.lance') SELECT * FROM q", [("a.lance", None), ("q", None)]),
        ("SELECT * FROM lance_scan('a.lance')", [("a.lance", None)]),
        ("SELECT * FROM lance_scan('a.lance', version := 2)", [("a.lance", 2)]),
        ("SELECT * FROM sales AT (VERSION => 3)", [("sales", 3)]),
        ("DESCRIBE 'a.lance'", [("a.lance", None)]),
    ],
)
def test_tables(text, expected):
    assert sorted(certain(text)) == expected


def test_a_string_elsewhere_is_no_certain_table():
    (reference,) = (
        found for found in parse("SELECT * FROM t WHERE x = 'a.lance'").references if found.quoted
    )
    assert reference.location == "a.lance"
    assert not reference.certain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM 'a.lance' AT (VERSION => 3)", 'SELECT * FROM "a.lance@3" AS "a.lance"'),
        ("FROM s AT (version => 3) WHERE x", 'FROM "s@3" AS "s" WHERE x'),
        ("FROM s AT (VERSION => 3) t", 'FROM "s@3" t'),
        ("FROM s AT (VERSION => 3) AS t", 'FROM "s@3" AS t'),
        ("FROM lance_scan('a.lance', 3) AS t", 'FROM "a.lance@3" AS t'),
        ("SELECT at FROM s", "SELECT at FROM s"),
        ("WHERE x = ? AND y = '?' AND z = ?", "WHERE x = $1 AND y = '?' AND z = $2"),
        ("lance_scan(?)", "lance_scan($1)"),
    ],
)
def test_rewriting(text, expected):
    assert parse(text).text == expected


def test_system_columns_are_those_the_statement_names():
    assert parse("SELECT x FROM 'a.lance'").system_columns == ()
    assert parse("SELECT '_rowid' FROM 'a.lance'").system_columns == ()
    assert parse("SELECT t._ROWID FROM 'a.lance' t").system_columns == ("_rowid",)
    assert parse('SELECT "_rowaddr", _rowid FROM t').system_columns == ("_rowid", "_rowaddr")


def test_time_travel_by_time_is_refused_with_a_remedy():
    with pytest.raises(UnsupportedFeatureError, match="VERSION => 3"):
        parse("SELECT * FROM s AT (TIMESTAMP => now())")
