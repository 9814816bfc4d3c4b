"""The rows whose texts match a query best, as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from lance_engine.errors import InvalidSearchError
from lance_engine.scan.scanner import parse_filter
from lance_engine.search.answer import answer_names, answer_table, computed_column
from lance_engine.search.options import AskedRows, SearchOptions
from lance_engine.search.text.evaluate import Evaluator
from lance_engine.search.text.query import Match, TextQuery, check, names_all_columns, with_columns

if TYPE_CHECKING:
    from lance_engine.scan.fragment import FragmentReader
    from lance_engine.table.snapshot import Snapshot

SCORE: Final = "_score"


def search(
    snapshot: Snapshot,
    reader_for: Callable[[int], FragmentReader],
    query: str | TextQuery,
    column: str | Sequence[str] | None,
    k: int | None,
    rows: AskedRows,
    options: SearchOptions,
    analysis: Mapping[str, Any] | None = None,
) -> pa.Table:
    """See `Dataset.search`."""
    if k is not None and (isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1):
        raise InvalidSearchError(f"k is a number of rows, or None for all, not {k!r}")
    evaluator = Evaluator(
        snapshot,
        reader_for,
        parse_filter(rows.filter, snapshot),
        options.use_index,
        options.fast_search,
        analysis,
    )
    asked = query_of(query)
    if not names_all_columns(asked):
        names = [column] if isinstance(column, str) else column
        searched = evaluator.searched_columns(rows.columns) if names is None else list(names)
        asked = with_columns(asked, searched)
    found = evaluator.evaluate(asked, None if k is None else int(k)).best(k)
    answered = answer_names(snapshot, rows.columns, (SCORE,), rows.with_row_id)
    scores = {SCORE: computed_column(SCORE, found.scores)}
    return answer_table(snapshot, reader_for, answered, found.ids, scores)


def query_of(query: str | TextQuery) -> TextQuery:
    """A query; the shortest form is a text."""
    asked = Match(query) if isinstance(query, str) else query
    check(asked)
    return asked
