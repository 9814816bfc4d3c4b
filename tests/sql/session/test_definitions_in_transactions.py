"""CREATE, ALTER, DROP and RENAME of datasets between BEGIN and COMMIT."""

from __future__ import annotations

from typing import TYPE_CHECKING

import lance
import pytest
from lance_engine.errors import (
    CommitConflictError,
    ConstraintError,
    DatasetExistsError,
    DatasetNotFoundError,
    LanceError,
    UnsupportedFeatureError,
)
from namespace_server import namespace_server

import lance_sql
from lance_sql.errors import TableNotFoundError

if TYPE_CHECKING:
    from conftest import ObjectStore

ENGINES = ("duckdb", "datafusion")


@pytest.fixture(params=ENGINES)
def sessions(request, tmp_path):
    """A session, and another one over the same directory, which has the table `old`."""
    with lance_sql.connect(tmp_path, request.param) as session, lance_sql.connect(tmp_path) as other:
        other.sql("CREATE TABLE old (id INT, v INT); INSERT INTO old VALUES (1, 10), (2, 20)")
        yield session, other


def tree(folder):
    """All files and folders but the hints, which say which version is the latest."""
    return {path for path in folder.rglob("*") if "hint" not in path.name}


def rows(session, table):
    return sorted(session.sql(f"FROM {table}").fetchall())


def test_a_table_is_built_in_a_transaction_and_appears_as_one_version(sessions, tmp_path):
    session, other = sessions
    session.sql("BEGIN; CREATE TABLE t (a INT, b VARCHAR DEFAULT 'd')")
    session.sql("INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z'); INSERT INTO t (a) VALUES (4)")
    session.sql("UPDATE t SET b = 'u' WHERE a = 1; ALTER TABLE t ADD COLUMN c INT DEFAULT 5")
    session.sql(
        "DELETE FROM t WHERE a = 2; ALTER TABLE t RENAME COLUMN b TO e; COMMENT ON COLUMN t.a IS 'text'"
    )
    session.sql("CREATE TABLE u AS SELECT t.a, old.v FROM t, old WHERE t.a = old.id")
    with pytest.raises(UnsupportedFeatureError, match=r"COMMENT ON TABLE cannot be part of a transaction"):
        session.sql("COMMENT ON TABLE t IS 'text'")
    expected = [(1, "u", 5), (3, "z", 5), (4, "d", 5)]
    assert (rows(session, "t"), rows(session, "u")) == (expected, [(1, 10)])
    assert session.tables() == ["old", "t", "u"]
    assert session.sql("SELECT count(*) FROM t WHERE a > 1").fetchone() == (2,)
    assert other.tables() == ["old"]
    with pytest.raises(TableNotFoundError):
        other.sql("FROM t")
    with pytest.raises(DatasetNotFoundError):
        lance_sql.open(tmp_path / "t.lance")
    session.sql("COMMIT")
    assert (rows(other, "t"), rows(other, "u"), rows(session, "t")) == (expected, [(1, 10)], expected)
    dataset = lance_sql.open(tmp_path / "t.lance")
    assert dataset.version == 1
    assert dataset.verify(values=True).num_rows == 0
    read = lance.dataset(tmp_path / "t.lance").to_table().to_pylist()
    assert sorted(tuple(row.values()) for row in read) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.lance", "t.lance", "u.lance"]
    other.sql("INSERT INTO t (a) VALUES (9)")  # the default is kept
    assert rows(session, "t")[-1] == (9, "d", 5)


@pytest.mark.parametrize("end", ["rollback", "close"])
def test_nothing_is_left_of_what_is_undone(sessions, tmp_path, end):
    session, other = sessions
    before = tree(tmp_path)
    session.sql("BEGIN; CREATE TABLE t AS SELECT 1 AS a; INSERT INTO t VALUES (2); DROP TABLE old")
    session.sql("CREATE TABLE old AS SELECT 'new' AS name; CREATE OR REPLACE TABLE t AS FROM old")
    session.sql(f"CREATE TABLE u (a INT); DROP TABLE u; COPY t TO '{tmp_path}/v.lance' (FORMAT lance)")
    assert tree(tmp_path) > before
    getattr(session, end)()
    assert tree(tmp_path) == before
    assert (other.tables(), rows(other, "old")) == (["old"], [(1, 10), (2, 20)])


