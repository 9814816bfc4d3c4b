"""Statements only report success if they did something, and values are the same as in DuckDB."""

from __future__ import annotations

import decimal
import uuid
from pathlib import Path

import duckdb
import lance
import pyarrow as pa
import pytest
from lance_engine.errors import DatasetNotFoundError, InvalidFilterError, LanceError

import lance_sql
import lance_sql.duckdb


@pytest.fixture
def place(tmp_path: Path) -> Path:
    lance_sql.write(pa.table({"id": [1, 2], "tags": [["t1", "u1"], ["x"]]}), tmp_path / "cp.lance")
    lance_sql.write(pa.table({"id": [1]}), tmp_path / "keep.lance")
    return tmp_path


def test_dropping_drops_all_or_nothing(place: Path) -> None:
    with lance_sql.connect(place) as session:
        for statement in ("DROP TABLE nosuch, keep", "DROP TABLE nosuch"):
            with pytest.raises(DatasetNotFoundError, match="nosuch"):
                session.sql(statement)
        assert session.tables() == ["cp", "keep"]
        session.sql("CREATE TEMP TABLE tmp AS SELECT 1 AS a")
        session.sql("DROP TABLE tmp")
        with pytest.raises(LanceError, match="tmp"):
            session.sql("SELECT * FROM tmp")
        session.sql("DROP TABLE IF EXISTS nosuch, keep")
        assert session.tables() == ["cp"]


def test_one_name_means_one_thing(place: Path) -> None:
    with lance_sql.connect(place) as session:
        for statement in ("CREATE TEMP TABLE cp AS SELECT 1", "CREATE VIEW cp AS SELECT 1", "DROP VIEW cp"):
            with pytest.raises(LanceError, match="cp is a dataset"):
                session.sql(statement)
        assert session.sql("SELECT count(*) FROM cp").fetchall() == [(2,)]
        session.sql("CREATE TEMP TABLE own AS SELECT 1 AS a")
        with pytest.raises(LanceError, match="table of the SQL engine"):
            session.sql("CREATE TABLE own AS SELECT 2 AS a")


