"""BEGIN, COMMIT and ROLLBACK: one version or none, with other writers and with tables of the engine."""

from __future__ import annotations

import datetime
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_engine.errors import CommitConflictError, DatasetNotFoundError, IncompatibleChangeError, LanceError

import lance_sql

ENGINES = ("duckdb", "datafusion")


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def folder(request, tmp_path):
    """Two datasets of four rows in two fragments."""
    rows = pa.table({"id": [1, 2, 3, 4], "v": [10, 20, 30, 40]})
    for name in ("t", "u"):
        lance_sql.write(rows, tmp_path / f"{name}.lance", max_rows_per_file=2, stable_row_ids=request.param)
    return tmp_path


def files(folder):
    """All files but the hints, which say which version is the latest."""
    return {path for path in folder.rglob("*") if path.is_file() and "hint" not in path.name}


def rows(folder, name="t"):
    """The rows that pylance reads; ours must be the same, and the dataset must be valid."""
    dataset = lance_sql.open(folder / f"{name}.lance")
    assert dataset.verify(values=True).num_rows == 0
    found = lance.dataset(folder / f"{name}.lance").to_table().to_pylist()
    assert found == dataset.to_table().to_pylist()
    return sorted(tuple(row.values()) for row in found)


CHANGES = [
    "INSERT INTO t VALUES (5, 50), (6, 60)",
    "UPDATE t SET v = v + 1 WHERE id IN (1, 5)",
    "DELETE FROM t WHERE id IN (2, 6)",
    "MERGE INTO t USING (VALUES (5, 55), (7, 77)) s(id, v) ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)",
    "UPDATE t SET v = 0 WHERE v > 54",
]
CHANGED = [(1, 11), (3, 30), (4, 40), (5, 0), (7, 0)]


@pytest.mark.parametrize("engine", ENGINES)
def test_changes_are_seen_inside_and_become_one_version(folder, engine):
    with lance_sql.connect(folder, engine) as session, lance_sql.connect(folder) as other:
        session.begin()
        for change in CHANGES:
            session.sql(change)
        assert sorted(session.sql("SELECT * FROM t").fetchall()) == CHANGED
        assert session.sql("SELECT count(*), max(v) FROM t").fetchone() == (5, 40)
        assert other.sql("SELECT count(*) FROM t").fetchone() == (4,)
        session.commit()
        assert not session.in_transaction
        assert sorted(other.sql("SELECT * FROM t").fetchall()) == CHANGED
    assert rows(folder) == CHANGED
    assert lance_sql.open(folder / "t.lance").version == 2


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("end", ["rollback", "close"])
def test_nothing_is_left_of_what_is_undone(folder, engine, end):
    before = files(folder)
    session = lance_sql.connect(folder, engine)
    session.sql("BEGIN")
    for change in [*CHANGES, "ALTER TABLE t ADD COLUMN w INT DEFAULT 3"]:
        session.sql(change)
    assert files(folder) > before
    getattr(session, end)()
    assert files(folder) == before
    assert rows(folder) == [(1, 10), (2, 20), (3, 30), (4, 40)]
    session.close()


def test_only_the_files_of_the_version_are_left(folder):
    with lance_sql.connect(folder) as session:
        session.sql("BEGIN; " + "; ".join(CHANGES) + "; COMMIT")
    before = files(folder)
    report = lance_sql.open(folder / "t.lance").cleanup(
        older_than=datetime.timedelta(days=7), delete_unverified=True
    )
    assert report.versions == ()
    assert files(folder) == before


def test_rows_that_others_add_or_change_meanwhile_stay(folder):
    with lance_sql.connect(folder) as session, lance_sql.connect(folder) as other:
        session.sql("BEGIN")
        for change in CHANGES:
            if not change.startswith("MERGE"):
                session.sql(change)
        other.sql("INSERT INTO t VALUES (100, 1)")
        other.sql("UPDATE t SET v = 33 WHERE id = 3")
        other.sql("DELETE FROM t WHERE id = 4")
        session.sql("COMMIT")
    assert rows(folder) == [(1, 11), (3, 33), (5, 51), (100, 1)]


def test_a_merge_that_inserts_conflicts_with_rows_that_others_add(folder):
    """They may have the same keys."""
    with lance_sql.connect(folder) as session, lance_sql.connect(folder) as other:
        session.sql("BEGIN")
        for change in CHANGES:
            session.sql(change)
        other.sql("INSERT INTO t VALUES (7, 1)")
        with pytest.raises(CommitConflictError):
            session.sql("COMMIT")
    assert rows(folder) == [(1, 10), (2, 20), (3, 30), (4, 40), (7, 1)]


