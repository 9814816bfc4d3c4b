"""Cutting rows into files and pages; names, sizes, progress, memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from lance_engine.io.local import LocalStore
from lance_engine.io.memory import MemoryStore
from lance_engine.schema_tree import Schema
from lance_engine.write.fragments import data_file_name, write_fragments
from lance_engine.write.options import WriteOptions


def numbers(rows: int) -> pa.Table:
    return pa.table({"n": np.random.default_rng(1).integers(-(2**63), 2**63 - 1, rows)})


def test_files_end_at_the_row_limit_whatever_the_batches() -> None:
    table = numbers(1000)
    for chunk in (1, 7, 250, 1000):
        store = MemoryStore()
        options = WriteOptions(max_rows_per_file=250)
        fragments = write_fragments(
            store, Schema.from_arrow(table.schema), table.to_batches(max_chunksize=chunk), options
        )
        assert [fragment.physical_rows for fragment in fragments] == [250] * 4
        assert [fragment.id for fragment in fragments] == [0] * 4
        for fragment in fragments:
            (file,) = fragment.files
            assert file.file_size == store.size(f"data/{file.path}")
            assert (file.fields, file.column_indices, file.storage_version) == ((0,), (0,), "2.1")


def test_files_end_at_the_byte_limit() -> None:
    table = numbers(500_000)
    options = WriteOptions(max_bytes_per_file=1 << 20)
    fragments = write_fragments(MemoryStore(), Schema.from_arrow(table.schema), table.to_batches(), options)
    assert len(fragments) > 2
    assert sum(fragment.physical_rows for fragment in fragments) == 500_000
    for fragment in fragments[:-1]:
        size = fragment.files[0].file_size
        assert size is not None
        assert 1 << 20 <= size < 2 << 20


def test_no_rows_make_no_file() -> None:
    store = MemoryStore()
    table = numbers(0)
    assert write_fragments(store, Schema.from_arrow(table.schema), table.to_batches()) == []
    assert store.list("") == []


def test_progress_counts_up_to_the_end() -> None:
    table = numbers(300_000)
    seen: list[tuple[int, int]] = []
    options = WriteOptions(max_rows_per_file=120_000, progress=lambda rows, size: seen.append((rows, size)))
    fragments = write_fragments(MemoryStore(), Schema.from_arrow(table.schema), table.to_batches(), options)
    rows = [each[0] for each in seen]
    assert rows == sorted(rows)
    assert len(rows) > 4
    assert seen[-1] == (300_000, sum(fragment.files[0].file_size or 0 for fragment in fragments))


def test_leaf_fields_own_the_columns() -> None:
    point = pa.struct([("x", pa.int8()), ("tags", pa.list_(pa.string()))])
    table = pa.table({"p": pa.array([{"x": 1, "tags": ["a"]}], point), "n": [1]})
    (fragment,) = write_fragments(MemoryStore(), Schema.from_arrow(table.schema), table.to_batches())
    assert fragment.files[0].fields == (1, 3, 4)


def test_file_names_are_spread_and_random() -> None:
    names = {data_file_name() for _ in range(50)}
    assert len(names) == 50
    assert all(re.fullmatch(r"[01]{24}[0-9a-f]{26}\.lance", name) for name in names)
    assert "job-7" in data_file_name("job-7")


def test_memory_stays_bounded_by_pages(tmp_path: os.PathLike[str]) -> None:
    """400 MB of batches pass through with a few pages of them alive at a time."""
    rows, batches = 1 << 16, 400
    alive: list[int] = []
    before = pa.total_allocated_bytes()

    def source() -> Iterator[pa.RecordBatch]:
        for number in range(batches):
            alive.append(pa.total_allocated_bytes() - before)
            values = pa.array(range(number, number + rows // 8), pa.int64())
            column = pa.concat_arrays([values] * 8)
            yield pa.record_batch({"a": column, "b": column})

    schema = Schema.from_arrow(pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    options = WriteOptions(page_bytes=1 << 20)
    write_fragments(LocalStore(tmp_path), schema, source(), options)
    assert sum(alive) > 0
    assert max(alive) < 40 << 20
