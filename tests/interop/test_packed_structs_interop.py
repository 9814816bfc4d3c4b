"""Packed structs with strings and vectors (2.2), written by each side and read by the other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from corpus import difference
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import UnsupportedTypeError
from lance_engine.scan.splits import ScanSplit
from lance_engine.write.dataset import write_dataset

ROWS = 3000
PACKED = {"lance-encoding:packed": "true"}
TEXT = pa.array([f"row {row % 77} is a rather long string with some text" for row in range(ROWS)])
NUMBERS = pa.array(range(ROWS), pa.int32())
VECTORS = pa.array([[row, 1.5, -row] for row in range(ROWS)], pa.list_(pa.float32(), 3))
MATRICES = pa.array([[[row % 100, 3]] for row in range(ROWS)], pa.list_(pa.list_(pa.int8(), 2), 1))
HOLED = pa.array([[1, None, 3] if row % 2 else [4, 5, 6] for row in range(ROWS)], pa.list_(pa.int16(), 3))
HALF = np.arange(ROWS) % 2 == 0
BITS = pa.array([[row % 3 == 0, True] * 4 for row in range(ROWS)], pa.list_(pa.bool_(), 8))
EMPTY = pa.array([[None] * 3] * ROWS, pa.list_(pa.int16(), 3))
EMPTY_MATRICES = pa.array([[[None, None]]] * ROWS, pa.list_(pa.list_(pa.int8(), 2), 1))
EMPTY_ROWS = pa.array([[None]] * ROWS, pa.list_(pa.list_(pa.int8(), 2), 1))


def packed(
    mask: np.ndarray | None = None, metadata: Mapping[str, str] | None = None, **children: pa.Array
) -> pa.StructArray:
    fields = [pa.field(name, array.type, False, metadata) for name, array in children.items()]
    nulls = None if mask is None else pa.array(mask)
    return pa.StructArray.from_arrays(list(children.values()), fields=fields, mask=nulls)


def column(array: pa.Array) -> pa.Table:
    return pa.table([array], schema=pa.schema([pa.field("p", array.type, metadata=PACKED)]))


def list_of(array: pa.StructArray) -> pa.Table:
    item = pa.field("item", array.type, metadata=PACKED)
    offsets = pa.array([0, *np.sort(np.arange(1, 1000) * 3 % ROWS), ROWS], pa.int32())
    return pa.table({"l": pa.ListArray.from_arrays(offsets, array, type=pa.list_(item))})


def struct_of(array: pa.StructArray) -> pa.Table:
    fields = [pa.field("p", array.type, metadata=PACKED), pa.field("q", pa.string())]
    return pa.table({"s": pa.StructArray.from_arrays([array, TEXT], fields=fields, mask=pa.array(HALF))})


def with_setting(compression: str) -> pa.StructArray:
    return packed(metadata={"lance-encoding:compression": compression}, n=NUMBERS, s=TEXT)


TABLES = {
    "text": column(packed(n=NUMBERS, s=TEXT)),
    "nulls": column(packed(HALF, n=NUMBERS, s=TEXT)),
    "all null": column(packed(np.ones(ROWS, bool), n=NUMBERS, s=TEXT)),
    "uncoded": column(with_setting("none")),
    "zstd": column(with_setting("zstd")),
    "symbols": column(with_setting("fsst")),
    "large and binary": column(packed(s=TEXT.cast(pa.large_string()), b=TEXT.cast(pa.binary()))),
    "empty strings": column(packed(s=pa.array([""] * ROWS), n=NUMBERS)),
    "vector": column(packed(HALF, n=NUMBERS, v=VECTORS)),
    "matrix and text": column(packed(m=MATRICES, s=TEXT)),
    "vector with nulls": column(packed(HALF, v=HOLED, s=TEXT)),
    "decimal": column(
        packed(s=TEXT, d=NUMBERS.cast(pa.decimal128(20, 2)), b=pa.array([b"abcde"] * ROWS, pa.binary(5)))
    ),
    "list": list_of(packed(n=NUMBERS, s=TEXT)),
    "list of nulls": list_of(packed(HALF, n=NUMBERS, s=TEXT)),
    "struct": struct_of(packed(n=NUMBERS, s=TEXT)),
    "sliced": column(packed(HALF, v=VECTORS, s=TEXT)).slice(700, 1100),
    "bits": column(packed(HALF, n=NUMBERS, b=BITS)),
    "equal vectors": column(packed(v=pa.array([[1, 2]] * ROWS, pa.list_(pa.int8(), 2)), s=TEXT)),
}
# pylance 14 fails to write these, but reads them.
ONLY_OURS = {
    "nothing but nulls": column(packed(v=EMPTY)),
    "nothing but nulls and text": column(packed(v=EMPTY, s=TEXT)),
    "nothing but nulls in half of the rows": column(packed(HALF, v=EMPTY, s=TEXT)),
    "matrices of nulls": column(packed(m=EMPTY_MATRICES, s=TEXT)),
    "matrices of null rows": column(packed(m=EMPTY_ROWS, s=TEXT)),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", TABLES)
def test_written_by_pylance(tmp_path: Path, name: str) -> None:
    table, uri = TABLES[name], str(tmp_path / "t.lance")
    theirs = lance.write_dataset(table, uri, data_storage_version="2.2").to_table()
    dataset = DatasetVersion.open(uri)
    assert difference(dataset.scan().to_table(), theirs) == ""
    part = dataset.scan(splits=[ScanSplit(0, 500, 777)]).to_table()
    assert difference(part, theirs.slice(500, 277)) == ""
    rows = [table.num_rows - 1, 0, 501, 500, 0] if name.startswith("list") is False else [900, 0, 2, 1]
    assert difference(dataset.take(rows), theirs.take(rows).combine_chunks()) == ""


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", [*TABLES, *ONLY_OURS])
def test_written_by_us(tmp_path: Path, name: str) -> None:
    table, uri = {**TABLES, **ONLY_OURS}[name], str(tmp_path / "t.lance")
    write_dataset(table, uri, data_storage_version="2.2")
    dataset, theirs = DatasetVersion.open(uri), lance.dataset(uri)
    assert difference(theirs.to_table(), table) == ""
    assert difference(dataset.scan().to_table(), table) == ""
    rows = [0, 1, 2, 500, 900]
    assert difference(theirs.take(rows), table.take(rows).combine_chunks()) == ""
    assert difference(theirs.to_table(offset=500, limit=99), table.slice(500, 99)) == ""


def test_encodings_are_those_of_the_fields(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    write_dataset(TABLES["matrix and text"], uri, data_storage_version="2.2")
    (encoding,) = DatasetVersion.open(uri).inspect.pages()["encoding"].to_pylist()
    expected = "packed-struct[2](fixed-size-list[1](fixed-size-list[2](flat8)), fsst(variable))"
    assert encoding == f"full-zip({expected})"


def test_vectors_in_version_2_0(tmp_path: Path) -> None:
    table = column(packed(n=NUMBERS, v=VECTORS, m=MATRICES))
    for uri, write in (("a", lance.write_dataset), ("b", write_dataset)):
        write(table, str(tmp_path / uri), data_storage_version="2.0")
        assert difference(DatasetVersion.open(str(tmp_path / uri)).scan().to_table(), table) == ""
        assert difference(lance.dataset(str(tmp_path / uri)).to_table(), table) == ""


@pytest.mark.parametrize(
    ("array", "version", "match"),
    [
        (packed(n=NUMBERS, s=TEXT), "2.1", "before file version 2.2"),
        (packed(n=NUMBERS, v=VECTORS), "2.1", "before file version 2.2"),
        (packed(n=NUMBERS, v=HOLED), "2.0", "cannot hold nulls before"),
        (packed(s=TEXT, b=pa.array(HALF)), "2.2", "fields of type bool"),
        (packed(b=BITS), "2.1", "before file version 2.2"),
        (packed(b=pa.array([[None] * 8] * ROWS, BITS.type)), "2.2", "booleans in a packed struct"),
        (packed(s=TEXT, d=TEXT.dictionary_encode()), "2.2", "fields of type dictionary"),
        (packed(s=TEXT, n=pa.array([1, None] * (ROWS // 2))), "2.2", "cannot be null"),
    ],
)
def test_what_pylance_refuses_too(tmp_path: Path, array: pa.Array, version: str, match: str) -> None:
    with pytest.raises(UnsupportedTypeError, match=match):
        write_dataset(column(array), str(tmp_path / "t.lance"), data_storage_version=version)
