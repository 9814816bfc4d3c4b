"""Concurrent transactions: the result is the same as if they had run one by one in some order."""

from __future__ import annotations

import itertools
import random
import threading

import lance
import pyarrow as pa
import pytest
from lance_engine.errors import CommitConflictError

import lance_sql

KEYS = 4


def statement(rng, number):
    """A random statement on few rows, so that transactions meet."""
    key, other = rng.randrange(KEYS), rng.randrange(KEYS)
    choices = [
        f"INSERT INTO t VALUES ({key}, {number})",
        f"UPDATE t SET v = v * 10 + {number} WHERE id = {key}",
        f"UPDATE t SET id = {other} WHERE id = {key}",
        f"DELETE FROM t WHERE id = {key}",
        f"DELETE FROM t WHERE v % 3 = {number % 3} AND id <> {key}",
        f"INSERT INTO t SELECT {key}, sum(v) % 1000 + {number} FROM t",
        f"MERGE INTO t USING (SELECT {key} AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = {number} "
        f"WHEN NOT MATCHED THEN INSERT VALUES ({key}, {number})",
    ]
    weights = [2, 4, 2, 2, 1, 1, 1]
    return rng.choices(choices, weights)[0]


def one_by_one(rows, transactions):
    """The rows after transactions that run one after the other, in DuckDB's own table."""
    with lance_sql.connect() as session:
        session.register(
            "before", pa.Table.from_pylist(rows, pa.schema([("id", pa.int64()), ("v", pa.int64())]))
        )
        session.sql("CREATE TABLE t AS FROM before")
        for text in itertools.chain.from_iterable(transactions):
            session.sql(text)
        return sorted(session.sql("SELECT * FROM t").fetchall())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("seed", range(2))
def test_some_order_explains_what_was_committed(tmp_path, seed, stable):
    rng = random.Random(f"{seed} {stable}")
    path = tmp_path / "t.lance"
    start = pa.table({"id": [0, 1, 2, 3], "v": [1, 2, 3, 4]})
    lance_sql.write(start, path, max_rows_per_file=3, stable_row_ids=stable)
    sessions = [lance_sql.connect(tmp_path) for _ in range(3)]
    conflicts = 0
    for turn in range(4):
        before = lance.dataset(path).to_table().to_pylist()
        transactions = [[statement(rng, turn * 3 + n) for _ in range(rng.randint(1, 3))] for n in range(3)]
        for session in sessions:
            session.sql("BEGIN")
            session.sql("SELECT count(*) FROM t").fetchone()  # all begin with the same version
        waiting = [
            (session, text) for session, texts in zip(sessions, transactions, strict=True) for text in texts
        ]
        rng.shuffle(order := list(range(3)))
        for session, text in waiting:
            session.sql(text)
        committed = []
        for number in order:
            try:
                sessions[number].sql("COMMIT")
            except CommitConflictError:
                conflicts += 1
            else:
                committed.append(transactions[number])
        found = lance.dataset(path).to_table().to_pylist()
        rows = sorted((row["id"], row["v"]) for row in found)
        assert any(one_by_one(before, some) == rows for some in itertools.permutations(committed)), committed
    for session in sessions:
        session.close()
    assert conflicts, "the transactions never met"


def test_threads_that_add_to_the_same_rows_lose_nothing(tmp_path):
    path = tmp_path / "t.lance"
    lance_sql.write(pa.table({"id": [1, 2], "v": [100, 100]}), path)
    counts = []

    def run(number):
        done = 0
        with lance_sql.connect(tmp_path) as session:
            for turn in range(3):
                while True:
                    session.begin()
                    session.sql("UPDATE t SET v = v - 1 WHERE id = 1")
                    session.sql("UPDATE t SET v = v + 1 WHERE id = 2")
                    session.sql(f"INSERT INTO t VALUES ({100 + number * 10 + turn}, 0)")
                    try:
                        session.commit()
                    except CommitConflictError:
                        continue
                    done += 1
                    break
        counts.append(done)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [3, 3, 3]
    found = dict(zip(*lance.dataset(path).to_table().to_pydict().values(), strict=True))
    assert (found[1], found[2], len(found)) == (91, 109, 11)