def test_a_dropped_table_is_gone_inside_and_removed_at_commit(sessions, tmp_path):
    session, other = sessions
    session.register("known", lance_sql.open(tmp_path / "old.lance"))
    session.sql("BEGIN; INSERT INTO old VALUES (3, 30); DROP TABLE old")
    for text in ("FROM old", "FROM known", "INSERT INTO old VALUES (4, 40)", "DROP TABLE old"):
        with pytest.raises(LanceError, match=r"not found|doesn't exist"):
            session.sql(text).fetchall()
        session.sql("ROLLBACK; BEGIN; DROP TABLE old")  # DuckDB may refuse everything after an error
    with pytest.raises(DatasetNotFoundError, match="The transaction has dropped this dataset"):
        session.sql(f"FROM '{tmp_path}/old.lance'")
    session.sql("DROP TABLE IF EXISTS old")
    assert session.tables() == []
    assert rows(other, "old") == [(1, 10), (2, 20)]
    session.sql("COMMIT")
    assert other.tables() == []
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "create",
    [
        "CREATE OR REPLACE TABLE old AS SELECT v + 1 AS w FROM old",
        "CREATE TABLE t AS SELECT v + 1 w FROM old; DROP TABLE old; CREATE TABLE old AS FROM t; DROP TABLE t",
    ],
)
def test_a_replaced_table_gets_one_more_version(sessions, tmp_path, create):
    session, other = sessions
    session.sql(f"BEGIN; {create}")
    session.sql("INSERT INTO old VALUES (31)")
    assert (rows(session, "old"), rows(other, "old")) == ([(11,), (21,), (31,)], [(1, 10), (2, 20)])
    with pytest.raises(LanceError, match="replaced all versions"):
        session.sql("FROM old AT (VERSION => 1)")
    session.sql("COMMIT")
    assert rows(other, "old") == [(11,), (21,), (31,)]
    assert lance_sql.open(tmp_path / "old.lance").version == 3
    assert sorted(other.sql("FROM old AT (VERSION => 2)").fetchall()) == [(1, 10), (2, 20)]


def test_a_new_table_takes_the_name_of_a_dropped_one(sessions, tmp_path):
    session, other = sessions
    session.sql("BEGIN; CREATE TABLE t AS SELECT id FROM old; DROP TABLE old; ALTER TABLE t RENAME TO old")
    assert (session.tables(), rows(session, "old")) == (["old"], [(1,), (2,)])
    session.sql("CREATE TABLE t AS SELECT 7 AS x")
    with pytest.raises(DatasetExistsError):
        session.sql("ALTER TABLE t RENAME TO old")
    session.sql("COMMIT")
    assert (rows(other, "old"), rows(other, "t")) == ([(1,), (2,)], [(7,)])
    session.sql("BEGIN")
    with pytest.raises(UnsupportedFeatureError, match="existed before the transaction"):
        session.sql("ALTER TABLE t RENAME TO w")
    session.sql("CREATE OR REPLACE TABLE t AS SELECT 8 AS y; ALTER TABLE t RENAME TO w; COMMIT")
    assert (other.tables(), rows(other, "w")) == (["old", "w"], [(8,)])


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("CREATE TABLE t (a INT)", "CREATE TABLE t AS SELECT 1 AS b"),
        ("DROP TABLE old", "INSERT INTO old VALUES (3, 30)"),
        ("DROP TABLE old", "DROP TABLE old"),
        ("DROP TABLE old", "CREATE OR REPLACE TABLE old AS SELECT 5 AS x"),
        ("CREATE OR REPLACE TABLE old AS FROM old", "INSERT INTO old VALUES (3, 30)"),
        ("INSERT INTO first SELECT id FROM old; CREATE OR REPLACE TABLE old (a INT)", "DELETE FROM old"),
        ("CREATE OR REPLACE TABLE old AS SELECT 1 AS q", "CREATE OR REPLACE TABLE old AS SELECT 5 AS x"),
    ],
)
def test_definitions_of_others_are_conflicts(sessions, tmp_path, ours, theirs):
    session, other = sessions
    session.sql(f"BEGIN; CREATE TABLE first (a INT); {ours}")
    other.sql(theirs)
    before = tree(tmp_path)
    with pytest.raises(CommitConflictError, match=r"Run the transaction again|retry the change"):
        session.sql("COMMIT")
    assert not session.in_transaction
    left = {path for path in tree(tmp_path) if "first.lance" not in path.parts}
    assert left < before  # without the files of the transaction
    checked = "OR REPLACE" not in ours
    assert (
        "first" in session.tables()
    ) != checked  # what is known before anything is committed stops all of it


