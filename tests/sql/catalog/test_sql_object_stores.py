"""SQL on datasets in object stores, with all operations."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from lance_engine.errors import (
    CommitConflictError,
    ConstraintError,
    DatasetExistsError,
    DatasetNotFoundError,
    LanceError,
)
from lance_engine.io import open_store

import lance_sql
from lance_sql.errors import SqlError

if TYPE_CHECKING:
    from conftest import ObjectStore

TABLE = pa.table({"id": range(100), "price": [float(i) for i in range(100)]})


@pytest.fixture(params=["s3", "ddb"])
def uri(request: pytest.FixtureRequest, object_store: ObjectStore) -> str:
    return getattr(object_store, request.param)("shop/sales.lance")


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_sql_with_options_from_the_environment(object_store: ObjectStore, uri: str, engine: str) -> None:
    lance_sql.write(TABLE, uri, storage_options=object_store.options)
    lance_sql.open(uri).delete("id < 10")
    result = lance_sql.sql(f"SELECT count(*) AS n, max(price) AS m FROM '{uri}' WHERE id < 50", engine=engine)
    assert result.arrow().to_pylist() == [{"n": 40, "m": 49.0}]
    old = lance_sql.sql(f"SELECT count(*) AS n FROM '{uri}' AT (VERSION => 1)", engine=engine)
    assert old.arrow().to_pylist() == [{"n": 100}]


def test_a_bucket_is_a_database(object_store: ObjectStore) -> None:
    options = object_store.options
    lance_sql.write(TABLE, object_store.s3("shop/sales.lance"), storage_options=options)
    con = lance_sql.connect(object_store.s3("shop"), storage_options=options)
    assert con.sql("SELECT count(*) AS n FROM sales").arrow().to_pylist() == [{"n": 100}]


def test_the_life_of_a_dataset(object_store: ObjectStore, uri: str) -> None:
    options = object_store.options
    ds = lance_sql.write(TABLE.slice(0, 50), uri, storage_options=options)
    with pytest.raises(DatasetExistsError):
        lance_sql.write(TABLE, uri, storage_options=options)
    ds = lance_sql.write(TABLE.slice(50), uri, "append", storage_options=options)
    ds = ds.delete("id % 10 = 0")
    ds = ds.update({"price": "price + 1"}, "id < 5")
    ds = ds.add_columns({"twice": "price * 2"})
    ds.tags.create("first", 1)
    assert ds.take(ds.scan(["_rowid"], filter="id = 42").to_table()["_rowid"].to_numpy()).to_pylist() == [
        {"id": 42, "price": 42.0, "twice": 84.0}
    ]
    ds = ds.compact()
    assert ds.count_rows() == 90
    assert lance_sql.open(uri, tag="first", storage_options=options).count_rows() == 50
    report = ds.cleanup(datetime.timedelta(0))
    assert 1 not in report.versions
    assert report.bytes_removed > 0
    assert lance_sql.open(uri, storage_options=options).scan().to_table() == ds.scan().to_table()
    assert ds.restore(1).count_rows() == 50


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_transactions(object_store: ObjectStore, engine: str) -> None:
    options, names = object_store.options, ("t", "u")
    uris = {name: object_store.s3(f"bank/{name}.lance") for name in names}
    for uri in uris.values():
        lance_sql.write(TABLE, uri, storage_options=options)

    def sizes() -> list[int]:
        return [lance_sql.open(uris[name], storage_options=options).count_rows() for name in names]

    with lance_sql.connect(object_store.s3("bank"), engine=engine, storage_options=options) as con:
        con.sql("BEGIN; DELETE FROM t WHERE id < 10; INSERT INTO u VALUES (100, 1.5)")
        assert con.sql("SELECT count(*) FROM t").fetchall() == [(90,)]
        assert sizes() == [100, 100]
        con.sql("ROLLBACK")
        assert con.sql("SELECT count(*) FROM t").fetchall() == [(100,)]
        con.sql("BEGIN; DELETE FROM t WHERE id < 10; INSERT INTO u VALUES (100, 1.5); COMMIT")
        assert sizes() == [90, 101]
        con.sql("BEGIN; UPDATE t SET price = 0 WHERE id = 50")
        lance_sql.open(uris["t"], storage_options=options).delete("id = 50")
        with pytest.raises(CommitConflictError):
            con.sql("COMMIT")
    assert [lance_sql.open(uri, storage_options=options).version for uri in uris.values()] == [3, 2]


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_a_folder_of_a_bucket_is_attached(object_store: ObjectStore, engine: str) -> None:
    options = object_store.options
    lance_sql.write(TABLE, object_store.s3("north/sales.lance"), storage_options=options)
    with lance_sql.connect(engine=engine, storage_options=options) as con:
        con.sql(f"ATTACH '{object_store.s3('north')}' AS north (TYPE LANCE)")
        assert con.sql("SELECT count(*) FROM north.sales WHERE id < 7").fetchall() == [(7,)]
        con.sql("CREATE TABLE north.cheap AS SELECT id, price FROM north.sales WHERE price < 3")
        con.sql("INSERT INTO north.cheap VALUES (7, 0.5)")
        con.sql("CREATE SCHEMA north.new; CREATE SCHEMA IF NOT EXISTS north.new")
        with pytest.raises(SqlError, match=r"north\.new already exists"):
            con.sql("CREATE SCHEMA north.new")
        con.sql("CREATE TABLE north.new.few AS SELECT id FROM north.sales WHERE id < 3")
        assert con.sql("SELECT sum(id) FROM north.new.few").fetchall() == [(3,)]
        with pytest.raises(SqlError, match="has tables: few"):
            con.sql("DROP SCHEMA north.new")
        con.sql("DROP TABLE north.new.few")
        stranger = open_store(object_store.s3("north/new"), options)
        assert stranger.names("") == [".schema"]  # there as long as the schema is
        stranger.put("notes.txt", b"?")
        with pytest.raises(LanceError, match=r"other files: notes\.txt"):
            con.sql("DROP SCHEMA north.new")
        stranger.delete("notes.txt")
        con.sql("DROP SCHEMA north.new; DROP SCHEMA IF EXISTS north.new")
        with pytest.raises(SqlError, match="no schema 'new'"):
            con.sql("DROP SCHEMA north.new")
        assert stranger.list("") == []
        lance_sql.write(TABLE.slice(98), object_store.s3("north/old/sales.lance"), storage_options=options)
        assert con.sql("SELECT sum(id) FROM north.old.sales").fetchall() == [(98 + 99,)]
        assert {row["name"] for row in con.sql("SHOW TABLES FROM north").arrow().to_pylist()} >= {
            "cheap",
            "sales",
        }
        con.sql("USE north")
        assert con.sql("SELECT count(*) FROM cheap").fetchall() == [(4,)]
        con.sql("DROP TABLE cheap")
    cheap = object_store.s3("north/cheap.lance")
    with pytest.raises(DatasetNotFoundError):
        lance_sql.open(cheap, storage_options=options)


@pytest.mark.parametrize(
    ("store", "kind", "key"),
    [
        ("ddb", "BIGINT", "i"),
        ("s3", "UUID", "md5(i::VARCHAR)::UUID"),
        ("s3", "TIMETZ", "TIMETZ '00:00:00' + to_seconds(i)"),
    ],
)
def test_keys_hold_in_a_bucket(object_store: ObjectStore, store: str, kind: str, key: str) -> None:
    """Also of two writers who know nothing of each other."""
    uri = getattr(object_store, store)("shop/sales.lance")
    first, other = (lance_sql.connect(storage_options=object_store.options) for _ in range(2))
    with first, other:
        first.sql(f"CREATE TABLE '{uri}' (k {kind} PRIMARY KEY, v INT)")
        first.sql(f"INSERT INTO '{uri}' SELECT {key}, 1 FROM range(50) r(i)")
        other.sql(
            f"INSERT INTO '{uri}' SELECT {key}, 2 FROM range(40, 60) r(i) ON CONFLICT DO UPDATE SET v = 2"
        )
        with pytest.raises(ConstraintError, match="Duplicate key"):
            first.sql(f"INSERT INTO '{uri}' SELECT {key}, 3 FROM range(55, 70) r(i)")
        first.sql(
            f"MERGE INTO '{uri}' t USING (SELECT {key} AS k FROM range(59, 62) r(i)) s USING (k) "
            "WHEN MATCHED THEN UPDATE SET v = 4 WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, 5)"
        )
        counts = other.sql(f"SELECT v, count(*), count(DISTINCT k) FROM '{uri}' GROUP BY v ORDER BY v")
        assert counts.fetchall() == [(1, 40, 40), (2, 19, 19), (4, 1, 1), (5, 2, 2)]


def test_a_bucket_is_listed_as_duckdb_lists_its_tables(object_store: ObjectStore) -> None:
    with lance_sql.connect(object_store.s3("lake"), storage_options=object_store.options) as session:
        session.sql("CREATE TABLE t (id INTEGER PRIMARY KEY, b VARCHAR DEFAULT 'x')")
        session.sql("INSERT INTO t (id) VALUES (1), (2)")
        listed = session.sql("SELECT table_name, estimated_size, has_primary_key FROM duckdb_tables()")
        assert listed.fetchall() == [("t", 2, True)]
        assert session.sql("DESCRIBE t").fetchall()[1] == ("b", "VARCHAR", "YES", None, "'x'", None)
