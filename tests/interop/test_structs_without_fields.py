"""Structs without fields, alone and inside of structs: no column has their number of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import handmade_files as handmade
import lance
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import UnsupportedFeatureError, UnsupportedTypeError
from lance_engine.format.pb import encodings21_pb2 as pb
from lance_engine.write.dataset import write_dataset
from native_files import NativeFile

NOTHING = pa.struct([])
ROWS = 2000
KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "alone": (NOTHING, {}),
    "in a struct": (pa.struct([("e", NOTHING)]), {"e": {}}),
    "two in two structs": (
        pa.struct([("s", pa.struct([("e", NOTHING)])), ("f", NOTHING)]),
        {"s": {"e": {}}, "f": {}},
    ),
    "before a number": (pa.struct([("s", pa.struct([("e", NOTHING)])), ("n", pa.int8())]), None),
    "behind a number": (pa.struct([("n", pa.int8()), ("s", pa.struct([("e", NOTHING)]))]), None),
}


def rows_of(name: str) -> list[Any]:
    value = KINDS[name][1]
    return [value or {"n": row % 100, "s": {"e": {}}} if value is None else value for row in range(ROWS)]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("writer", [lance.write_dataset, write_dataset])
def test_both_directions(tmp_path: Path, writer: Any, name: str, version: str) -> None:
    rows, uri = rows_of(name), str(tmp_path / "t.lance")
    table = pa.table({"c": pa.array(rows, KINDS[name][0]), "row": range(ROWS)})
    writer(table, uri, data_storage_version=version)
    ours = DatasetVersion.open(uri)
    assert ours.scan().to_table().to_pylist() == table.to_pylist()
    assert ours.scan(columns=["c"], filter="row IN (5, 1999)").to_table()["c"].to_pylist() == [
        rows[5],
        rows[1999],
    ]
    assert ours.take([7, 0, 7])["c"].to_pylist() == [rows[7], rows[0], rows[7]]
    # pylance 14 reads the other columns of such a table as nulls.
    theirs = lance.dataset(uri)
    if name not in ("before a number", "behind a number"):
        assert theirs.to_table(columns=["c"])["c"].to_pylist() == rows


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_lists_of_them_are_refused(tmp_path: Path, version: str) -> None:
    table = pa.table({"c": pa.array([[{}], [{}, {}]], pa.list_(NOTHING))})
    with pytest.raises(UnsupportedTypeError, match="cannot be inside a list"):
        write_dataset(table, str(tmp_path / "ours"), data_storage_version=version)
    with pytest.raises(OSError, match="is in a list"):
        lance.write_dataset(table, str(tmp_path / "theirs"), data_storage_version=version)


def test_files_with_lists_of_them() -> None:
    layout = pb.PageLayout(constant_layout=pb.ConstantLayout(layers=[pb.REPDEF_NULLABLE_ITEM]))
    schema = pa.schema([("c", pa.list_(NOTHING))])
    file = handmade.make_file(schema, [[handmade.Page(layout, [], 2)]], 2, (2, 1))
    with pytest.raises(UnsupportedFeatureError, match="lists of structs without fields"):
        NativeFile.in_memory(file, schema)
