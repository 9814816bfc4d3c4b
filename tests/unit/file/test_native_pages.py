"""What the kernels make of the metadata of columns without the interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from corpus import difference
from lance_engine import kernels
from lance_engine.file.reader import FileReader
from lance_engine.format.container import direct_encoding
from lance_engine.format.pb import encodings21_pb2 as pb
from lance_engine.format.pb import file_v2_pb2
from native_files import NativeFile
from pylance_files import write_file

ROWS = 100
VALUES = np.arange(ROWS, dtype="<i8").tobytes()


def layout(**changes: Any) -> pb.PageLayout:
    """100 flat numbers in two chunks, or something near to that."""
    flat = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=64))
    parts = {"value_compression": flat, "layers": [1], "num_buffers": 1, "num_items": ROWS, **changes}
    return pb.PageLayout(mini_block_layout=pb.MiniBlockLayout(**parts))


def pages_of(message: pb.PageLayout | bytes, **column: Any) -> list[kernels.Page] | None:
    value = message if isinstance(message, bytes) else message.SerializeToString()
    page = file_v2_pb2.ColumnMetadata.Page(
        buffer_offsets=[0, 8],
        buffer_sizes=[4, 900],
        length=ROWS,
        encoding=direct_encoding("lance.encodings21.PageLayout", value),
    )
    parts = {
        "encoding": direct_encoding("lance.encodings.ColumnEncoding", b"\n\0"),
        "pages": [page],
        **column,
    }
    return read(file_v2_pb2.ColumnMetadata(**parts).SerializeToString())


def read(metadata: bytes, size: int = 1000) -> list[kernels.Page] | None:
    source = kernels.SegmentSource(size + len(metadata))
    source.add(size, metadata)
    return kernels.column_pages(source, size, len(metadata))


def test_a_page_that_is_sound() -> None:
    pages = pages_of(layout())
    assert pages is not None
    assert [page.rows for page in pages] == [ROWS]


def nested(depth: int) -> pb.CompressiveEncoding:
    inner = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=64))
    for _ in range(depth):
        general = pb.General(compression=pb.BufferCompression(scheme=pb.BufferCompression.ZSTD), values=inner)
        inner = pb.CompressiveEncoding(general=general)
    return inner


REFUSED = {
    "no layers": layout(layers=[]),
    "unknown layer": layout(layers=[9]),
    "deep repetition index": layout(repetition_index_depth=2),
    "other number of items": layout(num_items=ROWS + 1),
    "no values": layout(value_compression=pb.CompressiveEncoding()),
    "dictionary values": layout(value_compression=pb.CompressiveEncoding(dictionary=pb.Dictionary())),
    "compressed flat": layout(
        value_compression=pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=64, data=pb.BufferCompression()))
    ),
    "endless nesting": layout(value_compression=nested(40)),
    "sparse": pb.PageLayout(sparse_layout=pb.SparseLayout()),
    "nothing": pb.PageLayout(),
    "both layouts": layout().SerializeToString() + pb.PageLayout(constant_layout={}).SerializeToString(),
    "cut": layout().SerializeToString()[:-1],
    "a number without end": b"\x0a" + b"\xff" * 12,
}


@pytest.mark.parametrize("name", REFUSED)
def test_leaves_to_the_interpreter_what_it_does_not_know(name: str) -> None:
    assert pages_of(REFUSED[name]) is None


@pytest.mark.parametrize("size", [903, 500, 8, 0])
def test_refuses_buffers_outside_the_file(size: int) -> None:
    """The metadata alone reach past the end: the file is shorter than its buffers."""
    page = file_v2_pb2.ColumnMetadata.Page(
        buffer_offsets=[0, 1 << 63], buffer_sizes=[4, (1 << 63) + size], length=ROWS
    )
    page.encoding.CopyFrom(direct_encoding("lance.encodings21.PageLayout", layout().SerializeToString()))
    assert pages_of(layout(), pages=[page]) is None


def test_refuses_encodings_that_are_no_layouts() -> None:
    other = direct_encoding("lance.encodings.ColumnEncodings", b"\n\0")
    assert pages_of(layout(), encoding=other) is None
    assert pages_of(layout(), encoding=file_v2_pb2.Encoding(none=file_v2_pb2.Empty())) is None


def test_every_cut_and_every_changed_byte_is_survived() -> None:
    page = file_v2_pb2.ColumnMetadata.Page(
        buffer_offsets=[0, 8],
        buffer_sizes=[4, 900],
        length=ROWS,
        encoding=direct_encoding("lance.encodings21.PageLayout", layout().SerializeToString()),
    )
    encoding = direct_encoding("lance.encodings.ColumnEncoding", b"\n\0")
    sound = file_v2_pb2.ColumnMetadata(encoding=encoding, pages=[page]).SerializeToString()
    outcomes = set()
    for at in range(len(sound)):
        outcomes.add(read(sound[:at]) is None)
        for value in (0, 1, 0x7F, 0x80, 0xFF):
            read(sound[:at] + bytes([value]) + sound[at + 1 :])
    assert outcomes == {True, False} or outcomes == {True}
    assert read(sound) is not None


def test_a_column_read_by_either_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"n": list(range(500)), "s": [f"text {row}" if row % 3 else None for row in range(500)]})
    data = write_file(tmp_path / "file.lance", table, "2.1")
    natively = NativeFile.in_memory(data, table.schema).range(0, 500)
    monkeypatch.setattr(FileReader, "native_pages", lambda *_: None)
    assert difference(natively, NativeFile.in_memory(data, table.schema).range(0, 500)) == ""
    assert difference(natively, table) == ""