def test_a_version_of_another_writer_that_conflicts_is_named(folder):
    with lance_sql.connect(folder) as session, lance_sql.connect(folder) as other:
        before = files(folder / "u.lance")
        session.sql("BEGIN; INSERT INTO u VALUES (9, 9); UPDATE u SET v = 1 WHERE id = 1; UPDATE t SET v = 1")
        other.sql("INSERT INTO t VALUES (8, 8)")
        other.sql("UPDATE t SET v = 2 WHERE id = 1")
        with pytest.raises(CommitConflictError, match=r"version 3.*Already committed.*u\.lance as version 2"):
            session.sql("COMMIT")
        assert not session.in_transaction
        session.sql("BEGIN; UPDATE u SET v = 1 WHERE id = 2")
        theirs = other.sql("UPDATE u SET v = 2 WHERE id = 2").fetchone()
        kept = files(folder / "u.lance")
        with pytest.raises(CommitConflictError) as caught:
            session.sql("COMMIT")
        assert theirs == (1,)
        assert caught.value.place["version"] == 3
        assert len(files(folder / "u.lance")) < len(kept)
        assert before < files(folder / "u.lance")
    assert rows(folder, "u") == [(1, 1), (2, 2), (3, 30), (4, 40), (9, 9)]


@pytest.mark.parametrize("more", ["", "; INSERT INTO t VALUES (8, 80)"], ids=["one version", "two versions"])
@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO t VALUES (5, 50)",
        "UPDATE t SET v = 0 WHERE id = 1",
        "DELETE FROM t WHERE id = 1",
        "ALTER TABLE t DROP COLUMN v",
    ],
)
def test_a_dataset_that_others_create_again_is_another_one(folder, change, more):
    with lance_sql.connect(folder) as session, lance_sql.connect(folder) as other:
        session.sql(f"BEGIN; {change}")
        other.sql(f"DROP TABLE t; CREATE TABLE t AS SELECT 7::BIGINT AS id, 70::BIGINT AS v{more}")
        before = files(folder)
        with pytest.raises(IncompatibleChangeError, match=r"replaced the dataset.*still want"):
            session.sql("COMMIT")
        assert not session.in_transaction
        assert files(folder) <= before
    assert rows(folder) == ([(7, 70), (8, 80)] if more else [(7, 70)])


@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("change", ["INSERT INTO t VALUES (5, 50), (-6, NULL)", "DELETE FROM t WHERE id = 4"])
def test_queries_before_a_transaction_are_no_reads_of_it(folder, engine, change, isolation):
    with lance_sql.connect(folder, engine) as session, lance_sql.connect(folder) as other:
        session.sql(f"SET lance_isolation = '{isolation}'")
        session.sql("SELECT * FROM t").fetchall()
        session.sql(f"BEGIN; {change}")
        other.sql("DELETE FROM t WHERE id = 1")
        session.sql("COMMIT")
    assert [row[0] for row in rows(folder)] == ([-6, 2, 3, 4, 5] if change.startswith("INSERT") else [2, 3])


