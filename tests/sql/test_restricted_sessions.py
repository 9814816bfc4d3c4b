"""The settings of an engine that keep SQL from files rule statements on datasets too."""

import os
import re

import duckdb
import pyarrow as pa
import pytest
from lance_engine.errors import ExternalAccessError

import lance_sql

#: Every kind of statement that names a location; {out} is that of a dataset that the session must not reach.
STATEMENTS = [
    "SELECT * FROM '{out}'",
    "SELECT count(*) FROM '{out}'",
    "SELECT min(id) FROM '{out}'",
    "FROM '{out}@1'",
    "SELECT * FROM '{out}' AT (VERSION => 1)",
    "SELECT * FROM '{out}' AT (TAG => 'first')",
    "SELECT * FROM '{out}' AT (BRANCH => 'side')",
    "SELECT * FROM '{out}' AT (TIMESTAMP => '2099-01-01')",
    "SELECT * FROM lance_scan('{out}')",
    "SELECT * FROM lance_scan('{out}', version => 1)",
    "SELECT * FROM '{out}'.versions",
    "SELECT * FROM (SELECT * FROM '{out}') q JOIN kept USING (id)",
    "WITH q AS (SELECT * FROM '{out}') SELECT * FROM q",
    "SELECT * FROM kept WHERE id IN (SELECT id FROM '{out}')",
    "SELECT * FROM lance_vector_search('{out}', 'v', [1.0, 2.0], k => 1)",
    "SELECT * FROM lance_fts('{out}', 'text', 'words')",
    "SELECT id FROM '{out}' ORDER BY array_distance(v, [1.0, 2.0]::FLOAT[2]) LIMIT 1",
    "EXPLAIN SELECT * FROM '{out}'",
    "CREATE VIEW w AS SELECT * FROM '{out}'",
    "CREATE TABLE made AS SELECT * FROM '{out}'",
    "CREATE TABLE '{new}' AS SELECT 1 AS id",
    "CREATE TABLE '{new}' (id BIGINT)",
    "CREATE OR REPLACE TABLE '{out}' AS SELECT 2 AS id",
    "COPY (SELECT 1 AS id) TO '{new}' (FORMAT lance)",
    "COPY (SELECT 1 AS id) TO '{out}' (FORMAT lance, MODE overwrite)",
    "COPY (SELECT 1 AS id) TO '{dir}/new.csv'",
    "COPY kept FROM '{dir}/rows.csv'",
    "COPY kept FROM '{out}'",
    "INSERT INTO '{out}' SELECT * FROM '{out}'",
    "INSERT INTO '{out}' (id) VALUES (2)",
    "INSERT INTO kept (id) SELECT id FROM '{out}'",
    "UPDATE '{out}' SET id = 2",
    "DELETE FROM '{out}'",
    "DELETE FROM '{out}' WHERE id = 1",
    "MERGE INTO '{out}' t USING kept s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "MERGE INTO kept t USING '{out}' s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "TRUNCATE '{out}'",
    "ALTER TABLE '{out}' ADD COLUMN more BIGINT",
    "ALTER TABLE '{out}' RENAME TO other",
    "COMMENT ON TABLE '{out}' IS 'mine'",
    "CREATE INDEX i ON '{out}' (id) USING BTREE",
    "DROP INDEX i ON '{out}'",
    "DROP TABLE '{out}'",
    "DROP TABLE IF EXISTS '{out}'",
    "OPTIMIZE '{out}'",
    "VACUUM '{out}' RETAIN 0 HOURS",
    "SHOW VERSIONS FROM '{out}'",
    "SHOW '{out}'",
    "DESCRIBE '{out}'",
    "DESCRIBE SELECT * FROM '{out}'",
    "SUMMARIZE '{out}'",
    "CALL restore('{out}', 1)",
    "CALL create_tag('{out}', 't', 1)",
    "ATTACH '{dir}' AS other (TYPE lance)",
    "ATTACH IF NOT EXISTS '{dir}' AS other (TYPE lance)",
    "ATTACH 'ns' AS other (TYPE lance, ENDPOINT 'http://localhost:1')",
    "ATTACH 'ns' AS other (TYPE lance, IMPL 'glue', REGION 'x')",
    "SELECT * FROM 's3://bucket/x.lance'",
    "SELECT * FROM 'http://localhost:1/x.lance'",
    "SELECT * FROM 'memory://x.lance'",
    "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "SELECT * FROM kept AT (TIMESTAMP => (SELECT content FROM read_text('{dir}/rows.csv')))",
    "SELECT * FROM '{dir}/rows.csv'",
]

