"""The cache on disk: data that is read twice is fetched once, and it never returns wrong data."""

from __future__ import annotations

import mmap
import os
import pickle
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.io import MemoryStore, disk_cache, open_store
from lance_engine.io.cached_store import CachedStore
from lance_engine.io.disk_cache import DiskCache, set_cache
from lance_engine.write.dataset import write_dataset
from s3_proxy import s3_proxy

import lance_sql

if TYPE_CHECKING:
    from conftest import ObjectStore

CONTENT = bytes(range(256)) * 1000


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache", 64 << 20)


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    for path in ("data/a", "_versions/1.manifest", "tree/data/_versions/1.manifest", "_deletions/d"):
        store.put(path, CONTENT)
    return store


@pytest.fixture
def _cache_off(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("LANCE_SQL_CACHE_DIR", raising=False)
    yield
    set_cache(None)


def _files(cache: DiskCache) -> list[Path]:
    return sorted(path for path in Path(cache.directory).rglob("*") if path.is_file())


def test_ranges_are_put_together_from_what_is_there(cache: DiskCache) -> None:
    assert cache.read("f", 0, 10) is None
    cache.add("f", 0, CONTENT[:100_000])
    cache.add("f", 100_000, CONTENT[100_000:])
    for offset, length in ((0, 10), (65_536, 1), (99_999, 2), (70_000, 100_000), (0, len(CONTENT))):
        assert cache.read("f", offset, length) == CONTENT[offset : offset + length]
    assert cache.read("f", len(CONTENT) - 1, 2) is None
    assert cache.read("g", 0, 10) is None
    counts = cache.statistics
    assert (counts.hits, counts.misses, counts.damaged) == (5, 3, 0)
    # Another process, or the next one, finds the same.
    assert DiskCache(cache.directory, cache.limit).read("f", 5, 70_000) == CONTENT[5:70_005]


def test_only_what_never_changes_is_kept(store: MemoryStore, cache: DiskCache) -> None:
    cached = CachedStore(store, "here", cache)
    for path in ("_versions/1.manifest", "tree/data/_versions/1.manifest"):
        assert cached.read(path) == cached.read(path) == CONTENT
        store.put(path, b"written anew")
        assert cached.read(path) == b"written anew"
    cached.expect_size("data/a", len(CONTENT))
    store.reset_counters()
    for _ in range(2):
        assert cached.read("data/a", 10, 20) == CONTENT[10:30]
        assert cached.read_tail("data/a", 100) == (CONTENT[-100:], len(CONTENT))
        assert cached.read_ranges("data/a", [(500, 2), (10, 3), (500, 2)]) == [
            CONTENT[500:502],
            CONTENT[10:13],
            CONTENT[500:502],
        ]
        assert cached.read("_deletions/d") == CONTENT
    assert store.requests == 4
    with pytest.raises(CorruptFileError):
        cached.read("data/a", len(CONTENT), 1)


def test_files_of_one_name_are_told_apart_by_place_and_size(store: MemoryStore, cache: DiskCache) -> None:
    first = CachedStore(store, "here", cache)
    assert first.read_tail("data/a", 4) == (CONTENT[-4:], len(CONTENT))
    other = MemoryStore()
    other.put("data/a", b"0123456789")
    for location in ("there", "here"):
        second = CachedStore(other, location, cache)
        second.expect_size("data/a", 10)
        assert second.read("data/a", 6, 4) == b"6789"
        assert second.read("data/a") == b"0123456789"


@pytest.mark.parametrize("harm", ["flip", "truncate", "empty", "checksum"])
def test_damage_is_a_miss(store: MemoryStore, cache: DiskCache, harm: str) -> None:
    cached = CachedStore(store, "here", cache)
    cached.expect_size("data/a", len(CONTENT))
    assert cached.read("data/a") == CONTENT
    (file,) = _files(cache)
    content = bytearray(file.read_bytes())
    match harm:
        case "flip":
            content[70_000] ^= 1
        case "truncate":
            del content[70_000:]
        case "empty":
            content.clear()
        case "checksum":
            content[-1] ^= 1
    file.write_bytes(content)
    assert cached.read("data/a") == CONTENT
    assert cache.statistics.damaged == 1
    assert cached.read("data/a") == CONTENT
    assert cache.statistics.damaged == 1


def test_a_process_tests_each_block_once(
    store: MemoryStore, cache: DiskCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    CachedStore(store, "here", cache).read_tail("data/a", len(CONTENT))
    tested: list[int] = []
    module = sys.modules[DiskCache.__module__]
    checksums = module._checksums

    def counted(data: memoryview) -> bytes:
        tested.append(len(data))
        return checksums(data)

    monkeypatch.setattr(module, "_checksums", counted)
    cached = CachedStore(store, "here", cache)
    cached.expect_size("data/a", len(CONTENT))
    block = 64 << 10
    for offset, length, blocks in [
        (10, 20, [block]),
        (5, block - 5, []),
        (block - 1, block, [2 * block]),
        (block - 1, block + 1, []),
        (0, len(CONTENT), [len(CONTENT)]),
        (0, len(CONTENT), []),
        (len(CONTENT) - 1, 1, []),
    ]:
        tested.clear()
        assert cached.read("data/a", offset, length) == CONTENT[offset : offset + length]
        assert tested == blocks, (offset, length)
    # Another process has tested nothing; what was damaged since is another file here as well.
    other = CachedStore(store, "here", DiskCache(cache.directory, cache.limit))
    tested.clear()
    assert other.read("data/a", 0, len(CONTENT)) == CONTENT
    (file,) = _files(cache)
    replaced = bytearray(file.read_bytes())
    replaced[70_000] ^= 1
    damaged = file.with_suffix(".new")
    damaged.write_bytes(replaced)
    damaged.replace(file)
    assert cached.read("data/a", 0, len(CONTENT)) == CONTENT
    assert cache.statistics.damaged == 1


def test_what_was_not_used_for_long_makes_room(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 1 << 20)
    for number in range(40):
        cache.add(f"f{number}", 0, bytes(60_000))
        newest_first = sorted(_files(cache), key=lambda file: file.stat().st_mtime_ns, reverse=True)
        for age, file in enumerate(newest_first):
            os.utime(file, (time.time() - 100 * age, time.time() - 100 * age))
        assert cache.read("f0", 0, 1) is not None  # used all the time
        assert sum(file.stat().st_size for file in _files(cache)) <= 1 << 20
    assert cache.read("f1", 0, 1) is None
    assert cache.read("f39", 0, 1) is not None
    # One that would push out all others is not kept.
    cache.add("large", 0, bytes(1 << 19))
    assert cache.read("large", 0, 1) is None


def test_unfinished_files_of_dead_processes_go(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, 1 << 20)
    cache.add("f", 0, b"x")
    (file,) = _files(cache)
    dead = file.with_name("0-5.12345678.tmp")
    dead.write_bytes(b"x")
    os.utime(dead, (0, 0))
    DiskCache(tmp_path, 1 << 20).add("f", 1, b"y")
    assert not dead.exists()
    assert cache.read("f", 0, 2) == b"xy"


def test_threads_share_it(cache: DiskCache) -> None:
    def use(number: int) -> bool:
        file, offset = f"f{number % 3}", number % 7 * 1000
        found = cache.read(file, offset, 2000)
        if found is None:
            cache.add(file, offset, CONTENT[offset : offset + 2000])
        return found in (None, CONTENT[offset : offset + 2000])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(use, range(500)))


def test_it_is_for_its_owner_alone(cache: DiskCache) -> None:
    cache.add("f", 0, b"x")
    (file,) = _files(cache)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_full_disk_is_no_error(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    cache.add("f", 0, b"x")
    assert cache.read("f", 0, 1) is None
    assert _files(cache) == []


@pytest.mark.usefixtures("_cache_off")
def test_the_second_run_fetches_nothing_but_the_newest_version(
    object_store: ObjectStore, tmp_path: Path
) -> None:
    uri = object_store.s3("t.lance")
    table = pa.table({"id": range(50_000), "s": [f"s{i}" for i in range(50_000)]})
    ds = DatasetVersion(write_dataset(table, uri, storage_options=object_store.options))
    ds.delete("id < 10")
    with s3_proxy(object_store.endpoint) as proxy:
        options = {**object_store.options, "aws_endpoint": proxy.endpoint}
        lance_sql.set_cache(tmp_path, 1 << 30)
        answers = []
        for _ in range(2):
            proxy.reset()
            query = lance_sql.connect(storage_options=options).sql(
                f"SELECT sum(id) AS n FROM '{uri}' WHERE s > 's2'"
            )
            answers.append(query.arrow().to_pylist())
            asked = [request.path for request in proxy.requests]
        assert answers[0] == answers[1]
        assert len(asked) == 1  # a listing
        assert all("_versions" in path for path in asked)
        plan = str(
            lance_sql.connect(storage_options=options).sql(f"SELECT s FROM '{uri}'").explain(analyze=True)
        )
        assert "cached" in plan
        # It is pickled without the cache.
        store = open_store(uri, options)
        assert isinstance(store, CachedStore)
        set_cache(None)
        assert not isinstance(pickle.loads(pickle.dumps(store)), CachedStore)


def test_the_environment_names_it(tmp_path: Path) -> None:
    program = (
        "from lance_engine.io.disk_cache import disk_cache\n"
        "cache = disk_cache()\n"
        "print(cache.directory, cache.limit)"
    )
    environment = {**os.environ, "LANCE_SQL_CACHE_DIR": str(tmp_path), "LANCE_SQL_CACHE_BYTES": "1000000"}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert found.stdout.split() == [str(tmp_path), "1000000"]


@pytest.mark.usefixtures("_cache_off")
def test_wrong_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    with pytest.raises(UnsupportedFeatureError, match="Cannot create the cache in this folder"):
        set_cache(file / "below", 1000)
    with pytest.raises(UnsupportedFeatureError, match="is too small"):
        set_cache(tmp_path, 0)
    monkeypatch.setattr(disk_cache, "_asked_environment", False)
    monkeypatch.setenv("LANCE_SQL_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("LANCE_SQL_CACHE_BYTES", "many")
    with pytest.raises(UnsupportedFeatureError, match="LANCE_SQL_CACHE_BYTES"):
        disk_cache.disk_cache()


def test_long_ranges_are_mapped_once_they_are_tested(cache: DiskCache) -> None:
    content = os.urandom(1 << 20)
    cache.add("f", 1000, content)
    begin, length = 5000, 600_000
    for _ in range(2):
        found = cache.read("f", 1000 + begin, length)
        assert found == content[begin : begin + length]
    assert found is not None
    assert isinstance(found.obj, mmap.mmap)
    # What is mapped stays readable when the file makes room for others.
    (file,) = _files(cache)
    file.unlink()
    assert found == content[begin : begin + length]
