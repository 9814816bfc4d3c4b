"""Files and datasets written by pylance, the oracle of the tests."""

from __future__ import annotations

from pathlib import Path

import lance
import lance.file
import pyarrow as pa


def unsliced(table: pa.Table) -> pa.Table:
    """An equal table without offsets into its buffers: pylance 14 fails on some sliced arrays."""
    return table.take(pa.array(range(table.num_rows), pa.int64()))


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
    uri: Path, table: pa.Table, version: str, *, fragment_rows: int = 1 << 20
) -> lance.LanceDataset:
    """Write a dataset with at most `fragment_rows` rows per fragment."""
    return lance.write_dataset(
        unsliced(table), str(uri), data_storage_version=version, max_rows_per_file=fragment_rows
    )
