"""Creating, dropping and extending indices: one commit each, nothing left behind when it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import (
    ColumnNotFoundError,
    IncompatibleChangeError,
    IndexExistsError,
    IndexNotFoundError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
)
from lance_engine.format.index_section import parse_index_section
from lance_engine.index.registry import KINDS
from lance_engine.operations.index_build import Target, build_segment
from lance_engine.progress import ProgressEvent, Reporter
from lance_engine.write.dataset import write_dataset

ROWS = 3000


@pytest.fixture
def dataset(tmp_path: Path) -> DatasetVersion:
    table = pa.table(
        {
            "a": pa.array([row * 7919 % ROWS for row in range(ROWS)]),
            "t": pa.array([f"t{row % 11}" for row in range(ROWS)]),
            "l": pa.array([[row] for row in range(ROWS)]),
        }
    )
    write_dataset(table, tmp_path, max_rows_per_file=1000)
    return DatasetVersion.open(str(tmp_path))


def files(dataset: DatasetVersion) -> list[str]:
    return dataset.snapshot.store.list("_indices")


def test_one_commit_per_change(dataset: DatasetVersion) -> None:
    created = dataset.create_index("a")
    assert (created.version, dataset.version) == (2, 1)
    assert created.inspect.indices().to_pylist()[0]["name"] == "a_idx"
    with pytest.raises(IndexExistsError, match="a_idx") as caught:
        created.create_index("a", "bitmap")
    assert "replace=True" in caught.value.remedy
    replaced = created.create_index("t", "bitmap", name="a_idx", replace=True)
    (row,) = replaced.inspect.indices().to_pylist()
    assert (row["kind"], row["columns"], replaced.version) == ("Bitmap", ["t"], 3)
    dropped = replaced.drop_index("a_idx")
    assert dropped.inspect.indices().num_rows == 0
    assert dropped.count_rows("t = 't3'") == replaced.count_rows("t = 't3'") == 273
    assert DatasetVersion.open(dataset.uri, 2).count_rows("a = 5") == 1


def test_what_cannot_be_built(dataset: DatasetVersion) -> None:
    with pytest.raises(UnsupportedFeatureError, match="fulltext"):
        dataset.create_index("a", "fulltext")
    with pytest.raises(UnsupportedTypeError, match="list") as caught:
        dataset.create_index("l")
    assert caught.value.place["column"] == "l"
    with pytest.raises(ColumnNotFoundError):
        dataset.create_index("nothing")
    with pytest.raises(TypeError, match="rows_per_zone"):
        dataset.create_index("a", "btree", rows_per_zone=5)
    with pytest.raises(ValueError, match="page_rows"):
        dataset.create_index("a", "btree", page_rows=0)
    with pytest.raises(ValueError, match="rows_per_zone"):
        dataset.create_index("a", "zonemap", rows_per_zone=0)
    with pytest.raises(IndexNotFoundError, match="x_idx"):
        dataset.drop_index("x_idx")
    with pytest.raises(IndexNotFoundError):
        dataset.index_statistics("x_idx")
    assert (DatasetVersion.open(dataset.uri).version, files(dataset)) == (1, [])


def test_progress_is_told_and_can_cancel(dataset: DatasetVersion) -> None:
    events: list[ProgressEvent] = []
    created = dataset.create_index("a", progress=events.append)
    assert {event.stage for event in events} == {"reading the column", "writing the index"}
    assert max(event.rows for event in events) == events[0].total_rows == ROWS
    assert (events[-1].files, events[-1].bytes > 0) == (1, True) or events[-1].files == 0
    before = files(created)

    def cancel(event: ProgressEvent) -> None:
        if event.stage == "writing the index":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        created.create_index("t", progress=cancel)
    assert (DatasetVersion.open(dataset.uri).version, files(created)) == (2, before)


def test_writers_of_indices_and_rows_do_not_disturb_each_other(dataset: DatasetVersion) -> None:
    dataset.delete("a = 5")
    appended = write_dataset(pa.table({"a": [5], "t": ["x"], "l": [[1]]}), dataset.uri, "append")
    created = dataset.create_index("a")  # on what was read before
    assert created.version == appended.version + 1
    assert created.count_rows("a = 5") == 1
    # Another index of this name, and rows that moved: the work is redone.
    with pytest.raises(IndexExistsError):
        dataset.create_index("t", name="a_idx")
    dataset.compact()
    again = dataset.create_index("t", "bitmap")
    assert again.index_statistics("t_idx")["uncovered_fragments"] == 0
    again.drop_columns(["t"])
    with pytest.raises((IncompatibleChangeError, ColumnNotFoundError)):
        again.create_index("t", name="late")


def test_small_additions_make_segments_that_are_merged_later(dataset: DatasetVersion) -> None:
    current = dataset.create_index("a").create_index("t", "zonemap", rows_per_zone=500)
    for number in range(9):
        write_dataset(pa.table({"a": [number], "t": ["x"], "l": [[1]]}), dataset.uri, "append")
        current = DatasetVersion.open(dataset.uri).optimize_indices()
        assert current.count_rows(f"a = {number}") == 2
    segments = parse_index_section(current.snapshot.index_section or b"")
    named = [segment.name for segment in segments]
    assert (named.count("a_idx"), named.count("t_idx")) == (2, 1)
    assert current.index_statistics("a_idx")["rows"] == ROWS + 9
    assert current.index_statistics("t_idx")["segments"][0]["rows_per_zone"] == 500
    assert current.verify().num_rows == 0


@pytest.mark.parametrize("kind", ["btree", "bitmap"])
def test_little_memory_gives_the_same_index(dataset: DatasetVersion, kind: str) -> None:
    snapshot = dataset.snapshot
    field = snapshot.schema.field("a")
    options: Any = KINDS[kind].options
    target = Target("x", KINDS[kind], field.id, ("a",), pa.int64(), options)

    def build(memory: int) -> dict[str, bytes]:
        _, paths = build_segment(
            snapshot, target, list(snapshot.fragments), (), Reporter(None), memory=memory
        )
        return {path.rpartition("/")[2]: snapshot.store.read(path) for path in paths}

    assert build(1 << 12).keys() == build(1 << 28).keys()
    small, large = build(1 << 12), build(1 << 28)
    assert {name: len(data) for name, data in small.items()} == {n: len(data) for n, data in large.items()}
