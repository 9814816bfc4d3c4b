"""The rows whose texts match a query best, as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from lance_engine.errors import InvalidSearchError
from lance_engine.scan.scanner import parse_filter
from lance_engine.scan.system import ROW_ID
from lance_engine.scan.take import take
from lance_engine.search.text.evaluate import Evaluator
from lance_engine.search.text.found import Found
from lance_engine.search.text.query import Match, TextQuery, check, with_columns

if TYPE_CHECKING:
    import pyarrow.compute as pc

    from lance_engine.expr.tree import Node
    from lance_engine.scan.fragment import FragmentReader
    from lance_engine.table.snapshot import Snapshot

SCORE: Final = "_score"


def search(
    snapshot: Snapshot,
    reader_for: Callable[[int], FragmentReader],
    query: str | TextQuery,
    column: str | Sequence[str] | None = None,
    k: int | None = 10,
    *,
    filter: str | pc.Expression | Node | None = None,
    columns: Sequence[str] | None = None,
    with_row_id: bool = False,
    use_index: bool = True,
    fast_search: bool = False,
    analysis: Mapping[str, Any] | None = None,
) -> pa.Table:
    """See `Dataset.search`."""
    if k is not None and (isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1):
        raise InvalidSearchError(f"k is a number of rows, or None for all, not {k!r}")
    evaluator = Evaluator(
        snapshot, reader_for, parse_filter(filter, snapshot), use_index, fast_search, analysis
    )
    asked = query_of(query)
    names = [column] if isinstance(column, str) else column
    asked = with_columns(asked, evaluator.searched_columns() if names is None else list(names))
    found = evaluator.evaluate(asked, None if k is None else int(k)).best(k)
    return scored_table(snapshot, reader_for, found, SCORE, columns, with_row_id)


def query_of(query: str | TextQuery) -> TextQuery:
    """A query, of which a text is the shortest form."""
    asked = Match(query) if isinstance(query, str) else query
    check(asked)
    return asked


def scored_table(
    snapshot: Snapshot,
    reader_for: Callable[[int], FragmentReader],
    found: Found,
    score: str,
    columns: Sequence[str] | None,
    with_row_id: bool,
) -> pa.Table:
    """The rows that were found, in their order, with their scores in a column behind the others."""
    names = list(snapshot.schema.names if columns is None else columns)
    if score not in names:
        names.append(score)
    if with_row_id and ROW_ID not in names:
        names.append(ROW_ID)
    computed = {
        score: (pa.field(score, pa.float32(), nullable=False), pa.array(found.scores)),
        ROW_ID: (pa.field(ROW_ID, pa.uint64(), nullable=False), pa.array(found.ids)),
    }
    stored = [name for name in names if name not in computed]
    rows = take(snapshot, reader_for, found.ids, stored) if stored else None
    fields, arrays = [], []
    for name in names:
        if name in computed:
            field, values = computed[name]
        else:
            assert rows is not None
            field, values = rows.schema.field(name), rows.column(name)
        fields.append(field)
        arrays.append(values)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
