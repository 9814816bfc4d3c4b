"""How much memory a streamed scan takes, whatever the size of the dataset."""

from __future__ import annotations

from pathlib import Path

import pytest
from memory_peak import peak_memory, write_large

#: Bytes of the dataset in memory: much more than what a scan may take.
SIZE = 640 << 20
ALLOWED = 300 << 20

WORK = """
    import time
    import pyarrow as pa
    from lance_engine.dataset import DatasetVersion

    def work(path, filter, pause):
        rows = 0
        scan = DatasetVersion.open(path).scan(filter=filter or None)
        for batch in pa.RecordBatchReader.from_stream(scan):
            rows += batch.num_rows
            look()
            time.sleep(float(pause))
        return rows
"""


# The files are read range by range, as if they were on an object store.
REMOTE = """
    import pyarrow as pa
    from lance_engine.dataset import DatasetVersion
    from lance_engine.io.local import LocalStore

    class Distant(LocalStore):
        def local_path(self, path):
            return None

    def work(path, filter):
        rows = 0
        scan = DatasetVersion.open(Distant(path)).scan(filter=filter or None)
        for batch in pa.RecordBatchReader.from_stream(scan):
            rows += batch.num_rows
            look()
        return rows
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    path = tmp_path_factory.mktemp("memory") / "large.lance"
    return path, write_large(path, SIZE)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("filter", "pause"), [("", 0.01), ("group + 0 < 6", 0.0)], ids=["all rows", "filtered"]
)
def test_peak_of_a_streamed_scan(large: tuple[Path, int], filter: str, pause: float) -> None:
    path, expected = large
    rows, peak = peak_memory(WORK, str(path), filter, str(pause))
    assert int(rows) == (expected if not filter else sum(1 for number in range(expected) if number % 7 < 6))
    assert peak < ALLOWED


@pytest.mark.sampled(1)
@pytest.mark.parametrize("filter", ["", "group + 0 < 6"], ids=["all rows", "filtered"])
def test_peak_of_a_remote_scan(large: tuple[Path, int], filter: str) -> None:
    """Half of the limit of memory, 128 MB, may be read ahead; 150 MB more may be at work."""
    path, expected = large
    rows, peak = peak_memory(REMOTE, str(path), filter)
    assert int(rows) == (expected if not filter else sum(1 for number in range(expected) if number % 7 < 6))
    assert peak < (128 << 20) + (150 << 20)


def test_files_are_smaller_than_the_memory_allowed(large: tuple[Path, int]) -> None:
    """The data that is read does not take the memory."""
    assert sum(file.stat().st_size for file in large[0].rglob("*.lance")) < ALLOWED