#: Other ways to write the location.
FORMS = ["{dir}/x.lance", "{inside}/../out/x.lance", "file://{dir}/x.lance", "{inside}/link/x.lance",
         "{inside}/linked.lance", "../out/x.lance", "file+sqlite://{dir}/x.lance", "{dir}/x.lance/",
         "{inside}x/x.lance"]  # fmt: skip


@pytest.fixture
def places(tmp_path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside, tmp_path / "inx", tmp_path / "more"):
        folder.mkdir()
    rows = pa.table({
        "id": [1], "text": ["words"], "v": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)),
    })  # fmt: skip
    for path in (inside / "kept.lance", outside / "x.lance", tmp_path / "inx" / "x.lance"):
        made = lance_sql.write(rows, path)
        made.tags.create("first")
        made.branches.create("side")
    (outside / "rows.csv").write_text("id\n7\n")
    os.symlink(outside, inside / "link")
    os.symlink(outside / "x.lance", inside / "linked.lance")
    return tmp_path


def contents(folder):
    return sorted((str(path), path.is_dir() or path.read_bytes()) for path in folder.rglob("*"))


def rows_of(session, statement):
    found = session.sql(statement)
    return found and found.fetchall()


SET = ["SET enable_external_access = false"]


def sessions(places, which):
    """A restricted session, and how it runs a statement."""
    inside = places / "in"
    if which == "set":
        session = lance_sql.connect(inside)
        session.sql(SET[0])
    elif which == "opened":
        opened = duckdb.connect(config={"enable_external_access": False})
        session = lance_sql.connect(inside, duckdb=opened)
    elif which == "installed":
        session = duckdb.connect()
        lance_sql.duckdb.install(session, inside)
        session.execute(SET[0])
    else:
        session = lance_sql.connect(inside, engine=which, enable_external_access=False)
    return session


REFUSED = (ExternalAccessError, lance_sql.LanceError, duckdb.Error)
_ABOUT_ACCESS = re.compile(
    "no access|enable_external_access|disabled by configuration|not a constant timestamp|DataFusion", re.I
)


@pytest.mark.parametrize("which", ["set", "opened", "installed", "duckdb", "datafusion"])
def test_every_statement_obeys_the_restrictions(places, which, monkeypatch):
    monkeypatch.chdir(places / "in")
    before = contents(places)
    session = sessions(places, which)
    out = places / "out"
    reached = []
    for text in STATEMENTS:
        statement = text.format(out=out / "x.lance", new=out / "new.lance", dir=out)
        with pytest.raises(REFUSED) as caught:
            reached.append((statement, rows_of(session, statement)))
        if which in ("set", "opened", "duckdb") and not isinstance(caught.value, ExternalAccessError):
            assert _ABOUT_ACCESS.search(str(caught.value)), statement
    assert not reached
    assert contents(places) == before
    assert session.sql("SELECT id FROM kept").fetchall() == [(1,)]
    assert session.sql(f"SELECT id FROM '{places}/in/kept.lance'").fetchall() == [(1,)]
    session.close() if hasattr(session, "close") else None


@pytest.mark.parametrize("which", ["set", "installed", "datafusion"])
@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_a_location_are_resolved(places, which, form, monkeypatch):
    monkeypatch.chdir(places / "in")
    session = sessions(places, which)
    location = form.format(dir=places / "out", inside=places / "in")
    with pytest.raises(ExternalAccessError, match="no access"):
        session.sql(f"SELECT * FROM '{location}'")
    session.close() if hasattr(session, "close") else None


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_the_directory_and_allowed_directories_stay_usable(places, engine):
    options = {"enable_external_access": False, "allowed_directories": [places / "more"]}
    with lance_sql.connect(places / "in", engine=engine, **options) as session:
        for name in ("made", f"'{places}/more/made.lance'"):
            session.sql(f"CREATE TABLE {name} AS SELECT 1 AS id")
            session.sql(f"INSERT INTO {name} VALUES (2)")
            assert session.sql(f"SELECT sum(id) AS s FROM {name}").fetchall() == [(3,)]
            session.sql(f"DROP TABLE {name}")
        session.sql(f"ATTACH '{places}/more' AS more (TYPE lance)")
        session.sql("CREATE TABLE more.t AS SELECT 1 AS id")
        with session.cursor() as cursor:
            assert cursor.sql("FROM more.t" if engine == "duckdb" else "SELECT * FROM more.t").fetchall() == [
                (1,)
            ]
            with pytest.raises(ExternalAccessError):
                cursor.sql(f"SELECT * FROM '{places}/out/x.lance'")


