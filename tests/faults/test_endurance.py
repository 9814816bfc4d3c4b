"""The same again and again in one process: memory, threads and open files stay as they are.

Whole datasets with changed bytes, too: whatever a byte does, the answer is rows or a LanceError.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.errors import LanceError

import lance_sql

MUTANTS = int(os.environ.get("LANCE_SQL_MUTANTS", "20"))
ROUNDS = int(os.environ.get("LANCE_SQL_ROUNDS", "2000"))


def small_dataset(place: Path) -> str:
    table = pa.table({"a": range(50), "s": [f"text {number % 7}" for number in range(50)]})
    dataset = lance_sql.write(table, place, max_rows_per_file=20)
    dataset = dataset.create_index("a").create_index("s", "bitmap").delete("a = 7")
    dataset.tags.create("t")
    dataset.branches.create("b")
    return str(place)


def mutate(chance: random.Random, uri: str) -> None:
    """Change, cut or remove one file."""
    path = chance.choice(sorted(path for path in Path(uri).rglob("*") if path.is_file()))
    content = bytearray(path.read_bytes())
    kind = chance.random()
    if kind < 0.05:
        path.unlink()
        return
    if kind < 0.15 or not content:
        path.write_bytes(content[: chance.randrange(len(content) + 1)])
        return
    for _ in range(chance.choice([1, 1, 2, 8])):
        content[chance.randrange(len(content))] = chance.choice([0, 1, 127, 128, 255, chance.randrange(256)])
    path.write_bytes(content)


def uses(uri: str) -> list[Callable[[], object]]:
    """What may be done with a dataset."""
    return [
        lambda: lance_sql.open(uri).scan().to_table(),
        lambda: lance_sql.open(uri).scan(filter="a > 10 AND s = 'text 3'").to_table(),
        lambda: lance_sql.open(uri).take([0, 3, 1 << 32]),
        lambda: lance_sql.open(uri).count_rows(),
        lambda: lance_sql.open(uri, 1).count_rows(),
        lambda: lance_sql.open(uri, tag="t").version,
        lambda: lance_sql.open(uri, branch="b").count_rows("a < 9"),
        lambda: lance_sql.open(uri).verify(),
        lambda: lance_sql.open(uri).inspect.refs(),
        lambda: lance_sql.open(uri).inspect.indices(),
        lambda: lance_sql.sql(f"SELECT s, sum(a) FROM '{uri}' GROUP BY s").fetchall(),
        lambda: lance_sql.open(uri).delete("a = 3"),
        lambda: lance_sql.open(uri).update({"a": "a + 1"}, "a < 5"),
        lambda: lance_sql.open(uri).optimize_indices().compact(),
    ]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> str:
    return small_dataset(tmp_path_factory.mktemp("sound") / "t.lance")


def changed(sound: str, place: Path, seeds: range) -> list[str]:
    """What went wrong with the mutants of these seeds."""
    problems = []
    for seed in seeds:
        copy = place / "m.lance"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(sound, copy)
        mutate(random.Random(seed), str(copy))
        for number, use in enumerate(uses(str(copy))):
            try:
                use()
            except LanceError:
                pass
            except Exception as error:
                problems.append(f"seed {seed}, use {number}: {type(error).__name__}: {error}")
    return problems


def test_changed_bytes_of_whole_datasets(sound: str, tmp_path: Path) -> None:
    assert changed(sound, tmp_path, range(MUTANTS)) == []


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.slow
def test_nothing_stays(sound: str, tmp_path: Path) -> None:
    table = pa.table({"a": range(50)})
    session = lance_sql.connect()

    def once() -> None:
        dataset = lance_sql.open(sound)
        dataset.scan(filter="a > 10").to_table()
        dataset.take([1, 2])
        session.sql(f"SELECT sum(a) FROM '{sound}' WHERE a < 30").fetchall()
        lance_sql.write(table, tmp_path / "w.lance", "overwrite")

    for _ in range(ROUNDS // 4):
        once()
    threads, files = threading.active_count(), open_files()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(ROUNDS):
        once()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    assert threading.active_count() <= threads + 4
    assert open_files() <= files + 4
    assert grown * 1024 / ROUNDS < 8 << 10, f"{grown * 1024 / ROUNDS:.0f} bytes stay of each round"
