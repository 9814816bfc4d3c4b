"""Queries side by side, on one dataset object and on cursors of one connection; queries in little memory."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import duckdb
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


@pytest.mark.sampled(1)
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


@pytest.mark.sampled(1)
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


COUNT = 60_000

#: what statements answer; each reads less than the whole table in a way of its own
ANSWERS = {
    "SELECT count(*), sum(x) FROM n": (COUNT, sum(range(COUNT))),
    "SELECT sum(x) FROM n": (sum(range(COUNT)),),
    "SELECT count(*) FROM n WHERE k = 3": (len(range(3, COUNT, 7)),),
    "SELECT count(*) FROM n WHERE s LIKE '%9'": (COUNT // 10,),
    "SELECT sum(x) FROM n WHERE s LIKE '%9'": (sum(range(9, COUNT, 10)),),
    "SELECT max(x) FROM (SELECT x FROM n LIMIT 5)": (4,),
    "SELECT x FROM n ORDER BY x DESC LIMIT 1": (COUNT - 1,),
    f"SELECT sum(x) FROM n WHERE x IN ({', '.join(map(str, range(0, COUNT, 9)))})": (
        sum(range(0, COUNT, 9)),
    ),
    "SELECT count(*) FROM n a JOIN n b USING (x) WHERE a.k = 1": (len(range(1, COUNT, 7)),),
    "SELECT count(*) FROM n a JOIN n b USING (x) WHERE a.x < 9": (9,),
}


def asked(connection, chosen):
    """The first row of a random statement, fetched or streamed, and the right one."""
    text = chosen.choice(list(ANSWERS))
    result = connection.sql(text)
    if chosen.random() < 0.6:
        return result.fetchone(), ANSWERS[text]
    rows = pa.Table.from_batches(list(result))
    return tuple(column[0].as_py() for column in rows.columns), ANSWERS[text]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("count", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_random_statements_on_cursors(numbers, engine, count):
    with lance_sql.connect(numbers, engine=engine) as connection:

        def work(number):
            chosen = random.Random(number)
            with connection.cursor() as cursor:
                return [asked(cursor, chosen) for _ in range(count)]

        for found in on_threads(work):
            assert all(row == right for row, right in found)


#: statements with one column, and its sum: each reads less than the whole table in a way of its own
SUMS = [
    ("SELECT x FROM n WHERE k = ?", [3], sum(range(3, COUNT, 7))),
    ("SELECT x FROM n WHERE k = ?", [5], sum(range(5, COUNT, 7))),
    ("SELECT count(*) AS x FROM n", None, COUNT),
    ("SELECT x FROM n LIMIT 30000", None, sum(range(30_000))),
    ("SELECT a.x FROM n a JOIN n b USING (x) WHERE b.k = 1", None, sum(range(1, COUNT, 7))),
    ("SELECT x FROM n ORDER BY x DESC LIMIT 3", None, 3 * COUNT - 6),
    (
        f"SELECT x FROM n WHERE x IN ({', '.join(map(str, range(0, COUNT, 9)))})",
        None,
        sum(range(0, COUNT, 9)),
    ),
]


@pytest.mark.sampled(1)
def test_streams_that_take_turns(numbers, engine):
    with lance_sql.connect(numbers, engine=engine) as connection:
        for pair in itertools.combinations_with_replacement(SUMS, 2):
            streams = [iter(connection.sql(text, params)) for text, params, _ in pair]
            sums = [0] * len(pair)
            for batches in itertools.zip_longest(*streams):
                for number, batch in enumerate(batches):
                    sums[number] += sum(batch.column(0).to_pylist()) if batch else 0
            assert sums == [right for _, _, right in pair], pair


@pytest.mark.sampled(1)
def test_statements_between_the_batches_of_a_stream(numbers, engine):
    with lance_sql.connect(numbers, engine=engine) as connection:
        for (text, params, right), (other, values, wanted) in itertools.pairwise([*SUMS, *SUMS[::-1]]):
            total = 0
            for batch in connection.sql(text, params):
                total += sum(batch.column(0).to_pylist())
                found = connection.sql(other, values).arrow()
                assert sum(found.column(0).to_pylist()) == wanted, (text, other)
            assert total == right, (text, other)


def test_one_dataset_object_in_connections_of_others(numbers):
    dataset = lance_sql.open(numbers / "n.lance")

    def work(number):
        chosen = random.Random(number)
        n = dataset
        with duckdb.connect() as connection:
            for _ in range(6):
                text, params, right = chosen.choice(SUMS)
                rows = connection.execute(text, params or []).fetchall()
                assert sum(row[0] for row in rows) == right, text
        return n.version

    assert len(on_threads(work)) == THREADS


@pytest.mark.sampled(1)
@pytest.mark.parametrize("count", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_a_connection_that_threads_share_answers_right_or_refuses(numbers, engine, count):
    refused = []
    with lance_sql.connect(numbers, engine=engine) as connection:

        def work(number):
            chosen = random.Random(number)
            for _ in range(count):
                try:
                    row, right = asked(connection, chosen)
                except lance_sql.SqlError as error:
                    refused.append(error)
                else:
                    assert row == right

        on_threads(work)
        assert connection.sql("SELECT count(*) FROM n").fetchone() == (COUNT,)
    assert all("in use in another thread" in str(error) for error in refused)
    assert engine == "duckdb" or not refused


def test_a_second_thread_is_refused_at_once_and_a_cursor_is_not(numbers):
    began, end = threading.Event(), threading.Event()

    def batches():
        began.set()
        assert end.wait(60)
        yield pa.record_batch({"y": [1, 2]})

    with lance_sql.connect(numbers) as connection, ThreadPoolExecutor(1) as threads:
        planned = connection.sql("SELECT count(*) FROM n")
        connection.register(
            "slow", pa.RecordBatchReader.from_batches(pa.schema({"y": pa.int64()}), batches())
        )
        running = threads.submit(lambda: connection.sql("SELECT sum(y) FROM slow").fetchall())
        try:
            assert began.wait(60)
            for call in (
                lambda: connection.sql("SELECT sum(x) FROM n"),
                lambda: connection.sql("INSERT INTO n VALUES (1, 2, 's')"),
                lambda: connection.explain("SELECT sum(x) FROM n"),
                lambda: connection.register("m", pa.table({"a": [1]})),
                connection.begin,
                planned.fetchall,
                planned.reader,
            ):
                with pytest.raises(lance_sql.SqlError, match=r"in use in another thread.*cursor\(\)"):
                    call()
            with connection.cursor() as cursor:
                assert cursor.sql("SELECT count(*) FROM n").fetchone() == (COUNT,)
        finally:
            end.set()
        assert running.result() == [(3,)]
        assert planned.fetchall() == [(COUNT,)]


def test_results_of_a_connection_are_tables_of_it(numbers, engine):
    with lance_sql.connect(numbers, engine=engine) as connection:
        connection.register("few", connection.sql("SELECT x FROM n WHERE x < 5"))
        connection.register("more", connection.sql("SELECT x FROM n WHERE x < 7").reader())
        assert connection.sql("SELECT count(*), max(few.x) FROM few JOIN more USING (x)").fetchone() == (5, 4)


FORKED = """
import os, sys
import lance_sql

