"""How much memory operations take that rewrite rows, whatever the size of the dataset."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.write.dataset import write_dataset

#: Bytes of the dataset in memory: much more than what an operation may take.
SIZE = 640 << 20
ALLOWED = 450 << 20

# Anonymous memory only: pages of mapped files belong to the page cache.
SCRIPT = """
    import sys, threading
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

    def merge(dataset):
        source = pa.table({"id": range(0, 2_000_000, 4), "group": range(500_000)})
        return dataset.merge(source, "id").when_matched_update_all().execute()

    operations = {
        "delete": lambda dataset: dataset.delete('id % 3 = 1 AND "group" + 0 < 6'),
        "update": lambda dataset: dataset.update({"group": '"group" + 1'}, where="id % 4 <> 1"),
        "merge": merge,
        "compact": lambda dataset: dataset.delete("id % 3 = 1").compact(),
    }
    dataset = Dataset.open(sys.argv[1])
    finished = threading.Event()
    watcher = threading.Thread(target=watch)
    start = anonymous()
    watcher.start()
    operations[sys.argv[2]](dataset)
    finished.set()
    watcher.join()
    print(peak - start)
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Narrow columns and a wide one that compresses well, so that little is on disk."""
    path = tmp_path_factory.mktemp("memory") / "large.lance"
    rows = SIZE // 640
    numbers = np.arange(rows)
    words = pa.array([f"{number:03}" * 200 for number in range(100)])
    wide = pa.DictionaryArray.from_arrays(numbers % 100, words).cast(pa.string())
    write_dataset(pa.table({"id": numbers, "wide": wide, "group": numbers % 7}), str(path))
    return path


@pytest.mark.parametrize(
    "operation",
    ["delete", "update", *(pytest.param(name, marks=pytest.mark.slow) for name in ("merge", "compact"))],
)
def test_peak_of_an_operation(large: Path, tmp_path: Path, operation: str) -> None:
    path = tmp_path / "copy.lance"
    shutil.copytree(large, path, copy_function=os.link)
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT), str(path), operation],
        capture_output=True,
        text=True,
        timeout=250,
        check=True,
    )
    assert int(run.stdout) < ALLOWED
