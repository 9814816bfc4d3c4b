"""Every operation with progress can be cancelled at each report and leaves nothing behind."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.io import MemoryStore
from lance_engine.progress import ProgressEvent
from lance_engine.write.dataset import write_dataset

Told = Callable[[ProgressEvent], None]

TABLE = pa.table({"id": range(60), "v": [i % 7 for i in range(60)], "s": [f"s{i}" for i in range(60)]})
SOURCE = pa.table({"id": [3, 30, 100], "v": [1, 1, 1]})

OPERATIONS: dict[str, Callable[[DatasetVersion, Told], object]] = {
    "append": lambda ds, told: write_dataset(TABLE, ds.snapshot.store, "append", progress=told),
    "overwrite": lambda ds, told: write_dataset(
        TABLE.to_batches(7), ds.snapshot.store, "overwrite", max_rows_per_file=20, progress=told
    ),
    "delete": lambda ds, told: ds.delete("id % 9 = 1", progress=told),
    "delete row ids": lambda ds, told: ds.delete(row_ids=[0, 3], progress=told),
    "update": lambda ds, told: ds.update({"s": "upper(s)"}, "id > 5", progress=told),
    "merge": lambda ds, told: (
        ds.merge(SOURCE, on="id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .when_not_matched_by_source_delete("id = 50")
        .execute(progress=told)
    ),
    "add": lambda ds, told: ds.add_columns({"w": "id + v"}, progress=told),
    "alter": lambda ds, told: ds.alter_column("v", type=pa.float64(), progress=told),
    "forbid nulls": lambda ds, told: ds.alter_column("v", nullable=False, progress=told),
    "replace": lambda ds, told: ds.replace_columns({"v": "v + 1"}, progress=told),
    "compact": lambda ds, told: ds.compact(progress=told),
    "btree": lambda ds, told: ds.create_index("id", progress=told),
    "zonemap": lambda ds, told: ds.create_index("v", "zonemap", progress=told),
    "optimize": lambda ds, told: ds.optimize_indices(progress=told),
    "cleanup": lambda ds, told: ds.cleanup(datetime.timedelta(0), dry_run=True, progress=told),
}


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable row ids"])
def files(request: pytest.FixtureRequest) -> dict[str, bytes]:
    """A dataset of four fragments with an index that one of them has not come into."""
    store = MemoryStore()
    dataset = DatasetVersion(
        write_dataset(TABLE.slice(0, 45), store, max_rows_per_file=15, stable_row_ids=request.param)
    )
    dataset.create_index("s", "bitmap").delete("id = 5")
    write_dataset(TABLE.slice(45), store, "append")
    return {path: store.read(path) for path in store.list("")}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", OPERATIONS)
def test_nothing_stays_of_a_cancelled_operation(
    files: dict[str, bytes], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_engine.progress._INTERVAL", 0.0)
    store = MemoryStore()
    for path, content in files.items():
        store.put(path, content)
    for last in range(1, 200):
        left = [last]

        def cancel(event: ProgressEvent, left: list[int] = left) -> None:
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt(event.stage)

        with contextlib.suppress(KeyboardInterrupt):
            OPERATIONS[name](DatasetVersion.open(store), cancel)  # type: ignore[arg-type]
        if left[0] > 0:
            break
        assert store.list("") == sorted(files), f"cancelled at event {last}"
    assert last > 2


@pytest.mark.parametrize("name", OPERATIONS)
def test_true_tells_on_standard_error(
    files: dict[str, bytes], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store = MemoryStore()
    for path, content in files.items():
        store.put(path, content)
    OPERATIONS[name](DatasetVersion.open(store), True)  # type: ignore[arg-type]
    assert "\r" in capsys.readouterr().err