def test_names_survive_transactions_of_own_connections(place: Path) -> None:
    connection = duckdb.connect()
    lance_sql.duckdb.install(connection, str(place))
    for end in ("ROLLBACK", "COMMIT", "ABORT"):
        connection.execute("BEGIN")
        assert connection.execute("SELECT count(*) FROM cp").fetchall() == [(2,)]
        connection.execute(end)
        assert connection.execute("SELECT count(*) FROM cp").fetchall() == [(2,)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize(
    "start",
    [
        "CREATE PERSISTENT SECRET s",
        "CREATE OR REPLACE PERSISTENT SECRET IF NOT EXISTS s",
        "CREATE SECRET s IN local_file",
    ],
)
def test_secrets_that_would_not_persist_are_refused(engine: str, start: str) -> None:
    with lance_sql.connect(engine=engine) as session:
        with pytest.raises(LanceError, match=r"beyond their end.*at the start of each session"):
            session.sql(f"{start} (TYPE S3, KEY_ID 'a', SECRET 'b')")
        session.sql("CREATE TEMPORARY SECRET s (TYPE S3, KEY_ID 'a', SECRET 'b')")
        with pytest.raises(LanceError):
            session.sql("DROP PERSISTENT SECRET s")
        session.sql("DROP SECRET s")


def test_comments_are_kept(place: Path) -> None:
    with lance_sql.connect(place) as session:
        session.sql("COMMENT ON TABLE cp IS 'all of them'; COMMENT ON COLUMN cp.id IS 'key'")
        stored = lance.dataset(place / "cp.lance")
        assert (stored.metadata["comment"], stored.schema.field("id").metadata[b"comment"]) == (
            "all of them",
            b"key",
        )
        session.sql("COMMENT ON COLUMN cp.id IS NULL; COMMENT ON TABLE cp IS NULL")
        assert not lance_sql.open(place / "cp.lance").schema.field("id").metadata
        assert "comment" not in lance.dataset(place / "cp.lance").metadata


def test_merge_returns_what_it_deletes(place: Path) -> None:
    merge = "MERGE INTO cp USING keep ON cp.id = keep.id WHEN MATCHED THEN DELETE RETURNING id"
    with lance_sql.connect(place) as session:
        assert session.sql(merge).fetchall() == [(1,)]


def test_defaults_in_updates(place: Path) -> None:
    with lance_sql.connect(place) as session:
        session.sql("ALTER TABLE cp ALTER id SET DEFAULT 40 + 2")
        session.sql("UPDATE cp SET id = DEFAULT WHERE id = 1")
        assert session.sql("SELECT id FROM cp ORDER BY id").fetchall() == [(2,), (42,)]


def test_values_are_those_of_duckdb(place: Path) -> None:
    text = (
        "SELECT sum(id) AS s, MAP{'a': sum(id)} AS m, '6ba7b810-9dad-11d1-80b4-00c04fd430c8'::UUID AS u, "
        "3::DECIMAL(38, 0) AS d, [sum(id), NULL] AS l, {'k': NULL::UUID} AS st, NULL::HUGEINT AS n FROM "
    )
    with lance_sql.connect(place) as session:
        found = session.sql(f"{text} cp")
        plain = duckdb.sql(f"{text} (VALUES (1), (2)) t(id)")
        assert found.fetchall() == plain.fetchall()
        row = found.df().iloc[0]
        assert found.df().dtypes["s"] == plain.df().dtypes["s"]
    assert row["m"] == {"a": 3}
    assert row["u"] == uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
    assert row["d"] == decimal.Decimal(3)


def test_lists_are_compared_as_datafusion_compares_them(place: Path) -> None:
    with lance_sql.connect(place, engine="datafusion") as session:
        rows = session.sql("SELECT id, tags FROM cp").arrow()
        session.register("plain", rows)
        for test in ("tags < ['t1', 'v']", "tags = ['x']", "tags > ['t1']", "tags <> ['t1', 'u1']"):
            # behind a LIMIT, DataFusion computes the condition itself
            text = f"SELECT id FROM (SELECT * FROM plain LIMIT 9) WHERE {test}"
            expected = session.sql(text).fetchall()
            assert session.sql(f"SELECT id FROM cp WHERE {test}").fetchall() == expected


def test_casts_of_columns_are_those_of_duckdb(tmp_path):
    uri = tmp_path / "casts.lance"
    lance_sql.write(pa.table({"f": [4.0, 1.5, 2.5, 1e20], "s": ["", "", "", ""], "i": [0, 0, 0, 0]}), uri)
    lance_sql.sql(f"UPDATE '{uri}' SET s = CAST(f AS VARCHAR), i = CAST(least(f, 9) AS BIGINT)")
    rows = lance_sql.sql(
        f"SELECT s, i, CAST(f AS VARCHAR), CAST(least(f, 9) AS BIGINT) FROM '{uri}'"
    ).fetchall()
    assert [row[:2] for row in rows] == [row[2:] for row in rows]
    assert lance_sql.sql(f"DELETE FROM '{uri}' WHERE CAST(f AS VARCHAR) = '4.0'").fetchall() == [(1,)]


def test_aggregates_of_datasets_with_metadata_of_the_schema_in_datafusion(tmp_path):
    table = pa.table({"id": [1, 2, 3], "c": ["a", "b", "b"]}).replace_schema_metadata({"comment": "x"})
    lance_sql.write(table, tmp_path / "t.lance")
    with lance_sql.connect(tmp_path, engine="datafusion") as session:
        assert session.sql("SELECT count(*) FROM t WHERE c = 'b'").fetchall() == [(2,)]
        grouped = session.sql("SELECT c, count(*) FROM t WHERE id > 1 GROUP BY c").fetchall()
        assert grouped == [("b", 2)]


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_table_functions_in_queries_that_are_written(tmp_path, engine):
    with lance_sql.connect(tmp_path, engine=engine) as session:
        session.sql("CREATE TABLE t AS SELECT * FROM range(3)")
        session.sql("INSERT INTO t SELECT * FROM range(4)")
        session.sql(f"COPY (SELECT * FROM range(5)) TO '{tmp_path / 'v.lance'}' (FORMAT lance)")
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(7,)]
        assert session.sql("SELECT count(*) FROM v").fetchall() == [(5,)]


