"""Long runs: writers next to readers, writers that are killed, and full or read-only disks.

``LANCE_SQL_SECONDS`` (300) is how long writers and readers work, ``LANCE_SQL_KILLS`` (200) how many die.
"""

from __future__ import annotations

import contextlib
import datetime
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa
import pytest
from lance_engine.errors import CommitConflictError, LanceError

import lance_sql

if TYPE_CHECKING:
    from conftest import ObjectStore

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

SECONDS = float(os.environ.get("LANCE_SQL_SECONDS", "300"))
KILLS = int(os.environ.get("LANCE_SQL_KILLS", "200"))
ROWS = 20


def rows_of(writer: int, number: int) -> pa.Table:
    """Rows with their writer and the number of rows of each write."""
    return pa.table({"w": [writer] * ROWS, "n": [number] * ROWS, "k": range(ROWS), "x": [0] * ROWS})


def write_on(path: str, writer: int, end: float, done: Any, options: dict[str, str] | None) -> None:
    """Append, update, delete and compact until `end`; returns the number of appends."""
    number = 0
    chance = random.Random(writer)
    while time.time() < end:
        lance_sql.write(rows_of(writer, number), path, "append", storage_options=options)
        number += 1
        with contextlib.suppress(CommitConflictError):  # others were faster ten times in a row: legal
            dataset = lance_sql.open(path, storage_options=options)
            match chance.randrange(6):
                case 0:
                    dataset.update({"x": "x + 1"}, f"w = {writer} AND k = 3")
                case 1:
                    dataset.delete(f"w = {writer} AND k = 19 AND n < {number}")
                case 2:
                    dataset.compact()
                case 3:
                    dataset.optimize_indices()
                case 4 if writer == 0:
                    dataset.cleanup(datetime.timedelta(seconds=60))
    done.put(("writer", writer, number))


def read_on(path: str, end: float, done: Any, options: dict[str, str] | None) -> None:
    """Read until `end`: each write completely or not at all, and never fewer than before."""
    reads, before = 0, 0
    session = lance_sql.connect(storage_options=options)
    while time.time() < end:
        dataset = lance_sql.open(path, storage_options=options)
        found = dataset.scan(["w", "n", "k"], "k < 19").to_table()
        counts = found.group_by(["w", "n"]).aggregate([("k", "count")])["k_count"].to_pylist()
        assert set(counts) <= {19}, counts
        assert len(counts) >= before, "writes are gone"
        before = len(counts)
        asked = session.sql(f"SELECT count(*) FROM '{path}' WHERE k = 0 AND w < 9").fetchall()[0][0]
        assert asked >= before - 1  # the rows of the beginning are not counted
        reads += 1
    done.put(("reader", 0, reads))