def test_a_replaced_table_whose_rows_nobody_read_takes_the_changes_of_others_with_it(sessions):
    session, other = sessions
    session.sql("BEGIN; CREATE OR REPLACE TABLE old AS SELECT 1 AS q")
    other.sql("INSERT INTO old VALUES (3, 30)")
    session.sql("COMMIT")
    assert rows(other, "old") == [(1,)]


def test_what_was_committed_before_an_error_is_named(sessions, monkeypatch):
    session, other = sessions
    session.sql("BEGIN; CREATE TABLE t (a INT); CREATE TABLE u (a INT)")
    from lance_engine.operations import staged_creation

    monkeypatch.setattr(staged_creation.StagedCreation, "check", lambda self: None)
    other.sql("CREATE TABLE u (b INT)")
    with pytest.raises(CommitConflictError, match=r"Already committed.*t\.lance as version 1"):
        session.sql("COMMIT")
    assert (other.tables(), other.sql("FROM u").columns) == (["old", "t", "u"], ["b"])


def test_a_statement_that_fails_leaves_the_others(tmp_path):
    with lance_sql.connect(tmp_path, "datafusion") as session:
        session.sql("BEGIN; CREATE TABLE t AS SELECT 1 AS a")
        for text in (
            "CREATE TABLE u AS SELECT CAST(x AS INT) AS a FROM (VALUES ('1'), ('q')) v(x)",
            "CREATE OR REPLACE TABLE t AS SELECT CAST(x AS INT) AS a FROM (VALUES ('1'), ('q')) v(x)",
            "CREATE TABLE t (a INT)",
            "COPY t TO 'u' (FORMAT lance, MODE append)",
        ):
            with pytest.raises(LanceError):
                session.sql(text)
        assert (session.tables(), rows(session, "t")) == (["t"], [(1,)])
        session.sql("COMMIT")
    assert [path.name for path in tmp_path.iterdir()] == ["t.lance"]


def test_constraints_hold_for_what_a_transaction_creates(sessions):
    session, other = sessions
    session.sql("BEGIN; CREATE TABLE t (a INT PRIMARY KEY, b INT CHECK (b > 0)); INSERT INTO t VALUES (1, 1)")
    for change in ("INSERT INTO t VALUES (1, 2)", "UPDATE t SET b = 0"):
        with pytest.raises(ConstraintError):
            session.sql(change)
    session.sql("INSERT INTO t VALUES (1, 5) ON CONFLICT DO UPDATE SET b = excluded.b; COMMIT")
    assert rows(other, "t") == [(1, 5)]
    with pytest.raises(ConstraintError):
        other.sql("INSERT INTO t VALUES (1, 2)")


def test_results_and_cursors_outlive_the_transaction(sessions):
    session, _ = sessions
    session.sql("BEGIN; CREATE TABLE t AS SELECT * FROM range(200000) r(a)")
    planned, stream = session.sql("SELECT count(*) FROM t"), session.sql("FROM t").reader()
    read = stream.read_next_batch().num_rows
    cursor = session.cursor()
    session.sql("COMMIT")
    assert planned.fetchone() == (200000,)
    assert read + sum(batch.num_rows for batch in stream) == 200000
    assert cursor.sql("SELECT max(a) FROM t").fetchone() == (199999,)
    session.sql("BEGIN; CREATE TABLE u AS SELECT 1 AS a")
    dropped = session.sql("FROM u")
    session.sql("DROP TABLE u; ROLLBACK")
    assert dropped.fetchall() == [(1,)]