@pytest.mark.parametrize("statement", ["DELETE FROM t", "TRUNCATE t", "DELETE FROM t WHERE true"])
def test_changes_of_all_rows_conflict_with_one_row_that_was_computed_from_them(folder, statement):
    """No order explains both: the new row needs the others, and would have been removed with them."""
    with lance_sql.connect(folder) as session, lance_sql.connect(folder) as other:
        session.sql(f"BEGIN; {statement}")
        other.sql("BEGIN; INSERT INTO t SELECT max(id) + 1, 50 FROM t; COMMIT")
        with pytest.raises(CommitConflictError, match="read rows that another writer changed"):
            session.sql("COMMIT")
    assert [row[0] for row in rows(folder)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("value", ["least_id()", "(SELECT min(id) FROM t)", "(SELECT id FROM firsts)"])
def test_values_that_are_computed_from_tables_are_reads(folder, value):
    with lance_sql.connect(folder) as session, lance_sql.connect(folder) as other:
        session.sql("CREATE VIEW firsts AS SELECT min(id) AS id FROM t")
        session.sql("CREATE MACRO least_id() AS (SELECT min(id) FROM t)")
        session.sql(f"SELECT {value}").fetchall()
        session.sql(f"BEGIN; INSERT INTO t VALUES ({value}, 50)")
        other.sql("DELETE FROM t WHERE id = 1")
        with pytest.raises(CommitConflictError):
            session.sql("COMMIT")


def test_views_read_their_tables_in_a_transaction(folder):
    with lance_sql.connect(folder) as session, lance_sql.connect(folder) as other:
        session.sql("CREATE VIEW firsts AS SELECT min(id) AS id, 7 AS v FROM t")
        session.sql("SELECT * FROM firsts").fetchall()
        session.sql("BEGIN; INSERT INTO t FROM firsts")
        other.sql("DELETE FROM t WHERE id = 1")
        with pytest.raises(CommitConflictError, match="read rows that another writer changed in version 2"):
            session.sql("COMMIT")


@pytest.mark.parametrize("change", ["INSERT INTO t VALUES (5, 50)", "DELETE FROM t WHERE id = 1"])
@pytest.mark.parametrize("end", ["DROP TABLE t", "ALTER TABLE t RENAME TO other"])
def test_a_dataset_that_others_drop_is_gone(folder, change, end):
    with lance_sql.connect(folder) as session, lance_sql.connect(folder) as other:
        session.sql(f"BEGIN; {change}")
        other.sql(end)
        with pytest.raises(DatasetNotFoundError, match="No Lance dataset to commit to"):
            session.sql("COMMIT")
        assert not (folder / "t.lance").exists()


def test_versions_are_those_of_the_first_look(folder):
    with lance_sql.connect(folder) as session, lance_sql.connect(folder) as other:
        session.sql("BEGIN")
        assert session.sql("SELECT count(*) FROM t").fetchone() == (4,)
        other.sql("INSERT INTO t VALUES (5, 50)")
        assert session.sql("SELECT count(*) FROM t").fetchone() == (4,)
        session.sql("INSERT INTO t VALUES (6, 60)")
        assert session.sql("SELECT count(*) FROM t").fetchone() == (5,)
        session.sql("COMMIT")
        assert session.sql("SELECT count(*) FROM t").fetchone() == (6,)


@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
def test_what_queries_read_counts_if_asked(folder, isolation):
    with lance_sql.connect(folder) as session, lance_sql.connect(folder) as other:
        session.sql(f"SET lance_isolation = '{isolation}'")
        session.sql("BEGIN")
        total = session.sql("SELECT sum(v) FROM t").fetchone()
        session.sql("UPDATE t SET v = ? WHERE id = 1", list(total))
        other.sql("UPDATE t SET v = 0 WHERE id = 2")
        if isolation == "snapshot":
            session.sql("COMMIT")
        else:
            with pytest.raises(
                CommitConflictError, match="read rows that another writer changed in version 2"
            ):
                session.sql("COMMIT")
    assert rows(folder)[0] == (1, 100 if isolation == "snapshot" else 10)


@pytest.mark.parametrize(
    "read",
    ["(PIVOT t ON id USING sum(v))", "(UNPIVOT t ON id, v)", "(FROM t)", "x: t", "(SELECT 1 FROM t)"],
)
def test_changes_count_what_they_read(folder, read):
    change = f"BEGIN; INSERT INTO t SELECT count(*) + {{}}, 0 FROM {read}"
    with lance_sql.connect(folder) as session, lance_sql.connect(folder) as other:
        session.sql(change.format(100))
        other.sql(change.format(200) + "; COMMIT")
        with pytest.raises(CommitConflictError, match="read rows that another writer changed in version 2"):
            session.sql("COMMIT")


def test_tables_of_duckdb_take_part(folder):
    with lance_sql.connect(folder) as session:
        session.sql("CREATE TEMP TABLE done (id INT PRIMARY KEY)")
        session.sql("BEGIN; INSERT INTO done VALUES (1); INSERT INTO t VALUES (5, 50); ROLLBACK")
        assert session.sql("SELECT count(*) FROM done").fetchone() == (0,)
        session.sql("BEGIN; INSERT INTO done VALUES (1); INSERT INTO t SELECT id + 8, 0 FROM done; COMMIT")
        assert session.sql("SELECT t.id FROM done, t WHERE t.id = done.id + 8").fetchall() == [(9,)]
        session.sql("BEGIN; INSERT INTO t VALUES (6, 60)")
        with pytest.raises(LanceError):
            session.sql("INSERT INTO done VALUES (1)")  # DuckDB's transaction can only be undone now
        with pytest.raises(LanceError, match="aborted"):
            session.sql("COMMIT")
        assert not session.in_transaction
    assert (6, 60) not in rows(folder)


def test_registered_datasets_and_pending_results(folder):
    dataset = lance_sql.open(folder / "t.lance")
    with lance_sql.connect() as session:
        session.register("n", dataset)
        session.sql("BEGIN; INSERT INTO n VALUES (5, 50)")
        pending = session.sql("SELECT count(*) FROM n")
        session.sql("ROLLBACK")
        assert pending.fetchone() == (5,)  # planned inside, asked for rows outside
        assert session.sql("SELECT count(*) FROM n").fetchone() == (4,)
        session.sql("BEGIN; INSERT INTO n VALUES (5, 50); COMMIT")
        assert session.sql("SELECT count(*) FROM n").fetchone() == (5,)


def test_row_ids_stay_where_they_are_stable(tmp_path):
    data = pa.table({"id": range(6)})
    lance_sql.write(data, tmp_path / "t.lance", max_rows_per_file=3, stable_row_ids=True)
    with lance_sql.connect(tmp_path) as session:
        session.sql(
            "BEGIN; INSERT INTO t VALUES (10), (11); UPDATE t SET id = id + 100 WHERE id IN (1, 4, 10)"
        )
        session.sql("UPDATE t SET id = id + 100 WHERE id >= 100; DELETE FROM t WHERE id IN (0, 11)")
        session.sql("INSERT INTO t VALUES (12); COMMIT")
        found = dict(session.sql("SELECT id, _rowid FROM t").fetchall())
        assert {number: found[number] for number in (2, 3, 5, 201, 204)} == {2: 2, 3: 3, 5: 5, 201: 1, 204: 4}
        assert len(set(found.values())) == len(found) == 7
        session.sql("INSERT INTO t VALUES (13)")
        again = session.sql("SELECT count(DISTINCT _rowid), count(*) FROM t").fetchone()
        assert again == (8, 8)
    assert lance_sql.open(tmp_path / "t.lance").verify(values=True).num_rows == 0


@pytest.mark.parametrize("wrong", ["SELEC 1", "SELECT (1", "SELECT nosuch FROM t", "FROM nosuch"])
def test_a_statement_that_does_not_run_leaves_the_transaction_as_it_is(tmp_path: Path, wrong: str) -> None:
    with lance_sql.connect(tmp_path) as session:
        session.sql("CREATE TABLE t AS SELECT 1 AS id")
        session.sql("BEGIN; INSERT INTO t VALUES (2)")
        with pytest.raises(LanceError):
            session.sql(wrong)
        session.sql("COMMIT")
        assert session.sql("SELECT id FROM t ORDER BY id").fetchall() == [(1,), (2,)]


def test_a_query_that_failed_is_not_run_again_in_a_transaction(tmp_path: Path) -> None:
    """Its error would abort the transaction, to which it does not belong."""
    lance_sql.write(pa.table({"id": [1, 2], "s": ["a", "b"]}), tmp_path / "t.lance")
    with lance_sql.connect(tmp_path) as session:
        failing = session.sql("SELECT CAST(s AS INT) FROM t")
        with pytest.raises(LanceError, match="Could not convert string 'a'"):
            list(failing)
        session.sql("BEGIN; INSERT INTO t (id) VALUES (9)")
        assert session.sql("SELECT count(*) FROM t").fetchone() == (3,)
        session.sql("COMMIT")
        with pytest.raises(LanceError, match="Could not convert string 'a'"):
            failing.fetchall()


def test_names_keep_their_meaning_after_a_transaction_that_failed(tmp_path: Path) -> None:
    lance_sql.write(pa.table({"id": [1, 2], "s": ["a", "b"]}), tmp_path / "t.lance")
    with lance_sql.connect(tmp_path) as session:
        assert session.sql("SELECT count(*) FROM t").fetchone() == (2,)
        session.sql("BEGIN; INSERT INTO t (id) VALUES (9)")
        with pytest.raises(LanceError):
            session.sql("SELECT CAST('a' AS INT)").fetchall()
        with pytest.raises(LanceError, match="ROLLBACK"):
            session.sql("SELECT max(id) FROM t").fetchall()
        session.sql("ROLLBACK")
        assert session.sql("SELECT max(id) FROM t").fetchone() == (2,)