def test_dropping_the_view_of_a_dataset_on_an_own_connection(tmp_path):
    lance_sql.write(pa.table({"id": [1, 2, 3]}), tmp_path / "t.lance")
    with duckdb.connect() as connection:
        lance_sql.duckdb.install(connection, str(tmp_path))
        assert connection.sql("SELECT count(*) FROM t").fetchall() == [(3,)]
        connection.sql("DROP VIEW t")
        assert connection.sql("SELECT count(*) FROM t").fetchall() == [(3,)]


#: Values of a type, and types that DuckDB makes other texts or numbers of than Arrow does, or none at all.
CASTS = [
    ("DOUBLE", "1.0, 2.5, 1e20, NULL", "VARCHAR UUID DATE"),
    ("FLOAT", "0.1, 16777216", "VARCHAR INTEGER"),
    ("BOOLEAN", "true, false", "DECIMAL(4,1) VARCHAR"),
    ("TIMESTAMP", "'2024-01-02 03:04:05.678', '2024-01-02'", "VARCHAR BIGINT DATE TIME"),
    ("TIMESTAMPTZ", "'2024-01-02 03:04:05+00'", "VARCHAR BIGINT TIMESTAMP"),
    ("DATE", "'2024-01-02'", "VARCHAR INTEGER TIMESTAMP"),
    ("TIME", "'03:04:05'", "VARCHAR BIGINT"),
    ("INTEGER", "0, 1, 300", "DATE TINYINT BOOLEAN VARCHAR"),
    ("BIGINT", "5, 5000000000", "TIMESTAMP TIME INTEGER"),
    ("DECIMAL(5,2)", "1.25, 2.5, 3.75", "BOOLEAN INTEGER VARCHAR DOUBLE"),
    ("VARCHAR", "' 1 ', '1.5'", "INTEGER DOUBLE DECIMAL(4,1) UUID"),
    ("VARCHAR", "'t', 'yes'", "BOOLEAN"),
    ("BLOB", "'ab', '\\xff'", "VARCHAR"),
    ("INTEGER[]", "[1, 2]", "VARCHAR[] VARCHAR"),
]


@pytest.mark.parametrize(("kind", "values", "targets"), CASTS)
def test_new_types_of_columns_are_casts_of_duckdb(tmp_path, kind, values, targets):
    rows = ", ".join(f"({value})" for value in ([values] if kind.endswith("]") else values.split(", ")))
    create = f"CREATE TABLE {{}} AS SELECT a::{kind} AS a FROM (VALUES {rows}) v(a)"
    zone = "SET TimeZone = 'Asia/Tokyo'"
    with lance_sql.connect(tmp_path) as session, duckdb.connect() as plain:
        plain.execute(zone)
        session.sql(zone)
        for number, target in enumerate(targets.split()):
            change = f"ALTER TABLE t{number} ALTER a TYPE {target}"
            session.sql(create.format(f"t{number}"))
            plain.execute(create.format(f"t{number}"))
            try:
                plain.execute(change)
            except duckdb.Error:
                with pytest.raises(InvalidFilterError, match=r"column: a"):
                    session.sql(change)
            else:
                session.sql(change)
            wanted = plain.execute(f"SELECT a::VARCHAR FROM t{number}").fetchall()
            assert session.sql(f"SELECT a::VARCHAR FROM t{number}").fetchall() == wanted, change


