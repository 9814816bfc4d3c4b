"""The memory of the Python workers that Spark starts, from ``/proc`` (Linux)."""

from __future__ import annotations

import os
from pathlib import Path


class WorkerMemory:
    """The largest resident memory that a Python worker below this process had when it was measured.

    Linux keeps each process's peak, and Spark its workers, so measuring now and then is enough.
    """

    def __init__(self) -> None:
        self.largest = 0

    def look(self) -> None:
        self.largest = max([self.largest, *map(peak_memory, workers_below(os.getpid()))])


def workers_below(process: int) -> set[int]:
    """The ids of Spark's Python processes that descend from a process."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/status"):
        parents[int(entry.parent.name)] = status(entry, "PPid")
    found, added = {process}, {process}
    while added:
        added = {child for child, parent in parents.items() if parent in added} - found
        found |= added
    return {child for child in found if b"pyspark" in command_line(child) and child != process}


def peak_memory(process: int) -> int:
    """Bytes; 0 if the process has ended."""
    return status(Path(f"/proc/{process}/status"), "VmHWM") << 10


def status(file: Path, name: str) -> int:
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)


def command_line(process: int) -> bytes:
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""
    return command if b"java" not in command.split(b"\0")[0] else b""
