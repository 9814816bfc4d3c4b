"""Selectivity of a condition, estimated from a sample of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_engine.scan import ScanSplit

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion
    from lance_engine.scan import FilterPlan

#: Number of rows in a sample, from places spread over the dataset.
_SAMPLED_ROWS = 4096
#: Number of places, and the number if there are fewer fragments: reading at a place costs more than its rows.
_PLACES, _FEW_PLACES = 64, 16


def sampled_share(dataset: DatasetVersion, plan: FilterPlan, places: int | None = None) -> float:
    """The estimated share of rows of a dataset that pass a filter, from rows at some places."""
    if places is None:
        places = _FEW_PLACES if len(dataset.snapshot.fragments) <= _FEW_PLACES else _PLACES
    splits = dataset.splits(places)  # more where there are more fragments than places
    sample = [
        ScanSplit(split.fragment_id, split.start, min(split.start + _SAMPLED_ROWS // places, split.stop))
        for split in splits[:: -(-len(splits) // places) or 1]
    ]
    rows = sum(split.stop - split.start for split in sample)
    tested = plan.without_zone_maps()
    return dataset.scan(columns=[], filter=tested, splits=sample).count() / max(rows, 1)


def percent(share: float) -> str:
    """A share, formatted for people."""
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.3g} %"
