"""Memory of batches that were freed waits to be used again, no more than was recently in use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import lance_engine.cache  # noqa: F401  # sets its limits when it is first imported, before the checks set theirs
import numpy as np
import pyarrow as pa
import pytest
from lance_engine import kernels
from lance_engine.dataset import DatasetVersion
from lance_engine.write.dataset import write_dataset

MIB = 1 << 20
#: Bytes of the dataset in memory; bit-packed, so that reading it takes memory.
SIZE = 24 * MIB


def what_large_results_took_is_kept_for_the_next(dataset: DatasetVersion) -> None:
    kernels.set_cache_limit(0, 1024 * MIB)
    table = dataset.scan().to_table()
    assert kernels.cached_bytes() <= SIZE // 2
    del table
    kept = kernels.cached_bytes()
    assert kept >= SIZE * 3 // 4
    again = dataset.scan().to_table()
    assert kernels.cached_bytes() <= kept - SIZE // 2
    assert again.equals(dataset.scan().to_table())


def never_more_is_kept_than_allowed(dataset: DatasetVersion) -> None:
    kernels.set_cache_limit(0, 12 * MIB)
    for _ in range(2):
        dataset.scan().to_table()
        assert kernels.cached_bytes() <= 12 * MIB
    kernels.set_cache_limit(0, 0)
    # Regions with blocks in use stay mapped.
    assert kernels.cached_bytes() <= 8 * MIB
    dataset.scan().to_table()
    assert kernels.cached_bytes() <= 8 * MIB


def a_stream_keeps_what_it_had_in_flight(dataset: DatasetVersion) -> None:
    kernels.set_cache_limit(0, 1024 * MIB)
    rows = 0
    with pa.RecordBatchReader.from_stream(dataset.scan(batch_size=32_768)) as reader:
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                break
            rows += batch.num_rows
    assert rows == SIZE // 16
    assert kernels.cached_bytes() <= SIZE // 2


CHECKS = [
    what_large_results_took_is_kept_for_the_next,
    never_more_is_kept_than_allowed,
    a_stream_keeps_what_it_had_in_flight,
]


@pytest.mark.parametrize("check", [check.__name__ for check in CHECKS])
def test_kept_memory(check: str, tmp_path: Path) -> None:
    """Each in its own process: what is kept depends on what the process recently used."""
    numbers = np.arange(SIZE // 16) % 1000
    write_dataset(pa.table({"a": numbers, "b": numbers[::-1]}), str(tmp_path))
    command = [sys.executable, __file__, check, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    {check.__name__: check for check in CHECKS}[sys.argv[1]](DatasetVersion.open(sys.argv[2]))
