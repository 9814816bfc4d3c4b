"""The peak memory of a piece of work, in a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
from lance_engine.write.dataset import write_dataset

# Freed memory that Arrow's allocator keeps for itself differs from run to run by a hundred megabytes, so the
# system's is used.
_ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system"}

# Anonymous memory only: pages of mapped files belong to the page cache, which gives them up when memory is
# short. A thread looks every few milliseconds; work that holds on to the interpreter may call `look` itself.
_FRAME = """
import sys, threading

def anonymous():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) << 10

def look():
    global peak
    peak = max(peak, anonymous())

def watch():
    while not finished.wait(0.003):
        look()

{work}
peak = start = anonymous()
finished = threading.Event()
watcher = threading.Thread(target=watch)
watcher.start()
answer = work(*sys.argv[1:])
look()
finished.set()
watcher.join()
print(answer, peak - start)
"""


def peak_memory(work: str, *arguments: str) -> tuple[str, int]:
    """What the function `work` of some source text answers, and the bytes that it took at most."""
    code = _FRAME.format(work=textwrap.dedent(work))
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=250,
        check=True,
        env={**os.environ, **_ENVIRONMENT},
    )
    answer, _, peak = run.stdout.strip().rpartition(" ")
    return answer, int(peak)


def write_large(path: Path, size: int) -> int:
    """A dataset of about `size` bytes in memory and few on disk; how many rows it has."""
    rows = size // 640
    numbers = np.arange(rows)
    words = pa.array([f"{number:03}" * 200 for number in range(100)])
    wide = pa.DictionaryArray.from_arrays(numbers % 100, words).cast(pa.string())
    write_dataset(pa.table({"id": numbers, "wide": wide, "group": numbers % 7}), str(path))
    return rows
