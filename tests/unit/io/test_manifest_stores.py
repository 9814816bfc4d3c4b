"""Versions that a database records: the protocol, and its repair when a writer dies between two steps."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CorruptFileError, LanceError, UnsupportedFeatureError
from lance_engine.io import LocalStore, MemoryStore, Store, open_store
from lance_engine.io.dynamodb import DynamoDBManifestStore
from lance_engine.io.external import ExternallyCommittedStore, ManifestEntry, ManifestStore
from lance_engine.io.manifest_names import NamingScheme
from lance_engine.io.sqlite import SQLiteManifestStore
from lance_engine.write.dataset import write_dataset

if TYPE_CHECKING:
    from conftest import ObjectStore

TABLE = pa.table({"id": range(10)})
FIRST = NamingScheme.V2.path(1)


class PlainStore(MemoryStore):
    """Storage that cannot create a file atomically, and on which a call can be the last one."""

    def __init__(self) -> None:
        super().__init__("plain")
        self.die_at = ""
        self.calls: list[str] = []

    def _call(self, name: str, path: str) -> None:
        self.calls.append(f"{name} {path}")
        if self.die_at and re.fullmatch(self.die_at, self.calls[-1]):
            # What no handler of the protocol may catch, as the end of the process.
            raise KeyboardInterrupt

    def put(self, path: str, data: bytes) -> None:
        self._call("put", path)
        super().put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        raise UnsupportedFeatureError("not atomic")

    def delete(self, path: str) -> None:
        self._call("delete", path)
        super().delete(path)


@pytest.fixture(params=["sqlite", "dynamodb"])
def manifests(request: pytest.FixtureRequest, tmp_path: Path) -> ManifestStore:
    if request.param == "sqlite":
        return SQLiteManifestStore(str(tmp_path / "manifests.db"))
    object_store: ObjectStore = request.getfixturevalue("object_store")
    return DynamoDBManifestStore(object_store.table, object_store.options)


def test_entries(manifests: ManifestStore) -> None:
    assert manifests.latest("d") is manifests.get("d", 1) is None
    staged = ManifestEntry(1, "d/_versions/1.manifest-x", 10)
    manifests.add("d", staged)
    assert not staged.is_final
    with pytest.raises(FileExistsError):
        manifests.add("d", ManifestEntry(1, "d/_versions/1.manifest-y", 11))
    assert manifests.latest("d") == manifests.get("d", 1) == staged
    final = ManifestEntry(1, "d/_versions/1.manifest", 10, "tag")
    manifests.replace("d", final)
    assert manifests.get("d", 1) == final
    for version in range(2, 13):
        manifests.add("d", ManifestEntry(version, f"d/_versions/{version}.manifest"))
    manifests.add("d/tree/b", ManifestEntry(100, "d/tree/b/_versions/100.manifest"))
    latest = manifests.latest("d")
    assert latest is not None
    assert latest.version == 12
    with pytest.raises(CorruptFileError, match="is missing a version"):
        manifests.replace("e", final)


def test_one_of_many_writers_wins(manifests: ManifestStore) -> None:
    wins: list[int] = []
    barrier = threading.Barrier(6)

    def write(number: int) -> None:
        barrier.wait()
        try:
            manifests.add("d", ManifestEntry(1, f"d/_versions/1.manifest-{number}", 1))
        except FileExistsError:
            return
        wins.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wins) == 1


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("die_at", "committed"),
    [
        (r"put _versions/\d+\.manifest-.*", False),
        (r"put _versions/\d+\.manifest", True),
        (r"delete _versions/\d+\.manifest-.*", True),
    ],
)
@pytest.mark.parametrize("reader", ["open", "open version", "append"])
def test_repair_after_a_writer_died(
    manifests: ManifestStore, die_at: str, committed: bool, reader: str
) -> None:
    files = PlainStore()
    store = ExternallyCommittedStore(files, manifests, "t", "plain://t")
    write_dataset(TABLE, store)
    files.die_at = die_at
    with pytest.raises(KeyboardInterrupt):
        write_dataset(TABLE, store, "append")
    files.die_at = ""
    version = 2 if committed else 1
    if reader == "append":
        assert write_dataset(TABLE, store, "append").version == version + 1
        assert DatasetVersion.open(store).count_rows() == 10 * (version + 1)  # type: ignore[arg-type]
    else:
        asked = None if reader == "open" else version
        dataset = DatasetVersion.open(store, asked)  # type: ignore[arg-type]
        assert dataset.version == version
        assert dataset.scan().to_table() == pa.concat_tables([TABLE] * version)
    entry = manifests.get("t", version)
    assert entry is not None
    assert entry.is_final
    assert files.exists(f"_versions/{entry.path.rpartition('/')[2]}")


def test_a_death_between_the_entry_and_the_copy_in_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy exists, but the database still names the staging file."""
    manifests = SQLiteManifestStore(str(tmp_path / "manifests.db"))
    files = PlainStore()
    store = ExternallyCommittedStore(files, manifests, "t", "plain://t")
    with monkeypatch.context() as patched:
        patched.setattr(manifests, "replace", lambda *_: (_ for _ in ()).throw(OSError("lost")))
        # The version is committed: finishing it is left to whoever comes next.
        assert write_dataset(TABLE, store).version == 1
    entry = manifests.get("t", 1)
    assert entry is not None
    assert not entry.is_final
    assert DatasetVersion.open(store).count_rows() == 10  # type: ignore[arg-type]
    assert manifests.get("t", 1) == ManifestEntry(1, f"t/{FIRST}", entry.size)
    assert files.list("_versions") == [FIRST]


