"""Search with an inverted index: posting lists of its segments, and a flat search of uncovered rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from pyroaring import BitMap

from lance_engine import kernels
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.index.files import opened_together
from lance_engine.index.inverted.analysis import Analysis
from lance_engine.index.inverted.kind import INVERTED
from lance_engine.index.inverted.partition import TextPartition
from lance_engine.index.inverted.segment import TextSegment
from lance_engine.index.listing import all_segments
from lance_engine.search.allowed import AllowedRows
from lance_engine.search.text.column import TextColumn
from lance_engine.search.text.found import Found
from lance_engine.search.text.terms import K1, Statistics, Terms

if TYPE_CHECKING:
    from lance_engine.search.text.query import Match
    from lance_engine.table.snapshot import Snapshot


class OpenTexts(NamedTuple):
    """An index with readable segments, each with the fragments for which it is searched."""

    name: str
    segments: tuple[tuple[TextSegment, BitMap], ...]
    analysis: Analysis

    @property
    def covered(self) -> frozenset[int]:
        """The fragments that it covers."""
        return frozenset().union(*(fragments for _, fragments in self.segments))

    @property
    def outdated(self) -> frozenset[int]:
        """The fragments of segments in an old layout, whose texts are read instead."""
        return frozenset().union(
            *(segment.deleted_fragments for segment, _ in self.segments if segment.is_outdated)
        )

    def partitions(self) -> Iterator[tuple[TextSegment, int, TextPartition]]:
        """Every partition with its segment and number."""
        for segment, _ in self.segments:
            for number, partition in zip(
                segment.partitions, segment.ahead(segment.partition, segment.partitions), strict=True
            ):
                yield segment, number, partition

    def similar(self, term: bytes, query: Match) -> list[bytes]:
        """The terms of the index that match a fuzzy word."""
        words: set[bytes] = set()
        for _, _, partition in self.partitions():
            words.update(
                partition.tokens.similar(term, query.fuzziness, query.prefix_length, query.max_expansions)
            )
        return sorted(words)


def choose_texts(snapshot: Snapshot, column: TextColumn, *, positions: bool) -> OpenTexts | None:
    """The first readable index on a column, with word positions if needed."""
    for index in INVERTED.indices(snapshot):
        if index.field_id != column.field_id:
            continue
        usable = [
            (segment, covering.fragments - segment.deleted_fragments)
            for covering, segment in opened_together(index.segments, lambda covering: covering.open())
            if segment is not None and (not positions or segment.has_positions)
        ]
        # Segments with another tokenization cannot be used.
        kept = tuple(pair for pair in usable if pair[0].layout.analysis == usable[0][0].layout.analysis)
        if kept:
            return OpenTexts(index.name, kept, kept[0][0].layout.analysis)
    return None


def require_none_unread(snapshot: Snapshot, column: TextColumn) -> None:
    """UnsupportedFeatureError if a column has an unreadable inverted index.

    Without it, the tokenization of its texts is unknown: other rows would be found.
    """
    for segment in all_segments(snapshot):
        if segment.kind.lower() != INVERTED.message.lower() or segment.fields != (column.field_id,):
            continue
        reason = f"its version is {segment.index_version}"
        if INVERTED.reads(segment):
            covering = INVERTED.covering(snapshot, segment)
            if covering.open() is not None:
                continue
            try:
                INVERTED.opener(covering.files)
            except UnsupportedFeatureError as error:
                reason = error.message
        raise UnsupportedFeatureError(
            f"The inverted index on '{column.name}' cannot be used: {reason}",
            remedy="Pass analysis={...} to say how texts become words, and search without the index, or "
            "build it again with create_index(..., replace=True)",
            path=snapshot.uri,
            version=snapshot.version,
            index=segment.name,
        )


def indexed_columns(snapshot: Snapshot) -> list[str]:
    """The names of the columns with an inverted index."""
    paths = snapshot.schema.paths_by_id()
    columns = [paths[index.field_id] for index in INVERTED.indices(snapshot) if index.field_id in paths]
    return list(dict.fromkeys(columns))


def statistics_of(index: OpenTexts, terms: Terms) -> Statistics:
    """The statistics of all documents in an index, including deleted ones."""
    documents = tokens = 0
    frequencies = dict.fromkeys(terms.texts, 0)
    for segment, number, partition in index.partitions():
        documents += partition.part.documents
        tokens += partition.part.tokens
        places = {text: partition.tokens.find(text) for text in terms.texts}
        there = {text: place for text, place in places.items() if place is not None}
        if there:
            for text, count in zip(there, segment.counts(number, list(there.values())), strict=True):
                frequencies[text] += count
    return Statistics(documents, tokens, frequencies)


# The constant factor of BM25, besides rarity.
_FACTOR: Final = K1 + 1


def search_indexed(
    index: OpenTexts, terms: Terms, statistics: Statistics, allowed: AllowedRows, k: int | None
) -> Found:
    """The `k` best rows in an index, all rows without `k`."""
    best = kernels.BestTexts(k)
    rarity = [statistics.idf(text) * _FACTOR for text in terms.texts]
    if terms.needs_all:
        # A repeated word counts repeatedly.
        entries = [
            (group, number, terms.boost) for group, numbers in enumerate(terms.groups) for number in numbers
        ]
    else:
        entries = [(number, number, float(weight)) for number, weight in enumerate(terms.weights)]
    needed = len(terms.groups) if terms.needs_all else 0
    phrase = None
    if terms.places is not None:
        phrase = kernels.Phrase(list(range(len(terms.groups))), list(terms.places), terms.slop)
    for segment, fragments in index.segments:
        rows = allowed.within(fragments)
        if not len(rows):
            continue
        for number in segment.partitions:
            partition = segment.partition(number)
            places = [partition.tokens.find(text) for text in terms.texts]
            there = [entry for entry in entries if places[entry[1]] is not None]
            if not there or (phrase is not None and len(there) < len(entries)):
                continue
            if not statistics.tokens:
                raise CorruptFileError(
                    "A text index finds words, but its documents have a total length of 0",
                    remedy="Build the index again",
                )
            tokens = [place for _, term, _ in there if (place := places[term]) is not None]
            postings = partial(segment.postings, number, positions=phrase is not None)
            best.search(
                partition.part,
                list(segment.ahead(postings, tokens)),
                np.array([rarity[term] * boost for _, term, boost in there], dtype=np.float32),
                np.array([group for group, _, _ in there], dtype=np.uint32),
                needed,
                phrase,
                statistics.mean_length,
                rows,
            )
    return Found(*best.result())
