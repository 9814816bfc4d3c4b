"""The memory that one build or search of vectors takes, in its own process (Linux).

``python -m benchmarks.vector_memory PEER PATH build|search JSON`` prints the bytes beyond those that the
process had when its libraries were loaded and the dataset was open.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import lance_sql
from benchmarks.worker_memory import status

_OWN = Path("/proc/self/status")


def measured(peer: str, path: str, work: str, options: Mapping[str, Any]) -> int:
    """Bytes, measured in a new process."""
    command = [sys.executable, "-m", "benchmarks.vector_memory", peer, path, work, json.dumps(options)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def _task(peer: str, path: str, work: str, options: Mapping[str, Any]) -> Callable[[], object]:
    if peer == "pylance":
        theirs = importlib.import_module("lance").dataset(path)
        dim = theirs.schema.field("v").type.list_size
        query = np.ones(dim, dtype=np.float32)
        if work == "build":
            return lambda: theirs.create_index("v", replace=True, **options)
        filter = options.get("filter")
        nearest = {"column": "v", "q": query, **{key: options[key] for key in options if key != "filter"}}
        return lambda: theirs.to_table(columns=["id"], nearest=nearest, filter=filter, prefilter=True)
    ours = lance_sql.open(path)
    if work == "build":
        return lambda: ours.create_index("v", replace=True, kind=options["index_type"], **_rest(options))
    query = np.ones(ours.schema.field("v").type.list_size, dtype=np.float32)
    return lambda: ours.nearest("v", query, columns=["id"], **options)


def _rest(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key != "index_type"}


def main() -> None:
    peer, path, work, options = sys.argv[1:]
    task = _task(peer, path, work, json.loads(options))
    before = status(_OWN, "VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts from here
    task()
    print((status(_OWN, "VmHWM") - before) << 10)


if __name__ == "__main__":
    main()