def test_the_database_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifests = SQLiteManifestStore(str(tmp_path / "manifests.db"))
    files = PlainStore()
    store = ExternallyCommittedStore(files, manifests, "t", "plain://t")
    write_dataset(TABLE, store)
    with monkeypatch.context() as patched:
        patched.setattr(manifests, "add", lambda *_: (_ for _ in ()).throw(OSError("lost")))
        with pytest.raises(OSError, match="lost"):
            write_dataset(TABLE, store, "append")
    # Nobody knows whether the entry was made, so the files stay.
    assert len(files.list("data")) == 2
    assert DatasetVersion.open(store).version == 1  # type: ignore[arg-type]


def test_an_entry_that_was_made_although_the_answer_was_lost(tmp_path: Path) -> None:
    class Repeating(SQLiteManifestStore):
        def add(self, dataset: str, entry: ManifestEntry) -> None:
            super().add(dataset, entry)
            super().add(dataset, entry)

    store = ExternallyCommittedStore(PlainStore(), Repeating(str(tmp_path / "m.db")), "t", "plain://t")
    write_dataset(TABLE, store)
    assert write_dataset(TABLE, store, "append").version == 2


def test_a_dataset_begun_without_a_database_and_both_naming_schemes(tmp_path: Path) -> None:
    files = PlainStore()
    manifests = SQLiteManifestStore(str(tmp_path / "manifests.db"))
    store = ExternallyCommittedStore(files, manifests, "t", "plain://t")
    write_dataset(TABLE, store)
    plain = MemoryStore()
    for path in files.list(""):
        plain.put(path.replace(FIRST, NamingScheme.V1.path(1)), files.read(path))
    upgraded = ExternallyCommittedStore(plain, manifests, "other", "plain://other")
    DatasetVersion(write_dataset(TABLE, upgraded, "append")).tags.create("begin", 1)
    assert plain.list("_versions") == ["_versions/1.manifest", "_versions/2.manifest"]
    # Somebody without the database commits version 3: it is found, and not overwritten.
    write_dataset(TABLE, plain, "append")
    assert write_dataset(TABLE, upgraded, "append").version == 4
    assert DatasetVersion.open(upgraded).count_rows() == 40  # type: ignore[arg-type]


