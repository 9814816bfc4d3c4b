"""Queries side by side, on one dataset object and on cursors of one connection; queries in little memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from memory_peak import peak_memory

import lance_sql

THREADS = 8


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    directory = tmp_path_factory.mktemp("threads")
    count = 60_000
    table = pa.table(
        {"x": np.arange(count), "k": np.arange(count) % 7, "s": [f"s{n % 100}" for n in range(count)]}
    )
    lance_sql.write(table, directory / "n.lance", max_rows_per_file=20_000)
    return directory


def on_threads(work):
    """The results of `work(0)`, `work(1)` ... on as many threads at once."""
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(work, range(THREADS)))


def test_one_dataset_object(numbers, engine):
    dataset = lance_sql.open(numbers / "n.lance")

    def work(number):
        with lance_sql.connect(engine=engine) as connection:
            connection.register("n", dataset)
            text = f"SELECT count(*), sum(x), min(s) FROM n WHERE k = {number % 7} AND x >= {number}"
            found = [connection.sql(text).fetchone() for _ in range(4)]
        rows = dataset.scan(columns=["x"], filter=f"k = {number % 7} AND x >= {number}").to_table()["x"]
        return found, (len(rows), sum(rows.to_pylist()))

    for found, (count, total) in on_threads(work):
        assert {row[:2] for row in found} == {(count, total)}


def test_cursors_of_one_connection(numbers, engine):
    with lance_sql.connect(numbers, engine=engine) as connection:
        connection.sql("CREATE VIEW wanted AS SELECT 3 AS k UNION ALL SELECT 5")
        connection.register("extra", pa.table({"x": [10, 20, 30]}))

        def work(number):
            found = []
            with connection.cursor() as cursor:
                for _ in range(4):
                    found.append(cursor.sql(f"SELECT count(*) FROM n WHERE x % 8 = {number}").fetchone())
                    found.append(cursor.sql("SELECT count(*) FROM n JOIN wanted USING (k)").fetchone())
                    found.append(
                        cursor.sql("SELECT count(*) FROM n JOIN extra USING (x) WHERE _rowid >= 0").fetchone()
                    )
                    found.append(cursor.sql("SELECT * FROM n LIMIT 1").columns)
            return found

        for found in on_threads(work):
            assert found == [(7500,), (17142,), (3,), ["x", "k", "s"]] * 4
        assert connection.sql("SELECT count(*) FROM n").fetchone() == (60_000,)


GROUPED = """
import lance_sql

path, budget = sys.argv[1:]
connection = lance_sql.connect()
connection.sql(f"SET memory_limit = '{budget}B'")
connection.sql("SET threads = 2")
connection.sql(f"SELECT count(*) FROM '{path}' WHERE x < 1000").fetchall()

def work(path, budget):
    text = f"SELECT k, count(*) AS n, max(x) AS top, min(v) AS low, max(w) AS high FROM '{path}' GROUP BY k"
    return sum(row[1] for row in connection.sql(text).fetchall())
"""


def test_a_dataset_four_times_the_memory_budget(tmp_path):
    """Neither DuckDB, with its memory limit, nor our scan keeps more than a part of the dataset in memory."""
    budget = 100 << 20
    rows_per_batch, batches = 1 << 18, 52
    random = np.random.default_rng(0)

    def made():
        for number in range(batches):
            x = np.arange(rows_per_batch) + number * rows_per_batch
            values = random.integers(0, 2**62, (2, rows_per_batch))
            yield pa.record_batch({"x": x, "k": x % 1000, "v": values[0], "w": values[1]})

    path = tmp_path / "large.lance"
    lance_sql.write(made(), path)
    assert rows_per_batch * batches * 32 >= 4 * budget
    rows, peak = peak_memory(GROUPED, str(path), str(budget))
    assert int(rows) == rows_per_batch * batches
    assert peak <= budget
