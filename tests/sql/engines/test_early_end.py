"""Decoding stops when a statement needs no more rows or nobody waits for it."""

from __future__ import annotations

import gc
import time

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.cache import memory_limit, set_memory_limit

import lance_sql

ROWS = 3_000_000


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    path = tmp_path_factory.mktemp("numbers") / "n.lance"
    random = np.random.default_rng(0)
    return lance_sql.write(pa.table({"x": random.integers(0, 2**62, ROWS)}), path)


@pytest.fixture
def session(numbers, engine):
    """A connection to `n` with a read-ahead of 1 MiB, a twenty-fourth of the column."""
    before = memory_limit()
    set_memory_limit(4 << 20)
    try:
        with lance_sql.connect(engine=engine) as connection:
            connection.register("n", numbers)
            yield connection
    finally:
        set_memory_limit(before)


def assert_little_was_read(result):
    time.sleep(0.2)  # what goes on decoding would be counted
    # The first batch of DuckDB's streams has 1,000,000 rows, and its threads are ahead of it.
    assert result.metrics["rows_read"] < ROWS * 2 // 3
    assert result.metrics["bytes_read"] < ROWS * 2 // 3 * 8


def test_limit(session):
    result = session.sql("SELECT x FROM n LIMIT 5")
    assert result.arrow().num_rows == 5
    assert_little_was_read(result)


def test_an_abandoned_stream(session):
    result = session.sql("SELECT x + 1 AS y FROM n")
    stream = iter(result)
    assert next(stream).num_rows > 0
    del stream
    gc.collect()
    assert_little_was_read(result)


def test_all_rows_are_read_otherwise(session):
    result = session.sql("SELECT x + 1 AS y FROM n")
    assert sum(batch.num_rows for batch in result) == ROWS
    assert result.metrics["rows_read"] == ROWS
