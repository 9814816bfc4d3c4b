"""ALTER TABLE of fields within structs, lists and maps, as in plain DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb
import lance
import pytest
from lance_engine.errors import ColumnNotFoundError, SchemaMismatchError, UnsupportedFeatureError

import lance_sql

TABLE = (
    "CREATE TABLE t(id INT, s STRUCT(x INT, y VARCHAR), l STRUCT(p INT)[], m MAP(VARCHAR, STRUCT(q INT)), "
    "deep STRUCT(a STRUCT(b INT, c INT)[]))"
)
ROWS = (
    "INSERT INTO t VALUES "
    "(1, {'x': 1, 'y': 'a'}, [{'p': 1}], MAP {'k': {'q': 1}}, {'a': [{'b': 1, 'c': 2}]}), "
    "(2, NULL, [], MAP {}, NULL), (3, {'x': NULL, 'y': 'b'}, [NULL, {'p': 3}], NULL, {'a': NULL})"
)


def test_fields_change_as_in_duckdb(tmp_path: Path) -> None:
    session, plain = lance_sql.connect(tmp_path), duckdb.connect()
    for text in (
        TABLE,
        ROWS,
        "ALTER TABLE t ADD COLUMN s.z INT",
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS s.z INT",
        'ALTER TABLE t ADD S."two words" VARCHAR[]',
        "ALTER TABLE t ADD COLUMN l.element.z DECIMAL(10, 2)",
        "ALTER TABLE t ADD COLUMN m.value.z STRUCT(r TIMESTAMPTZ)",
        "ALTER TABLE t ADD COLUMN deep.a.element.d INT",
        "INSERT INTO t(id, s, l) VALUES (4, {'x': 4, 'y': 'd', 'z': 5, 'two words': ['e']}, [{'p': 1}])",
        "ALTER TABLE t RENAME COLUMN s.x TO xx",
        "ALTER TABLE t RENAME l.element.p TO pp",
        "ALTER TABLE t RENAME COLUMN m.value.q TO qq",
        "ALTER TABLE t DROP COLUMN l.element.z",
        "ALTER TABLE t DROP COLUMN IF EXISTS l.element.z",
        "ALTER TABLE t DROP deep.a.element.b",
    ):
        session.sql(text)
        plain.sql(text)
        query = "SELECT * FROM t ORDER BY id"
        assert session.sql(query).fetchall() == plain.sql(query).fetchall(), text
        described = [row[:2] for row in session.sql("DESCRIBE t").fetchall()]
        assert described == [row[:2] for row in plain.sql("DESCRIBE t").fetchall()], text
    assert lance.dataset(str(tmp_path / "t.lance")).to_table().num_rows == 4


def test_changes_that_are_refused(tmp_path: Path) -> None:
    session = lance_sql.connect(tmp_path)
    session.sql(TABLE)
    for text, error, message in (
        ("ADD COLUMN s.X INT", SchemaMismatchError, r"'s\.x' already exists"),
        ("ADD COLUMN id.k INT", UnsupportedFeatureError, "only be added to structs"),
        ("ADD COLUMN s.k INT DEFAULT 3", UnsupportedFeatureError, "no default"),
        ("ADD COLUMN none.k INT", ColumnNotFoundError, "'none' not found"),
        ("ADD COLUMN s.q.k INT", ColumnNotFoundError, "no field 'q'"),
        ("RENAME s.x TO Y", SchemaMismatchError, "already has a field"),
        ("RENAME s.none TO y2", ColumnNotFoundError, "Its fields are x, y"),
        ("DROP COLUMN l.element.p", SchemaMismatchError, "requires this field"),
        ("DROP COLUMN s.none", ColumnNotFoundError, "no field 'none'"),
        ("ALTER COLUMN s.x TYPE BIGINT", UnsupportedFeatureError, "whole columns"),
        ("ALTER COLUMN s.x SET NOT NULL", UnsupportedFeatureError, "whole columns"),
    ):
        with pytest.raises(error, match=message):
            session.sql(f"ALTER TABLE t {text}")
    assert lance_sql.open(tmp_path / "t.lance").version == 1
    with pytest.raises(SchemaMismatchError, match="already has a field"):
        lance_sql.open(tmp_path / "t.lance").rename_column("s.x", "y")


def test_a_default_over_columns_computes_the_rows_that_exist(tmp_path: Path) -> None:
    session = lance_sql.connect(tmp_path)
    session.sql("CREATE TABLE t AS SELECT 1 AS age UNION ALL SELECT 2")
    session.sql("ALTER TABLE t ADD COLUMN next BIGINT DEFAULT (age + 1)")
    session.sql("INSERT INTO t(age) VALUES (7)")
    assert session.sql("SELECT * FROM t ORDER BY age").fetchall() == [(1, 2), (2, 3), (7, None)]