def test_what_was_attached_or_registered_before_stays_usable(places):
    with lance_sql.connect() as session:
        session.sql(f"ATTACH '{places}/in' AS before (TYPE lance)")
        session.register("x", f"{places}/out/x.lance")
        session.register("y", lance_sql.open(f"{places}/inx/x.lance"))
        session.sql(SET[0])
        for name in ("before.kept", "x", "y"):
            assert session.sql(f"SELECT id FROM {name}").fetchall() == [(1,)]
            session.sql(f"INSERT INTO {name} (id) VALUES (2)")
            assert session.sql(f"SELECT id FROM {name} AT (VERSION => 1)").fetchall() == [(1,)]
        with pytest.raises(ExternalAccessError):
            session.sql(f"SELECT * FROM '{places}/more/z.lance'")


def test_allowed_paths_allow_a_dataset_and_nothing_below(places):
    with lance_sql.connect() as session:
        session.sql(f"SET allowed_paths = ['{places}/out/x.lance']")
        session.sql(SET[0])
        assert session.sql(f"SELECT id FROM '{places}/out/x.lance'").fetchall() == [(1,)]
        with pytest.raises(ExternalAccessError):
            session.sql(f"SELECT id FROM '{places}/out/x.lance/tree/side'")


def test_a_shallow_clone_reads_nothing_outside(places):
    """The dataset is inside, its files are not."""
    lance_sql.open(places / "out" / "x.lance").shallow_clone(places / "in" / "clone.lance")
    with lance_sql.connect(places / "in") as session:
        assert session.sql("SELECT id FROM clone").fetchall() == [(1,)]
        session.sql(SET[0])
        with pytest.raises(ExternalAccessError):
            session.sql("SELECT id FROM clone").fetchall()
    allowed = {"allow_external": [f"{places}/out/"], "enable_external_access": False}
    with lance_sql.connect(places / "in", **allowed) as session:
        assert session.sql("SELECT id FROM clone").fetchall() == [(1,)]


def test_a_disabled_file_system_keeps_datasets_from_it(places):
    with lance_sql.connect(places / "in") as session:
        session.sql("SET disabled_filesystems = 'LocalFileSystem'")
        with pytest.raises(ExternalAccessError):
            session.sql(f"SELECT * FROM '{places}/out/x.lance'")
        assert session.sql("SELECT id FROM kept").fetchall() == [(1,)]


def test_a_locked_configuration_includes_our_settings(places):
    with lance_sql.connect(places / "in") as session:
        session.sql("SET lance_isolation = 'serializable'")
        session.sql("SET lock_configuration = true")
        for statement in (
            "SET lance_isolation = 'snapshot'",
            "RESET lance_isolation",
            "SET lance_use_index = false",
        ):
            with pytest.raises(lance_sql.LanceError, match="locked"):
                session.sql(statement)
        assert session.sql("SELECT id FROM kept").fetchall() == [(1,)]


def test_wrong_restrictions_are_errors(places):
    with pytest.raises(lance_sql.LanceError, match="enable_external_access=False"):
        lance_sql.connect(allowed_directories=[places])
    with (
        duckdb.connect() as opened,
        pytest.raises(lance_sql.LanceError, match="its own settings"),
    ):
        lance_sql.connect(duckdb=opened, enable_external_access=False)


def test_a_cursor_has_the_restrictions_after_its_connection_is_gone(places):
    connection = duckdb.connect()
    lance_sql.duckdb.install(connection)
    cursor = connection.cursor()
    del connection
    assert cursor.sql(f"SELECT id FROM '{places}/out/x.lance'").fetchall() == [(1,)]
    cursor.execute(SET[0])
    with pytest.raises(ExternalAccessError):
        cursor.sql(f"SELECT id FROM '{places}/out/x.lance'")
    cursor.close()
