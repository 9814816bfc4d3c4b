"""Ctrl-C stops any operation with KeyboardInterrupt and nothing else, however often it is pressed."""

from __future__ import annotations

import _thread
import asyncio
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pyarrow as pa
import pytest

import lance_sql

# A file that was opened in the very moment of the interrupt is closed by the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*Exception ignored in. <_io:pytest.PytestUnraisableExceptionWarning"),
]

ROWS = 50_000
#: After this many seconds an interrupt is lost. How fast it is, the long run measures.
LOST = 20.0


class Timeout(BaseException):
    """An error that a handler of the user raises."""


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[[], object]]:
    place = tmp_path_factory.mktemp("interrupts")
    numbers = np.arange(ROWS)
    table = pa.table(
        {"a": numbers, "b": numbers * 0.5, "s": [f"text {number % 99}" for number in range(ROWS)]}
    )
    dataset = lance_sql.write(table, place / "t.lance", max_rows_per_file=ROWS // 5)
    lance_sql.write(table, place / "w.lance", max_rows_per_file=ROWS // 5)
    ids = dataset.scan(columns=["_rowid"]).to_table()["_rowid"].to_numpy()[::7]
    sessions = {engine: lance_sql.connect(engine=engine) for engine in ("duckdb", "datafusion")}
    query = f"SELECT s, sum(b), count(DISTINCT a) FROM '{place}/t.lance' GROUP BY s ORDER BY s"

    def changed() -> lance_sql.Dataset:
        return lance_sql.open(place / "w.lance")

    found = {
        "scan": lambda: dataset.scan().to_table(),
        "batches": lambda: list(dataset.scan().to_batches()),
        "filter": lambda: dataset.scan(filter="b < 99 AND s LIKE '%9'").to_table(),
        "count": lambda: dataset.count_rows("s = 'text 7'"),
        "take": lambda: dataset.take(ids),
        "duckdb": lambda: sessions["duckdb"].sql(query).arrow(),
        "duckdb rows": lambda: sessions["duckdb"].sql(query).fetchall(),
        "datafusion": lambda: sessions["datafusion"].sql(query).arrow(),
        "write": lambda: lance_sql.write(table, place / "n.lance", "overwrite"),
        "update": lambda: changed().update({"b": "b + 1"}),
        "delete": lambda: changed().delete("a < 0"),
        "compact": lambda: changed().compact(),
        "index": lambda: changed().create_index("b", replace=True),
    }
    # An interrupt may end an import between Python's taking of its import lock and noting that it has it.
    for run in found.values():
        run()
    return found


def interrupted(run: Callable[[], object], delay: float, kind: int = signal.SIGINT) -> BaseException | None:
    """What ends calls of `run` that a signal meets after `delay` seconds; None if nothing does."""
    sent, go, done = threading.Event(), threading.Lock(), threading.Lock()
    go.acquire()
    done.acquire()

    def send() -> None:
        go.acquire()
        time.sleep(delay)
        sent.set()
        os.kill(os.getpid(), kind)
        done.release()

    # Not a `Thread`: Python code runs when one is deleted, and would take a signal that comes just then.
    end = time.monotonic() + LOST
    _thread.start_new_thread(send, ())
    try:
        go.release()
        while time.monotonic() < end:
            run()
    except BaseException as error:
        # Its frames hold it: garbage, whose finalizers would take signals of the next calls.
        caught: BaseException | None = error.with_traceback(None)
    else:
        caught = None
    assert sent.is_set(), f"ended before it was interrupted: {caught!r}"
    done.acquire()
    return caught


NAMES = [
    "scan",
    "batches",
    "filter",
    "count",
    "take",
    "duckdb",
    "duckdb rows",
    "datafusion",
    "write",
    "update",
    "delete",
    "compact",
    "index",
]


@pytest.mark.parametrize("name", NAMES)
def test_interrupts(operations: dict[str, Callable[[], object]], name: str) -> None:
    chance = random.Random(name)
    begin = time.perf_counter()
    operations[name]()
    span = time.perf_counter() - begin
    for _ in range(10):
        caught = interrupted(operations[name], chance.random() * span)
        assert type(caught) is KeyboardInterrupt
    operations[name]()  # and what was interrupted works on


def test_a_thousand_interrupts(operations: dict[str, Callable[[], object]]) -> None:
    chance = random.Random(0)
    before = threading.active_count()
    for number in range(1000):
        name = NAMES[number % len(NAMES)]
        caught = interrupted(operations[name], chance.random() * 0.05)
        assert type(caught) is KeyboardInterrupt, (number, name, caught)
    assert threading.active_count() <= before + 16


@pytest.mark.parametrize("name", ["scan", "batches", "filter", "take", "write"])
def test_exceptions_of_other_handlers_arrive_unchanged(
    operations: dict[str, Callable[[], object]], name: str
) -> None:
    def handler(number: int, frame: FrameType | None) -> None:
        raise Timeout

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        for _ in range(10):
            assert type(interrupted(operations[name], 0.002, signal.SIGUSR1)) is Timeout
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(
    "name", ["scan", "filter", "take", "duckdb", "datafusion", "write", "update", "compact"]
)
def test_in_another_thread_of_asyncio(operations: dict[str, Callable[[], object]], name: str) -> None:
    ended: list[str] = []

    async def main() -> None:
        try:
            while True:
                await asyncio.to_thread(operations[name])
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    assert type(interrupted(lambda: asyncio.run(main()), 0.05)) is KeyboardInterrupt
    assert ended == ["cancelled"]


def test_a_reader_that_somebody_else_reads(
    operations: dict[str, Callable[[], object]], tmp_path: Path
) -> None:
    dataset = lance_sql.write(pa.table({"a": range(ROWS)}), tmp_path / "t.lance")

    def read() -> None:
        try:
            pa.RecordBatchReader.from_stream(dataset).read_all()
        except pa.ArrowInvalid:  # whoever reads knows text only, but the interpreter is told, too
            time.sleep(0)

    for _ in range(10):
        caught = interrupted(read, 0.003)
        assert type(caught) is KeyboardInterrupt