def test_copy_to_a_dataset_is_part_of_the_transaction(sessions, tmp_path):
    session, other = sessions
    path = tmp_path / "copied.lance"
    session.sql(f"BEGIN; COPY old TO '{path}' (FORMAT lance)")
    session.sql(f"COPY (SELECT 3 AS id, 30 AS v) TO '{path}' (FORMAT lance, MODE append)")
    assert rows(session, f"'{path}'") == [(1, 10), (2, 20), (3, 30)]
    assert not path.exists()
    session.sql("COMMIT")
    assert rows(other, "copied") == [(1, 10), (2, 20), (3, 30)]
    session.sql(f"BEGIN; DROP TABLE '{path}'")
    with pytest.raises(DatasetNotFoundError):
        session.sql(f"COPY old TO '{path}' (FORMAT lance, MODE append)")
    session.sql("ROLLBACK")


def test_tables_of_attached_directories(sessions, tmp_path_factory):
    session, other = sessions
    folder = tmp_path_factory.mktemp("attached")
    for one in sessions:
        one.sql(f"ATTACH '{folder}' AS ns (TYPE lance)")
    session.sql("CREATE SCHEMA ns.s; BEGIN; CREATE TABLE ns.s.t AS FROM old; DROP TABLE old")
    assert rows(session, "ns.s.t") == [(1, 10), (2, 20)]
    listed = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'ns'"
    assert (session.sql(listed).fetchall(), other.sql(listed).fetchall()) == ([("s", "t")], [])
    session.sql("COMMIT")
    assert rows(other, "ns.s.t") == [(1, 10), (2, 20)]


def test_tables_of_services_are_refused(tmp_path):
    with namespace_server(tmp_path) as (endpoint, requests), lance_sql.connect() as session:
        session.sql(f"ATTACH '' AS ns (TYPE lance, IMPL rest, ENDPOINT '{endpoint}', BEARER_TOKEN 'secret')")
        session.sql("CREATE TABLE ns.t AS SELECT 1 AS a; BEGIN")
        for text in ("CREATE TABLE ns.u (a INT)", "DROP TABLE ns.t"):
            with pytest.raises(UnsupportedFeatureError, match="Run the statement before BEGIN"):
                session.sql(text)
        assert requests.count("table declare") == 1


def test_a_restricted_session_creates_only_where_it_may(tmp_path):
    (tmp_path / "a").mkdir()
    with lance_sql.connect(tmp_path / "a", enable_external_access=False) as session:
        session.sql("BEGIN")
        with pytest.raises(LanceError, match="access"):
            session.sql(f"CREATE TABLE '{tmp_path}/b.lance' AS SELECT 1 AS a")
        session.sql("ROLLBACK")


@pytest.mark.parametrize("engine", ENGINES)
def test_creation_is_conditional_in_object_stores(object_store: ObjectStore, engine: str) -> None:
    place, options = object_store.s3("shop"), object_store.options
    with (
        lance_sql.connect(place, engine, storage_options=options) as session,
        lance_sql.connect(place, storage_options=options) as other,
    ):
        session.sql(
            "BEGIN; CREATE TABLE t AS SELECT 1 AS a; INSERT INTO t VALUES (2); UPDATE t SET a = a + 1"
        )
        assert (session.tables(), rows(session, "t"), other.tables()) == (["t"], [(2,), (3,)], [])
        session.sql("COMMIT")
        assert (rows(other, "t"), lance_sql.open(f"{place}/t.lance", storage_options=options).version) == (
            [(2,), (3,)],
            1,
        )
        session.sql("BEGIN; CREATE TABLE u AS SELECT 1 AS a; DROP TABLE t")
        other.sql("CREATE TABLE u AS SELECT 2 AS b")
        with pytest.raises(CommitConflictError, match="created a dataset at this path"):
            session.sql("COMMIT")
        assert (rows(other, "u"), rows(other, "t")) == ([(2,)], [(2,), (3,)])
        session.sql("BEGIN; DROP TABLE t; COMMIT")
        assert other.tables() == ["u"]
