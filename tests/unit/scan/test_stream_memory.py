"""How much memory a streamed scan takes, whatever the size of the dataset."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.write.dataset import write_dataset

#: Bytes of the dataset in memory: much more than what a scan may take.
SIZE = 640 << 20
ALLOWED = 300 << 20

# Anonymous memory only: pages of mapped files belong to the page cache, which gives them up when memory is
# short. Its peak is looked for in between batches and, by a thread, every few milliseconds.
SCRIPT = """
    import sys, threading, time
    import pyarrow as pa
    from lance_engine.dataset import Dataset

    def anonymous():
        for line in open("/proc/self/status"):
            if line.startswith("RssAnon"):
                return int(line.split()[1]) << 10

    peak = 0
    def watch():
        global peak
        while not finished.wait(0.003):
            peak = max(peak, anonymous())

    dataset = Dataset.open(sys.argv[1])
    filter = sys.argv[2] or None
    pause = float(sys.argv[3])
    finished = threading.Event()
    watcher = threading.Thread(target=watch)
    start = anonymous()
    watcher.start()
    rows = 0
    for batch in pa.RecordBatchReader.from_stream(dataset.scan(filter=filter)):
        rows += batch.num_rows
        peak = max(peak, anonymous())
        time.sleep(pause)
    finished.set()
    watcher.join()
    print(rows, peak - start)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Narrow and wide columns that compress well, so that little is on disk."""
    path = str(tmp_path_factory.mktemp("memory") / "large.lance")
    rows = SIZE // 640
    numbers = np.arange(rows)
    words = pa.array([f"{number:03}" * 200 for number in range(100)])
    table = pa.table(
        {
            "id": numbers,
            "wide": pa.DictionaryArray.from_arrays(numbers % 100, words).cast(pa.string()),
            "group": numbers % 7,
        }
    )
    write_dataset(table, path)
    return path


@pytest.mark.parametrize(
    ("filter", "pause"), [("", 0.01), ("group + 0 < 6", 0.0)], ids=["all rows", "filtered"]
)
def test_peak_of_a_streamed_scan(large: str, filter: str, pause: float) -> None:
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), large, filter, str(pause)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    rows, peak = map(int, run.stdout.split())
    expected = SIZE // 640
    assert rows == (expected if not filter else sum(1 for number in range(expected) if number % 7 < 6))
    assert peak < ALLOWED


def test_files_are_smaller_than_the_memory_allowed(large: str) -> None:
    """What is read is not what takes the memory."""
    assert sum(file.stat().st_size for file in Path(large).rglob("*.lance")) < ALLOWED
