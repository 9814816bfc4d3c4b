"""A write that cannot succeed says why and leaves no files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.errors import LanceError, SchemaMismatchError, UnsupportedFeatureError, UnsupportedTypeError
from lance_engine.io.local import LocalStore
from lance_engine.io.memory import MemoryStore
from lance_engine.progress import ProgressEvent
from lance_engine.schema_tree import Schema
from lance_engine.write.dataset import write_dataset
from lance_engine.write.fragments import write_fragments
from lance_engine.write.options import WriteOptions


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


POINT = pa.struct([("x", pa.int8())])
TEXTS = pa.struct([("text", pa.string())])


@pytest.mark.parametrize(
    ("arrow_type", "remedy"),
    [
        (pa.map_(pa.string(), pa.int8()), "list of structs"),
        (pa.list_(POINT, 2), "variable-size list"),
        (pa.list_(pa.string(), 2), "variable-size list"),
        (pa.list_(pa.int8(), 0), "Drop the column"),
        (pa.binary(0), "Cast the column to binary"),
        (pa.month_day_nano_interval(), "duration"),
        (pa.decimal64(5, 2), "decimal128"),
        (pa.run_end_encoded(pa.int32(), pa.int8()), "int8"),
        (pa.list_view(pa.int8()), "list"),
        (pa.struct([("deep", pa.list_(pa.map_(pa.string(), pa.int8())))]), "list of structs"),
    ],
    ids=str,
)
def test_types_without_a_place_in_the_format(arrow_type: pa.DataType, remedy: str, tmp_path: Path) -> None:
    table = pa.table({"good": [1], "bad": pa.nulls(1, arrow_type)})
    with pytest.raises(UnsupportedTypeError, match=remedy) as caught:
        write_dataset(table, tmp_path, data_storage_version="2.1")
    assert str(caught.value.place["column"]).startswith("bad")
    assert not files(tmp_path)


def test_markers_that_ask_for_other_storage(tmp_path: Path) -> None:
    for key, arrow_type in (("lance-encoding:blob", pa.binary()), ("packed", TEXTS)):
        schema = pa.schema([pa.field("c", arrow_type, metadata={key: "true"})])
        with pytest.raises(UnsupportedTypeError, match=r"Remove the .* marker"):
            write_dataset(
                pa.table({"c": pa.nulls(1, arrow_type)}, schema=schema), tmp_path, data_storage_version="2.1"
            )
    assert not files(tmp_path)


def test_nulls_where_the_schema_forbids_them(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64()), pa.field("l", pa.list_(pa.field("item", pa.int8(), False)))])
    table = pa.table({"a": [1, 2], "l": [[1], [None]]}, schema=schema)
    with pytest.raises(SchemaMismatchError, match=r"column: l\.item"):
        write_dataset(table, tmp_path)
    assert not files(tmp_path)


def test_structs_without_fields_hold_no_nulls(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTypeError, match="cannot be null"):
        write_dataset(pa.table({"e": pa.array([{}, None], pa.struct([]))}), tmp_path)
    assert not files(tmp_path)


def test_lists_of_booleans_too_wide_for_a_chunk(tmp_path: Path) -> None:
    row = [None, *[True] * 100_000]
    with pytest.raises(UnsupportedTypeError, match="Cast the items to int8"):
        write_dataset(pa.table({"b": pa.array([row], pa.list_(pa.bool_(), len(row)))}), tmp_path)
    assert not files(tmp_path)


@pytest.mark.parametrize("item", [pa.list_(pa.bool_(), 3), pa.dictionary(pa.int8(), pa.string())], ids=str)
def test_a_row_with_too_many_empty_lists(item: pa.DataType, tmp_path: Path) -> None:
    value = "x" if pa.types.is_dictionary(item) else [True, False, None]
    column = pa.array([[[value], *[[]] * 70_000]], pa.list_(pa.list_(item)))
    with pytest.raises(UnsupportedTypeError, match="Cast the"):
        write_dataset(pa.table({"c": column}), tmp_path)
    assert not files(tmp_path)


def failing_source(rows: int) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch({"a": list(range(rows))})
    raise ConnectionError("the source is gone")


@pytest.mark.parametrize("max_rows_per_file", [10, 1 << 20])
def test_a_failing_source_leaves_nothing_behind(max_rows_per_file: int, tmp_path: Path) -> None:
    with pytest.raises(ConnectionError):
        write_dataset(failing_source(95), tmp_path, max_rows_per_file=max_rows_per_file)
    assert not files(tmp_path)


def test_a_failing_append_keeps_the_dataset(tmp_path: Path) -> None:
    write_dataset(pa.table({"a": [1, 2]}), tmp_path)
    before = files(tmp_path)
    with pytest.raises(ConnectionError):
        write_dataset(failing_source(50), tmp_path, "append", max_rows_per_file=7)
    bad = [pa.record_batch({"a": [1]}), pa.record_batch({"b": [1]})]
    with pytest.raises(SchemaMismatchError, match=r"[Cc]olumn 'b' not found"):
        write_dataset(bad, tmp_path, "append", max_rows_per_file=1)
    assert files(tmp_path) == before


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_engine.progress._INTERVAL", 0)

    def interrupt(event: ProgressEvent) -> None:
        if event.rows > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_dataset(pa.table({"a": list(range(100))}), tmp_path, max_rows_per_file=10, progress=interrupt)
    assert not files(tmp_path)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lance-encode")]


class FullStore(MemoryStore):
    """Storage that runs out of space: the third data file cannot be published."""

    def create(self, path: str):  # type: ignore[no-untyped-def]
        if len(self.list("data")) >= 2:
            raise OSError(28, "No space left on device")
        return super().create(path)


def test_full_storage_leaves_nothing_behind() -> None:
    store = FullStore()
    table = pa.table({"a": list(range(100))})
    options = WriteOptions(max_rows_per_file=10)
    with pytest.raises(OSError, match="No space"):
        write_fragments(store, Schema.from_arrow(table.schema), table.to_batches(), options)
    assert store.list("") == []


def test_a_refused_commit_removes_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dataset(pa.table({"a": [1]}), tmp_path)
    before = files(tmp_path)

    def refuse(*_: object) -> None:
        raise LanceError("somebody else won")

    monkeypatch.setattr(LocalStore, "put_if_absent", refuse)
    with pytest.raises(LanceError, match="somebody else"):
        write_dataset(pa.table({"a": [1]}), tmp_path, "append")
    assert files(tmp_path) == before


def test_a_commit_with_unknown_outcome_keeps_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose_connection(*_: object) -> None:
        raise TimeoutError("timed out")

    monkeypatch.setattr(LocalStore, "put_if_absent", lose_connection)
    with pytest.raises(TimeoutError):
        write_dataset(pa.table({"a": [1]}), tmp_path)
    # The version may exist after all, so its data stays.
    assert [path.parent.name for path in files(tmp_path)] == ["data"]


def test_unusable_arguments(tmp_path: Path) -> None:
    table = pa.table({"a": [1]})
    with pytest.raises(ValueError, match="mode"):
        write_dataset(table, tmp_path, "replace")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedFeatureError, match=r"2\.1"):
        write_dataset(table, tmp_path, data_storage_version="2.3")
    with pytest.raises(ValueError, match="max_rows_per_file"):
        write_dataset(table, tmp_path, max_rows_per_file=0)
    for data in (5, [1, 2], object()):
        with pytest.raises(TypeError):
            write_dataset(data, tmp_path)
    with pytest.raises(SchemaMismatchError, match="infer the schema"):
        write_dataset([], tmp_path)
    assert not files(tmp_path)


def test_temporary_files_of_an_unfinished_write_are_hidden(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    seen: list[str] = []

    def look(*_: int) -> None:
        seen.extend(path.name for path in files(tmp_path))

    table = pa.table({"a": [1, 2, 3]})
    schema = Schema.from_arrow(table.schema)
    write_fragments(store, schema, table.to_batches(), WriteOptions(progress=look))
    assert seen[0].startswith(".")
    assert seen[0].endswith(".tmp")
    assert seen[-1].endswith(".lance")
