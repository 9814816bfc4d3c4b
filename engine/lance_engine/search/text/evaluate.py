"""Evaluates queries: matches and phrases are looked up, and combinations computed from their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lance_engine.errors import InvalidSearchError
from lance_engine.index.inverted.analysis import PLAIN, Analysis, analysis_of
from lance_engine.index.inverted.json_documents import analyzer_of
from lance_engine.scan.splits import ScanSplit
from lance_engine.search.allowed import AllowedRows
from lance_engine.search.text.column import TextColumn, holds_texts, text_column
from lance_engine.search.text.flat import Rows, expansions, search_flat
from lance_engine.search.text.found import Found, among, best_of, joined, summed
from lance_engine.search.text.indexed import (
    OpenTexts,
    choose_texts,
    indexed_columns,
    require_none_unread,
    search_indexed,
    statistics_of,
)
from lance_engine.search.text.query import Boolean, Boost, Match, MultiMatch, Phrase, TextQuery, parts_of
from lance_engine.search.text.terms import NO_STATISTICS, terms_of

if TYPE_CHECKING:
    from lance_engine.expr.tree import Node
    from lance_engine.scan.fragment import FragmentReader
    from lance_engine.table.snapshot import Snapshot


class Evaluator:
    """Evaluates queries on one version, over the rows that pass a filter."""

    def __init__(
        self,
        snapshot: Snapshot,
        reader_for: Callable[[int], FragmentReader],
        filter: Node | None,
        use_index: bool,
        fast_search: bool,
        analysis: Mapping[str, Any] | None,
    ) -> None:
        self._snapshot, self._reader_for, self._filter = snapshot, reader_for, filter
        self._use_index, self._fast_search = use_index, fast_search
        self._cache: dict[frozenset[int], AllowedRows] = {}
        self._analysis = None if analysis is None else analysis_of(analysis)

    def searched_columns(self, answered: Sequence[str] | None) -> list[str]:
        """The columns for queries without one: those with an index, or texts in the result."""
        searched_columns = indexed_columns(self._snapshot) if self._use_index else []
        if searched_columns:
            return searched_columns
        known = self._snapshot.schema.names
        texts = [name for name in answered or () if name in known and holds_texts(self._snapshot, name)]
        if texts:
            return texts
        raise InvalidSearchError(
            "The query has no column, and no column of the dataset has an inverted index",
            remedy="Name the column to search",
            path=self._snapshot.uri,
            version=self._snapshot.version,
        )

    def evaluate(self, query: TextQuery, k: int | None = None) -> Found:
        """The rows of a query whose columns are all known; at least the `k` best ones."""
        match query:
            case Match() | Phrase():
                return self._leaf(query, k)
            case MultiMatch():
                return best_of([self.evaluate(part, k) for part in parts_of(query)])
            case Boolean():
                return self._boolean(query)
            case Boost():
                positive, negative = self.evaluate(query.positive), self.evaluate(query.negative)
                lowered = among(negative, positive.ids)
                return summed([positive, lowered], [1.0, -query.negative_boost])

    def _boolean(self, query: Boolean) -> Found:
        must = [self.evaluate(part) for part in query.must]
        should = [self.evaluate(part) for part in query.should]
        boolean = summed([*must, *should], [1.0] * (len(must) + len(should)))
        for part in must:
            boolean = among(boolean, part.ids)
        for excluded in query.must_not:
            boolean = among(boolean, self.evaluate(excluded).ids, inside=False)
        return boolean

    def _leaf(self, query: Match | Phrase, k: int | None) -> Found:
        assert query.column is not None
        column = text_column(self._snapshot, query.column)
        index = None
        if self._use_index:
            index = choose_texts(self._snapshot, column, positions=False)
            if index is None and self._analysis is None:
                require_none_unread(self._snapshot, column)
        # Phrases need the positions of words; texts are tokenized the same way everywhere.
        analysis = (index.analysis if index else None) or column.cut_by(self._analysis or PLAIN)
        if index is not None and isinstance(query, Phrase):
            index = choose_texts(self._snapshot, column, positions=True)
        if index is None:
            return self._flat(query, column, analysis)
        return self._indexed(query, column, index, k)

    def _flat(self, query: Match | Phrase, column: TextColumn, analysis: Analysis) -> Found:
        rows = Rows(self._snapshot, self._reader_for, self._filter)
        terms = terms_of(query, analyzer_of(analysis), expansions(query, rows, column, analysis))
        return search_flat(rows, column, analysis, terms, NO_STATISTICS)

    def _indexed(self, query: Match | Phrase, column: TextColumn, index: OpenTexts, k: int | None) -> Found:
        covered = index.covered
        missing = [fragment for fragment in self._snapshot.fragments if fragment.id not in covered]
        if self._fast_search:
            missing = [fragment for fragment in missing if fragment.id in index.outdated]
        splits = [ScanSplit(fragment.id, 0, fragment.physical_rows) for fragment in missing]
        rows = Rows(self._snapshot, self._reader_for, self._filter, splits)
        unindexed = expansions(query, rows, column, index.analysis) if missing else None

        def expand(term: bytes, match: Match) -> list[bytes]:
            similar = set(index.similar(term, match)).union(unindexed(term, match) if unindexed else ())
            return sorted(similar)[: match.max_expansions]

        terms = terms_of(query, analyzer_of(index.analysis), expand)
        if not terms.texts:
            return Found.nothing()
        statistics = statistics_of(index, terms)
        indexed = search_indexed(index, terms, statistics, self._allowed(covered), k)
        if not missing:
            return indexed
        return joined([indexed, search_flat(rows, column, index.analysis, terms, statistics)])

    def _allowed(self, covered: frozenset[int]) -> AllowedRows:
        """The rows that pass the filter; computed once for all parts of a query."""
        allowed = self._cache.get(covered)
        if allowed is None:
            allowed = AllowedRows(self._snapshot, self._reader_for, self._filter, sorted(covered))
            self._cache[covered] = allowed
        return allowed
