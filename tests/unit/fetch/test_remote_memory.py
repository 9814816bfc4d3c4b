"""The memory of a scan of an object store does not depend on its length."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.write.dataset import write_dataset
from memory_peak import peak_memory

if TYPE_CHECKING:
    from conftest import ObjectStore

ROWS, FILES, ROUNDS = 12_000_000, 12, 6
#: What may be read ahead, and what may be at work.
ALLOWED = (128 << 20) + (150 << 20)

WORK = """
    import pyarrow as pa
    from lance_engine.dataset import DatasetVersion

    def work(uri, rounds):
        rows = 0
        dataset = DatasetVersion.open(uri)
        for _ in range(int(rounds)):
            for batch in pa.RecordBatchReader.from_stream(dataset.scan(read_ahead=128 << 20)):
                rows += batch.num_rows
                look()
        return rows
"""


@pytest.mark.slow
def test_memory_of_requests_is_used_again(object_store: ObjectStore) -> None:
    """Most of a gigabyte passes through: freed memory that the process keeps would add up."""
    values = np.random.default_rng(4).integers(0, 1 << 60, ROWS)
    table = pa.table({"a": values, "b": values[::-1].astype(np.int32)})
    uri = f"s3://{object_store.bucket}/large.lance"
    write_dataset(table, uri, max_rows_per_file=ROWS // FILES)
    rows, peak = peak_memory(WORK, uri, str(ROUNDS))
    assert int(rows) == ROWS * ROUNDS
    assert peak < ALLOWED
