"""The limit of caches: the least recently used data is dropped, and read again when needed."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine import cache
from lance_engine.cache import MetadataCache
from lance_engine.dataset import DatasetVersion
from lance_engine.write.dataset import write_dataset


class _Owner:
    def __init__(self) -> None:
        self.evicted = 0

    def evict(self) -> None:
        self.evicted += 1


@pytest.fixture
def limit() -> Iterator[None]:
    before = cache.memory_limit()
    yield
    cache.set_memory_limit(before)


def test_the_least_recently_used_gives_way() -> None:
    held = MetadataCache(100)
    first, second, third = _Owner(), _Owner(), _Owner()
    held.grew(first, 40)
    held.grew(second, 40)
    held.hit(first)
    held.grew(third, 40)
    assert (first.evicted, second.evicted, third.evicted) == (0, 1, 0)
    found = held.statistics()
    assert (found.bytes, found.entries, found.hits, found.misses, found.evictions) == (80, 2, 1, 3, 1)
    held.grew(third, 500)
    assert held.statistics().bytes == 0
    assert third.evicted == 1


def test_what_nobody_uses_counts_no_more() -> None:
    held = MetadataCache(100)
    owner = _Owner()
    held.grew(owner, 60)
    del owner
    gc.collect()
    assert held.statistics().bytes == 0


@pytest.mark.usefixtures("limit")
def test_answers_do_not_depend_on_the_limit(tmp_path: Path) -> None:
    table = pa.table({"x": range(4_000), "t": [f"text {row % 9}" for row in range(4_000)]})
    # One fragment: the metadata of several small ones, read together, are not kept after the scan.
    dataset = DatasetVersion(write_dataset(table, str(tmp_path)))
    gc.collect()
    before = cache.cache_statistics().bytes
    expected = dataset.scan(filter="x % 5 = 1").to_table()
    assert cache.cache_statistics().bytes >= before + 1_000
    evictions = cache.cache_statistics().evictions
    cache.set_memory_limit(4_000)
    assert cache.cache_statistics().bytes <= 1_000
    assert cache.cache_statistics().evictions > evictions
    assert cache.read_ahead_bytes() == 1_000
    assert dataset.scan(filter="x % 5 = 1").to_table().equals(expected)
    assert dataset.take(expected["x"][:0]).num_rows == 0
    with pytest.raises(ValueError, match=">= 0"):
        cache.set_memory_limit(-1)


@pytest.mark.parametrize(
    ("text", "bytes_"), [("64M", 64 << 20), ("2g", 2 << 30), ("12345", 12345), ("no", 256 << 20)]
)
def test_the_environment_sets_the_limit(text: str, bytes_: int) -> None:
    code = "from lance_engine.cache import memory_limit; print(memory_limit())"
    environment = {**os.environ, "LANCE_SQL_MEMORY": text, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert int(done.stdout) == bytes_
