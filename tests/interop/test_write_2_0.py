"""Files of version 2.0: pylance and the engine read what is written; structs and lists have columns too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from corpus import Case, all_cases, by_kind, difference, multi_page_table
from lance.file import LanceFileReader
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import SchemaMismatchError, UnsupportedTypeError
from lance_engine.io.local import LocalStore
from lance_engine.schema_tree import Schema
from lance_engine.write.dataset import write_dataset
from lance_engine.write.fragments import write_fragments
from lance_engine.write.options import WriteOptions

KINDS = by_kind(replace(case, versions=("2.0",)) for case in all_cases())
REFUSED = ("null structs", "Maps", "Fixed-size lists of structs", "Packed structs do not support")


def check(uri: Path, table: pa.Table) -> None:
    """Scans, ranges and random rows through both libraries."""
    dataset, ours = lance.dataset(uri), DatasetVersion.open(str(uri))
    for read in (dataset.to_table(), ours.scan().to_table()):
        assert not difference(read, table)
    count = table.num_rows
    if count == 0:
        return
    rows = np.sort(np.random.default_rng(count).choice(count, min(count, 40), replace=False))
    assert not difference(dataset.take(rows.tolist()), table.take(pa.array(rows)))
    # Row ids are not positions: an overwritten dataset counts its fragments on.
    ids = ours.scan(columns=["_rowid"]).to_table()["_rowid"].to_numpy()
    assert not difference(ours.take(ids[rows]), table.take(pa.array(rows)))
    fragments = ours.snapshot.fragments
    if len(fragments) == 1:
        reader = LanceFileReader(str(uri / "data" / fragments[0].files[0].path))
        for start, length in ((0, 1), (count // 3, count // 2), (count - 1, 1)):
            assert not difference(reader.read_range(start, length).to_table(), table.slice(start, length))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("pairs", KINDS)
def test_the_corpus(pairs: list[tuple[Case, str]], tmp_path: Path, subtests: pytest.Subtests) -> None:
    for case, version in pairs:
        with subtests.test(case.name):
            check_case(case, version, tmp_path / case.mix)


def check_case(case: Case, version: str, uri: Path) -> None:
    table = case.build()
    refusal = None
    try:
        write_dataset(table, uri, data_storage_version=version)
    except UnsupportedTypeError as error:
        refusal = error
    if refusal is not None:
        assert any(reason in str(refusal) for reason in REFUSED)
        assert refusal.remedy
        return
    assert lance.dataset(uri).data_storage_version == "2.0"
    check(uri, table)


@pytest.mark.parametrize("page_bytes", [1, 200_000])
def test_many_pages(page_bytes: int, tmp_path: Path) -> None:
    table = multi_page_table()
    options = WriteOptions(data_storage_version="2.0", page_bytes=page_bytes)
    schema = Schema.from_arrow(table.schema)
    (fragment,) = write_fragments(LocalStore(tmp_path), schema, table.to_batches(), options)
    reader = LanceFileReader(str(tmp_path / "data" / fragment.files[0].path))
    assert not difference(reader.read_all().to_table(), table)
    assert not difference(reader.read_range(777, 9_000).to_table(), table.slice(777, 9_000))
    assert len(reader.metadata().columns[1].pages) > 50


def test_columns_of_structs_and_lists(tmp_path: Path) -> None:
    pair = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))])
    schema = pa.schema(
        [
            ("s", pair),
            ("l", pa.list_(pair)),
            pa.field("p", pa.struct([("a", pa.int8()), ("b", pa.int32())]), metadata={"packed": "true"}),
            ("e", pa.struct([])),
        ]
    )
    row = {"s": {"x": 1, "y": ["a", None]}, "l": [{"x": 2, "y": None}], "p": {"a": 1, "b": 2}, "e": {}}
    empty = {"s": {"x": None, "y": []}, "l": [], "p": {"a": 3, "b": 4}, "e": {}}
    for rows in ([row, empty, {**empty, "l": None}] * 50, [empty] * 3, []):
        table = pa.Table.from_pylist(rows, schema=schema)
        write_dataset(table, tmp_path / "d", "overwrite", data_storage_version="2.0", max_rows_per_file=70)
        check(tmp_path / "d", table)
        for fragment in DatasetVersion.open(str(tmp_path / "d")).snapshot.fragments:
            (file,) = fragment.files
            assert len(file.fields) == len(file.column_indices) == 11


def test_null_structs_are_refused(tmp_path: Path) -> None:
    table = pa.table({"s": pa.array([{"a": 1}, None])})
    with pytest.raises(UnsupportedTypeError, match=r"null structs.*column: s.*2\.1"):
        write_dataset(table, tmp_path / "d", data_storage_version="2.0")
    strict = pa.schema([pa.field("a", pa.int32(), nullable=False)])
    nulls = pa.table([pa.array([None], pa.int32())], schema=strict)
    with pytest.raises(SchemaMismatchError, match="non-nullable"):
        write_dataset(nulls, tmp_path / "d", data_storage_version="2.0")


@pytest.mark.parametrize("compression", ["zstd", "lz4", "none"])
def test_compressed_strings(compression: str, tmp_path: Path) -> None:
    field = pa.field("c", pa.large_string(), metadata={"lance-encoding:compression": compression})
    texts = [None if n % 9 == 4 else f"a text that says {n}" for n in range(5000)]
    table = pa.table([pa.array(texts, field.type)], schema=pa.schema([field]))
    write_dataset(table, tmp_path / "d", data_storage_version="2.0")
    check(tmp_path / "d", table)
    (file,) = (tmp_path / "d" / "data").iterdir()
    assert (file.stat().st_size < table.nbytes * 0.9) == (compression != "none")


def test_blobs(tmp_path: Path) -> None:
    field = pa.field("c", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    values = [b"first", None, b"", b"x" * 100_000]
    table = pa.table([pa.array(values, field.type)], schema=pa.schema([field]))
    write_dataset(table, tmp_path / "d", data_storage_version="2.0")
    (file,) = (tmp_path / "d" / "data").iterdir()
    assert not difference(LanceFileReader(str(file)).read_all().to_table(), table)
    assert not difference(DatasetVersion.open(str(tmp_path / "d")).scan().to_table(), table)


@pytest.mark.parametrize("index", [pa.int8(), pa.int32()], ids=str)
def test_dictionary_columns(index: pa.DataType, tmp_path: Path) -> None:
    plain = pa.array(["a", None, "b", "c", None] * 20)
    table = pa.table({"d": plain.dictionary_encode().cast(pa.dictionary(index, pa.string()))})
    write_dataset(table, tmp_path / "d", data_storage_version="2.0")
    read = lance.dataset(tmp_path / "d").to_table().column("d")
    assert read.type == table.column("d").type
    assert read.to_pylist() == plain.to_pylist()
    assert (
        DatasetVersion.open(str(tmp_path / "d")).scan().to_table().column("d").to_pylist()
        == plain.to_pylist()
    )
