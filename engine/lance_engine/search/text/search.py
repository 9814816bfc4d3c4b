"""The rows whose texts match a query best, as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lance_engine.errors import InvalidSearchError
from lance_engine.scan.filters import parse_filter
from lance_engine.search.answer import answer_names, answer_table, computed_column
from lance_engine.search.options import AskedRows, SearchOptions, positive
from lance_engine.search.text.column import text_column
from lance_engine.search.text.evaluate import Evaluator
from lance_engine.search.text.query import Match, TextQuery, check, names_all_columns, with_columns

if TYPE_CHECKING:
    from lance_engine.expr.tree import Node
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
    asked, k, node, options = _asked(snapshot, query, column, k, rows, options)
    evaluator = Evaluator(
        snapshot,
        reader_for,
        node,
        options.use_index,
        options.fast_search,
        analysis,
    )
    if not names_all_columns(asked):
        names = [column] if isinstance(column, str) else column
        searched = evaluator.searched_columns(rows.columns) if names is None else list(names)
        asked = with_columns(asked, searched)
    best = evaluator.evaluate(asked, k).best(k)
    answered = answer_names(snapshot, rows.columns, (SCORE,), rows.with_row_id)
    scores = {SCORE: computed_column(SCORE, best.scores)}
    return answer_table(snapshot, reader_for, answered, best.ids, scores)


def check_search(
    snapshot: Snapshot,
    query: str | TextQuery,
    column: str | Sequence[str] | None = None,
    k: int | None = 10,
    *,
    filter: str | None = None,
    columns: Sequence[str] | None = None,
    **options: Any,
) -> None:
    """Raise the errors of `search` for these arguments, without reading files."""
    _asked(snapshot, query, column, k, AskedRows(filter, columns), SearchOptions(**options))


def _asked(
    snapshot: Snapshot,
    query: str | TextQuery,
    column: str | Sequence[str] | None,
    k: int | None,
    rows: AskedRows,
    options: SearchOptions,
) -> tuple[TextQuery, int | None, Node | None, SearchOptions]:
    """The parsed arguments of a search; LanceError if one is invalid."""
    k = None if k is None else positive("k", k)
    rows.check(snapshot, (SCORE,))
    asked = query_of(query)
    names = [column] if isinstance(column, str) else () if column is None else column
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InvalidSearchError(f"Pass the column by name, or several in a list, not {column!r}")
    for name in names:
        text_column(snapshot, name)
    return asked, k, parse_filter(rows.filter, snapshot), options.checked(k or 1)


def query_of(query: str | TextQuery) -> TextQuery:
    """A query; a plain text is the shortest form."""
    asked = Match(query) if isinstance(query, str) else query
    check(asked)
    return asked