def test_merge_says_what_it_did(place: Path) -> None:
    merge = (
        "MERGE INTO cp USING (VALUES (2), (3)) s(id) ON cp.id = s.id "
        "WHEN MATCHED THEN UPDATE SET tags = ['n'] WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id) "
        "WHEN NOT MATCHED BY SOURCE THEN DELETE RETURNING "
    )
    for engine in ("duckdb", "datafusion"):
        with lance_sql.connect(place, engine=engine) as session:
            session.sql(
                "CREATE OR REPLACE TABLE cp AS SELECT * FROM (VALUES (1, ['a']), (2, ['b'])) v(id, tags)"
            )
            answer = session.sql(f"{merge} merge_action, *").fetchall()
            assert sorted(answer) == [("DELETE", 1, ["a"]), ("INSERT", 3, None), ("UPDATE", 2, ["n"])]
            assert session.sql(f"{merge} *").columns == ["id", "tags"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE cp SET id = " + "(" * 5000 + "1" + ")" * 5000,
        "DELETE FROM cp WHERE " + "NOT " * 5000 + "true",
        "CREATE TABLE n (a " + "STRUCT(a " * 70 + "INT" + ")" * 70 + ")",
        "CREATE TABLE n (a " + "STRUCT(a " * 5000 + "INT" + ")" * 5000 + ")",
        "CREATE TABLE n (a INT" + "[]" * 5000 + ")",
        "ALTER TABLE cp ADD COLUMN n INT DEFAULT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT " + "[" * 70 + "1" + "]" * 70,
        "SELECT id FROM cp WHERE id > " + "- " * 5000 + "1",
    ],
)
@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_deep_nesting_is_an_error_of_ours(place: Path, engine: str, statement: str) -> None:
    with lance_sql.connect(place, engine=engine) as session:
        with pytest.raises(LanceError):
            session.sql(statement).fetchall()
        assert session.sql("SELECT count(*) FROM cp").fetchall() == [(2,)]


def test_datafusion_has_no_positional_joins(place: Path) -> None:
    with lance_sql.connect(place, engine="datafusion") as session:
        for query in (
            "SELECT * FROM cp POSITIONAL JOIN keep",
            "CREATE TABLE n AS FROM cp positional join keep",
        ):
            with pytest.raises(LanceError, match="POSITIONAL JOIN"):
                session.sql(query).fetchall()
        assert session.sql("SELECT 'a positional join' AS a").fetchall() == [("a positional join",)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE TABLE cp AS SELECT 1 AS a", "Write CREATE OR REPLACE TABLE"),
        ("CREATE TABLE cp (a INT)", "Write CREATE OR REPLACE TABLE"),
        ("COPY keep TO 'cp.lance'", "Write MODE append or MODE overwrite"),
        ("CREATE INDEX i ON cp (id)", "CREATE OR REPLACE INDEX"),
        ("OPTIMIZE nosuch", "Table 'nosuch' not found.*Available tables: cp, keep"),
        ("CALL create_tag(nosuch, 'v1')", "Table 'nosuch' not found"),
        ("CALL create_tag(cp, id + 1)", r"unexpected argument id \+ 1"),
        ("UPDATE cp SET id = sum(id)", r"cannot use an aggregate of the rows: sum\(id\)"),
        ("SELECT * FROM cp AT (TIMESTAMP => 'abc')", r"'abc' is not a constant timestamp: [^\n]*Write AT"),
    ],
)
def test_errors_of_statements_have_remedies_in_sql(
    place: Path, statement: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    with lance_sql.connect(place) as session:
        session.sql("CREATE INDEX i ON cp (id)")
        with pytest.raises(LanceError, match=message) as raised:
            session.sql(statement)
        assert "mode=" not in str(raised.value)


def test_procedures_take_the_names_of_tables(place: Path) -> None:
    with lance_sql.connect(place) as session:
        session.sql(
            "CALL create_tag(cp, 'first', 1); CALL create_tag(table => lance.main.cp, name => 'second')"
        )
        assert session.sql("SELECT name FROM cp.tags ORDER BY name").fetchall() == [("first",), ("second",)]


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE lost AS SELECT 1 AS a",
        "CREATE OR REPLACE TABLE lost (a INT)",
        "CREATE VIEW lost AS SELECT 1 AS a",
        "CREATE TABLE lost AS SELECT 1 AS a; INSERT INTO lost VALUES (2)",
    ],
)
def test_a_table_that_ends_with_its_session_is_an_error(engine: str, text: str) -> None:
    with pytest.raises(LanceError, match=r"lost is only in memory.*CREATE TABLE 'name\.lance'"):
        lance_sql.sql(text, engine=engine)


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_tables_in_memory_that_a_script_uses_are_none(tmp_path: Path, engine: str) -> None:
    script = "CREATE TABLE m AS SELECT 1 AS a; "
    assert lance_sql.sql(f"{script} SELECT a FROM m", engine=engine).fetchall() == [(1,)]
    lance_sql.sql(f"{script} CREATE TABLE '{tmp_path}/x.lance' AS SELECT a FROM m", engine=engine)
    lance_sql.sql(f"{script} INSERT INTO '{tmp_path}/x.lance' SELECT a FROM m", engine=engine)
    assert lance_sql.open(tmp_path / "x.lance").count_rows() == 2


