"""How many requests of a case are in flight together, at least and at most, on the emulator.

The proxy holds requests until so many are open: a case passes however slow the machine is, and fails where
requests are made one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.fetch import TransferModel, fetcher, requests_in_flight, set_requests_in_flight
from lance_engine.file.lasting import LASTING
from lance_engine.io.object_upload import PART_BYTES
from s3_proxy import Request, S3Proxy, new_bucket, s3_proxy

import lance_sql

ROWS, FRAGMENTS, COLUMNS = 200_000, 40, 6
BUCKET = "in-flight"


def numbers(rows: int) -> pa.Table:
    """Values that take eight bytes each in files."""
    random = np.random.default_rng(11)
    made = {f"c{column}": random.integers(0, 1 << 62, rows) for column in range(COLUMNS)}
    return pa.table({"number": np.arange(rows), **made})


class Tables(NamedTuple):
    proxy: S3Proxy
    options: dict[str, Any]

    def uri(self, name: str) -> str:
        return f"s3://{BUCKET}/{name}.lance"

    def open(self, name: str) -> lance_sql.Dataset:
        return lance_sql.open(self.uri(name), storage_options=self.options)

    def write(self, rows: pa.Table | pa.RecordBatchReader, name: str, **options: Any) -> lance_sql.Dataset:
        return lance_sql.write(
            rows, self.uri(name), mode="overwrite", storage_options=self.options, **options
        )

    def sql(self, text: str, engine: str = "duckdb") -> list[tuple[Any, ...]]:
        return lance_sql.connect(engine=engine, storage_options=self.options).sql(text).fetchall()


@pytest.fixture(scope="module")
def tables(object_store_endpoint: str) -> Iterator[Tables]:
    with s3_proxy(object_store_endpoint) as proxy:
        # Nothing is requested again while it is held.
        options = {**new_bucket(proxy, BUCKET), "request_timeout": "200s", "retry_timeout": "400s"}
        made = Tables(proxy, options)
        made.write(numbers(ROWS), "one")
        made.write(numbers(FRAGMENTS * 100), "many", max_rows_per_file=100)
        yield made


@pytest.fixture(autouse=True)
def _unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    # What requests cost decides what is joined: here it is always the same.
    monkeypatch.setattr(fetcher, "_models", {})
    monkeypatch.setattr(TransferModel, "observe", lambda *_: None)


def is_read(request: Request) -> bool:
    return request.method == "GET" and "/data/" in request.path


def is_combined_deletion_file(request: Request) -> bool:
    """Of rows that several writers deleted; the others hold few rows, as lists."""
    return is_deletion_file(request) and request.path.endswith(".bin")


def is_part(request: Request) -> bool:
    return request.method == "PUT" and "partNumber=" in request.path


def is_new_file(request: Request) -> bool:
    return request.method == "PUT" and "/data/" in request.path


def is_deletion_file(request: Request) -> bool:
    return request.method == "PUT" and "/_deletions/" in request.path


def opened(tables: Tables, name: str) -> lance_sql.Dataset:
    """An open dataset: the file of `one` is open as well, those of `many` have not been read."""
    dataset = tables.open(name)
    LASTING.clear()
    if name == "one":
        dataset.take([0])
    return dataset


def scan(name: str, **options: Any) -> Callable[[Tables], Callable[[], object]]:
    def prepare(tables: Tables) -> Callable[[], object]:
        dataset = opened(tables, name)
        return lambda: dataset.scan(**options).to_table()

    return prepare


def take(name: str, count: int) -> Callable[[Tables], Callable[[], object]]:
    def prepare(tables: Tables) -> Callable[[], object]:
        dataset = opened(tables, name)
        ids = dataset.scan(columns=["_rowid"]).to_table()["_rowid"].to_numpy()  # from metadata
        wanted = ids[:: len(ids) // count]
        return lambda: dataset.take(wanted)

    return prepare


def query(engine: str) -> Callable[[Tables], Callable[[], object]]:
    def prepare(tables: Tables) -> Callable[[], object]:
        opened(tables, "one")
        columns = ", ".join(f"sum(c{column} % 3)" for column in range(COLUMNS))
        return lambda: tables.sql(f"SELECT {columns} FROM '{tables.uri('one')}'", engine)

    return prepare


def deleting(tables: Tables) -> Callable[[], object]:
    dataset = tables.write(numbers(FRAGMENTS * 100), "deleted", max_rows_per_file=100)

    def delete() -> None:
        left = dataset.delete("number % 100 = 7 OR number < 100")
        assert left.count_rows() == (FRAGMENTS - 1) * 99
        assert not left.scan(filter="number % 100 = 7 OR number < 100").to_table().num_rows

    return delete


def writing(rows: int, **options: Any) -> Callable[[Tables], Callable[[], object]]:
    def prepare(tables: Tables) -> Callable[[], object]:
        source = pa.table({"number": numbers(rows)["c0"]})
        return lambda: tables.write(source, "written", **options)

    return prepare


def deleting_after_another(tables: Tables) -> Callable[[], object]:
    dataset = tables.write(numbers(FRAGMENTS * 100), "shared", max_rows_per_file=100)
    tables.open("shared").delete("number % 100 = 3")

    def delete() -> None:
        left = dataset.delete("number % 100 = 7")
        assert left.count_rows() == FRAGMENTS * 98
        assert not left.scan(filter="number % 100 IN (3, 7)").to_table().num_rows

    return delete


class Case(NamedTuple):
    """What is counted, and how many of it are in flight together at least."""

    prepare: Callable[[Tables], Callable[[], object]]
    kind: Callable[[Request], bool]
    together: int


CASES = {
    "scan": Case(scan("one"), is_read, 4),
    "scan of fragments": Case(scan("many"), is_read, FRAGMENTS),
    "filter over fragments": Case(scan("many", filter="c0 % 7 = 3"), is_read, FRAGMENTS),
    "take": Case(take("one", 3), is_read, COLUMNS),
    "take of fragments": Case(take("many", FRAGMENTS), is_read, FRAGMENTS),
    "DuckDB": Case(query("duckdb"), is_read, 4),
    "DataFusion": Case(query("datafusion"), is_read, 4),
    "delete": Case(deleting, is_deletion_file, FRAGMENTS - 1),
    "delete after another": Case(deleting_after_another, is_combined_deletion_file, FRAGMENTS),
    "parts of a file": Case(writing(5 * PART_BYTES // 8, max_rows_per_file=PART_BYTES), is_part, 4),
    "files": Case(writing(1000, max_rows_per_file=100), is_new_file, 3),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", CASES)
def test_requests_overlap(tables: Tables, name: str) -> None:
    case = CASES[name]
    run = case.prepare(tables)
    with tables.proxy.gather(case.together, case.kind) as gathering:
        run()
    assert case.together <= gathering.most <= requests_in_flight()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["scan of fragments", "take of fragments", "delete"])
def test_no_more_requests_than_allowed(tables: Tables, name: str) -> None:
    case = CASES[name]
    run = case.prepare(tables)
    set_requests_in_flight(5)
    try:
        with tables.proxy.gather(6, case.kind, seconds=1) as gathering:
            run()
    finally:
        set_requests_in_flight(None)
    assert 1 <= gathering.most <= 5


def test_a_writer_waits_for_its_uploads(tables: Tables) -> None:
    """Rows are taken from their source only as far as there is room for them in memory."""
    batch = numbers(PART_BYTES // 8).select(["c0"]).to_batches()[0]
    parts, taken_while_held = 28, 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal taken_while_held
        for _ in range(parts):
            taken_while_held += gathering.is_holding
            yield batch

    with tables.proxy.gather(parts, is_part, seconds=1) as gathering:
        reader = pa.RecordBatchReader.from_batches(batch.schema, batches())
        written = tables.write(reader, "large", max_rows_per_file=parts * batch.num_rows)
    assert written.count_rows() == parts * batch.num_rows
    # Four parts are in flight, one waits, one is being filled; others are pages that are being encoded.
    assert gathering.most == 4
    assert taken_while_held < parts * 3 // 4