def work(path: str, options: dict[str, str] | None) -> dict[tuple[str, int], int]:
    lance_sql.write(rows_of(9, 0), path, storage_options=options).create_index("n")
    context = multiprocessing.get_context("spawn")
    done = context.Queue()
    end = time.time() + SECONDS
    processes = [
        context.Process(target=write_on, args=(path, 0, end, done, options)),
        context.Process(target=write_on, args=(path, 1, end, done, options)),
        context.Process(target=read_on, args=(path, end, done, options)),
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    ended = [done.get() for _ in processes]
    counts = {(kind, number): count for kind, number, count in ended}
    dataset = lance_sql.open(path, storage_options=options)
    found = dataset.scan(["w", "n"], "k = 0").to_table().to_pylist()
    expected = [(writer, number) for writer in (0, 1) for number in range(counts["writer", writer])]
    assert sorted((row["w"], row["n"]) for row in found) == [*expected, (9, 0)]
    assert dataset.verify(values=True).num_rows == 0
    print("version", dataset.version, counts)
    return counts


def test_two_writers_and_a_reader(tmp_path: Path) -> None:
    work(str(tmp_path / "t.lance"), None)
    assert lance.dataset(str(tmp_path / "t.lance")).count_rows() > 0


def test_two_writers_and_a_reader_on_an_object_store(object_store: ObjectStore) -> None:
    work(object_store.s3("t.lance"), object_store.options)


KILLED = """
import sys, datetime
import pyarrow as pa, lance_sql
path, number = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
while True:
    lance_sql.write(pa.table({"n": [number] * 50}), path, "append")
    print(number, flush=True)
    number += 1
    dataset = lance_sql.open(path)
    match number % 5:
        case 0: dataset.delete(f"n = {number - 1} AND n < 0")
        case 1: dataset.compact()
        case 2: dataset.optimize_indices()
        case 3: dataset.update({"n": "n"}, f"n = {number - 1}")
"""


def test_writers_that_are_killed(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    lance_sql.write(pa.table({"n": [-1]}), path).create_index("n")
    chance = random.Random(1)
    told: set[int] = set()
    number = 0
    for _ in range(KILLS):
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, path, str(number)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        for _ in range(chance.randrange(4)):  # in the first write, or after some
            told.add(int(child.stdout.readline()))
        time.sleep(chance.random() * 0.1)
        child.send_signal(signal.SIGKILL)
        finished = [int(line) for line in child.stdout.read().splitlines()]
        child.wait()
        child.stdout.close()
        told.update(finished)
        dataset = lance_sql.open(path)
        found = dataset.scan(filter="n >= 0").to_table().group_by("n").aggregate([("n", "count")])
        counts = dict(zip(found["n"].to_pylist(), found["n_count"].to_pylist(), strict=True))
        # What was told is there; what the killed one was about is there as a whole, or not.
        assert told <= counts.keys()
        assert set(counts.values()) <= {50}
        number = max(counts, default=-1) + 1
    assert dataset.verify(values=True).num_rows == 0
    dataset.cleanup(datetime.timedelta(0), delete_unverified=True)
    left = lance_sql.open(path)
    assert left.verify(values=True).num_rows == 0
    assert left.count_rows("n >= 0") == 50 * len(counts)
    assert not list(Path(path).rglob("*.tmp"))
    assert lance.dataset(path).count_rows() == left.count_rows()
    assert len(counts) > KILLS // 2
    print("killed", KILLS, "writes", len(counts), "version", left.version)


# ---- full and read-only disks -------------------------------------------------------------------


def mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount("-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place))
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def changes(path: str) -> dict[str, Callable[[], object]]:
    def opened() -> lance_sql.Dataset:
        return lance_sql.open(path)

    source = pa.table({"a": [1, 9_000], "s": ["m", "n"]})
    return {
        "append": lambda: lance_sql.write(opened().scan().to_table(), path, "append"),
        "overwrite": lambda: lance_sql.write(opened().scan().to_table(), path, "overwrite"),
        "delete": lambda: opened().delete("a % 3 = 0"),
        "update": lambda: opened().update({"s": "s || 'x'"}),
        "merge": lambda: opened().merge(source, on="a").when_matched_update_all().execute(),
        "add": lambda: opened().add_columns({"n": "a + 1"}),
        "alter": lambda: opened().alter_column("a", type=pa.float64()),
        "rename": lambda: opened().rename_column("a", "b"),
        "drop": lambda: opened().drop_columns(["a"]),
        "compact": lambda: opened().compact(),
        "btree": lambda: opened().create_index("a", replace=True),
        "bitmap": lambda: opened().create_index("s", "bitmap", name="b"),
        "optimize": lambda: opened().optimize_indices(),
        "drop index": lambda: opened().drop_index("a_idx"),
        "restore": lambda: opened().restore(1),
        "config": lambda: opened().update_config({"k": "v"}),
        "tag": lambda: opened().tags.create("new"),
        "branch": lambda: opened().branches.create("new"),
        "clone": lambda: opened().shallow_clone(path + ".clone"),
        "cleanup": lambda: opened().cleanup(datetime.timedelta(0)),
        "insert": lambda: lance_sql.sql(f"INSERT INTO '{path}' SELECT a, s FROM '{path}'"),
        "truncate": lambda: opened().truncate(),
    }


@pytest.fixture
def table() -> pa.Table:
    numbers = list(range(6000))
    return pa.table({"a": numbers, "s": [f"text {number * 7919 % 6007}" for number in numbers]})


NAMES = sorted(changes(""))


def prepared(place: Path, table: pa.Table) -> tuple[str, pa.Table]:
    path = str(place / "t.lance")
    dataset = lance_sql.write(table, path, max_rows_per_file=1000).create_index("a")
    dataset = dataset.delete("a = 7")
    return path, dataset.scan().to_table()


@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk(small_disk: Path, table: pa.Table, name: str) -> None:
    path, before = prepared(small_disk, table)
    version = lance_sql.open(path).version
    rest = os.statvfs(small_disk)
    free = rest.f_bavail * rest.f_frsize
    failed = 0
    # From no room at all to room enough: the operation fails at every one of its files once.
    for room in (0, 4 << 10, 8 << 10, 16 << 10, 40 << 10, 100 << 10, 200 << 10):
        filler = small_disk / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            file.write(bytes(max(free, 0)))
            file.write(bytes(4096))
        size = filler.stat().st_size
        os.truncate(filler, max(0, size - room))
        try:
            changes(path)[name]()
        except LanceError:
            failed += 1
        else:
            filler.unlink()
            break
        filler.unlink()
        dataset = lance_sql.open(path)
        assert dataset.scan().to_table().equals(before)
        assert dataset.verify(values=True).num_rows == 0
        if name != "compact":  # which reserves ids in a version of its own
            assert dataset.version == version
    assert lance_sql.open(path).verify(values=True).num_rows == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_read_only_disk(small_disk: Path, table: pa.Table, name: str) -> None:
    path, before = prepared(small_disk, table)
    files = sorted(str(file) for file in small_disk.rglob("*"))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    if name == "optimize":  # for which there is nothing to do
        changes(path)[name]()
    else:
        with pytest.raises(LanceError, match=r"[Rr]ead-only"):
            changes(path)[name]()
    dataset = lance_sql.open(path)
    assert dataset.scan().to_table().equals(before)
    assert sorted(str(file) for file in small_disk.rglob("*")) == files
