"""The metadata of a field steer its encoding, packed structs and blobs included; pylance reads the result."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from corpus import difference
from lance.file import LanceFileReader
from lance_engine.dataset import DatasetVersion
from lance_engine.encodings.describe import describe_page
from lance_engine.errors import UnsupportedTypeError
from lance_engine.file.reader import FileReader
from lance_engine.io.local import LocalStore
from lance_engine.schema_tree import Schema
from lance_engine.write.dataset import write_dataset
from lance_engine.write.fragments import write_fragments
from lance_engine.write.options import WriteOptions

PREFIX = "lance-encoding:"
VERSIONS = ["2.1", "2.2"]


def written(folder: Path, array: pa.Array, version: str = "2.1", **metadata: str) -> tuple[Path, str]:
    """One column with such metadata: its file, which pylance reads, and the encoding of its first page."""
    keys = {PREFIX + key.replace("_", "-"): value for key, value in metadata.items()}
    table = pa.table([array], schema=pa.schema([pa.field("c", array.type, metadata=keys)]))
    return written_table(folder, table, version)


def written_table(folder: Path, table: pa.Table, version: str) -> tuple[Path, str]:
    options = WriteOptions(data_storage_version=version)
    store = LocalStore(folder)
    (fragment,) = write_fragments(store, Schema.from_arrow(table.schema), table.to_batches(), options)
    name = f"data/{fragment.files[0].path}"
    reader = LanceFileReader(str(folder / name))
    assert not difference(reader.read_all().to_table(), table)
    rows = [0, table.num_rows // 2, table.num_rows - 1]
    assert not difference(reader.take_rows(rows).to_table(), table.take(pa.array(rows)))
    page = FileReader(store, name).column_metadata(0).pages[0]
    return folder / name, describe_page(page.encoding)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("metadata", "encoding"),
    [
        ({"compression": "zstd", "bss": "off"}, "mini-block(zstd(flat64))"),
        ({"compression": "lz4", "bss": "on"}, "mini-block(lz4(byte-stream-split(flat64)))"),
        ({"compression": "none"}, "mini-block(flat64)"),
        ({"structural_encoding": "fullzip"}, "full-zip(flat64)"),
        ({"compression": "zstd", "compression_level": "19", "bss": "off"}, "mini-block(zstd(flat64))"),
        ({"compression": "nonsense", "compression_level": "x", "rle_threshold": "-"}, ""),
    ],
    ids=str,
)
def test_numbers(version: str, metadata: dict[str, str], encoding: str, tmp_path: Path) -> None:
    values = pa.array(np.cumsum(np.random.default_rng(1).normal(0, 1, 5000)).round(2))
    _, found = written(tmp_path, values, version, **metadata)
    assert found == encoding or not encoding


def test_compression_levels(tmp_path: Path) -> None:
    texts = pa.array([f"value {n * 7919 % 10_007} of {n % 13}" for n in range(20_000)])
    sizes = [
        written(tmp_path / level, texts, compression="zstd", compression_level=level)[0].stat().st_size
        for level in ("-50", "1", "19")
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[2]


def test_run_threshold(tmp_path: Path) -> None:
    runs = pa.array(np.repeat(np.random.default_rng(1).integers(0, 2**40, 2000), 3))
    assert "rle" in written(tmp_path, runs)[1]
    assert "rle" in written(tmp_path, runs, rle_threshold="0.5")[1]
    assert "rle" not in written(tmp_path, runs, rle_threshold="0.1")[1]


def test_dictionary_limits(tmp_path: Path) -> None:
    texts = pa.array([f"text {number}" for number in np.random.default_rng(1).integers(0, 300, 3000)])
    assert "dictionary" in written(tmp_path, texts)[1]
    assert "dictionary" not in written(tmp_path, texts, dict_divisor="20")[1]
    assert "dictionary" not in written(tmp_path, texts, dict_size_ratio="0.05")[1]


@pytest.mark.parametrize("scheme", ["lz4", "zstd", "none"])
def test_dictionary_values_are_compressed_in_2_2(scheme: str, tmp_path: Path) -> None:
    picks = np.random.default_rng(1).integers(0, 500, 5000)
    texts = pa.array([f"a rather long text that repeats itself, number {number}" for number in picks])
    path, _ = written(tmp_path, texts, "2.2", dict_values_compression=scheme)
    plain = len("a rather long text that repeats itself, number 100") * 500
    assert (path.stat().st_size < plain) == (scheme != "none")
    old, _ = written(tmp_path, texts, "2.1", dict_values_compression=scheme)
    assert old.stat().st_size > plain


def test_the_level_of_dictionary_values(tmp_path: Path) -> None:
    picks = np.random.default_rng(1).integers(0, 900, 9000)
    texts = pa.array([f"{number * 7919 % 10_007} of {number % 13}, {number:09}" * 9 for number in picks])
    sizes = [
        written(
            tmp_path / level,
            texts,
            "2.2",
            dict_values_compression="zstd",
            dict_values_compression_level=level,
        )[0]
        .stat()
        .st_size
        for level in ("-50", "19")
    ]
    assert sizes[0] > sizes[1]


@pytest.mark.parametrize("split", [True, False])
def test_byte_streams_where_bytes_look_alike(split: bool, tmp_path: Path) -> None:
    """What ``auto``, the default, makes of values with the same and with random first bytes."""
    noise = np.random.default_rng(1).random(5000)
    values = 1 + np.arange(5000) * 1e-9 if split else (noise - 0.5) * 10.0 ** (noise * 600 - 300)
    for metadata in ({}, {"bss": "auto"}):
        _, encoding = written(tmp_path, pa.array(values), compression="zstd", **metadata)
        assert ("byte-stream-split" in encoding) == split


@pytest.mark.parametrize("version", VERSIONS)
def test_the_older_key_of_packed_structs(version: str, tmp_path: Path) -> None:
    kind = pa.struct([pa.field("a", pa.int16(), False), pa.field("b", pa.float64(), False)])
    array = pa.array([{"a": row, "b": row / 2} for row in range(500)], kind)
    table = pa.table([array], schema=pa.schema([pa.field("c", kind, metadata={"packed": "true"})]))
    assert "packed" in written_table(tmp_path, table, version)[1]


@pytest.mark.parametrize("version", VERSIONS)
def test_chunk_size(version: str, tmp_path: Path) -> None:
    texts = pa.array([f"some text, number {number}" for number in range(4000)])
    counts = []
    for wish in ("64", "4096", "16384", "1000000"):
        path, _ = written(tmp_path / wish, texts, version, compression="none", minichunk_size=wish)
        page = LanceFileReader(str(path)).metadata().columns[0].pages[0]
        counts.append(page.buffers[0].size)
    assert counts[0] > counts[1] > counts[2] >= counts[3]


# ---- packed structs ----------------------------------------------------------------------------------

PACKED = {PREFIX + "packed": "true"}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("nested", [False, True])
def test_packed_structs(version: str, nested: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [
        None if n % 7 == 3 else {"a": n, "b": float(n), "c": bytes(rng.integers(0, 256, 5, np.uint8))}
        for n in range(3000)
    ]
    kind = pa.struct([("a", pa.int16()), ("b", pa.float64()), ("c", pa.binary(5))])
    if nested:
        field = pa.field("c", pa.list_(pa.field("item", kind, metadata=PACKED)))
        array = pa.array([rows[n : n + n % 4] or None for n in range(1000)], field.type)
    else:
        field, array = pa.field("c", kind, metadata=PACKED), pa.array(rows, kind).slice(5, 2900)
    _, encoding = written_table(tmp_path, pa.table([array], schema=pa.schema([field])), version)
    assert "packed" in encoding


@pytest.mark.parametrize(
    "child", [pa.bool_(), pa.string(), pa.list_(pa.int8()), pa.list_(pa.int8(), 2)], ids=str
)
def test_packed_structs_of_other_fields_are_refused(child: pa.DataType, tmp_path: Path) -> None:
    schema = pa.schema([pa.field("c", pa.struct([("x", child)]), metadata=PACKED)])
    with pytest.raises(UnsupportedTypeError, match=r"column: c\.x.*Remove the packed marker"):
        write_dataset(schema.empty_table(), tmp_path / "d", data_storage_version="2.1")


def test_null_fields_of_packed_structs_are_refused(tmp_path: Path) -> None:
    kind = pa.struct([("x", pa.int32())])
    schema = pa.schema([pa.field("c", kind, metadata=PACKED)])
    table = pa.table([pa.array([{"x": 1}, {"x": None}], kind)], schema=schema)
    with pytest.raises(UnsupportedTypeError, match=r"column: c\.x"):
        write_dataset(table, tmp_path / "d")


# ---- blobs -------------------------------------------------------------------------------------------

BLOB = {PREFIX + "blob": "true"}
VALUES = [b"first", None, b"", b"x" * 100_000, *[bytes([n]) * n for n in range(1, 90)], None]


@pytest.mark.parametrize("version", ["2.0", "2.2"])
@pytest.mark.parametrize("large", [False, True])
def test_lists_of_blobs(large: bool, version: str, tmp_path: Path) -> None:
    """Version 2.1 has no form that pylance reads."""
    kind = (pa.large_list if large else pa.list_)(pa.field("item", pa.large_binary(), metadata=BLOB))
    lists = pa.array([VALUES[:4], None, [], VALUES[4:], [None], [b"x"] * 3] * 20, kind)
    table = pa.table([lists, range(len(lists))], schema=pa.schema([("c", kind), ("n", pa.int64())]))
    write_dataset(table, tmp_path / "d", data_storage_version=version)
    theirs, ours = lance.dataset(tmp_path / "d"), DatasetVersion.open(str(tmp_path / "d"))
    assert theirs.to_table(blob_handling="all_binary")["c"].to_pylist() == lists.to_pylist()
    assert ours.scan().to_table()["c"].to_pylist() == lists.to_pylist()
    assert ours.take([3, 1, 117])["c"].to_pylist() == lists.take([3, 1, 117]).to_pylist()
    assert ours.scan(filter="n = 65").to_table()["c"].to_pylist() == [lists[65].as_py()]


@pytest.mark.parametrize("nested", [False, True])
def test_blobs(nested: bool, tmp_path: Path) -> None:
    field = pa.field("c", pa.large_binary(), metadata=BLOB)
    array: pa.Array = pa.array([b"cut off", *VALUES], pa.large_binary()).slice(1)
    if nested:
        kind = pa.struct([field, ("n", pa.int32())])
        rows = [{"c": value, "n": 1} if n % 5 else None for n, value in enumerate(VALUES)]
        field, array = pa.field("s", kind), pa.array(rows, kind)
    _, encoding = written_table(tmp_path, pa.table([array], schema=pa.schema([field])), "2.1")
    assert encoding.startswith("blob")


def test_pylance_opens_blobs_of_a_dataset(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("c", pa.large_binary(), metadata=BLOB), ("n", pa.int64())])
    table = pa.table([pa.array(VALUES, pa.large_binary()), range(len(VALUES))], schema=schema)
    write_dataset(table, tmp_path / "d")
    dataset = lance.dataset(tmp_path / "d")
    assert dataset.to_table(columns=["n"]).num_rows == len(VALUES)
    first, last = dataset.take_blobs("c", indices=[0, 3])
    assert (first.readall(), last.readall()) == (b"first", b"x" * 100_000)


@pytest.mark.parametrize(
    ("kind", "version"),
    [
        (pa.binary(), "2.2"),
        (pa.binary(), "2.1"),
        (pa.list_(pa.field("item", pa.large_binary(), metadata=BLOB)), "2.1"),
    ],
    ids=str,
)
def test_other_blobs_are_refused(kind: pa.DataType, version: str, tmp_path: Path) -> None:
    metadata = None if pa.types.is_list(kind) else BLOB
    schema = pa.schema([pa.field("c", kind, metadata=metadata)])
    with pytest.raises(UnsupportedTypeError, match="Remove the blob marker"):
        write_dataset(schema.empty_table(), tmp_path / "d", data_storage_version=version)
