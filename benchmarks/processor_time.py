"""How much processor time the processes below this one took, from ``/proc`` (Linux): a JVM and its workers.

Other work on the machine hardly changes it, unlike elapsed time.
"""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
# Fields after the name in /proc/PID/stat: the parent; user and system time, its own and of ended children.
_PARENT = 1
_TIMES = slice(11, 15)


def processor_seconds(root: int) -> float:
    """Seconds of all processes below `root`, including those that ended."""
    children: dict[int, list[int]] = {}
    seconds: dict[int, float] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # ended just now
            continue
        number = int(folder.name)
        children.setdefault(int(fields[_PARENT]), []).append(number)
        seconds[number] = sum(map(int, fields[_TIMES])) / _TICKS
    total, waiting = 0.0, list(children.get(root, ()))
    while waiting:
        number = waiting.pop()
        total += seconds[number]
        waiting += children.get(number, ())
    return total
