"""If storage fails during an operation, the dataset does not change, and written files are removed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CommitConflictError, CorruptFileError
from lance_engine.io import MemoryStore
from lance_engine.write.dataset import write_dataset

SOURCE = pa.table({"id": [1, 100], "s": ["a", "b"]})

CHANGES: dict[str, Callable[[DatasetVersion], DatasetVersion]] = {
    "delete": lambda dataset: dataset.delete("id % 3 = 0"),
    "update": lambda dataset: dataset.update({"s": "'x'"}, "id % 3 = 0"),
    "merge": lambda dataset: (
        dataset.merge(SOURCE, on="id").when_matched_update_all().when_not_matched_insert_all().execute()
    ),
    "add": lambda dataset: dataset.add_columns({"n": "id + 1"}),
    "alter": lambda dataset: dataset.alter_column("id", type=pa.int32()),
    "compact": lambda dataset: dataset.compact(),
    "btree": lambda dataset: dataset.create_index("id"),
    "bitmap": lambda dataset: dataset.create_index("s", "bitmap"),
    "inverted": lambda dataset: dataset.create_index("s", "inverted"),
}


class FailingStore(MemoryStore):
    """Fails at the n-th file begun or ended, or part of one: data, deletions, transactions and manifests."""

    def __init__(self, files: dict[str, bytes], fail_at: int) -> None:
        super().__init__()
        self._files = dict(files)
        self._left = fail_at
        self.failed = ""
        #: files that were begun, and neither ended nor discarded
        self.begun: set[object] = set()

    def _count(self, path: str) -> None:
        self._left -= 1
        if self._left == 0:
            self.failed = path
            raise OSError(28, "No space left on device")

    def create(self, path: str):  # type: ignore[no-untyped-def]
        self._count(path)
        sink = super().create(path)
        self.begun.add(sink)
        discard, close, write = sink.discard, sink.close, sink.write

        def discarded() -> None:
            self.begun.discard(sink)
            discard()

        def closed() -> None:
            self.begun.discard(sink)  # also if it fails: the store removes what it has then
            close()

        def written(data: bytes) -> int:
            if data:
                self._count(path)
            return write(data)

        sink.discard, sink.close, sink.write = discarded, closed, written  # type: ignore[method-assign, assignment]
        return sink

    def put(self, path: str, data: bytes) -> None:
        self._count(path)
        super().put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self._count(path)
        super().put_if_absent(path, data)


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    store = MemoryStore()
    table = pa.table({"id": range(40), "s": [f"s{i}" for i in range(40)]})
    DatasetVersion(write_dataset(table, store, max_rows_per_file=10)).delete("id = 5")
    return {path: store.read(path) for path in store.list("")}


@pytest.mark.parametrize("change", CHANGES)
def test_storage_fills_up(files: dict[str, bytes], change: str) -> None:
    for fail_at in range(1, 500):
        store = FailingStore(files, fail_at)
        dataset = DatasetVersion.open(store)  # type: ignore[arg-type]
        with contextlib.suppress(OSError):
            CHANGES[change](dataset)
        assert not store.begun, "a file that is not complete stays open, on a disk under a temporary name"
        if not store.failed:
            break
        after = DatasetVersion.open(store)  # type: ignore[arg-type]
        assert after.scan().to_table().equals(dataset.scan().to_table())
        # Compaction reserves fragment ids in a version of its own: a manifest and a transaction file.
        reserved = after.version - dataset.version
        assert reserved == 0 or change == "compact"
        # When storing the manifest itself fails nobody knows whether that took place: then the files stay.
        if not store.failed.startswith("_versions"):
            assert len(store.list("")) == len(files) + 2 * reserved
    assert fail_at > 2
    assert not store.failed


def test_a_lost_deletion_file_stops_what_builds_on_it(tmp_path: Path) -> None:
    table = pa.table({"id": range(40)})
    dataset = DatasetVersion(write_dataset(table, tmp_path)).delete("id = 5")
    next((tmp_path / "_deletions").iterdir()).unlink()
    lost = DatasetVersion.open(str(tmp_path))
    before = sorted(tmp_path.rglob("*"))
    for change in (
        lambda: lost.delete("id = 6"),
        lambda: lost.update({"id": "0"}),
        lambda: lost.compact(deleted_share=0),
        lambda: lost.add_columns({"n": "1"}),
    ):
        with pytest.raises(CorruptFileError, match="deletion file does not exist"):
            change()
    assert sorted(tmp_path.rglob("*")) == before
    assert lost.version == dataset.version


def test_a_crowd_of_writers_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_engine.operations.retry.time.sleep", lambda _: None)
    dataset = DatasetVersion(write_dataset(pa.table({"id": range(40)}), tmp_path))

    def interfere(batch: pa.RecordBatch) -> pa.Array:
        # Somebody changes the same rows while we compute.
        DatasetVersion.open(str(tmp_path)).update({"id": "id + 1"})
        return batch["id"]

    with pytest.raises(CommitConflictError, match="'update' based on version") as caught:
        dataset.update({"id": interfere})
    assert caught.value.place["operation"] == "update"
    assert "retry the change" in str(caught.value)
    dataset = DatasetVersion.open(str(tmp_path))
    assert dataset.version == 11
    named = {file.path for fragment in dataset.snapshot.fragments for file in fragment.files}
    stored = {path.name for path in (tmp_path / "data").iterdir()}
    assert named <= stored
    assert len(stored) == 11
