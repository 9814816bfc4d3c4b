"""The stores behave alike: local folder, memory, fsspec, object store."""

from __future__ import annotations

import errno
import os
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.io import LocalStore, MemoryStore, Store, open_store
from lance_engine.io.fsspec_store import FsspecStore
from lance_engine.io.obstore_store import ObstoreStore

if TYPE_CHECKING:
    from conftest import ObjectStore


@pytest.fixture(params=["local", "memory", "fsspec", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    if request.param == "local":
        return LocalStore(tmp_path / "table.lance")
    if request.param == "memory":
        return MemoryStore("t")
    if request.param == "s3":
        object_store: ObjectStore = request.getfixturevalue("object_store")
        store = open_store(object_store.s3("table.lance"), object_store.options)
        assert isinstance(store, ObstoreStore)
        return store
    # The fsspec memory file system creates files atomically, as object stores do.
    monkeypatch.setattr("lance_engine.io.fsspec_store.CONDITIONAL_PUT", frozenset({"memory"}))
    return FsspecStore(f"memory://{uuid.uuid4().hex}/table.lance/")


def test_files_are_written_read_listed_and_deleted(store: Store) -> None:
    store.put("data/a.lance", b"0123456789")
    store.put("data/deep/b.blob", b"")
    store.put("_versions/1.manifest", b"m")
    assert store.size("data/a.lance") == 10
    assert store.read("data/a.lance") == b"0123456789"
    assert store.read("data/a.lance", 3) == b"3456789"
    assert store.read("data/a.lance", 3, 4) == b"3456"
    assert store.read("data/a.lance", 10, 0) == b""
    assert store.read("data/a.lance", 10) == b""
    assert store.read_tail("data/a.lance", 4) == (b"6789", 10)
    assert store.read_tail("data/a.lance", 40) == (b"0123456789", 10)
    assert store.read_tail("data/deep/b.blob", 4) == (b"", 0)
    assert sorted(store.names("data")) in (["a.lance"], ["a.lance", "deep"])
    assert store.first_names("_versions") == (["1.manifest"], True)
    assert store.first_names("nothing") == ([], True)
    assert store.read_ranges("data/a.lance", [(8, 2), (0, 0), (0, 3), (0, 3)]) == [b"89", b"", b"012", b"012"]
    assert store.list("data") == ["data/a.lance", "data/deep/b.blob"]
    assert store.list("") == ["_versions/1.manifest", "data/a.lance", "data/deep/b.blob"]
    assert store.list("dat") == store.list("nothing") == []
    assert store.exists("data/a.lance")
    assert not store.exists("data")
    store.put("data/a.lance", b"new")
    assert store.read("data/a.lance") == b"new"
    store.delete("data/a.lance")
    store.delete("data/a.lance")
    assert not store.exists("data/a.lance")


def test_missing_files_are_not_found(store: Store) -> None:
    for access in (
        store.size,
        store.read,
        lambda path: store.read_tail(path, 1),
        lambda path: store.read_ranges(path, [(0, 1)]),
    ):
        with pytest.raises(FileNotFoundError):
            access("data/none.lance")


@pytest.mark.parametrize(("offset", "length"), [(0, 11), (5, 6), (11, 1)])
def test_reads_beyond_the_end_are_errors(store: Store, offset: int, length: int) -> None:
    store.put("a", b"0123456789")
    with pytest.raises(CorruptFileError):
        store.read("a", offset, length)
    with pytest.raises(CorruptFileError):
        store.read_ranges("a", [(0, 1), (offset, length)])


def test_put_if_absent_never_replaces(store: Store) -> None:
    store.put_if_absent("_versions/1.manifest", b"first")
    with pytest.raises(FileExistsError):
        store.put_if_absent("_versions/1.manifest", b"second")
    assert store.read("_versions/1.manifest") == b"first"
    assert store.list("") == ["_versions/1.manifest"]


def test_streamed_files_appear_on_close(store: Store) -> None:
    sink = store.create("data/a.lance")
    assert sink.write(b"abc") == 3
    assert sink.write(memoryview(b"defg")) == 4
    assert sink.tell() == 7
    sink.close()
    sink.close()
    sink.discard()
    assert store.read("data/a.lance") == b"abcdefg"
    assert store.list("") == ["data/a.lance"]


def test_discarded_files_leave_nothing(store: Store) -> None:
    sink = store.create("data/a.lance")
    sink.write(b"abc")
    sink.discard()
    sink.close()
    assert store.list("") == []

    def fail_half_way() -> None:
        with store.create("data/b.lance") as sink:
            sink.write(b"abc")
            raise KeyError

    with pytest.raises(KeyError):
        fail_half_way()
    assert store.list("") == []
    with store.create("data/b.lance") as sink:
        sink.write(b"abc")
    assert store.list("") == ["data/b.lance"]


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "a/../../x", "", "a//b", "./a", "a\\..\\b", "a\0b", "C:/x"]
)
def test_paths_that_leave_the_dataset_are_refused(store: Store, path: str) -> None:
    for access in (store.read, store.size, store.exists, store.delete, store.create, store.local_path):
        if access == store.local_path and store.local_path("a") is None:
            continue
        with pytest.raises(CorruptFileError, match="inside the dataset"):
            access(path)


