"""Scans test LIKE and conditions on several columns, which engines do not offer to them."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import lance_sql
from lance_sql.engines import pushdown
from lance_sql.pushdown import top_n

ROWS = 20_000
GREEN = "contains(name, 'green')"


@pytest.fixture(autouse=True)
def no_table_is_small(monkeypatch):
    monkeypatch.setattr(pushdown, "_SMALL_BYTES", 0)
    monkeypatch.setattr(top_n, "_SMALL_BYTES", 0)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    place = tmp_path_factory.mktemp("likes")
    colours = ["red", "blue", "grey", "white"]
    table = pa.table(
        {
            "id": range(ROWS),
            "name": [
                f"part {row} {'green' if row % 100 == 7 else colours[row % 4]} {row * 7919}"
                for row in range(ROWS)
            ],
            "kind": ["MEDIUM" if row % 50 == 0 else "small" for row in range(ROWS)],
            "size": [row * 31 % 97 for row in range(ROWS)],
            "note": [f"a long note about number {row * 31 % 7919}" for row in range(ROWS)],
        }
    )
    lance_sql.write(table, place / "parts.lance", max_rows_per_file=8000)
    lance_sql.write(pa.table({"part": range(0, ROWS, 2), "amount": range(ROWS // 2)}), place / "sold.lance")
    return place


@pytest.fixture
def connection(directory, engine):
    with lance_sql.connect(directory, engine=engine) as connection:
        yield connection


def conditions_on_parts(connection, text, params=None):
    """The conditions that the scans of `parts` applied, by the run of `text`; the answer has to be right."""
    result = connection.sql(text, params)
    found = sorted(map(str, result.arrow().to_pylist()))
    filters = [scan["filter"] for scan in result.metrics["scans"] if scan["table"] == "parts"]
    with duckdb.connect() as plain:
        for name in ("parts", "sold"):
            plain.register(
                name, lance_sql.open(f"{connection._session.catalog.directory}/{name}.lance").to_table()
            )
        expected = plain.sql(text, params=params).to_arrow_table().to_pylist()
    assert found == sorted(map(str, expected))
    return list(dict.fromkeys(filters))


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("SELECT max(size) AS s FROM parts WHERE name LIKE '%green%'", GREEN),
        ("SELECT max(size) AS s FROM parts WHERE NAME like '%green%' AND abs(size) > 1", GREEN),
        ("SELECT max(size) AS s FROM parts AS p WHERE p.name LIKE '%green%' AND abs(p.size) > 1", GREEN),
        ("SELECT max(size) AS s FROM parts p WHERE (abs(p.size) > 1) AND (p.name LIKE '%green%')", GREEN),
        ("SELECT s FROM (SELECT size + 1 AS s FROM parts WHERE name LIKE '%green%') AS q", GREEN),
        ("WITH q AS (SELECT size FROM parts WHERE name LIKE '%green%') SELECT max(size) AS m FROM q", GREEN),
        ("SELECT upper(name) AS name FROM parts WHERE name LIKE '%green%'", GREEN),
        ("SELECT id FROM parts WHERE name LIKE '%gr_en%'", "name LIKE '%gr%en%'"),
        ("SELECT id FROM parts WHERE kind NOT LIKE 's_al_'", "NOT (kind LIKE 's_al_')"),
        ("SELECT id FROM parts WHERE name ILIKE '%GREEN%'", "name ILIKE '%GREEN%'"),
        ("SELECT id FROM parts WHERE name ilike '% Green 7_919%'", "name ILIKE '% Green 7%919%'"),
        ("SELECT id FROM parts WHERE kind ILIKE 'MeDiUm' AND abs(size) > 1", "kind ILIKE 'MeD%Um'"),
        (
            "SELECT id FROM parts WHERE name ILIKE '%GREEN%' OR kind ILIKE 'MED%' AND size < 9",
            "name ILIKE '%GREEN%' OR (kind ILIKE 'MED%' AND size < 9)",
        ),
        ("SELECT id FROM parts WHERE kind NOT LIKE 's%'", "NOT (starts_with(kind, 's'))"),
        (
            "SELECT id FROM parts WHERE name LIKE '%green%' OR kind = 'MEDIUM' AND size < 9",
            f"{GREEN} OR (kind = 'MEDIUM' AND size < 9)",
        ),
        ("SELECT amount FROM parts, sold WHERE id = part AND name LIKE '%green%'", GREEN),
        ("SELECT amount FROM sold JOIN parts p ON id = part WHERE p.name LIKE '%green%'", GREEN),
        (
            "SELECT amount FROM sold WHERE part IN (SELECT id FROM parts WHERE name LIKE '%green%')",
            GREEN,
        ),
        ("SELECT a.amount AS sold FROM sold AS a, parts WHERE id = part AND name LIKE '%green%'", GREEN),
        ("SELECT count(*) FILTER (WHERE size > 5) AS c FROM parts WHERE name LIKE '%green%'", GREEN),
        (
            "SELECT id FROM parts WHERE name LIKE '%green%' AND CASE WHEN size > 5 AND id > 9 THEN 1 END = 1",
            GREEN,
        ),
        ("SELECT id FROM parts WHERE id + 1 BETWEEN 5 AND 900 AND name LIKE '%green%'", GREEN),
    ],
)
def test_the_scan_drops_rows_that_do_not_match(connection, text, condition):
    (found,) = conditions_on_parts(connection, text)
    assert found is not None
    assert condition in found.replace("(OR", "OR")


@pytest.mark.parametrize(
    "text",
    [
        # Most rows pass.
        "SELECT id FROM parts WHERE name LIKE '%part%'",
        "SELECT id FROM parts WHERE name NOT LIKE '%green%'",
        # Rows that do not pass count.
        "SELECT amount FROM sold LEFT JOIN parts ON id = part AND name LIKE '%green%'",
        "SELECT amount FROM sold LEFT JOIN parts ON id = part WHERE name LIKE '%green%' OR id IS NULL",
        "SELECT amount FROM sold FULL JOIN parts ON id = part WHERE name LIKE '%green%' OR id IS NULL",
        "SELECT count(*) AS c, max(CASE WHEN name LIKE '%green%' THEN 1 END) AS s FROM parts",
        # Another scan of the table needs the other rows.
        "SELECT a.id FROM parts a, parts b WHERE a.id = b.size AND a.name LIKE '%green%'",
        "SELECT id FROM parts WHERE name LIKE '%green%' UNION ALL SELECT id FROM parts WHERE id < 5",
        "SELECT id FROM parts WHERE name LIKE '%green%' AND id > (SELECT avg(size) FROM parts)",
        # The names are not those of the columns.
        "SELECT x FROM parts AS p(x, y, z, w, name) WHERE name LIKE '%green%'",
        "SELECT id FROM (SELECT id, note AS name FROM parts) AS q WHERE name LIKE '%green%'",
        "WITH sold AS (SELECT name AS k, 'greens' AS name FROM parts) "
        "SELECT k FROM sold WHERE name LIKE 'greens%'",
        "WITH parts AS (SELECT 1 AS id, 'greens' AS name) SELECT id FROM parts WHERE name LIKE '%green%'",
        # Expressions that are not understood.
        "SELECT id FROM parts WHERE name || kind LIKE '%greens%'",
        "SELECT id FROM parts WHERE upper(name) LIKE '%GREEN%'",
        "SELECT id FROM parts WHERE name NOT ILIKE '%Green%'",
        "SELECT id FROM parts WHERE NOT (name ILIKE '%part%' OR name ILIKE '%green%')",
        "SELECT id FROM parts WHERE upper(name) ILIKE '%Green%'",
        "SELECT id FROM parts WHERE name LIKE '%gr' || 'een%'",
        "SELECT id FROM parts WHERE (name LIKE '%green%') IS NULL",
        "SELECT id FROM parts WHERE (name LIKE '%green%') = (size > 5)",
        "SELECT id FROM parts WHERE name LIKE '%green%' OR abs(size) = 3",
    ],
)
def test_other_conditions_are_left_to_the_engine(connection, text):
    assert not any("green" in str(found) for found in conditions_on_parts(connection, text))


@pytest.mark.parametrize(
    ("condition", "params", "expected"),
    [
        ("name LIKE ?", ["%green%"], GREEN),
        ("name ILIKE $2 AND id > $1", [-5, "%GREEN%"], "name ILIKE '%GREEN%'"),
        ("name LIKE $what", {"what": "%gr'een%"}, "contains(name, 'gr''een')"),
        ("id > ? AND (size = ? AND name LIKE ? OR size = ?)", [3, 5, "%green%", -7], "size = -7"),
        ("name LIKE concat(?, '%')", ["%green"], None),
        ("(size = ? OR name LIKE ?)", [1.5, "%green%"], None),
    ],
)
def test_parameters_are_constants(directory, condition, params, expected):
    with lance_sql.connect(directory) as connection:
        (found,) = conditions_on_parts(connection, f"SELECT id FROM parts WHERE {condition}", params)
        assert expected in found if expected else found is None


def test_each_run_has_its_own_parameters(connection):
    text = "SELECT id FROM parts WHERE name LIKE $1"
    for words in ("%green%", "% 19999 %", "% 19998 %", "%green%"):
        (found,) = conditions_on_parts(connection, text, [words])
        assert words.strip("%") in found


def test_letters_with_other_cases_elsewhere_are_found(tmp_path, engine):
    """Lower case of İ is i, of the sign for kelvin k; regular expressions find ſ where s is looked for."""
    names = ["Ask", "A\u017fK", "a\u017f\u212a", "AS\u212a", "I b", "\u0130 b", "\u0131 B", "Ä b"]
    table = pa.table({"id": range(8000), "name": [names[i] if i < 8 else f"no {i}" for i in range(8000)]})
    lance_sql.write(table, tmp_path / "t.lance")
    with lance_sql.connect(tmp_path, engine=engine) as connection:
        for pattern in ("ask", "a%K", "i b", "_ B", "\u0131%", "ä %", "ÄS"):
            text = f"SELECT id FROM t WHERE name ILIKE '{pattern}' ORDER BY id"
            found = connection.sql(text).fetchall()
            assert found == connection.sql(text.replace("ILIKE", "|| '' ILIKE")).fetchall()


def test_views_macros_and_collations_are_left_to_duckdb(directory):
    text = "SELECT count(*) AS c FROM parts WHERE kind LIKE '%medium%'"
    with lance_sql.connect(directory) as connection:
        connection.sql("CREATE VIEW v AS SELECT id, kind AS name, name AS kind FROM parts")
        assert filters_of(connection, "SELECT id FROM v WHERE name LIKE '%MED%'") == [None]
        assert connection.sql(text).fetchall() == [(0,)]
        connection.sql("SET default_collation = 'nocase'")
        assert filters_of(connection, text) == [None]
        connection.sql("RESET default_collation")
        assert filters_of(connection, text) == ["contains(kind, 'medium')"]
        before = connection.sql(text)
        connection.sql("CREATE MACRO other(a, b) AS true")
        assert filters_of(connection, text) == ["contains(kind, 'medium')"]
        ilike = text.replace("LIKE", "ILIKE").replace("medium", "mex")
        assert filters_of(connection, ilike) == ["kind ILIKE '%mex%'"]
        connection.sql('CREATE MACRO "~~*"(a, b) AS true')
        assert filters_of(connection, ilike) == [None]
        assert connection.sql(ilike).fetchall() == [(ROWS,)]
        connection.sql('DROP MACRO "~~*"')
        connection.sql('CREATE MACRO "~~"(a, b) AS true')
        assert before.fetchall() == connection.sql(text).fetchall()
        assert filters_of(connection, text) == [None]
        assert connection.sql(text).fetchall() == [(ROWS,)]


def filters_of(connection, text):
    result = connection.sql(text)
    result.arrow()
    return [scan["filter"] for scan in result.metrics["scans"]]


def test_a_statement_that_runs_again_sees_new_rows(tmp_path, engine):
    table = pa.table({"id": range(4000), "name": [f"the name {row}" for row in range(4000)]})
    lance_sql.write(table, tmp_path / "t.lance")
    text = "SELECT count(*) AS c FROM t WHERE name LIKE '%name 7%'"
    with lance_sql.connect(tmp_path, engine=engine) as connection:
        assert connection.sql(text).fetchall() == [(111,)] == connection.sql(text).fetchall()
        lance_sql.write(pa.table({"id": [1], "name": ["a name 7"]}), tmp_path / "t.lance", mode="append")
        connection.sql("DELETE FROM t WHERE name = 'the name 77'")
        assert connection.sql(text).fetchall() == [(111,)]
        before = connection.sql(text + " AND id >= 0")
        connection.sql("DELETE FROM t WHERE name = 'the name 78'")
        assert before.fetchall() == [(111,)]
        assert connection.sql(text).fetchall() == [(110,)]


def test_explain_shows_the_condition_and_why(connection):
    text = "SELECT max(size) AS s FROM parts WHERE name LIKE '%green%' AND kind NOT LIKE 'M%'"
    shown = str(connection.explain(text, analyze=True))
    assert "contains(name, 'green'): the scan drops rows first, " in shown
    assert f"NOT (starts_with(kind, 'M')): left to {connection.engine}, " in shown
    (read,) = [line for line in shown.splitlines() if line.startswith("Lance read")]
    assert GREEN in read


def test_first_rows_among_those_that_match_are_read_late(connection):
    text = "SELECT * FROM parts WHERE name LIKE '%green%' ORDER BY size LIMIT 5"
    result = connection.sql(text)
    assert len(result.fetchall()) == 5
    keys, rows = result.metrics["scans"][0], result.metrics["scans"][-1]
    assert GREEN in keys["filter"]
    assert GREEN in rows["filter"]
    assert "size <= " in rows["filter"]
    assert sum(scan["rows_out"] for scan in result.metrics["scans"] if "size <=" in scan["filter"]) < 20
