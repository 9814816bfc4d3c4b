"""Finding Lance references in the tokens of a statement."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from lance_engine.errors import InvalidFilterError, UnsupportedFeatureError

import lance_sql
from lance_sql.catalog import catalog
from lance_sql.text import script, statement, tokens
from lance_sql.text.reference import VersionChoice, split_suffix
from lance_sql.text.script import split
from lance_sql.text.statement import Statement


def certain(text: str) -> list[tuple[str, int | None]]:
    return [(found.location, found.choice.version) for found in Statement(text).references if found.certain]


def choice(text: str) -> VersionChoice:
    (reference,) = (found for found in Statement(text).references if found.certain)
    return reference.choice


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
        ("SELECT * FROM (PIVOT 'a.lance' ON k USING count(*))", [("a.lance", None)]),
        ("WITH p AS (UNPIVOT a ON k, l) SELECT * FROM p", [("a", None), ("p", None)]),
        ("SELECT sum(pivot), (unpivot), (pivot + no) FROM a", [("a", None)]),
        (
            "SELECT 'no', 'no' FROM a, 'b.lance' x, lance_scan('c.lance') WHERE y IN ('no', 'no')",
            [("a", None), ("b.lance", None), ("c.lance", None)],
        ),
        (
            "SELECT * FROM ('a.lance' JOIN 'b.lance' USING (x)) ORDER BY 1, 'no'",
            [("a.lance", None), ("b.lance", None)],
        ),
        ("SELECT 1 WHERE 'x' IS NOT DISTINCT FROM 'no.lance'", []),
        ("SELECT * FROM 'a.lance'.fragments, b.tags AT (VERSION => 2)", [("a.lance", None), ("b", 2)]),
        ("SELECT * FROM lance_metadata('a.lance', 'zones', version => 4)", [("a.lance", 4)]),
        ("SELECT t.files FROM t, unnest([t.tags, t.pages]) u", [("t", None), ("unnest", None)]),
    ],
)
def test_tables(text, expected):
    assert sorted(certain(text)) == expected


def test_a_string_elsewhere_is_no_certain_table():
    (reference,) = (
        found for found in Statement("SELECT * FROM t WHERE x = 'a.lance'").references if found.quoted
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
        ("FROM s AT (TAG => 'prod')", 'FROM "s@prod" AS "s"'),
        ("FROM s AT (BRANCH => dev, VERSION => 2) t", 'FROM "s@dev/2" t'),
        ("FROM s AT (TIMESTAMP => TIMESTAMP '2026-01-31 18:00')", 'FROM "s@2026-01-31T18:00:00" AS "s"'),
        ("FROM 'a.lance'.versions WHERE x", 'FROM "a.lance.versions" AS "versions" WHERE x'),
        ("FROM 'a.lance'.files AT (VERSION => 3) f", 'FROM "a.lance@3.files" f'),
        ("FROM lance_metadata('a.lance', 'pages')", 'FROM "a.lance.pages"'),
        ("FROM sales.versions", "FROM sales.versions"),  # perhaps a schema: only if sales is a dataset
        ("SELECT at FROM s", "SELECT at FROM s"),
        ("WHERE x = ? AND y = '?' AND z = ?", "WHERE x = $1 AND y = '?' AND z = $2"),
    ],
)
def test_rewriting(text, expected):
    # DataFusion needs a SELECT in each query.
    select = "SELECT * " if text.startswith("FROM") else ""
    assert Statement(text).text() == select + expected


def test_system_columns_are_those_the_statement_names():
    assert Statement("SELECT x FROM 'a.lance'").system_columns == ()
    assert Statement("SELECT '_rowid' FROM 'a.lance'").system_columns == ()
    assert Statement("SELECT t._ROWID FROM 'a.lance' t").system_columns == ("_rowid",)
    assert Statement('SELECT "_rowaddr", _rowid FROM t').system_columns == ("_rowid", "_rowaddr")


def test_metadata_of_a_name_that_is_a_dataset():
    statement = Statement("FROM sales.versions")
    assert statement.text({"sales.versions"}, numbered=False) == 'FROM "sales.versions" AS "versions"'


def test_parameters_keep_their_form_where_the_engine_knows_it():
    assert Statement("WHERE x = ? AND y = ?").text(numbered=False) == "WHERE x = ? AND y = ?"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("'2026-01-31'", datetime.datetime(2026, 1, 31)),
        ("DATE '2026-01-31'", datetime.datetime(2026, 1, 31)),
        ("timestamp '2026-01-31 18:00:01.5'", datetime.datetime(2026, 1, 31, 18, 0, 1, 500000)),
        ("'2026-01-31T18:00:00+01:00'", datetime.datetime(2026, 1, 31, 17, tzinfo=datetime.UTC)),
        ("TIMESTAMPTZ '2026-01-31 18:00:00Z' - INTERVAL 1 DAY",
         datetime.datetime(2026, 1, 30, 18, tzinfo=datetime.UTC)),
    ],
)  # fmt: skip
def test_times(written, expected):
    assert choice(f"FROM 'a.lance' AT (TIMESTAMP => {written})") == VersionChoice(as_of=expected)


def test_a_time_may_be_computed():
    moment = choice("FROM 'a.lance' AT (TIMESTAMP => now() - INTERVAL 1 HOUR)").as_of
    past = datetime.datetime.now(datetime.UTC) - moment
    assert datetime.timedelta(minutes=59) < past < datetime.timedelta(minutes=61)


def test_suffixes():
    assert split_suffix("a.lance@3") == ("a.lance", VersionChoice(version=3))
    assert split_suffix("a@b/x.lance@v1.2") == ("a@b/x.lance", VersionChoice(tag="v1.2"))
    assert split_suffix("user@host/a.lance") is None


@pytest.mark.parametrize(
    "text",
    [
        "FROM s AT (VERSION => 'x')",
        "FROM s AT (EPOCH => 3)",
        "FROM s AT (VERSION => 3, TAG => 'prod')",
        "FROM lance_scan('a.lance', size => 3)",
        "FROM lance_scan(?)",
        "FROM lance_metadata('a.lance', 'nothing')",
    ],
)
def test_what_says_no_version_is_refused_with_a_remedy(text):
    with pytest.raises(UnsupportedFeatureError) as caught:
        _ = Statement(text).references
    assert caught.value.remedy


def test_no_time():
    with pytest.raises(InvalidFilterError, match="constant time"):
        _ = Statement("SELECT * FROM s AT (TIMESTAMP => day)").references


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize("last", ["SELECT count(*) AS n FROM '{0}'", "SELECT x FROM '{0}' WHERE x > 1"])
def test_a_text_is_read_once(tmp_path, monkeypatch, engine, last):
    """Its tokens, what it names, and the datasets behind these names are found once for all who ask."""
    uri = str(tmp_path / "t.lance")
    lance_sql.write(pa.table({"x": range(3)}), uri)
    texts, opened = [], []
    for module in (statement, script):
        monkeypatch.setattr(module, "tokenize", lambda text: texts.append(text) or tokens.tokenize(text))
    opens = catalog.Catalog._open
    monkeypatch.setattr(catalog.Catalog, "_open", lambda *given: opened.append(given) or opens(*given))
    text = f"SELECT 1; {last.format(uri)} -- that is all"
    with lance_sql.connect(engine=engine) as connection:
        assert connection.sql(text).arrow().num_rows == 1
    assert texts == [text]
    assert len(opened) == 1


def test_tokens_of_a_part_have_their_places_in_it():
    first, second = split("SELECT 1 ; SELECT * FROM 'a.lance' AT (VERSION => 2) ;")
    assert first.tokens == tokens.tokenize("SELECT 1")
    assert second.tokens == tokens.tokenize(second.original)
    assert second.text() == Statement("SELECT * FROM 'a.lance' AT (VERSION => 2)").text()