def test_local_streams_are_invisible_before_close(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    sink = store.create("data/a.lance")
    sink.write(b"x" * 100_000)
    assert not store.exists("data/a.lance")
    sink.close()
    assert store.local_path("data/a.lance") == str(tmp_path / "data" / "a.lance")


def test_one_of_many_local_writers_wins(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    wins: list[int] = []
    barrier = threading.Barrier(8)

    def write(number: int) -> None:
        barrier.wait()
        try:
            store.put_if_absent("f", bytes([number]) * 1000)
        except FileExistsError:
            return
        wins.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wins) == 1
    assert store.read("f") == bytes([wins[0]]) * 1000
    assert store.list("") == ["f"]


def test_file_systems_without_hard_links_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: str) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    store = LocalStore(tmp_path)
    with pytest.raises(UnsupportedFeatureError, match="hard links"):
        store.put_if_absent("f", b"x")
    assert store.list("") == []


def test_storage_without_conditional_writes_refuses_commits() -> None:
    store = FsspecStore(f"memory://{uuid.uuid4().hex}")
    with pytest.raises(UnsupportedFeatureError, match="Commits are not safe"):
        store.put_if_absent("f", b"x")
    assert store.list("") == []


def test_memory_counts_requests_and_bytes() -> None:
    store = MemoryStore()
    store.put("a", b"0123456789")
    store.read("a")
    store.read_ranges("a", [(0, 2), (4, 1)])
    assert (store.requests, store.bytes_read) == (3, 13)
    store.reset_counters()
    assert (store.requests, store.bytes_read) == (0, 0)


@pytest.mark.parametrize("spell", [str, Path, lambda path: f"file://{path}"])
def test_local_paths_resolve(tmp_path: Path, spell: Callable[[Path], str]) -> None:
    folder = tmp_path / "with space"
    store = open_store(spell(folder))
    assert isinstance(store, LocalStore)
    assert store.uri == str(folder)


def test_escaped_uris_home_and_stores_resolve(tmp_path: Path) -> None:
    assert open_store("file:///tmp/with%20space").uri == "/tmp/with space"
    assert open_store("~/x").uri == os.path.expanduser("~/x")
    assert isinstance(open_store("memory://x"), FsspecStore)
    store = MemoryStore()
    assert open_store(store) is store
    with pytest.raises(UnsupportedFeatureError, match="nonsense"):
        open_store("nonsense://x")
    with pytest.raises(UnsupportedFeatureError, match="empty"):
        open_store("")
