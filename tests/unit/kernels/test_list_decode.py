"""Lists: empty and null ones where chunks and pages end, offsets of all widths, and offsets that lie."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import handmade_files as handmade
import numpy as np
import pyarrow as pa
import pytest
from handmade_files import Page
from lance_engine.errors import CorruptFileError
from lance_engine.format.pb import encodings_pb2 as pb
from lance_engine.write.dataset import write_dataset
from native_files import NativeFile

ROWS = 5000


def _lists(first_empty: int, kind: str) -> list[Any]:
    """Lists of one or two items, with long runs of empty and of null ones from row `first_empty` on."""

    def item(row: int) -> Any:
        return {"numbers": row % 100, "texts": f"text {row % 7}", "lists": [row % 5] * (row % 3)}[kind]

    values: list[Any] = [[item(row)] * (1 + row % 2) for row in range(ROWS)]
    for row in range(first_empty, first_empty + 1500):
        values[row] = []
    for row in range(first_empty + 700, first_empty + 900):
        values[row] = None
    values[0] = values[-1] = []
    return values


TYPES = {
    "numbers": pa.list_(pa.int8()),
    "texts": pa.large_list(pa.string()),
    "lists": pa.list_(pa.large_list(pa.int16())),
}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("kind", TYPES)
def test_empty_lists_at_the_ends_of_chunks(tmp_path: Path, kind: str, version: str) -> None:
    for first_empty in (1, 1023, 1024, 2731):
        values = _lists(first_empty, kind)
        table = pa.table({"value": pa.array(values, TYPES[kind])})
        folder = tmp_path / str(first_empty)
        write_dataset(table, folder, data_storage_version=version)
        (path,) = folder.glob("data/*.lance")
        file = NativeFile.mapped(path, table.schema)
        assert file.table().equals(table)
        borders = {0, 1, 1023, 1024, 1025, 2048, 3072, 4096, ROWS - 1, ROWS}
        borders |= {first_empty + step for step in (-1, 0, 1, 699, 700, 899, 900, 1499, 1500)}
        places = sorted(borders)
        for start, stop in pairwise(places):
            assert file.range(start, stop).equals(table.slice(start, stop - start)), (start, stop)
        for start in places[:-1]:
            assert file.range(start, start + 1)["value"].to_pylist() == [values[start]]
        assert file.rows_at(places[:-1])["value"].to_pylist() == [values[row] for row in places[:-1]]


def _page(encoding: pb.ArrayEncoding, buffer: bytes, rows: int) -> Page:
    return Page(encoding, [buffer], rows, "/lance.encodings.ArrayEncoding")


def _flat(bits: int) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(flat=pb.Flat(bits_per_value=bits, buffer=pb.Buffer(buffer_index=0)))


def _file(pages: Sequence[Sequence[int]], adjustment: int, items: int, bits: int = 64) -> NativeFile:
    """A file of version 2.0 whose lists end at these offsets, page by page, of `items` numbers per page."""
    schema = pa.schema([("value", pa.list_(pa.uint8()))])
    encoding = pb.ArrayEncoding(
        list=pb.List(offsets=_flat(bits), null_offset_adjustment=adjustment, num_items=items)
    )
    lists = [_page(encoding, np.array(ends, f"<u{bits // 8}").tobytes(), len(ends)) for ends in pages]
    count = items * len(pages)
    numbers = _page(_flat(8), np.arange(count, dtype="u1").tobytes(), count)
    rows = sum(map(len, pages))
    return NativeFile.in_memory(handmade.make_file(schema, [lists, [numbers]], rows, (0, 3)), schema)


def test_lists_where_pages_begin_and_end() -> None:
    file = _file([[0, 0, 9, 9], [3, 7, 7]], 8, 7)
    expected = [[], [], None, None, [7, 8, 9], [10, 11, 12, 13], []]
    # 9 is a null list (adjustment 8) that ends at item 1, which belongs to no list.
    assert file.table()["value"].to_pylist() == expected
    for start in range(7):
        for stop in range(start + 1, 8):
            assert file.range(start, stop)["value"].to_pylist() == expected[start:stop]
    assert file.rows_at([0, 3, 4, 6])["value"].to_pylist() == [expected[row] for row in (0, 3, 4, 6)]


@pytest.mark.parametrize(
    ("ends", "adjustment", "match"),
    [
        ([3, 2, 7], 8, "decrease"),
        ([3, 10, 7], 8, "decrease"),  # a null list that ends before the one in front of it
        ([3, 4, 8], 9, "run past their items"),
        ([3, 4, 2**63 + 8], 2**63, "run past their items"),
        ([3, 4, 7], 7, "impossible adjustment"),
        ([3, 4, 7], 0, "impossible adjustment"),
    ],
)
def test_offsets_that_lie(ends: list[int], adjustment: int, match: str) -> None:
    file = _file([ends], adjustment, 7)
    with pytest.raises(CorruptFileError, match=match) as caught:
        file.table()
    assert caught.value.place["column"] == "value"
    assert caught.value.place["page"] == 0


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_offsets_of_other_widths(bits: int) -> None:
    with pytest.raises(CorruptFileError, match="width of flat values"):
        _file([[3, 4, 7]], 8, 7, bits).table()


def test_the_widest_adjustment() -> None:
    assert _file([[3, 4, 2**63 + 5]], 2**63, 7).table()["value"].to_pylist() == [[0, 1, 2], [3], None]
