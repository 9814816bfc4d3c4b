"""Files and datasets written by pylance, the oracle of the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import lance.file
import pyarrow as pa


def unsliced(table: pa.Table) -> pa.Table:
    """An equal table without offsets into its buffers: pylance 14 fails on some sliced arrays.

    Passing through IPC cuts the buffers, taking all rows aligns them (and gives wrong vectors of vectors for
    slices).
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    cut = pa.ipc.open_stream(sink.getvalue()).read_all().combine_chunks()
    return cut.take(pa.array(range(table.num_rows), pa.int64()))


def write_file(
    path: Path,
    table: pa.Table,
    version: str,
    *,
    batch_rows: int | None = None,
    cache_bytes: int | None = None,
) -> bytes:
    """Write a single data file and return its bytes; a small `cache_bytes` makes many pages."""
    plain = unsliced(table)
    writer = lance.file.LanceFileWriter(
        str(path), plain.schema, version=version, data_cache_bytes=cache_bytes
    )
    with writer:
        for batch in plain.to_batches(max_chunksize=batch_rows):
            writer.write_batch(batch)
    return path.read_bytes()


def write_dataset(
    uri: Path, table: pa.Table, version: str, *, fragment_rows: int = 1 << 20, **options: Any
) -> lance.LanceDataset:
    """Write a dataset with at most `fragment_rows` rows per fragment."""
    starts = range(0, table.num_rows, fragment_rows)
    parts = [unsliced(table.slice(start, fragment_rows)) for start in starts]
    batches = [batch for part in parts for batch in part.to_batches()]
    return lance.write_dataset(
        pa.RecordBatchReader.from_batches(table.schema, batches),
        str(uri),
        data_storage_version=version,
        max_rows_per_file=fragment_rows,
        **options,
    )
