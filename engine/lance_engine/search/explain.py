"""Describes a search without reading vectors or texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lance_engine.search.choice import choose_index, metric_of
from lance_engine.search.column import vector_column
from lance_engine.search.options import SearchOptions
from lance_engine.search.refine import candidates_wanted, is_exact
from lance_engine.search.text.column import text_column
from lance_engine.search.text.indexed import choose_texts

if TYPE_CHECKING:
    from lance_engine.table.snapshot import Snapshot


def explain_nearest(
    snapshot: Snapshot, column: str, k: int = 10, metric: str | None = None, options: Mapping[str, Any] = {}
) -> list[str]:
    """Lines with the index, segments, partitions and rows that `Dataset.nearest` would search."""
    place = vector_column(snapshot, column)
    known = SearchOptions(**{key: value for key, value in options.items() if key in SearchOptions._fields})
    metric_used = metric_of(snapshot, place, metric)
    chosen = choose_index(snapshot, place, metric_used) if known.use_index else None
    lines = [f"nearest   {k:,} by {metric_used.name.lower()} in {column}"]
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
    lines += _missing(live, covered, "left out" if known.fast_search else "searched exactly")
    missing = not known.fast_search and live.keys() - covered
    if missing or known.refine_factor is not None or not is_exact(chosen, place):
        if known.estimates and not missing:
            lines.append("estimated distances, as asked")
        else:
            lines.append(f"refined   {candidates_wanted(k, chosen, known):,} rows by their exact distances")
    return lines


def explain_texts(snapshot: Snapshot, column: str, options: Mapping[str, Any] = {}) -> list[str]:
    """Lines with the index, segments, partitions and rows that `Dataset.search` would search in a column."""
    place = text_column(snapshot, column)
    use_index = options.get("use_index", True)
    chosen = choose_texts(snapshot, place, positions=False) if use_index else None
    live = {fragment.id: snapshot.live_rows(fragment) for fragment in snapshot.fragments}
    if chosen is None:
        why = "" if use_index else ", as asked"
        return [f"texts     {sum(live.values()):,} rows in {_fragments(live)}, read and scored{why}"]
    lines = []
    for segment, fragments in chosen.segments:
        rows = sum(live.get(number, 0) for number in fragments)
        count = len(segment.partitions)
        lines.append(
            f"index     {chosen.name} (INVERTED): segment of {rows:,} rows in {_fragments(list(fragments))}, "
            f"{count:,} partition{'' if count == 1 else 's'}"
        )
    how = "left out" if options.get("fast_search") else "read and scored"
    return [*lines, *_missing(live, chosen.covered, how)]


def _missing(live: Mapping[int, int], covered: Collection[int], how: str) -> list[str]:
    missing = [number for number in live if number not in covered]
    if not missing:
        return []
    rows = sum(live[number] for number in missing)
    return [f"unindexed {rows:,} rows in {_fragments(missing)}, {how}"]


def _fragments(fragments: Collection[int]) -> str:
    return f"{len(fragments):,} fragment{'' if len(fragments) == 1 else 's'}"


def _probes(partitions: int, options: SearchOptions) -> tuple[str, str]:
    if options.nprobes is not None:
        return f"{min(options.nprobes, partitions):,}", ""
    least = min(options.minimum_nprobes or 1, partitions)
    most = min(options.maximum_nprobes or partitions, partitions)
    return f"{least:,} to {most:,}", " as are near"
