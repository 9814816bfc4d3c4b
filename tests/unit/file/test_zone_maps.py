"""Reading zone maps: from a column buffer, from the column's own encoding, and damaged ones."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import ColumnNotFoundError, CorruptFileError, UnsupportedFeatureError
from lance_engine.file.reader import FileReader
from lance_engine.file.zone_map import ZoneMap, read_zone_map
from lance_engine.format.container import COLUMN_ENCODING, direct_encoding, serialize_footer
from lance_engine.format.pb import encodings_pb2, file_pb2, file_v2_pb2
from lance_engine.format.zone_map_place import ZONE_MAPS_KEY, parse_zone_map_place
from lance_engine.io.local import LocalStore
from lance_engine.io.memory import MemoryStore
from lance_engine.schema_tree import Schema
from lance_engine.write.dataset import write_dataset
from lance_engine.write.fragments import write_fragments
from lance_engine.write.options import WriteOptions

NESTED = pa.struct([pa.field("a", pa.int64()), pa.field("l", pa.list_(pa.int64()))])


def written(table: pa.Table, **options: Any) -> tuple[MemoryStore, DatasetVersion]:
    store = MemoryStore("zones")
    return store, DatasetVersion(write_dataset(table, store, **options))


def reader_of(dataset: DatasetVersion, store: MemoryStore) -> FileReader:
    (file,) = dataset.snapshot.fragments[0].files
    return FileReader(store, f"data/{file.path}")


def zone_map(dataset: DatasetVersion, store: MemoryStore, path: str) -> ZoneMap | None:
    leaf = dataset.snapshot.schema.field(path)
    leaves = [found.id for found in dataset.snapshot.schema.leaves()]
    return read_zone_map(reader_of(dataset, store), leaves.index(leaf.id), leaf, path)


def test_bounds_and_counts_of_every_column() -> None:
    table = pa.table(
        {
            "i": pa.array([3, 1, None, None, 7], pa.int16()),
            "f": pa.array([1.0, math.nan, math.nan, math.nan, -0.0]),
            "t": ["x" * 40, None, "b", "a", ""],
            "flag": [True, False, True, True, None],
            "n": pa.array([{"a": 1}, None, {"a": None}, {"a": 5}, {"a": 4}], NESTED),
            "v": pa.array([[1, 2]] * 5, pa.list_(pa.int8(), 2)),
        }
    )
    store, dataset = written(table, zone_rows=2)
    found = zone_map(dataset, store, "i")
    assert found is not None
    assert (found.minimum.to_pylist(), found.maximum.to_pylist()) == ([1, None, 7], [3, None, 7])
    assert found.minimum.type == pa.int16()
    assert (found.null_count.tolist(), found.starts.tolist(), found.lengths.tolist()) == (
        [0, 2, 0],
        [0, 2, 4],
        [2, 2, 1],
    )
    floats = zone_map(dataset, store, "f")
    assert floats is not None
    assert (floats.statistics.nan.tolist(), floats.statistics.held.tolist()) == (
        [True, True, False],
        [True, False, True],
    )
    texts = zone_map(dataset, store, "t")
    assert texts is not None
    assert texts.minimum.to_pylist() == ["x" * 32, "a", ""]
    assert texts.maximum.to_pylist() == ["x" * 31 + "y", "b", ""]
    flags = zone_map(dataset, store, "flag")
    assert flags is not None
    assert (flags.minimum.to_pylist(), flags.maximum.to_pylist()) == ([False, True, None], [True, True, None])
    inner = zone_map(dataset, store, "n.a")
    assert inner is not None
    assert (inner.minimum.to_pylist(), inner.null_count.tolist()) == ([1, 5, 4], [1, 1, 0])
    assert zone_map(dataset, store, "n.l.item") is None
    assert zone_map(dataset, store, "v") is None


def test_pages_do_not_matter() -> None:
    rows = np.random.default_rng(1).integers(0, 1 << 40, 60_000)
    table = pa.table({"x": rows, "s": rows.astype(str)})
    store, dataset = written(table)
    assert len(reader_of(dataset, store).column_metadata(0).pages) == 1
    whole = zone_map(dataset, store, "x")
    small = MemoryStore("pages")
    options = WriteOptions(page_bytes=1 << 16, zone_rows=8192)
    schema = Schema.from_arrow(table.schema)
    (fragment,) = write_fragments(small, schema, table.to_batches(max_chunksize=5000), options)
    file = FileReader(small, f"data/{fragment.files[0].path}")
    assert len(file.column_metadata(0).pages) > 3
    paged = read_zone_map(file, 0, schema.field("x"), "x")
    assert whole is not None
    assert paged is not None
    assert paged.minimum.equals(whole.minimum)
    assert paged.maximum.equals(whole.maximum)
    expected = [int(rows[start : start + 8192].min()) for start in range(0, 60_000, 8192)]
    assert whole.minimum.to_pylist() == expected


def test_the_buffer_is_aligned_small_and_announced() -> None:
    table = pa.table({"x": range(1_000_000), "s": [f"{row:040d}" for row in range(1_000_000)]})
    store, dataset = written(table)
    file = reader_of(dataset, store)
    for column, limit in ((0, 4 << 10), (1, 12 << 10)):
        ((position, size),) = file.column_metadata(column).buffers
        assert position % 64 == 0
        assert size < limit
    place = parse_zone_map_place(file.descriptor.schema.metadata)
    assert place is not None
    assert (place.rows_per_zone, place.column_buffer) == (8192, 0)
    assert dataset.schema.metadata is None


def test_zone_maps_can_be_left_out() -> None:
    store, dataset = written(pa.table({"x": [1, 2]}), zone_maps=False)
    file = reader_of(dataset, store)
    assert file.column_metadata(0).buffers == ()
    assert not file.descriptor.schema.metadata
    assert zone_map(dataset, store, "x") is None
    for rows in (0, 1 << 32):
        with pytest.raises(ValueError, match="zone_rows"):
            WriteOptions(zone_rows=rows)


# ---- a column whose own encoding is zone_index, and damage --------------------------------------------


def rewritten(
    store: MemoryStore, dataset: DatasetVersion, change: Any, metadata: bytes | None = None
) -> FileReader:
    """The only file again after `change(column metadata)`, and with other zone map metadata if given."""
    (file,) = dataset.snapshot.fragments[0].files
    data = store.read(f"data/{file.path}")
    reader = reader_of(dataset, store)
    footer = reader.footer
    table = np.frombuffer(data, np.uint64, 2, footer.column_table_position)
    column = file_v2_pb2.ColumnMetadata.FromString(data[table[0] : table[0] + table[1]])
    change(column)
    descriptor = file_pb2.FileDescriptor.FromString(reader.descriptor.SerializeToString())
    if metadata is not None:
        descriptor.schema.metadata[ZONE_MAPS_KEY] = metadata
    content = bytearray(data[: table[0]])
    content += bytes(-len(content) % 64)
    schema = (len(content), len(descriptor.SerializeToString()))
    content += descriptor.SerializeToString()
    columns = (len(content), len(column.SerializeToString()))
    content += column.SerializeToString()
    tables = np.array([*columns, *schema], np.uint64).tobytes()
    start = len(content)
    content += tables + serialize_footer(columns[0], start, start + 16, 1, 1, (2, 1))
    other = MemoryStore("rewritten")
    other.put("data/file.lance", bytes(content))
    return FileReader(other, "data/file.lance")


def as_zone_index(rows_per_zone: int = 2, buffer: int = 0, kind: int = 1) -> Any:
    def change(column: Any) -> None:
        index = encodings_pb2.ZoneIndex(rows_per_zone=rows_per_zone)
        index.zone_map_buffer.buffer_index = buffer
        index.zone_map_buffer.buffer_type = kind
        index.inner.values.SetInParent()
        encoding = encodings_pb2.ColumnEncoding(zone_index=index)
        column.encoding.CopyFrom(direct_encoding(COLUMN_ENCODING, encoding.SerializeToString()))

    return change


def test_files_of_version_2_0_can_have_the_column_encoding_itself(tmp_path: Path) -> None:
    table = pa.table(
        {
            "x": pa.array([None if row % 9 == 0 else row for row in range(1000)], pa.int16()),
            "f": [float("nan") if row == 550 else float(row) for row in range(1000)],
            "s": [{"t": f"text {row:04d}", "l": [row]} for row in range(1000)],
        }
    )
    found = {}
    for form in ("compatible", "strict"):
        write_dataset(table, str(tmp_path / form), data_storage_version="2.0", zone_rows=100, zone_index=form)
        found[form] = DatasetVersion.open(str(tmp_path / form))
    strict, compatible = found["strict"], found["compatible"]
    assert strict.inspect.zones().equals(compatible.inspect.zones())
    assert str(strict.scan().to_table().to_pydict()) == str(table.to_pydict())  # NaN is not itself
    for filter in ("x > 900", "f < 20", "s.t = 'text 0311'", "x IS NULL"):
        plans = [each.scan(filter=filter).explain().split("\n", 1)[1] for each in (strict, compatible)]
        assert plans[0] == plans[1]
        assert "zones: " in plans[0]
        expected = compatible.scan(filter=filter, zone_maps=False).to_table()
        assert strict.scan(filter=filter).to_table().equals(expected)
    (path,) = (tmp_path / "strict" / "data").glob("*.lance")
    file = FileReader(LocalStore(str(path.parent)), path.name)
    kinds = []
    for index in range(file.num_columns):
        encoding = encodings_pb2.ColumnEncoding.FromString(file.column_metadata(index).encoding.value)
        kinds.append(encoding.WhichOneof("column_encoding"))
        if kinds[-1] == "zone_index":
            assert encoding.zone_index.inner.WhichOneof("column_encoding") == "values"
            assert encoding.zone_index.rows_per_zone == 100
    # x, f, the struct, its text, the list and its items
    assert kinds == ["zone_index", "zone_index", "values", "zone_index", "values", "values"]


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_later_versions_have_no_such_column_encoding(tmp_path: Path, version: str) -> None:
    table = pa.table({"x": [1]})
    with pytest.raises(UnsupportedFeatureError, match="zone_index") as caught:
        write_dataset(table, str(tmp_path), data_storage_version=version, zone_index="strict")
    assert "2.0" in str(caught.value)
    with pytest.raises(ValueError, match="zone_index"):
        write_dataset(table, str(tmp_path), data_storage_version=version, zone_index="unknown")  # type: ignore[arg-type]


def test_a_column_encoded_with_a_zone_index() -> None:
    store, dataset = written(pa.table({"f": [1.0, 2.0, math.nan, None, 5.0]}), zone_rows=2)
    leaf = dataset.snapshot.schema.field("f")
    file = rewritten(store, dataset, as_zone_index(), metadata=b"ignored")
    found = read_zone_map(file, 0, leaf, "f")
    assert found is not None
    assert found.minimum.to_pylist()[0] == 1.0
    # What its writer thought of NaN is not known, so that any zone may hold it.
    assert found.statistics.nan.tolist() == [True, True, True]
    assert [page.rows for page in file.open_pages(0)] == [5]


@pytest.mark.parametrize(
    ("change", "metadata"),
    [
        (as_zone_index(rows_per_zone=0), None),
        (as_zone_index(buffer=1), None),
        (as_zone_index(kind=0), None),
        (as_zone_index(rows_per_zone=3), None),
        (as_zone_index(rows_per_zone=1), None),
        (lambda column: None, b"{"),
        (lambda column: None, b'{"rows_per_zone": 2}'),
        (lambda column: None, b'{"rows_per_zone": 0, "column_buffer": 0}'),
        (lambda column: None, b'{"rows_per_zone": 2, "column_buffer": -1}'),
        (lambda column: None, b'{"rows_per_zone": true, "column_buffer": 0}'),
        (lambda column: None, b'{"rows_per_zone": 5, "column_buffer": 0}'),
        (lambda column: column.buffer_sizes.__setitem__(0, 10), None),
        (lambda column: column.buffer_sizes.__setitem__(0, 0), None),
        (lambda column: column.buffer_offsets.__setitem__(0, 0), None),
    ],
)
def test_a_zone_map_that_makes_no_sense_is_an_error(change: Any, metadata: bytes | None) -> None:
    store, dataset = written(pa.table({"x": range(5)}), zone_rows=2)
    file = rewritten(store, dataset, change, metadata)
    with pytest.raises(CorruptFileError) as caught:
        read_zone_map(file, 0, dataset.snapshot.schema.field("x"), "x")
    assert caught.value.place["path"] == "data/file.lance"
    assert "zone map" in caught.value.message


def test_more_nulls_than_rows_is_an_error() -> None:
    store, dataset = written(pa.table({"x": pa.array([None, None, 1, 2], pa.int8())}), zone_rows=4)
    file = rewritten(
        store, dataset, lambda column: None, json.dumps({"rows_per_zone": 8, "column_buffer": 0}).encode()
    )
    # One zone of four rows in which two are null: fine with any length of zone.
    assert read_zone_map(file, 0, dataset.snapshot.schema.field("x"), "x") is not None
    store, dataset = written(pa.table({"x": pa.nulls(5, pa.int8())}), zone_rows=4)
    file = rewritten(
        store, dataset, lambda column: None, json.dumps({"rows_per_zone": 3, "column_buffer": 0}).encode()
    )
    with pytest.raises(CorruptFileError, match="more nulls"):
        read_zone_map(file, 0, dataset.snapshot.schema.field("x"), "x")


# ---- scans and inspection ----------------------------------------------------------------------------


def test_a_scan_reads_only_the_zones_that_may_match() -> None:
    table = pa.table({"x": range(100_000), "y": np.random.default_rng(0).random(100_000)})
    store, dataset = written(table, max_rows_per_file=40_000, zone_rows=1000)
    dataset.scan(filter="x = 1").to_table()  # opens the files
    store.reset_counters()
    found = dataset.scan(columns=["y"], filter="x BETWEEN 50500 AND 50600").to_table()
    assert found.equals(table.select(["y"]).slice(50500, 101))
    assert store.bytes_read < 40_000
    store.reset_counters()
    assert dataset.scan(filter="x < 0 OR x IS NULL").to_table().num_rows == 0
    assert store.requests == 0
    store.reset_counters()
    # Whole fragments match: nothing has to be read to count them.
    assert dataset.count_rows("x >= 40000") == 60_000
    assert store.requests == 0


def test_explain_tells_what_zone_maps_save() -> None:
    table = pa.table({"x": range(100_000)})
    _, dataset = written(table, max_rows_per_file=40_000, zone_rows=1000)
    shown = dataset.scan(filter="x < 1500").explain()
    assert "zones: 2 of 100, rows that match without a test: 0" in shown
    assert "fragments: 1 of 3, physical rows: 2,000" in shown
    shown = dataset.scan(filter="x < 60000", batch_size=4000).explain()
    assert "zones: 60 of 100, rows that match without a test: 60,000" in shown
    assert "zones:" not in dataset.scan(filter="x < 1500", zone_maps=False).explain()
    assert "zones:" not in dataset.scan().explain()


def test_row_addresses_prune_too() -> None:
    table = pa.table({"l": pa.array([[1]] * 30_000)})
    _, dataset = written(table, max_rows_per_file=10_000)
    assert dataset.scan(filter="_rowid = 4294967300").to_table().num_rows == 1
    assert "fragments: 1 of 3" in dataset.scan(filter="_rowaddr = 4294967300").explain()


def test_zones_as_a_table(tmp_path: Path) -> None:
    table = pa.table(
        {
            "x": pa.array([3, 1, None], pa.int8()),
            "b": [b"\xff", b"a", None],
            "n": pa.array([{"a": 1}, None, {"a": 4}], NESTED),
        }
    )
    write_dataset(table, tmp_path, zone_rows=2)
    dataset = DatasetVersion.open(str(tmp_path))
    found = dataset.inspect.zones()
    assert found.column("column").to_pylist() == ["x", "x", "b", "b", "n.a", "n.a"]
    assert found.select(["zone", "first_row", "rows", "minimum", "maximum", "null_count"]).to_pylist()[
        :3
    ] == [
        {"zone": 0, "first_row": 0, "rows": 2, "minimum": "1", "maximum": "3", "null_count": 0},
        {"zone": 1, "first_row": 2, "rows": 1, "minimum": None, "maximum": None, "null_count": 1},
        {"zone": 0, "first_row": 0, "rows": 2, "minimum": "61", "maximum": "ff", "null_count": 0},
    ]
    assert dataset.inspect.zones("n").column("minimum").to_pylist() == ["1", "4"]
    with pytest.raises(ColumnNotFoundError):
        dataset.inspect.zones("nothing")
