"""Data files of version 0.1 made by hand: what each byte means, and what damage leads to."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lance_engine import kernels
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.file.legacy import LegacyFile
from lance_engine.file.legacy_fields import LegacyFieldBuilder
from lance_engine.format.legacy import PageTable
from lance_engine.format.pb import file_pb2, table_pb2
from lance_engine.io.memory import MemoryStore
from lance_engine.scan.types import without_dictionaries
from lance_engine.schema_tree import Schema

POINT = pa.struct([("x", pa.int16()), ("label", pa.string())])
SCHEMA = pa.schema(
    [
        ("n", pa.int32()),
        ("flag", pa.bool_()),
        ("s", pa.string()),
        pa.field("b", pa.large_binary(), nullable=False),
        ("v", pa.list_(pa.int8(), 2)),
        ("points", pa.list_(POINT)),
        ("nothing", pa.null()),
        ("d", pa.dictionary(pa.int8(), pa.int64())),
    ]
)
ROWS = {
    "n": [1, 2, 3],
    "flag": [True, False, True],
    "s": ["ab", None, "c"],
    "b": [b"", b"xyz", b"\0"],
    "v": [[1, 2], [3, 4], [5, 6]],
    "points": [[{"x": 1, "label": "p"}, {"x": 2, "label": None}], [], [{"x": 3, "label": "qr"}]],
    "nothing": [None, None, None],
    "d": [200, 100, 200],
}


class Builder:
    """A file put together piece by piece, as format 0.1 describes it."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.pages: dict[int, list[tuple[int, int]]] = {}

    def put(self, piece: bytes) -> int:
        self.data += piece
        return len(self.data) - len(piece)

    def page(self, field_id: int, piece: bytes, length: int) -> None:
        self.pages.setdefault(field_id, []).append((self.put(piece), length))

    def strings(self, field_id: int, values: list[bytes]) -> None:
        starts = [self.put(value) for value in values]
        ends = [*starts, len(self.data)]
        self.page(field_id, struct.pack(f"<{len(ends)}q", *ends), len(values))

    def message(self, message: Any) -> int:
        body = message.SerializeToString()
        return self.put(struct.pack("<I", len(body)) + body)

    def finish(self, first: int, last: int, batches: list[int], schema: Any, version: int = 2) -> bytes:
        cells = [cell for id_ in range(first, last + 1) for cell in self.pages.get(id_, [(0, 0)] * 2)]
        table = self.put(np.array(cells, "<i8").tobytes())
        manifest = self.message(table_pb2.Manifest(fields=schema))
        metadata = self.message(
            file_pb2.Metadata(manifest_position=manifest, batch_offsets=batches, page_table_position=table)
        )
        self.put(struct.pack("<QHH4s", metadata, 0, version, b"LANC"))
        return bytes(self.data)


def golden(version: int = 2) -> bytes:
    """The file of ROWS, in batches of two rows and one."""
    file = Builder()
    items = file.put(struct.pack("<2q", 100, 200))
    file.page(0, struct.pack("<2i", 1, 2), 2)
    file.page(1, b"\x01", 2)
    file.strings(2, [b"ab", b""])
    file.strings(3, [b"", b"xyz"])
    file.page(4, bytes([1, 2, 3, 4]), 2)
    file.page(5, struct.pack("<3i", 0, 2, 2), 3)
    file.page(7, struct.pack("<2h", 1, 2), 2)
    file.strings(8, [b"p", b""])
    file.page(9, b"", 2)
    file.page(10, bytes([1, 0]), 2)
    file.page(0, struct.pack("<i", 3), 1)
    file.page(1, b"\x01", 1)
    file.strings(2, [b"c"])
    file.strings(3, [b"\0"])
    file.page(4, bytes([5, 6]), 1)
    file.page(5, struct.pack("<2i", 0, 1), 2)
    file.page(7, struct.pack("<h", 3), 1)
    file.strings(8, [b"qr"])
    file.page(9, b"", 1)
    file.page(10, bytes([1]), 1)
    schema = [file_pb2.Field(name=field.name, id=field.id) for field in Schema.from_arrow(SCHEMA).walk()]
    schema[-1].dictionary.CopyFrom(file_pb2.Dictionary(offset=items, length=2))
    return file.finish(0, 10, [0, 2, 3], schema, version)


