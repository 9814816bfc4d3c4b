"""The requests and bytes of queries, warm lookups and changes of a table on S3, with the emulator.

`tests/unit/fetch/test_case_counts.py` has the cold scans and takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.fetch import TransferModel, fetcher, requests_in_flight
from s3_proxy import Request, S3Proxy, new_bucket, s3_proxy

import lance_sql

ROWS = 60_000
Q1 = """SELECT flag, status, sum(quantity), sum(price), sum(price * (1 - discount)), count(*)
FROM {lineitem} WHERE shipped <= DATE '1998-09-02' GROUP BY flag, status ORDER BY flag, status"""
Q3 = """SELECT l.key, sum(l.price * (1 - l.discount)) AS revenue FROM {lineitem} l
JOIN {orders} o ON l.key = o.key WHERE o.segment = 3 AND l.shipped > DATE '1995-03-15'
GROUP BY l.key ORDER BY revenue DESC, l.key LIMIT 10"""
LIMIT = "SELECT * FROM {lineitem} LIMIT 10"
Q6 = """SELECT sum(price * discount) FROM {lineitem}
WHERE shipped >= DATE '1994-01-01' AND shipped < DATE '1995-01-01' AND discount > 0.05 AND quantity < 24"""


def lineitem() -> pa.Table:
    number = np.random.default_rng(8)
    days = number.integers(0, 2500, ROWS).astype("timedelta64[D]") + np.datetime64("1992-01-02")
    return pa.table(
        {
            "key": np.arange(ROWS) // 4,
            "quantity": number.integers(1, 51, ROWS).astype(np.float64),
            "price": number.random(ROWS) * 1e5,
            "discount": number.integers(0, 11, ROWS) / 100,
            "flag": pa.array([*"ANR"]).take(pa.array(number.integers(0, 3, ROWS))),
            "status": pa.array([*"FO"]).take(pa.array(number.integers(0, 2, ROWS))),
            "shipped": pa.array(days.astype("datetime64[D]"), pa.date32()),
            "id": number.permutation(ROWS),
        }
    )


class Tables(NamedTuple):
    proxy: S3Proxy
    options: dict[str, Any]
    root: str

    def uri(self, name: str) -> str:
        return f"{self.root}/{name}.lance"

    def open(self, name: str) -> lance_sql.Dataset:
        return lance_sql.open(self.uri(name), storage_options=self.options)

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        names = {name: f"'{self.uri(name)}'" for name in ("lineitem", "orders")}
        return lance_sql.connect(storage_options=self.options).sql(text.format(**names)).fetchall()


@pytest.fixture(scope="module")
def tables(object_store_endpoint: str) -> Iterator[Tables]:
    with s3_proxy(object_store_endpoint) as proxy:
        options = new_bucket(proxy, "case-requests")
        made = Tables(proxy, options, "s3://case-requests")
        lance_sql.write(lineitem(), made.uri("lineitem"), storage_options=options)
        orders = pa.table({"key": range(ROWS // 4), "segment": [row % 5 for row in range(ROWS // 4)]})
        lance_sql.write(orders, made.uri("orders"), storage_options=options)
        lance_sql.write(lineitem(), made.uri("indexed"), storage_options=options).create_index("id", "BTREE")
        yield made


@pytest.fixture(autouse=True)
def _unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    # What requests cost decides what is joined: here it is always the same.
    monkeypatch.setattr(fetcher, "_models", {})
    monkeypatch.setattr(TransferModel, "observe", lambda *_: None)


def length_of(request: Request) -> int:
    """Bytes of the range that was asked for; 0 for whole files and listings."""
    begin, _, end = (request.range or "").removeprefix("bytes=").partition("-")
    return int(end) - int(begin) + 1 if begin and end else int(end or 0)


def row_ids(count: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(count).integers(0, ROWS, count)


def warm_take(count: int) -> Callable[[Tables], Callable[[], object]]:
    def prepare(tables: Tables) -> Callable[[], object]:
        dataset = tables.open("lineitem")
        dataset.take(row_ids(3))
        return lambda: dataset.take(row_ids(count))

    return prepare


def point(warm: bool) -> Callable[[Tables], Callable[[], object]]:
    def prepare(tables: Tables) -> Callable[[], object]:
        if not warm:
            return lambda: tables.open("indexed").scan(filter="id = 31000").to_table()
        dataset = tables.open("indexed")
        dataset.scan(filter="id = 15000").to_table()
        return lambda: dataset.scan(filter="id = 31000").to_table()

    return prepare


def fresh(tables: Tables, name: str) -> lance_sql.Dataset:
    return lance_sql.write(lineitem(), tables.uri(name), mode="overwrite", storage_options=tables.options)


def deleting(tables: Tables) -> Callable[[], object]:
    dataset = fresh(tables, "deleted")
    return lambda: dataset.delete("key % 100 = 7")


def appending(tables: Tables) -> Callable[[], object]:
    fresh(tables, "appended")
    few = lineitem()[:10]
    return lambda: lance_sql.write(few, tables.uri("appended"), mode="append", storage_options=tables.options)


class Case(NamedTuple):
    """The most requests and bytes that a case may take."""

    prepare: Callable[[Tables], Callable[[], object]]
    requests: int
    read: int


KIB = 1 << 10
CASES = {
    "q1": Case(lambda tables: lambda: tables.sql(Q1), 6, 1080 * KIB),
    "q3": Case(lambda tables: lambda: tables.sql(Q3), 8, 1160 * KIB),
    "q6": Case(lambda tables: lambda: tables.sql(Q6), 5, 1010 * KIB),
    "limit in SQL": Case(
        lambda tables: lambda: tables.sql("SELECT * FROM {lineitem} LIMIT 10"), 10, 390 * KIB
    ),
    "take 1, warm": Case(warm_take(1), 7, 320 * KIB),
    "take 10, warm": Case(warm_take(10), 6, 810 * KIB),
    "take 100, warm": Case(warm_take(100), 3, 1200 * KIB),
    "take 1000, warm": Case(warm_take(1000), 6, 1650 * KIB),
    "point by an index": Case(point(warm=False), 10, 1350 * KIB),
    "point by an index, warm": Case(point(warm=True), 3, 1270 * KIB),
    "write": Case(lambda tables: lambda: fresh(tables, "written"), 7, 0),
    "append": Case(appending, 8, 0),
    "delete": Case(deleting, 8, 390 * KIB),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_case_asks_for(tables: Tables, name: str) -> None:
    case = CASES[name]
    run = case.prepare(tables)
    tables.proxy.reset()
    run()
    requests = list(tables.proxy.requests)
    assert len(requests) <= case.requests
    assert sum(map(length_of, requests)) <= case.read
    assert tables.proxy.most_in_flight <= requests_in_flight()