def test_manifests_that_are_not_what_was_recorded(tmp_path: Path) -> None:
    files = PlainStore()
    manifests = SQLiteManifestStore(str(tmp_path / "manifests.db"))
    store = ExternallyCommittedStore(files, manifests, "t", "plain://t")
    write_dataset(TABLE, store)
    content = files.read(FIRST)
    files.put(FIRST, content[:-1])
    with pytest.raises(CorruptFileError, match="are recorded for it"):
        DatasetVersion.open(store)  # type: ignore[arg-type]
    files.put(FIRST, content)
    manifests.replace("t", ManifestEntry(1, "t/_versions/1.manifest-gone"))
    with pytest.raises(CorruptFileError, match="manifest of a committed version is missing"):
        DatasetVersion.open(store)  # type: ignore[arg-type]
    manifests.replace("t", ManifestEntry(1, "elsewhere"))
    with pytest.raises(CorruptFileError, match="records 'elsewhere' as a manifest"):
        DatasetVersion.open(store)  # type: ignore[arg-type]


def test_shared_disks_mounted_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    share = tmp_path / "share"
    share.mkdir()
    with pytest.raises(UnsupportedFeatureError, match="manifest_store"):
        write_dataset(TABLE, share / "t.lance")
    uri = f"file+sqlite://{share}/t.lance?db={share}/manifests.db"
    dataset = DatasetVersion(write_dataset(TABLE, uri))
    assert dataset.uri == uri
    dataset.tags.create("one")
    # Another machine has the disk in another place, and names the database by an option.
    moved = share.rename(tmp_path / "mount")
    options = {"manifest_store": f"sqlite://{moved}/manifests.db"}
    assert write_dataset(TABLE, moved / "t.lance", "append", storage_options=options).version == 2
    again = DatasetVersion.open(str(moved / "t.lance"), storage_options=options).delete("id = 3")
    assert again.count_rows() == 18
    with sqlite3.connect(moved / "manifests.db") as connection:
        assert connection.execute("SELECT base_uri, version FROM manifests").fetchall() == [
            ("t.lance", version) for version in (1, 2, 3)
        ]


def test_other_storage_with_a_database(tmp_path: Path) -> None:
    uri = f"memory://{uuid.uuid4().hex}/t.lance"
    options = {"manifest_store": f"sqlite://{tmp_path}/manifests.db"}
    dataset = DatasetVersion(write_dataset(TABLE, uri, storage_options=options))
    assert dataset.delete("id < 5").count_rows() == 5
    assert DatasetVersion.open(uri, storage_options=options).version == 2


@pytest.mark.parametrize(
    ("opened", "message"),
    [
        (lambda: open_store("s3+ddb://b/t.lance"), "'ddbTableName' is missing"),
        (lambda: open_store("file+sqlite:///t.lance?dbs=x"), "'db' is missing"),
        (lambda: open_store("t.lance", {"manifest_store": "redis://x"}), "Unknown kind"),
        (
            lambda: open_store("t.lance", {"manifest_store": "sqlite:///nowhere/x.db"}).list("_versions"),
            "Cannot open",
        ),
    ],
)
def test_mistakes_in_naming_a_manifest_store(opened: Callable[[], Store], message: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=message):
        opened()


def test_dynamodb_tables_that_do_not_fit(object_store: ObjectStore) -> None:
    client = object_store.client("dynamodb")
    client.create_table(
        TableName="other",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    for table, message in (
        ("other", "are not those of a manifest store"),
        ("none", "DynamoDB table 'none' not found"),
    ):
        with pytest.raises(LanceError, match=message):
            open_store(f"s3+ddb://b/t?ddbTableName={table}", object_store.options).list("_versions")


def test_local_files_are_still_mapped(tmp_path: Path) -> None:
    options = {"manifest_store": f"sqlite://{tmp_path}/manifests.db"}
    store = open_store(tmp_path / "t.lance", options)
    assert store.local_path("data/x") == LocalStore(tmp_path / "t.lance").local_path("data/x")