IDS = list(range(11))


def read(data: bytes, begin: int = 0, end: int = 3, ids: list[int] | None = None) -> pa.Table:
    store = MemoryStore()
    store.put("t.lance", data)
    file = LegacyFile(store, "t.lance", IDS if ids is None else ids)
    builder = LegacyFieldBuilder(file, file.metadata.rows)
    fields = Schema.from_arrow(SCHEMA).fields
    columns = kernels.Columns([builder.build(field) for field in fields])
    with file.placed():
        source, batch = file.overlay(builder.leaves[file], np.array([[begin, end]]))
    while True:
        try:
            with file.placed():
                decoded = columns.decode_range(begin, end, [(source, batch)])
            break
        except kernels.NotResidentError as missing:
            file.fetch(batch, *missing.args[1:3])
    schema = pa.schema([field.with_type(without_dictionaries(field.type)) for field in SCHEMA])
    table = pa.Table.from_batches([pa.RecordBatch._import_from_c(decoded.address, schema)])
    table.validate(full=True)
    return table


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_encoding(version: int) -> None:
    assert read(golden(version)).to_pydict() == ROWS


@pytest.mark.parametrize(("begin", "end"), [(0, 1), (1, 3), (2, 3), (1, 1)])
def test_ranges(begin: int, end: int) -> None:
    expected = {name: values[begin:end] for name, values in ROWS.items()}
    assert read(golden(), begin, end).to_pydict() == expected


def test_a_file_finds_its_fields_where_the_manifest_lost_them() -> None:
    assert read(golden(), ids=[-2, 1]).to_pydict() == ROWS


def with_word(position: int, value: int, code: str = "<q") -> bytes:
    data = bytearray(golden())
    struct.pack_into(code, data, position % len(data), value)
    return bytes(data)


def find(piece: bytes) -> int:
    return golden().index(piece)


METADATA = struct.unpack("<Q", golden()[-16:-8])[0]


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (golden()[:-1], "LANC"),
        (b"LANC", "LANC"),
        (with_word(-8, 3, "<H"), "version 0.1, but the file is version 3"),
        (with_word(-16, 1 << 40), "outside the file"),
        (with_word(METADATA, 1 << 30, "<i"), "past the end of the file"),
        (with_word(find(b"ab") + 2, 1 << 50), "decrease|past the end"),
        (with_word(find(b"ab") + 10, 0), "decrease"),
        (with_word(find(struct.pack("<3i", 0, 2, 2)) + 4, -1, "<i"), "negative"),
        (with_word(find(struct.pack("<3i", 0, 2, 2)) + 4, 3, "<i"), "run past their items|decrease"),
    ],
)
def test_damage_is_told(data: bytes, match: str) -> None:
    with pytest.raises(CorruptFileError, match=match) as caught:
        read(data)
    assert caught.value.place["path"] == "t.lance"


@pytest.mark.sampled(60)
@pytest.mark.parametrize("number", range(300))
def test_random_damage(number: int) -> None:
    """Either a result or an error of ours, without a large allocation."""
    rng = np.random.default_rng(number)
    data = bytearray(golden())
    for at in rng.integers(0, len(data), 3):
        data[at] = int(rng.choice([0, 1, 127, 128, 255, rng.integers(0, 256)]))
    try:
        table = read(bytes(data[: rng.integers(0, len(data))] if number % 10 == 0 else data))
    except (CorruptFileError, UnsupportedFeatureError):
        pass
    except kernels.BatchTooLargeError:
        pass
    except (pa.ArrowInvalid, UnicodeDecodeError):
        pass  # the reader must deal with text that is not UTF-8
    else:
        assert table.num_rows == 3


def test_a_page_table_without_batches_has_no_pages() -> None:
    table = PageTable.parse(b"", [0, 1, 3], batches=0)
    assert [table.pages(field) for field in (0, 1, 3)] == [[], [], []]
    with pytest.raises(CorruptFileError, match="no pages of field 4"):
        table.pages(4)
