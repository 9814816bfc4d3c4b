"""Many rounds in one process: memory, threads and open files stay constant.

Whole datasets with changed bytes and fields, too: the answer is rows or a LanceError. At length,
and in processes that are watched, `make mutants` does that.
"""

from __future__ import annotations

import datetime
import os
import resource
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from structured import change_file, prepare
from whole_datasets import SOUND, link_copy, mutate, try_mutant

import lance_sql

MUTANTS = int(os.environ.get("LANCE_SQL_MUTANTS", "60"))
ROUNDS = int(os.environ.get("LANCE_SQL_ROUNDS", "2000"))
#: One of each writer, with and without vectors.
CHANGED = ("ours-2.1", "ours-pq", "theirs-2.1", "theirs-hnsw-sq")


@pytest.mark.parametrize("change", [mutate, change_file], ids=["bytes", "fields"])
def test_changed_files_of_whole_datasets(tmp_path: Path, change: Callable[[Random, Path], str]) -> None:
    sound = tmp_path / "sound"
    sound.mkdir()
    for name in CHANGED:
        SOUND[name](sound / name)
    if change is change_file:
        prepare(sound)
    troubles = [
        trouble
        for seed in range(MUTANTS // 2)
        for trouble in try_mutant(sound, tmp_path, seed, CHANGED, 3, change)
    ]
    assert troubles == []


def test_changes_of_fields_keep_the_rest_of_a_file(tmp_path: Path) -> None:
    """Files can still be taken apart as before: decoders get to what was changed."""
    SOUND["theirs-2.1"](tmp_path / "t.lance")
    prepare(tmp_path)
    assert lance_sql.open(tmp_path / "t.lance").verify(values=True).num_rows == 0
    reached = set()
    for seed in range(60):
        link_copy(tmp_path / "t.lance", tmp_path / f"{seed}.lance")
        change_file(Random(seed), tmp_path / f"{seed}.lance")
        try:
            lance_sql.open(tmp_path / f"{seed}.lance").scan().to_table()
            reached.add("rows")
        except lance_sql.LanceError as error:
            reached.add(str(error).split(" [")[0])
    assert "rows" in reached
    assert len(reached) > 8, reached


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_nothing_stays(tmp_path: Path) -> None:
    table = pa.table({"a": range(50), "s": [f"text {number % 7}" for number in range(50)]})
    dataset = lance_sql.write(table, tmp_path / "t.lance", max_rows_per_file=20)
    dataset.create_index("a").create_index("s", "bitmap").delete("a = 7")
    sessions = [lance_sql.connect(engine=engine) for engine in ("duckdb", "datafusion")]

    def once(number: int) -> None:
        opened = lance_sql.open(tmp_path / "t.lance")
        opened.scan(filter="a > 10").to_table()
        opened.take([1, 2])
        for session in sessions:
            session.sql(f"SELECT sum(a) AS total FROM '{tmp_path}/t.lance' WHERE a < 30").fetchall()
        written = lance_sql.write(table, tmp_path / "w.lance", "overwrite")
        if number % 100 == 0:
            written.cleanup(datetime.timedelta(0), delete_unverified=True)

    for number in range(ROUNDS // 4):
        once(number)
    threads, files, memory = threading.active_count(), open_files(), resident()
    for number in range(ROUNDS):
        once(number)
    grown = resident() - memory
    assert threading.active_count() <= threads + 4
    assert open_files() <= files + 4
    assert grown / ROUNDS < 4 << 10, f"{grown / ROUNDS:.0f} bytes stay of each round"
