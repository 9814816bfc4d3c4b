"""What the scans of a statement read, grouped by table."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from lance_sql.engines.statement_run import BegunScan

#: What threads of an engine need at most to stop, after the result is complete.
_STOPPING_SECONDS = 0.2


def final_metrics(scans: Sequence[BegunScan]) -> list[dict[str, Any]]:
    """The `scan_metrics` of a complete result. A LIMIT leaves threads that are still reading for a moment."""
    deadline = time.monotonic() + _STOPPING_SECONDS
    for _, scanner in list(scans):
        if scanner.metrics is not None:
            scanner.metrics.wait_for_end(max(0, deadline - time.monotonic()))
    return scan_metrics(scans)


def scan_metrics(scans: Sequence[BegunScan]) -> list[dict[str, Any]]:
    """One dictionary per table, columns and filter: the numbers of `ScanMetrics`, summed over row ranges.

    It also has ``table``, ``columns`` and ``filter`` (None without one). Seconds of parallel scans are added
    up too.
    """
    by_scan: dict[tuple[str, tuple[str, ...], str], dict[str, Any]] = {}
    for name, scanner in list(scans):
        metrics = scanner.metrics
        if metrics is None:  # planned, but never run
            continue
        filter = None if scanner.filter is None else str(scanner.filter)
        columns = tuple(scanner.columns)
        known = by_scan.setdefault(
            (name, columns, str(filter)), {"table": name, "columns": list(columns), "filter": filter}
        )
        for key, value in metrics.as_dict().items():
            known[key] = _sum(known.get(key), value)
    return list(by_scan.values())


def _sum(known: Any, value: Any) -> Any:
    if known is None:
        return value
    if isinstance(value, Mapping):
        return {key: known.get(key, 0) + value.get(key, 0) for key in {**known, **value}}
    if isinstance(value, list):  # conditions and indices: those of all ranges, without duplicates
        return known + [item for item in value if item not in known]
    return known + value


def rows_so_far(scans: Sequence[BegunScan]) -> tuple[int, int]:
    """Rows that the scans have read or skipped, and the total rows of their tables."""
    done = total = 0
    for _, scanner in list(scans):
        metrics = scanner.metrics
        if metrics is not None:
            names = ("rows", "rows_planned", "rows_left", "rows_decoded")
            rows, planned, left, decoded = metrics.counts(*names)
            total += rows
            done += planned - left + decoded
    return min(done, total), total
