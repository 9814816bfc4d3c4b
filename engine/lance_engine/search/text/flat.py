"""Search without an index: every text is read, tokenized, and scored."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from lance_engine import kernels
from lance_engine.index.inverted.analysis import Analysis
from lance_engine.index.inverted.json_documents import Analyzer, analyzer_of
from lance_engine.scan.scanner import Scanner
from lance_engine.scan.system import ROW_ID
from lance_engine.search.text.column import TextColumn
from lance_engine.search.text.found import Found
from lance_engine.search.text.query import Match, Phrase
from lance_engine.search.text.terms import K1, B, Expand, Statistics, Terms

if TYPE_CHECKING:
    from lance_engine.expr.tree import Node
    from lance_engine.scan.fragment import FragmentReader
    from lance_engine.scan.splits import ScanSplit
    from lance_engine.table.snapshot import Snapshot


class Rows(NamedTuple):
    """The rows to read: those of a version, or of some ranges of it, that pass a filter."""

    snapshot: Snapshot
    reader_for: Callable[[int], FragmentReader]
    filter: Node | None
    splits: Sequence[ScanSplit] | None = None

    def each(self, column: TextColumn, work: Callable[[pa.Array, pa.Array], None]) -> None:
        """Call `work` with texts and row ids, on all threads."""
        scanner = Scanner(
            self.snapshot,
            self.reader_for,
            columns=[column.parts[0], ROW_ID],
            filter=self.filter,
            splits=self.splits,
        )
        scanner.reduce(lambda batch: work(column.of(batch), batch.column(1)))


def search_flat(rows: Rows, column: TextColumn, analysis: Analysis, terms: Terms, base: Statistics) -> Found:
    """The matching rows, scored with the statistics `base` and those of all rows that are read."""
    phrase = terms.phrase
    idle: deque[tuple[Analyzer, kernels.Occurrences]] = deque()
    made: list[kernels.Occurrences] = []

    def work(texts: pa.Array, ids: pa.Array) -> None:
        try:
            analyzer, occurrences = idle.pop()
        except IndexError:
            analyzer, occurrences = analyzer_of(analysis), kernels.Occurrences()
            for term in terms.texts:
                analyzer.native.term(term)
            made.append(occurrences)
        tokens = analyzer.split(texts)
        occurrences.add(analyzer.native, tokens, ids.to_numpy(), len(terms.texts), phrase)
        idle.append((analyzer, occurrences))

    rows.each(column, work)
    return _scored(made, terms, base)


def expansions(query: Match | Phrase, rows: Rows, column: TextColumn, analysis: Analysis) -> Expand | None:
    """The words in some rows that match a fuzzy word; None if the query has none."""
    if isinstance(query, Phrase) or not query.fuzziness:
        return None
    idle: deque[Analyzer] = deque()
    made: list[Analyzer] = []

    def work(texts: pa.Array, _: pa.Array) -> None:
        try:
            analyzer = idle.pop()
        except IndexError:
            analyzer = analyzer_of(analysis, keep_words=True)
            made.append(analyzer)
        analyzer.split(texts)
        idle.append(analyzer)

    rows.each(column, work)
    tokens = sorted(set[bytes]().union(*(analyzer.words or () for analyzer in made)))
    ends = np.cumsum([0, *map(len, tokens)], dtype=np.int64)
    known = kernels.TokenSet.listed(
        ends,
        np.frombuffer(b"".join(tokens), dtype=np.uint8),
        np.arange(len(tokens), dtype=np.uint32),
        len(tokens),
    )

    def expand(term: bytes, match: Match) -> list[bytes]:
        return known.similar(term, match.fuzziness, match.prefix_length, match.max_expansions)

    return expand


def _scored(made: list[kernels.Occurrences], terms: Terms, base: Statistics) -> Found:
    width = len(terms.texts)
    if not made or not width:
        return Found.nothing()
    parts = [scorer.found() for scorer in made]
    ids = np.concatenate([part[0] for part in parts])
    lengths = np.concatenate([part[1] for part in parts]).astype(np.float32)
    counts = np.concatenate([part[2] for part in parts]).reshape(len(ids), width)
    found_in = np.count_nonzero(counts, axis=0).tolist()
    statistics = base + Statistics(
        sum(scorer.documents for scorer in made),
        sum(scorer.tokens for scorer in made),
        dict(zip(terms.texts, found_in, strict=True)),
    )
    kept = np.ones(len(ids), dtype=np.bool_)
    if terms.places is not None:
        kept = np.concatenate([part[3] for part in parts]).astype(np.bool_)
    elif terms.needs_all:
        for group in terms.groups:
            kept &= counts[:, list(group)].any(axis=1)
    ids, lengths, often = ids[kept], lengths[kept], counts[kept].astype(np.float32)
    norms = np.float32(K1) * (
        np.float32(1 - B) + np.float32(B) * lengths / np.float32(statistics.mean_length)
    )
    rarity = np.array([statistics.idf(term) for term in terms.texts], dtype=np.float32)
    weights = rarity * terms.weights * np.float32(K1 + 1)
    scores = (often / (often + norms[:, None])) @ weights
    return Found(ids, scores.astype(np.float32))
