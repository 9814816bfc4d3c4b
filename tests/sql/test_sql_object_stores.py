"""SQL over datasets on object stores, and everything that can be done with them there."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from lance_engine.errors import DatasetExistsError

import lance_sql

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
