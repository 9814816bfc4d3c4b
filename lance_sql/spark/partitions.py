"""Row ranges for each task: of similar size in bytes, without ranges that a filter excludes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lance_engine.dataset import DatasetVersion
from lance_engine.scan import ScanSplit, rows_that_may_pass, shared_readers
from lance_engine.table import Snapshot

from lance_sql.display.amounts import counted
from lance_sql.spark.options import Options
from lance_sql.spark.pushed import row_filter

# A task costs some milliseconds to start, so a small table gets few of them.
MIN_ROWS_PER_PARTITION: Final = 65_536
# Range boundaries are multiples of this, so that few chunks of rows are decoded twice.
_ALIGNMENT: Final = 8192
# Statistics of more files than this are read by the tasks: reading them sequentially takes too long.
_MAX_PRUNED_FRAGMENTS: Final = 1000


@dataclass(frozen=True, slots=True)
class PlannedSplits:
    """The ranges for each task, and the share of the table they cover."""

    partitions: list[list[ScanSplit]]
    rows: int
    all_rows: int
    fragments: int
    all_fragments: int

    def __str__(self) -> str:
        return (
            f"{counted(len(self.partitions), 'task')} for {self.rows:,} of {self.all_rows:,} rows "
            f"in {self.fragments:,} of {self.all_fragments:,} fragments"
        )


def plan_splits(dataset: DatasetVersion, options: Options) -> PlannedSplits:
    """Ranges of the rows that may pass the filters, from zone maps and indices; as few as a limit needs."""
    snapshot = dataset.snapshot
    splits = [ScanSplit(fragment.id, 0, fragment.physical_rows) for fragment in snapshot.fragments]
    filter = row_filter(options, snapshot)  # report invalid filters before any task runs
    if filter is None and options.limit is not None:
        splits = _first_rows(snapshot, splits, options.limit)
    elif filter is not None and len(splits) <= _MAX_PRUNED_FRAGMENTS:
        splits = rows_that_may_pass(snapshot, filter, shared_readers(snapshot))
    partitions = partition_splits(
        snapshot, splits, options.partition_bytes, options.partitions, options.parallelism
    )
    return PlannedSplits(
        partitions,
        sum(split.stop - split.start for split in splits),
        snapshot.physical_rows,
        len({split.fragment_id for split in splits}),
        len(snapshot.fragments),
    )


def share_of_rows(snapshot: Snapshot, share: int, shares: int) -> list[ScanSplit]:
    """One of `shares` ranges of the stored rows, of about equal size."""
    rows = snapshot.physical_rows
    first, last = (
        min(rows, _aligned(rows * number / shares)) if number else 0 for number in (share, share + 1)
    )
    if share + 1 == shares:
        last = rows
    splits = []
    before = 0
    for fragment in snapshot.fragments:
        start, stop = max(first - before, 0), min(last - before, fragment.physical_rows)
        if start < stop:
            splits.append(ScanSplit(fragment.id, start, stop))
        before += fragment.physical_rows
    return splits


def _first_rows(snapshot: Snapshot, splits: Sequence[ScanSplit], limit: int) -> list[ScanSplit]:
    """The first fragments that together contain `limit` rows that are not deleted."""
    kept: list[ScanSplit] = []
    rows = 0
    for split in splits:
        if rows >= limit and kept:
            break
        kept.append(split)
        rows += snapshot.live_rows(snapshot.fragment(split.fragment_id))
    return kept


def partition_splits(
    snapshot: Snapshot,
    splits: Sequence[ScanSplit],
    partition_bytes: int,
    count: int | None = None,
    parallelism: int | None = None,
) -> list[list[ScanSplit]]:
    """Cut and group ranges, in order, so that each group covers about `partition_bytes` of the data files.

    There are at least as many groups as tasks that can run at once, unless these would be small; or about
    `count`. `parallelism` is Spark's number of parallel tasks; if unknown, two tasks per core of this
    machine.
    """
    row_bytes = {fragment.id: _bytes_per_row(snapshot, fragment.id) for fragment in snapshot.fragments}
    weights = [(split.stop - split.start) * row_bytes[split.fragment_id] for split in splits]
    total, rows = sum(weights), sum(split.stop - split.start for split in splits)
    if not rows:
        return []
    if count is None:
        at_once = parallelism or 2 * (os.cpu_count() or 1)
        count = max(min(at_once, rows // MIN_ROWS_PER_PARTITION), -(-int(total) // partition_bytes), 1)
    target = total / count
    groups: list[list[ScanSplit]] = [[] for _ in range(count)]
    done = 0.0
    for split in splits:
        weight = row_bytes[split.fragment_id]
        start = split.start
        while start < split.stop:
            # Remainders of less than a tenth of a task are added to a neighbouring task.
            number = min(count - 1, int(done / target + 0.1))
            room = (number + 1.1) * target - done
            stop = split.stop
            if number < count - 1 and (stop - start) * weight > room:
                stop = min(stop, start + _aligned((room - 0.1 * target) / weight))
            groups[number].append(ScanSplit(split.fragment_id, start, stop))
            done += (stop - start) * weight
            start = stop
    return [group for group in groups if group]


def _bytes_per_row(snapshot: Snapshot, fragment_id: int) -> float:
    """Stored bytes per row; at least one, even if the manifest does not contain file sizes."""
    fragment = snapshot.fragment(fragment_id)
    size = sum(file.file_size or 0 for file in fragment.files)
    return max(1.0, size / max(1, fragment.physical_rows))


def _aligned(rows: float) -> int:
    return max(_ALIGNMENT, -(-int(rows) // _ALIGNMENT) * _ALIGNMENT)
