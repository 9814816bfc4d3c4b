"""What operations read, and how much memory they take at most."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from lance_engine.dataset import DatasetVersion
from lance_engine.io import MemoryStore
from lance_engine.write.dataset import write_dataset

ROWS = 100_000
WIDE_BYTES = 100
SMALL_BYTES = 8 * ROWS
# The end of a file, which is read to open it.
TAIL_BYTES = 64 << 10


def create() -> tuple[DatasetVersion, MemoryStore]:
    """100,000 rows in five fragments: two narrow columns, and one of 10 MB that hardly compresses."""
    random = np.random.default_rng(7)
    offsets = pa.py_buffer(np.arange(ROWS + 1, dtype=np.int32) * WIDE_BYTES)
    content = pa.py_buffer(random.bytes(WIDE_BYTES * ROWS))
    wide = pa.BinaryArray.from_buffers(pa.binary(), ROWS, [None, offsets, content])
    data = pa.table({"id": np.arange(ROWS), "group": random.integers(0, 1 << 40, ROWS), "wide": wide})
    store = MemoryStore()
    return DatasetVersion(write_dataset(data, store, max_rows_per_file=ROWS // 5)), store


def test_only_what_a_condition_needs_is_read() -> None:
    dataset, store = create()
    store.reset_counters()
    dataset.delete("group % 1000 = 1")
    assert store.bytes_read < 1.5 * SMALL_BYTES
    # Zone maps: one of five fragments, of this a few rows.
    store.reset_counters()
    dataset.delete("id BETWEEN 100 AND 120")
    assert store.bytes_read < 5 * TAIL_BYTES + SMALL_BYTES / 16
    store.reset_counters()
    dataset.update({"group": "0"}, "id BETWEEN 200 AND 220")
    assert store.bytes_read < 5 * TAIL_BYTES + SMALL_BYTES / 8 + 21 * WIDE_BYTES


def test_a_merge_reads_keys_and_then_rows_that_change() -> None:
    dataset, store = create()
    store.reset_counters()
    source = pa.table({"id": [500, 700, ROWS + 5], "group": [1, 2, 3]})
    after = dataset.merge(source, "id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert store.bytes_read < 1.5 * SMALL_BYTES
    whole = after.scan(filter="id < 1000").to_table()
    store.reset_counters()
    dataset.merge(whole, "id").when_matched_update_all().execute()
    # Only keys are read again, and by zone maps only those of one fragment.
    assert store.bytes_read < SMALL_BYTES
    store.reset_counters()
    keys = pa.table({"id": range(0, ROWS, 10)})
    dataset.merge(keys, "id").when_not_matched_by_source_delete("group < 1000").execute()
    assert store.bytes_read < 3 * SMALL_BYTES


def test_other_columns_are_not_read_to_replace_or_add_one() -> None:
    dataset, store = create()
    store.reset_counters()
    dataset.replace_columns({"group": "id * 2"}).add_columns({"more": "id + 1"}).drop_columns(["wide"])
    assert store.bytes_read < 4 * SMALL_BYTES


def test_a_large_source_is_not_held_in_memory(tmp_path: Path) -> None:
    content = pa.py_buffer(np.random.default_rng(3).bytes(10_000 * 300))
    offsets = pa.py_buffer(np.arange(10_001, dtype=np.int32) * 300)

    def batches(first: int, last: int) -> Iterator[pa.RecordBatch]:
        for start in range(first, last, 10_000):
            wide = pa.BinaryArray.from_buffers(pa.binary(), 10_000, [None, offsets, content])
            # A copy, so that every batch takes memory of its own.
            wide = wide.take(pa.array(np.arange(10_000)))
            yield pa.record_batch({"id": np.arange(start, start + 10_000), "wide": wide})

    dataset = DatasetVersion(write_dataset(batches(0, 50_000), str(tmp_path / "t.lance")))
    merge = dataset.merge(batches(20_000, 620_000), "id")
    merge = merge.when_matched_update_all().when_not_matched_insert_all()
    pool = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(pool)
    pa.set_memory_pool(counted)
    try:
        assert merge.execute(memory_bytes=4 << 20).count_rows() == 620_000
    finally:
        pa.set_memory_pool(pool)
    # The source has 180 MB. What there is of it in memory are pages that wait to be written.
    assert 8 << 20 < counted.max_memory() < 110 << 20
