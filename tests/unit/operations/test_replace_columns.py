"""New values for whole columns, in place; progress; functions over batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import (
    ColumnNotFoundError,
    IncompatibleChangeError,
    InvalidFilterError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from lance_engine.format.operations import Overwrite
from lance_engine.io import MemoryStore
from lance_engine.progress import ProgressEvent
from lance_engine.schema_tree import Schema
from lance_engine.table.build import CreateOptions
from lance_engine.table.commit import commit
from lance_engine.write.dataset import write_dataset
from lance_engine.write.fragments import write_fragments
from lance_engine.write.options import WriteOptions

ROWS = 20


def create(*, stable: bool = False, version: str = "2.1") -> DatasetVersion:
    data = pa.table(
        {
            "id": np.arange(ROWS),
            "v": np.arange(ROWS) / 2,
            "p": pa.array([{"x": i, "y": str(i)} for i in range(ROWS)]),
        }
    )
    schema, store = Schema.from_arrow(data.schema), MemoryStore()
    options = WriteOptions(max_rows_per_file=8, data_storage_version=version)
    fragments = write_fragments(store, schema, data.to_batches(), options)
    created = CreateOptions(stable_row_ids=stable)
    return DatasetVersion(commit(store, Overwrite(tuple(fragments), schema), read_version=0, options=created))


def values(dataset: DatasetVersion, name: str) -> dict[int, Any]:
    rows = dataset.scan(["id", name]).to_table().to_pylist()
    return {row["id"]: row[name] for row in rows}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True])
def test_new_values_in_place(stable: bool, version: str) -> None:
    dataset = create(stable=stable, version=version).delete("id = 5 OR id >= 18")
    row_ids = values(dataset, "_rowid")

    def pairs(batch: pa.RecordBatch) -> pa.Array:
        arrays = [pc.add(batch["id"], 1), batch["p"].field("y")]
        return pa.StructArray.from_arrays(arrays, ["x", "y"])

    changed = dataset.replace_columns({"v": "id * 10", "p": pairs})
    assert changed.version == dataset.version + 1
    assert changed.schema == dataset.schema
    assert values(changed, "v") == {i: i * 10.0 for i in row_ids}
    assert values(changed, "p") == {i: {"x": i + 1, "y": str(i)} for i in row_ids}
    assert values(changed, "_rowid") == row_ids
    assert changed.verify(values=True).num_rows == 0
    # The values before are those of the version before.
    assert values(dataset, "v") == {i: i / 2 for i in row_ids}
    again = changed.replace_columns({"v": "v + 1", "id": "id"})
    assert values(again, "v") == {i: i * 10.0 + 1 for i in row_ids}
    # Files of which nothing is left are not kept.
    assert {len(fragment.files) for fragment in again.snapshot.fragments} == {2}
    if stable:
        for fragment in changed.snapshot.fragments:
            assert set(changed.snapshot.last_updated_at_versions(fragment)) == {changed.version}
            assert set(changed.snapshot.created_at_versions(fragment)) == {1}


def test_values_of_a_column_of_nulls() -> None:
    dataset = create().add_columns(pa.field("n", pa.int64()))
    assert values(dataset.replace_columns({"n": "id"}), "n") == {i: i for i in range(ROWS)}


def test_only_these_columns_are_written() -> None:
    dataset = create()
    before = set(dataset.snapshot.store.list("data"))
    changed = dataset.replace_columns({"v": "0"})
    assert len(set(changed.snapshot.store.list("data")) - before) == 3
    for fragment in changed.snapshot.fragments:
        assert fragment.files[0].fields == (0, -2, 3, 4)
        assert fragment.files[1].fields == (1,)


def test_wrong_columns_and_values() -> None:
    dataset = create()
    before = dataset.snapshot.store.list("")
    with pytest.raises(ColumnNotFoundError):
        dataset.replace_columns({"w": "0"})
    with pytest.raises(UnsupportedFeatureError, match="whole struct"):
        dataset.replace_columns({"p.x": "0"})
    with pytest.raises(InvalidFilterError, match="column: v"):
        dataset.replace_columns({"v": "'text'"})
    with pytest.raises(SchemaMismatchError, match="3 values for 8 rows"):
        dataset.replace_columns({"v": lambda batch: pa.array([1.0, 2.0, 3.0])})
    with pytest.raises(ValueError, match="at least one column"):
        dataset.replace_columns({})
    assert dataset.snapshot.store.list("") == before


def test_with_others_at_work() -> None:
    dataset = create(stable=True)
    dataset.delete("id = 3")
    write_dataset(pa.table({"id": [100], "v": [7.0]}), dataset.snapshot.store, mode="append")
    changed = dataset.replace_columns({"v": "id + 0.5"})
    expected = {i: i + 0.5 for i in range(ROWS) if i != 3} | {100: 7.0}
    assert values(changed, "v") == expected
    # Rows that moved meanwhile are not where their new values would be: done again.
    dataset.update({"v": "-1"}, "id = 4")
    again = changed.replace_columns({"v": "v * 2"})
    assert values(again, "v") == {i: -2.0 if i == 4 else 2 * v for i, v in expected.items()}
    dataset.drop_columns(["v"])
    with pytest.raises(IncompatibleChangeError, match="'project'"):
        again.replace_columns({"v": "0"})
    compacted = DatasetVersion.open(dataset.snapshot.store).replace_columns({"id": "id + 1"})
    compacted.compact()
    assert set(values(compacted.replace_columns({"id": "id + 1"}), "id")) == {i + 2 for i in expected}


def test_progress_is_told_and_cancels() -> None:
    dataset = create()
    events: list[ProgressEvent] = []
    dataset.replace_columns({"v": "0"}, progress=events.append)
    assert {event.stage for event in events} == {"writing columns"}
    assert (events[-1].rows, events[-1].total_rows, events[-1].files) == (ROWS, ROWS, 3)
    assert events[-1].bytes > 0
    before = dataset.snapshot.store.list("")

    def cancel(event: ProgressEvent) -> None:
        if event.files:
            raise KeyboardInterrupt

    latest = DatasetVersion.open(dataset.snapshot.store)
    for operation in (
        lambda: latest.replace_columns({"v": "1"}, progress=cancel),
        lambda: latest.add_columns({"w": "1"}, progress=cancel),
        lambda: latest.alter_column("v", type=pa.float32(), progress=cancel),
        lambda: latest.update({"v": "1"}, progress=cancel),
        lambda: latest.compact(progress=cancel),
    ):
        with pytest.raises(KeyboardInterrupt):
            operation()
    assert dataset.snapshot.store.list("") == before


def test_functions_over_batches() -> None:
    dataset = create().delete("id = 2")

    def two(batch: pa.RecordBatch) -> pa.RecordBatch:
        assert batch.schema.names == ["id"]
        return pa.record_batch({"double": pc.multiply(batch["id"], 2), "text": batch["id"].cast(pa.string())})

    added = dataset.add_columns(two, read=["id"])
    assert added.schema.names == ["id", "v", "p", "double", "text"]
    assert values(added, "double") == {i: 2 * i for i in range(ROWS) if i != 2}
    one = added.add_columns({"d": lambda batch: batch["double"], "e": "v + 1"}, read=["double"])
    assert values(one, "d") == values(one, "double")
    assert values(one, "e") == {i: i / 2 + 1 for i in range(ROWS) if i != 2}
    with pytest.raises(TypeError, match="not a RecordBatch"):
        added.add_columns(lambda batch: batch["id"])  # type: ignore[arg-type, return-value]
    with pytest.raises(SchemaMismatchError, match="1 rows of new columns for"):
        added.add_columns(lambda batch: pa.record_batch({"z": [1]}))
    with pytest.raises(SchemaMismatchError, match="already exists"):
        added.add_columns(two, read=["id"])


def test_compacting_to_a_size_in_bytes() -> None:
    dataset = create()
    size = sum(file.file_size or 0 for file in dataset.snapshot.fragments[0].files)
    assert dataset.compact(target_bytes=size).version == dataset.version
    events: list[ProgressEvent] = []
    joined = dataset.compact(target_bytes=10 * size, progress=events.append)
    assert len(joined.snapshot.fragments) == 1
    assert (events[-1].stage, events[-1].rows, events[-1].files) == ("compacting", ROWS, 1)
