"""How selective a predicate is, from a small sample of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_engine.scan.splits import ScanSplit

if TYPE_CHECKING:
    from lance_engine.dataset import Dataset
    from lance_engine.expr.tree import Node

#: A sample is this many rows at each of this many places spread over the dataset.
_SAMPLED_ROWS = 64
_SAMPLED_PLACES = 64


def estimated_share(dataset: Dataset, predicate: Node) -> float | None:
    """About which share of the rows passes `predicate`: milliseconds on local files.

    None where data files are not local: the sample would cost requests while a statement is planned.
    """
    if dataset.snapshot.store.local_path("data") is None:
        return None
    sample = [
        ScanSplit(split.fragment_id, split.start, min(split.start + _SAMPLED_ROWS, split.stop))
        for split in dataset.splits(_SAMPLED_PLACES)
    ]
    rows = sum(split.stop - split.start for split in sample)
    if rows == 0:
        return None
    return dataset.scan(columns=[], filter=predicate, splits=sample).count() / rows
