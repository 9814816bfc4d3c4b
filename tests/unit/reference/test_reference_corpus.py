"""The reference reader against files written by pylance; test_corpus_files.py gives it the whole corpus."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from corpus import all_cases, difference, multi_page_table, nested_cases
from pylance_files import write_file
from reference import file as reference_file
from reference import levels, mini_block, page


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_reads_columns_of_several_pages(tmp_path: Path, version: str) -> None:
    table = multi_page_table().slice(0, 3000)
    data = write_file(tmp_path / "file.lance", table, version, batch_rows=500, cache_bytes=30_000)
    assert all(len(metadata.pages) > 2 for metadata in reference_file.column_metadata(data))
    assert difference(reference_file.read_table(data, table.schema), table) == ""


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_reads_blobs(tmp_path: Path, version: str) -> None:
    field = pa.field("value", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([pa.array([b"abc" * 1000, None, b"", b"x"], pa.large_binary())], pa.schema([field]))
    data = write_file(tmp_path / "file.lance", table, version)
    assert difference(reference_file.read_table(data, table.schema), table) == ""


def test_the_corpus_makes_pylance_use_every_encoding(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    cases = [case for case in all_cases() if case.group in ("values", "forced", "packed", "leaf")]
    for index, case in enumerate(cases):
        data = write_file(tmp_path / f"{index}.lance", case.build(), case.versions[-1])
        for metadata in reference_file.column_metadata(data):
            for each in metadata.pages:
                text = str(page.parse_layout(each))
                seen.update(name for name in ENCODINGS if f"{name} {{" in text)
    assert set(seen) == ENCODINGS


ENCODINGS = {
    *("mini_block_layout", "full_zip_layout", "constant_layout", "rep_compression", "def_compression"),
    *("flat", "variable", "inline_bitpacking", "out_of_line_bitpacking", "dictionary", "general", "fsst"),
    *("rle", "byte_stream_split", "fixed_size_list", "packed_struct", "variable_packed_struct"),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_levels_are_those_of_pylance(tmp_path: Path, version: str) -> None:
    """Unraveling a page and building its levels again gives the very same levels and repetition index."""
    indices = 0
    for index, case in enumerate(nested_cases()):
        if version not in case.versions:
            continue
        table = case.build()
        data = write_file(tmp_path / f"{index}.lance", table, version)
        metadata = reference_file.column_metadata(data)
        for column, path in enumerate(reference_file.paths(table.schema.field(0))):
            dimensions = [None, *(getattr(field.type, "list_size", None) for field in path[1:])]
            for each in metadata[column].pages:
                arrays, _ = page.decode(data, each, path[0].type)
                rebuilt = levels.ravel(levels.unravel(arrays, dimensions), arrays.layers)
                for name in ("repetition", "definition"):
                    mine, theirs = getattr(rebuilt, name), getattr(arrays, name)
                    zeros = np.zeros(arrays.count, np.uint16)
                    mine, theirs = (zeros if side is None else side for side in (mine, theirs))
                    assert mine.tolist() == theirs.tolist(), (case.name, name)
                layout = page.parse_layout(each)
                if layout.mini_block_layout.repetition_index_depth:
                    buffers = page.page_buffers(data, each)
                    entries = _entries_per_chunk(layout.mini_block_layout, buffers)
                    expected = np.frombuffer(buffers[-1], "<u8").reshape(-1, 2)
                    assert mini_block.repetition_index(arrays, entries).tolist() == expected.tolist()
                    indices += 1
    assert indices > 50


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_repetition_index_of_rows_over_many_chunks(tmp_path: Path, version: str) -> None:
    case = next(case for case in all_cases() if case.kind == "lists over many chunks")
    data = write_file(tmp_path / "file.lance", case.build(), version)
    (each,) = reference_file.column_metadata(data)[0].pages
    layout = page.parse_layout(each).mini_block_layout
    buffers = page.page_buffers(data, each)
    arrays, _ = page.decode(data, each, pa.int64())
    expected = np.frombuffer(buffers[-1], "<u8").reshape(-1, 2)
    assert len(expected) > 3
    actual = mini_block.repetition_index(arrays, _entries_per_chunk(layout, buffers))
    assert actual.tolist() == expected.tolist()


def _entries_per_chunk(layout: object, buffers: list[bytes]) -> list[int]:
    entries = []
    position = 0
    for size, _ in mini_block.chunk_table(layout, buffers[0]):
        entries.append(int.from_bytes(buffers[1][position : position + 2], "little"))
        position += size
    return entries
