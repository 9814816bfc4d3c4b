"""EXPORT DATABASE and IMPORT DATABASE: datasets to plain DuckDB, and back."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import lance
import pyarrow as pa
import pytest
from engine_versions import needs_duckdb_2
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.table.constraints import CHECKS

import lance_sql
from lance_sql.catalog.defaults import DEFAULT_KEY

DEFINED = (
    "CREATE SCHEMA lance.s2",
    """CREATE TABLE t (id INTEGER PRIMARY KEY, b VARCHAR DEFAULT 'x' NOT NULL, l INTEGER[], m ENUM('a', 'b'),
        u UUID UNIQUE, st STRUCT(a INT, b VARCHAR), d DECIMAL(10,2), ts TIMESTAMPTZ, CHECK (id > 0))""",
    """INSERT INTO t VALUES
        (1, 'a\nb', [1, NULL], 'a', NULL, {'a': 1, 'b': 'q"'}, 1.5, '2024-01-01 00:00:00+00'),
        (2, '', NULL, 'b', '4ac7a9e9-607c-4c8a-84f3-843f0191e3fd', NULL, NULL, NULL)""",
    'CREATE TABLE "we ird" ("a b" INT)',
    'INSERT INTO "we ird" VALUES (7)',
    "CREATE TABLE s2.x AS SELECT 1 AS one",
    "CREATE INDEX i ON t (b)",
)
OF_DUCKDB = (
    "CREATE TABLE memory.main.own AS SELECT 42 AS a",
    "CREATE VIEW v AS SELECT t.id, one FROM t, s2.x",
    "CREATE SEQUENCE q START 4",
    "CREATE MACRO f(a) AS a + 1",
)
ASKED = (
    "FROM t ORDER BY id",
    'FROM "we ird"',
    "FROM s2.x",
    "DESCRIBE t",
    "SELECT index_name FROM duckdb_indexes()",
)


@needs_duckdb_2
@pytest.mark.parametrize(
    ("engine", "options"),
    [
        ("duckdb", ""),
        pytest.param("duckdb", "(FORMAT parquet)", marks=pytest.mark.slow),  # DuckDB's own options
        pytest.param("duckdb", "(DELIMITER '|', HEADER false)", marks=pytest.mark.slow),
        ("datafusion", ""),
    ],
)
def test_datasets_go_to_duckdb_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, options: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with lance_sql.connect("data", engine=engine) as session:
        for statement in (*DEFINED, *(OF_DUCKDB if engine == "duckdb" else ())):
            session.sql(statement)
        session.sql(f"EXPORT DATABASE 'out' {options}")
    with lance_sql.connect("data") as session:
        expected = [session.sql(asked).fetchall() for asked in ASKED]
    with duckdb.connect() as theirs:
        theirs.sql("IMPORT DATABASE 'out'")
        assert [theirs.sql(asked).fetchall() for asked in ASKED] == expected
        if engine == "duckdb":
            asked = theirs.sql("SELECT v.*, own.a, f(nextval('q')::INT) FROM v, own ORDER BY 1").fetchall()
            assert [row[:3] for row in asked] == [(1, 1, 42), (2, 1, 42)]
        theirs.sql(f"EXPORT DATABASE 'again' {options}")
    os.rename("again", "moved")
    with lance_sql.connect("back", engine=engine) as session:
        session.sql("IMPORT DATABASE 'moved'")
    with lance_sql.connect("back") as session:
        assert [session.sql(asked).fetchall() for asked in ASKED] == expected
    assert (tmp_path / "back" / "s2" / "x.lance").is_dir()


@needs_duckdb_2
def test_one_catalog_is_exported_by_name(tmp_path: Path) -> None:
    lance_sql.write(pa.table({"a": [1]}), tmp_path / "other" / "t.lance")
    with lance_sql.connect(tmp_path / "data") as session:
        session.sql("CREATE TABLE mine AS SELECT 1 AS one")
        session.sql(f"ATTACH '{tmp_path}/other' AS ns (TYPE lance)")
        session.sql(f"EXPORT DATABASE ns TO '{tmp_path}/out'")
    with duckdb.connect() as theirs:
        theirs.sql(f"IMPORT DATABASE '{tmp_path}/out'")
        assert theirs.sql("SHOW TABLES").fetchall() == [("t",)]
        assert theirs.sql("FROM t").fetchall() == [(1,)]


@needs_duckdb_2
def test_texts_of_a_dataset_do_not_become_statements(tmp_path: Path) -> None:
    evil = "1); CREATE TABLE evil (a INTEGER); SELECT (1"
    field = pa.field("a", pa.int64(), metadata={DEFAULT_KEY: evil.encode()})
    schema = pa.schema([field], metadata={CHECKS: f'{{"c": "{evil}"}}'})
    lance.write_dataset(pa.table([[]], schema=schema), tmp_path / "data" / "t.lance")
    with lance_sql.connect(tmp_path / "data") as session:
        assert session.sql("SELECT table_name FROM duckdb_tables()").fetchall() == [("t",)]
        assert session.sql("DESCRIBE t").fetchall() == [("a", "BIGINT", "YES", None, None, None)]
        session.sql(f"EXPORT DATABASE '{tmp_path}/out'")
    assert "evil" not in (tmp_path / "out" / "schema.sql").read_text()


@needs_duckdb_2
def test_settings_of_duckdb_bind_exports(tmp_path: Path) -> None:
    lance_sql.write(pa.table({"a": [1]}), tmp_path / "data" / "t.lance")
    with lance_sql.connect(tmp_path / "data", enable_external_access=False) as session:
        for statement in ("EXPORT DATABASE", "IMPORT DATABASE"):
            with pytest.raises(lance_sql.LanceError, match=r"[Pp]ermission|not allowed|disabled"):
                session.sql(f"{statement} '{tmp_path}/out'")
    assert not (tmp_path / "out").exists()


def test_what_is_no_table_of_the_session_is_refused(tmp_path: Path) -> None:
    lance_sql.write(pa.table({"a": [1]}), tmp_path / "t.lance")
    with lance_sql.connect() as session:
        session.register("r", str(tmp_path / "t.lance"))
        with pytest.raises(UnsupportedFeatureError, match="registered datasets"):
            session.sql(f"EXPORT DATABASE '{tmp_path}/out'")
    with lance_sql.connect(tmp_path, engine="datafusion") as session:
        session.sql("CREATE VIEW v AS SELECT 1 AS a")
        with pytest.raises(UnsupportedFeatureError, match="views and tables of DataFusion"):
            session.sql(f"EXPORT DATABASE '{tmp_path}/out'")
