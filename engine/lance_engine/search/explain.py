"""What a search for vectors would do: found without reading a vector."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lance_engine.search.column import vector_column
from lance_engine.search.indexed import choose_index
from lance_engine.search.metric import metric_named
from lance_engine.search.nearest import default_metric
from lance_engine.search.options import SearchOptions

if TYPE_CHECKING:
    from lance_engine.table.snapshot import Snapshot


def explain_nearest(
    snapshot: Snapshot, column: str, k: int = 10, metric: str | None = None, options: Mapping[str, Any] = {}
) -> list[str]:
    """Lines that say which index, segments, partitions and rows `Dataset.nearest` would search."""
    place = vector_column(snapshot, column)
    known = SearchOptions(**{key: value for key, value in options.items() if key in SearchOptions._fields})
    asked = None if metric is None else metric_named(metric)
    chosen = choose_index(snapshot, place, asked) if known.use_index else None
    found = chosen.metric if chosen is not None else asked or default_metric(place)
    lines = [f"nearest   {k:,} by {found.name.lower()} in {column}"]
    live = {fragment.id: snapshot.live_rows(fragment) for fragment in snapshot.fragments}
    if chosen is None:
        why = "" if known.use_index else ", as asked"
        lines.append(f"exact     {sum(live.values()):,} rows in {_fragments(live)}{why}")
        return lines
    covered = set[int]()
    for segment, fragments in chosen.segments:
        covered |= fragments
        probes, most = _probes(segment.centroids.shape[0], known)
        rows = sum(live[number] for number in fragments)
        lines.append(
            f"index     {chosen.name} ({segment.kind}): segment of {rows:,} rows in {_fragments(fragments)}, "
            f"{probes} of {len(segment.centroids):,} partitions{most}, "
            f"the largest of {int(np.max(segment.lengths, initial=0)):,} rows"
        )
    missing = sorted(live.keys() - covered)
    if missing:
        rows = sum(live[number] for number in missing)
        how = "left out" if known.fast_search else "searched exactly"
        lines.append(f"unindexed {rows:,} rows in {_fragments(missing)}, {how}")
    if known.refine_factor is not None:
        lines.append(f"refined   {k * known.refine_factor:,} rows by their exact distances")
    return lines


def _fragments(found: Collection[int]) -> str:
    return f"{len(found):,} fragment{'' if len(found) == 1 else 's'}"


def _probes(partitions: int, options: SearchOptions) -> tuple[str, str]:
    if options.nprobes is not None:
        return f"{min(options.nprobes, partitions):,}", ""
    least = min(options.minimum_nprobes or 1, partitions)
    most = min(options.maximum_nprobes or partitions, partitions)
    return f"{least:,} to {most:,}", " as are near"
