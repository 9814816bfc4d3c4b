"""Encodings of version 2.0 that no writer uses today: constants, and strings as lists of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import handmade_files as handmade
import numpy as np
import pyarrow as pa
import pytest
from handmade_files import Page
from lance.file import LanceFileReader
from lance_engine.errors import CorruptFileError
from lance_engine.format.pb import encodings_pb2 as pb
from native_files import NativeFile

ROWS = 1000


def page(encoding: pb.ArrayEncoding, buffers: Sequence[bytes], rows: int) -> Page:
    return Page(encoding, list(buffers), rows, "/lance.encodings.ArrayEncoding")


def flat(bits: int, buffer: int) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(flat=pb.Flat(bits_per_value=bits, buffer=pb.Buffer(buffer_index=buffer)))


def constant(value: bytes) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(constant=pb.Constant(value=value))


def file_of(pages: Sequence[Sequence[Page]], kind: pa.DataType, rows: int) -> tuple[bytes, pa.Schema]:
    schema = pa.schema([pa.field("value", kind)])
    return handmade.make_file(schema, pages, rows, (0, 3)), schema


def check(data: bytes, schema: pa.Schema, expected: list[Any], tmp_path: Path) -> None:
    (tmp_path / "file.lance").write_bytes(data)
    rows = [0, 3, len(expected) - 1]
    for file in (
        NativeFile.in_memory(data, schema),
        NativeFile.mapped(tmp_path / "file.lance", schema),
    ):
        table = file.table()
        table.validate(full=True)
        assert table["value"].to_pylist() == expected
        assert file.range(2, 7)["value"].to_pylist() == expected[2:7]
        assert file.rows_at(rows)["value"].to_pylist() == [expected[row] for row in rows]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.int32(), (7).to_bytes(4, "little"), 7),
        (pa.float64(), np.float64(-0.5).tobytes(), -0.5),
        (pa.bool_(), b"\1", True),
        (pa.bool_(), b"\0", False),
        (pa.string(), b"the same", "the same"),
        (pa.large_binary(), b"", b""),
        (pa.binary(3), b"abc", b"abc"),
    ],
    ids=str,
)
def test_constants(tmp_path: Path, kind: pa.DataType, value: bytes, expected: Any) -> None:
    data, schema = file_of([[page(constant(value), [], ROWS)]], kind, ROWS)
    check(data, schema, [expected] * ROWS, tmp_path)
    validity = np.packbits(np.arange(ROWS) % 3 != 1, bitorder="little").tobytes()
    some = pb.Nullable.SomeNull(validity=flat(1, 0), values=constant(value))
    nullable = pb.ArrayEncoding(nullable=pb.Nullable(some_nulls=some))
    data, schema = file_of([[page(nullable, [validity], ROWS)]], kind, ROWS)
    check(data, schema, [None if row % 3 == 1 else expected for row in range(ROWS)], tmp_path)


@pytest.mark.parametrize(
    ("kind", "value"), [(pa.int32(), b"12345678"), (pa.bool_(), b""), (pa.float64(), b"")], ids=str
)
def test_constants_of_another_width(kind: pa.DataType, value: bytes) -> None:
    data, schema = file_of([[page(constant(value), [], ROWS)]], kind, ROWS)
    with pytest.raises(CorruptFileError, match="constant value does not fit"):
        NativeFile.in_memory(data, schema).table()


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()], ids=str)
def test_strings_as_lists_of_bytes(tmp_path: Path, kind: pa.DataType) -> None:
    """Two pages of lists over one page of bytes; pylance reads along."""
    values = [None if row % 5 == 2 else f"row {row}" * (row % 4) for row in range(ROWS)]
    stored = [(value or "").encode() for value in values]
    pages, half = [], ROWS // 2
    for part in (range(half), range(half, ROWS)):
        total = sum(len(stored[row]) for row in part)
        ends = np.cumsum([len(stored[row]) for row in part]).astype("<u8")
        ends[[row - part.start for row in part if values[row] is None]] += np.uint64(total + 1)
        lists = pb.List(offsets=flat(64, 0), null_offset_adjustment=total + 1, num_items=total)
        pages.append(page(pb.ArrayEncoding(list=lists), [ends.tobytes()], half))
    content = b"".join(stored)
    schema = pa.schema([pa.field("value", kind)])
    columns = [pages, [page(flat(8, 0), [content], len(content))]]
    data = handmade.make_file(schema, columns, ROWS, (0, 3))
    expected = pa.array(values, pa.string()).cast(kind).to_pylist()
    check(data, schema, expected, tmp_path)
    theirs = LanceFileReader(str(tmp_path / "file.lance")).read_all().to_table()
    assert theirs["value"].to_pylist() == expected
