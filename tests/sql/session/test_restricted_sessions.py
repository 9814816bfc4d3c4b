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
    "VACUUM LANCE '{out}' WITH (older_than_seconds = 0)",
    "REINDEX i ON '{out}' RETRAIN",
    "ALTER INDEX i ON '{out}' OPTIMIZE",
    "ALTER TABLE '{out}' SET AUTO_CLEANUP WITH (interval = 1, older_than = '1s')",
    "SHOW MAINTENANCE ON '{out}'",
    "SELECT * FROM lance_set_config('{out}', 'a', '1')",
    "SELECT * FROM lance_compact_files('{out}')",
    "SELECT * FROM lance_config('{out}')",
    "SELECT * FROM lance_column_metadata('{out}', 'id')",
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
    "EXPORT DATABASE '{dir}/all'",
    "ATTACH '{dir}/other.db' AS other",
    "LOAD httpfs",
    "SELECT * FROM read_text('{dir}/rows.csv')",
    "SELECT * FROM glob('{dir}/*')",
    "SELECT * FROM query_table('{out}')",
    "INSERT INTO kept (text) SELECT content FROM read_text('{dir}/rows.csv')",
    "UPDATE kept SET id = (SELECT min(id) FROM '{out}')",
    "ALTER TABLE kept ADD COLUMN more BIGINT DEFAULT (SELECT min(id) FROM '{out}')",
    "CREATE MACRO m() AS TABLE SELECT * FROM '{out}'",
    "PREPARE p AS SELECT * FROM '{out}'",
    "SET VARIABLE v = (SELECT min(id) FROM '{out}')",
    "SET enable_external_access = true",
    "SET allowed_directories = ['/']",
    # through links in the directory of the session
    "SELECT * FROM linked",
    "SELECT * FROM lance.main.linked",
    "SELECT * FROM lance.link.x",
    "SELECT * FROM linked.versions",
    "INSERT INTO linked (id) VALUES (2)",
    "CREATE TABLE lance.link.new AS SELECT 1 AS id",
    "CREATE TABLE 'link/new.lance' AS SELECT 1 AS id",
    "COPY kept TO 'link/new.csv'",
    "COPY kept FROM 'link/rows.csv'",
    "ALTER TABLE linked ADD COLUMN more BIGINT",
    "CREATE INDEX i ON linked (id) USING BTREE",
    "CALL create_branch('linked', 'more')",
    "OPTIMIZE linked",
    "VACUUM linked RETAIN 0 HOURS",
    "DROP TABLE linked",
    "DROP TABLE lance.link.x",
    "DROP SCHEMA lance.link",
    "DROP SCHEMA lance.hollow",
    "USE lance.link",
    "SHOW TABLES FROM lance.link",
    # names that are paths
    'CREATE SCHEMA lance."../new"',
    'CREATE TABLE lance.main."../out/new" AS SELECT 1 AS id',
    'ALTER TABLE kept RENAME TO "../out/new"',
    "SELECT * FROM kept AT (BRANCH => '../../out/x.lance')",
    "CALL create_tag('kept', '../../out/new', 1)",
    "SELECT * FROM '{dir}'",
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
    (tmp_path / "empty").mkdir()
    os.symlink(tmp_path / "empty", inside / "hollow")
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
    elif which == "allowed":
        session = lance_sql.connect(inside)
        session.sql(f"SET allowed_directories = ['{places}/more', '{places}/ou']")
        session.sql(f"SET allowed_paths = ['{places}/out/x.lance/data', '{places}/out/']")
        session.sql(SET[0])
        session.sql("SET lock_configuration = true")
    elif which == "disk":
        session = lance_sql.connect(inside)
        session.sql("SET disabled_filesystems = 'LocalFileSystem'")
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
    "no access|external.access|disabled by configuration|disabled through configuration|locked"
    "|not a constant timestamp|DataFusion|does not include|cannot contain subqueries|is a path"
    "|has no schema|not found|No catalog or schema|cannot be the name|not a valid (?:branch|tag) name"
    "|without slashes",
    re.I,
)


@pytest.mark.parametrize("which", ["set", "allowed", "disk", "opened", "installed", "duckdb", "datafusion"])
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
        if which not in ("disk", "installed", "datafusion") and not isinstance(
            caught.value, ExternalAccessError
        ):
            assert _ABOUT_ACCESS.search(str(caught.value)), statement
        assert "x.lance" in statement or "x.lance" not in str(caught.value), statement
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


@pytest.mark.parametrize("which", ["session", "installed"])
def test_what_was_prepared_before_reads_nothing_outside(places, which):
    """Statements and views that the engine has kept; the session itself stays usable."""
    if which == "session":
        session = lance_sql.connect(places / "in")
    else:
        session = duckdb.connect()
        lance_sql.duckdb.install(session, places / "in")
    before = [
        "PREPARE p AS SELECT id FROM '{out}'",
        "CREATE VIEW w AS SELECT id FROM '{out}'",
        "CREATE TEMP VIEW versions AS SELECT * FROM '{out}'.versions",
        "CREATE MACRO m() AS TABLE SELECT id FROM '{out}'",
    ]
    out = places / "out" / "x.lance"
    for statement in before:
        rows_of(session, statement.format(out=out))
    reads = ["EXECUTE p", "FROM w", "FROM m()", "FROM w JOIN kept USING (id)", "FROM versions"]
    cursor = session.cursor()
    assert all(rows_of(session, statement) for statement in reads)
    rows_of(session, SET[0])
    for statement in reads:
        with pytest.raises(ExternalAccessError):
            rows_of(session, statement)
        assert rows_of(session, "SELECT id FROM kept") == [(1,)]
        assert rows_of(session, "SELECT 1") == [(1,)]
    with pytest.raises(ExternalAccessError):
        rows_of(cursor, "FROM w")
    assert rows_of(cursor, "SELECT id FROM kept") == [(1,)]
    for one in (cursor, session):
        one.close()


@pytest.mark.parametrize("which", ["set", "datafusion"])
def test_nothing_outside_is_listed(places, which, monkeypatch):
    monkeypatch.chdir(places / "out")
    session = sessions(places, which)
    cursor = session.cursor()
    for statement in (
        "SHOW ALL TABLES",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM information_schema.schemata",
    ):
        for one in (session, cursor):
            assert not {"x", "link", "hollow"} & {
                value for row in rows_of(one, statement) for value in row[:3]
            }
    for name in (f"'{places}/out'", "'.'", "xx"):
        with pytest.raises(lance_sql.LanceError) as caught:
            session.sql(f"SELECT * FROM {name}")
        assert "x.lance" not in str(caught.value)
    cursor.close()
    session.close()


def test_schemas_may_be_links_without_restrictions(places):
    with lance_sql.connect(places / "in") as session:
        assert session.sql("SELECT id FROM lance.link.x").fetchall() == [(1,)]
        with pytest.raises(lance_sql.LanceError, match="symbolic link"):
            session.sql("DROP SCHEMA lance.hollow")
        os.chmod(places / "in", 0o500)
        try:
            if not os.access(places / "in", os.W_OK):
                with pytest.raises(lance_sql.LanceError):
                    session.sql("CREATE SCHEMA lance.made")
        finally:
            os.chmod(places / "in", 0o700)


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