connection = lance_sql.connect(sys.argv[1], engine=sys.argv[2])
planned = connection.sql("SELECT count(*) FROM n")
assert connection.sql("SELECT sum(x) FROM n").fetchall()
child = os.fork()
if child == 0:
    refused = 0
    for call in (lambda: connection.sql("SELECT 1"), planned.fetchall, connection.begin, connection.cursor):
        try:
            call()
        except lance_sql.SqlError as error:
            refused += "forked" in str(error)
    connection.close()
    os._exit(0 if refused == 4 else 1)
assert os.waitpid(child, 0)[1] == 0
assert planned.fetchall() == [(60000,)]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork")
def test_a_forked_process_is_refused(numbers, engine):
    subprocess.run([sys.executable, "-c", FORKED, numbers, engine], check=True, timeout=120)


FORKED_AFTER_USE = """
import os, sys
import lance_sql

def ask():
    with lance_sql.connect(sys.argv[1], engine=sys.argv[2]) as connection:
        assert connection.sql("SELECT count(*) FROM n WHERE x < 9").fetchall() == [(9,)]
        assert connection.sql("SELECT count(DISTINCT to_hex(x)) FROM n WHERE to_hex(x) <> 'a'").fetchall()

ask()
child = os.fork()
if child == 0:
    try:
        ask()
        os._exit(0 if sys.argv[2] == "duckdb" else 1)
    except lance_sql.SqlError as error:
        os._exit(0 if sys.argv[2] == "datafusion" and "spawn" in str(error) else 2)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork")
def test_a_forked_process_answers_or_says_why_not(numbers, engine):
    """With sessions of its own. DataFusion would wait forever for threads that the fork left behind."""
    subprocess.run([sys.executable, "-c", FORKED_AFTER_USE, numbers, engine], check=True, timeout=120)


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
    rows = rows.splitlines()[-1]  # after two seconds, DuckDB shows a progress bar
    assert int(rows) == rows_per_batch * batches
    assert peak <= budget
