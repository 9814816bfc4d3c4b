"""The limits of the writer: memory by pages and not by the file, pages by bytes, buffers by alignment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.file.reader import FileReader
from lance_engine.io.local import LocalStore
from lance_engine.schema_tree import Schema
from lance_engine.write.fragments import write_fragments
from lance_engine.write.options import WriteOptions

# Streams random numbers and text in batches of 4 MiB and prints by how much memory peaked above the start.
STREAM = """
import resource, sys
import numpy as np
import pyarrow as pa
from lance_engine.io.local import LocalStore
from lance_engine.schema_tree import Schema
from lance_engine.write.fragments import write_fragments
from lance_engine.write.options import WriteOptions

rng = np.random.default_rng(1)
schema = pa.schema([("n", pa.int64()), ("s", pa.string())])


def batch():
    numbers = rng.integers(0, 2**63, 1 << 17)
    return pa.record_batch([numbers, pa.array(numbers).cast(pa.string())], schema)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


options = WriteOptions(data_storage_version=sys.argv[3], max_rows_per_file=1 << 30, buffer_bytes=16 << 20)
list(write_fragments(LocalStore(sys.argv[1]), Schema.from_arrow(schema), [batch()] * 2, options))
before = peak()
batches = (batch() for _ in range(int(sys.argv[2])))
(fragment,) = write_fragments(LocalStore(sys.argv[1]), Schema.from_arrow(schema), batches, options)
assert fragment.physical_rows == int(sys.argv[2]) << 17
print((peak() - before) >> 10)
"""


def growth(folder: Path, batches: int, version: str) -> int:
    """MiB that writing so many batches takes on top of writing two."""
    arguments = [sys.executable, "-c", STREAM, str(folder), str(batches), version]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """50 MiB and 200 MiB of data: what the larger file adds is far below its size."""
    small, large = growth(tmp_path, 12, "2.1"), growth(tmp_path, 50, "2.1")
    written = sum(path.stat().st_size for path in tmp_path.rglob("*.lance")) >> 20
    assert written > 120
    assert small < 200
    assert large - small < 60


def pages_of(folder: Path, table: pa.Table, options: WriteOptions) -> list[list[tuple[int, int]]]:
    """For each column, (rows, bytes of Arrow data as it was) of its pages; checks where buffers begin."""
    (fragment,) = write_fragments(
        LocalStore(str(folder)), Schema.from_arrow(table.schema), table.to_batches(), options
    )
    reader = FileReader(LocalStore(str(folder)), f"data/{fragment.files[0].path}")
    found = []
    for column in range(reader.num_columns):
        metadata = reader.column_metadata(column)
        starts = [offset for page in metadata.pages for offset, _ in page.buffers]
        starts += [offset for offset, _ in metadata.buffers]
        assert all(offset % 64 == 0 for offset in starts)
        width = table.nbytes // table.num_rows
        found.append([(page.rows, page.rows * width) for page in metadata.pages])
    return found


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_pages_hold_about_8_mib(tmp_path: Path, version: str) -> None:
    """Whether the data come in one batch or in many."""
    vectors = np.random.default_rng(1).random((60_000, 128), np.float32)
    values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 128)
    options = WriteOptions(data_storage_version=version)
    for rows in (60_000, 1000):
        table = pa.Table.from_batches(pa.table({"v": values}).to_batches(max_chunksize=rows))
        (pages,) = pages_of(tmp_path, table, options)
        assert sum(count for count, _ in pages) == 60_000
        assert all(4 << 20 <= size <= 12 << 20 for _, size in pages[:-1])
        assert len(pages) == pytest.approx(table.nbytes / (8 << 20), abs=1.5)
