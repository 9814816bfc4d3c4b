"""pylance reads what the engine writes: all types, null patterns and nestings; scans, ranges, random rows."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from corpus import (
    ITEM_NULLS,
    NONE,
    Case,
    all_cases,
    by_kind,
    difference,
    multi_page_table,
    one_column,
    random_array,
)
from lance.file import LanceFileReader
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import SchemaMismatchError, UnsupportedFeatureError, UnsupportedTypeError
from lance_engine.io.local import LocalStore
from lance_engine.schema_tree import Schema
from lance_engine.write.dataset import write_dataset
from lance_engine.write.fragments import write_fragments
from lance_engine.write.options import WriteOptions

# What pylance fails to read, also from itself: the writer declines it on purpose.
DECLINED = "struct<fixed_size_list<struct"


def write_file(folder: Path, table: pa.Table, options: WriteOptions) -> Path:
    """Write one fragment without committing it and return its data file."""
    (fragment,) = write_fragments(
        LocalStore(folder), Schema.from_arrow(table.schema), table.to_batches(), options
    )
    return folder / "data" / fragment.files[0].path


def check_reads(path: Path, table: pa.Table) -> None:
    reader = LanceFileReader(str(path))
    assert not difference(reader.read_all().to_table(), table)
    count = table.num_rows
    rng = np.random.default_rng(count)
    for start, length in ((0, 1), (count // 3, count // 2), (count - 1, 1)):
        assert not difference(reader.read_range(start, length).to_table(), table.slice(start, length))
    rows = np.sort(rng.choice(count, min(count, 40), replace=False))
    assert not difference(reader.take_rows(rows.tolist()).to_table(), table.take(pa.array(rows)))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("pairs", by_kind(all_cases()))
def test_pylance_reads_the_corpus(
    pairs: list[tuple[Case, str]], tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for case, version in pairs:
        with subtests.test(case.name, version=version):
            check_case(case, version, tmp_path / f"{case.mix}-{version}")


def check_case(case: Case, version: str, folder: Path) -> None:
    table = case.build()
    options = WriteOptions(data_storage_version=version)
    if case.kind == DECLINED:
        with pytest.raises(UnsupportedTypeError, match=r"column: value.*Cast"):
            write_fragments(LocalStore(folder), Schema.from_arrow(table.schema), table.to_batches(), options)
    elif table.num_rows == 0:
        write_dataset(table, folder / "d", data_storage_version=version)
        assert not difference(lance.dataset(folder / "d").to_table(), table)
    else:
        check_reads(write_file(folder, table, options), table)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("page_bytes", [1, 200_000])
def test_many_pages(version: str, page_bytes: int, tmp_path: Path) -> None:
    table = multi_page_table()
    options = WriteOptions(data_storage_version=version, page_bytes=page_bytes)
    path = write_file(tmp_path, table, options)
    check_reads(path, table)
    vectors, tags = LanceFileReader(str(path)).metadata().columns[1:]
    assert len(vectors.pages) > 50
    assert len(tags.pages) > 1


def test_pylance_sees_versions_and_rows(tmp_path: Path) -> None:
    uri = tmp_path / "d"
    table = pa.table({"n": pa.array(range(1000)), "s": [f"row {i}" for i in range(1000)]})
    write_dataset(table, uri, max_rows_per_file=300)
    assert [fragment.count_rows() for fragment in lance.dataset(uri).get_fragments()] == [300, 300, 300, 100]
    write_dataset(table.slice(0, 5), uri, "append")
    dataset = lance.dataset(uri)
    dataset.validate()
    assert dataset.data_storage_version == "2.1"
    assert dataset.version == 2
    assert not difference(dataset.to_table(), pa.concat_tables([table, table.slice(0, 5)]))
    rows = [1004, 3, 3, 999, 301]
    assert dataset.take(rows).column("s").to_pylist() == ["row 4", "row 3", "row 3", "row 999", "row 301"]
    assert dataset.to_table(filter="n = 77").num_rows == 1
    write_dataset(pa.table({"other": ["x"]}), uri, "overwrite")
    assert lance.dataset(uri).to_table().to_pydict() == {"other": ["x"]}
    assert lance.dataset(uri, version=1).count_rows() == 1000


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_both_libraries_append_to_one_dataset(version: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "d")
    schema = pa.schema([("k", pa.int64()), ("tags", pa.list_(pa.string()))])
    parts = [pa.table({"k": [i, None], "tags": [[f"t{i}", None], None]}, schema=schema) for i in range(4)]
    lance.write_dataset(parts[0], uri, data_storage_version=version)
    write_dataset(parts[1], uri, "append")
    lance.write_dataset(parts[2], uri, mode="append")
    write_dataset(parts[3], uri, "append")
    dataset = lance.dataset(uri)
    dataset.validate()
    assert not difference(dataset.to_table(), pa.concat_tables(parts))
    assert dataset.version == 4


def test_appending_another_version_is_refused(tmp_path: Path) -> None:
    uri = str(tmp_path / "d")
    lance.write_dataset(pa.table({"a": [1]}), uri, data_storage_version="2.0")
    with pytest.raises(UnsupportedFeatureError, match=r"Omit data_storage_version"):
        write_dataset(pa.table({"a": [1]}), uri, "append", data_storage_version="2.1")


def test_append_matches_columns_by_name(tmp_path: Path) -> None:
    uri = str(tmp_path / "d")
    schema = pa.schema([("a", pa.int64()), ("b", pa.string()), pa.field("c", pa.float64(), nullable=False)])
    write_dataset(pa.table({"a": [1], "b": ["x"], "c": [0.5]}, schema=schema), uri)
    write_dataset(
        pa.table({"c": pa.array([1.5], pa.float32()), "a": pa.array([2], pa.int32())}), uri, "append"
    )
    views = pa.table({"b": pa.array(["y"], pa.string_view()), "c": [2.5]})
    write_dataset(views, uri, "append")
    encoded = pa.table({"b": pa.array(["z"]).dictionary_encode(), "c": [3.5]})
    write_dataset(encoded, uri, "append")
    assert lance.dataset(uri).to_table().to_pydict() == {
        "a": [1, 2, None, None],
        "b": ["x", None, "y", "z"],
        "c": [0.5, 1.5, 2.5, 3.5],
    }
    with pytest.raises(SchemaMismatchError, match="column 'c' is missing"):
        write_dataset(pa.table({"a": [1]}), uri, "append")
    with pytest.raises(SchemaMismatchError, match=r"[Cc]olumn 'd' not found"):
        write_dataset(pa.table({"c": [1.0], "d": [1]}), uri, "append")
    with pytest.raises(SchemaMismatchError, match="column: b"):
        write_dataset(pa.table({"c": [1.0], "b": [1]}), uri, "append")
    assert lance.dataset(uri).version == 4


def test_views_and_extension_types_read_back_as_storage(tmp_path: Path) -> None:
    uri = str(tmp_path / "d")
    table = pa.table(
        {
            "v": pa.array(["a", None, "b" * 40], pa.string_view()),
            "w": pa.array([b"a", None, b"b" * 40], pa.binary_view()),
            "u": pa.ExtensionArray.from_storage(
                pa.uuid(), pa.array([b"0" * 16, None, b"1" * 16], pa.binary(16))
            ),
        }
    )
    write_dataset(table, uri)
    read = lance.dataset(uri).to_table()
    assert read.column("v").to_pylist() == ["a", None, "b" * 40]
    assert read.column("w").to_pylist() == [b"a", None, b"b" * 40]
    assert read.column("u").type == pa.uuid()
    assert read.column("u").to_pylist() == table.column("u").to_pylist()


@pytest.mark.parametrize("compression", ["", "zstd", "lz4", "fsst", "none"])
@pytest.mark.parametrize("words", [100, 6000])
@pytest.mark.parametrize("nested", [False, True])
def test_large_values(compression: str, words: int, nested: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(words)
    texts: list[str | None] = [
        " ".join(f"word{number}" for number in rng.integers(0, 999, words))
        if row % 4
        else ("" if row % 8 else None)
        for row in range(60)
    ]
    item = pa.field(
        "item",
        pa.large_string(),
        metadata={"lance-encoding:compression": compression} if compression else None,
    )
    rows = [texts[row : row + row % 3] or None for row in range(60)] if nested else texts
    field = pa.field("value", pa.list_(item)) if nested else item.with_name("value")
    table = pa.table([pa.array(rows, field.type)], schema=pa.schema([field]))
    path = write_file(tmp_path, table, WriteOptions())
    check_reads(path, table)
    assert (path.stat().st_size < table.nbytes * 0.8) == (compression != "none")


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.binary(40_000),
        pa.list_(pa.float32(), 50_000),
        pa.list_(pa.bool_(), 4096),
        pa.list_(pa.bool_(), 2001),
        pa.list_(pa.list_(pa.bool_(), 999), 5),
        pa.list_(pa.list_(pa.int8(), 100), 7),
        pa.list_(pa.binary(300), 2),
        pa.list_(pa.list_(pa.float32(), 200)),
    ],
    ids=str,
)
def test_wide_fixed_values(arrow_type: pa.DataType, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for mix in (NONE, ITEM_NULLS):
        table = one_column(random_array(arrow_type, 40, mix, rng))
        check_reads(write_file(tmp_path, table, WriteOptions()), table)


@pytest.mark.parametrize("leaf", [pa.int32(), pa.bool_(), pa.string(), pa.list_(pa.float32(), 2)], ids=str)
def test_few_values_among_many_empty_lists(leaf: pa.DataType, tmp_path: Path) -> None:
    value = {"int32": 7, "bool": True, "string": "text"}.get(str(leaf), [1.0, None])
    empty: list[object] = []
    rows: list[object] = [
        [[value, None]],
        *[empty] * 150_000,
        [[value]],
        *[None] * 60_000,
        [[value], [], [value]],
    ]
    crowded = [[value], *[empty] * 80_000, [value, value]]
    table = one_column(pa.array([*rows, crowded, *rows[:5]], pa.list_(pa.list_(leaf))))
    path = write_file(tmp_path, table, WriteOptions())
    check_reads(path, table)
    write_dataset(table, tmp_path / "d")
    assert not difference(DatasetVersion.open(str(tmp_path / "d")).scan().to_table(), table)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_null_structs_over_children_without_nulls(version: str, tmp_path: Path) -> None:
    flags = pa.array([False, True, False])
    lists = pa.array([[], [0], [None]], pa.list_(pa.int32()))
    for mask in ([True, False, False], [False, False, True]):
        table = one_column(pa.StructArray.from_arrays([flags, lists], ["flag", "list"], mask=pa.array(mask)))
        write_dataset(table, tmp_path / "d", "overwrite", data_storage_version=version)
        dataset = lance.dataset(tmp_path / "d")
        assert not difference(dataset.to_table(), table)
        for child in ("flag", "list"):
            (column,) = dataset.to_table(columns=[f"value.{child}"]).columns
            assert column.to_pylist()[mask.index(True)] is None
