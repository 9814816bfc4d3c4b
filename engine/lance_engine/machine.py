"""What the machine has, on every system: processors and memory."""

from __future__ import annotations

import os
from typing import Final

#: Assumed where the system does not say how much memory it has.
_ASSUMED_MEMORY: Final = 8 << 30


def processors() -> int:
    """Processors that this process may use: at least 1."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def physical_memory() -> int:
    """Bytes of main memory, or 8 GiB where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # no sysconf, or not these names
        return _ASSUMED_MEMORY
