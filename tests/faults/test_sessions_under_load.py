"""Sessions under load: threads with cursors, processes and asyncio get equal answers, and nothing stays.

``LANCE_SQL_STATEMENTS`` (20000) is how many statements all threads run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lance_sql

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

STATEMENTS = int(os.environ.get("LANCE_SQL_STATEMENTS", "20000"))

#: What every part of the load asks; the numbers are in `conditions`.
LOAD = """
import asyncio, gc, multiprocessing, os, sys, threading
from concurrent.futures import ThreadPoolExecutor
import lance_sql

path, engine, statements, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), 32

ROWS = [sum(1 for row in range(5000) if row % 97 == number) for number in range(97)]

def ask(cursor, number):
    text = f"SELECT count(*) FROM '{path}' WHERE k = {number % 97}"
    if number % 11 == 0:  # parameters, as DB-API has them
        found = cursor.execute(f"SELECT count(*) FROM '{path}' WHERE k = ?", [number % 97]).fetchall()
    elif number % 7 == 0:
        found = [(len(lance_sql.open(path).scan(["a"], f"k = {number % 97}").to_table()),)]
    else:
        found = cursor.execute(text).fetchall()
    assert [tuple(row) for row in found] == [(ROWS[number % 97],)], (number, found)

def thread(connection, numbers):
    with connection.cursor() as cursor:
        for number in numbers:
            ask(cursor, number)

def round_of(connection, first, count):
    with ThreadPoolExecutor(threads) as pool:
        shares = [range(first + place, first + count, threads) for place in range(threads)]
        list(pool.map(lambda share: thread(connection, share), shares))

def in_child(number):
    with lance_sql.connect(engine=engine) as connection, connection.cursor() as cursor:
        ask(cursor, number)
    return os.getpid()

async def together(connection):
    def one(number):
        with connection.cursor() as cursor:
            ask(cursor, number)
    await asyncio.gather(*(asyncio.to_thread(one, number) for number in range(200)))

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def descriptors():
    return len(os.listdir("/proc/self/fd"))

if __name__ == "__main__":
    with lance_sql.connect(engine=engine) as connection:
        warm = statements // 4
        round_of(connection, 0, warm)
        memory, files, active = resident(), descriptors(), threading.active_count()
        round_of(connection, warm, statements)
        grown = resident() - memory
        assert descriptors() <= files + 8, (descriptors(), files)
        assert threading.active_count() <= active + 8
        assert grown < max(64 << 20, 1024 * statements), f"{grown >> 20} MiB stay"
        asyncio.run(together(connection))
        for method in ("fork", "spawn") if engine == "duckdb" else ("spawn",):
            with multiprocessing.get_context(method).Pool(2) as pool:
                assert os.getpid() not in pool.map(in_child, range(6))
        for number in range(200):  # sessions that end, and some that are only dropped
            session = lance_sql.connect(engine=engine)
            ask(session.cursor(), number)
            if number % 2:
                session.close()
    print("done", grown >> 20, "MiB")
"""


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_load(tmp_path: Path, engine: str) -> None:
    rows = pa.table({"a": range(5000), "k": [row % 97 for row in range(5000)]})
    lance_sql.write(rows, tmp_path / "t.lance", max_rows_per_file=2000).create_index("k", "bitmap")
    (tmp_path / "load.py").write_text(LOAD)
    command = [sys.executable, "-X", "dev", str(tmp_path / "load.py"), str(tmp_path / "t.lance"), engine]
    done = subprocess.run([*command, str(STATEMENTS)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.startswith("done"), done.stdout
    for complaint in ("leaked", "ResourceWarning", "Exception ignored", "Traceback"):
        assert complaint not in done.stderr, done.stderr[-4000:]
    print(engine, done.stdout)