@pytest.mark.sampled(3)
@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("TYPE S3, KEY_ID 'a', SECRET 'b', REGIO 'x'", "REGIO.*Did you mean REGION"),
        ("TYPE S3, KEY_ID 'a', SECRET 'b', XYZZY 'x'", "no option XYZZY.*KEY_ID, SECRET"),
        ("TYPE S3, KEY_ID 'a', SECRET 'b', USE_SSL 'maybe'", "USE_SSL.*true, false"),
        ("TYPE S3, KEY_ID 'a', SECRET 'b', URL_STYLE 'x'", "URL_STYLE.*path, vhost"),
        ("TYPE AZURE, ACCOUNT_NAME 'a', TENANT_ID 'x'", "no option TENANT_ID"),
        ("TYPE AZURE, ACCOUNT_NAME 'a', PROVIDER managed_identity", "PROVIDER"),
    ],
)
def test_options_of_secrets_without_effect_are_refused(engine: str, options: str, message: str) -> None:
    with lance_sql.connect(engine=engine) as session:
        with pytest.raises(LanceError, match=message):
            session.sql(f"CREATE SECRET s ({options})")
        session.sql("CREATE SECRET s (TYPE S3, KEY_ID 'a', SECRET 'b', URL_STYLE 'vhost', USE_SSL false)")


def test_options_of_services_without_effect_are_refused() -> None:
    with (
        lance_sql.connect() as session,
        pytest.raises(LanceError, match="Unknown option 'nope'"),
    ):
        session.sql("ATTACH 'x' AS x (TYPE lance, ENDPOINT 'http://127.0.0.1:1', NOPE 1)")


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_required_columns_without_a_value_are_refused_if_there_are_rows(tmp_path: Path, engine: str) -> None:
    with lance_sql.connect(tmp_path, engine=engine) as session:
        session.sql("CREATE TABLE t (id INTEGER, c INTEGER NOT NULL)")
        for text in (
            "(id) SELECT 1 WHERE false",
            "BY NAME SELECT 1 AS id WHERE false",
            "(id) SELECT id FROM t",
        ):
            session.sql(f"INSERT INTO t {text}")
        for text in ("(id) VALUES (1)", "BY NAME SELECT 1 AS id", "DEFAULT VALUES"):
            with pytest.raises(LanceError, match=r"NOT NULL column \[column: c\]"):
                session.sql(f"INSERT INTO t {text}")
        assert session.sql("SELECT count(*) FROM t").fetchall() == [(0,)]
