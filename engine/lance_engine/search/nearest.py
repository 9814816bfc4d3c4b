"""The rows whose vectors are nearest to a query, as a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine.errors import ColumnNotFoundError, InvalidSearchError
from lance_engine.scan.filters import parse_filter
from lance_engine.search.answer import answer_names, answer_table, computed_column
from lance_engine.search.choice import choose_index, metric_of
from lance_engine.search.column import VectorColumn, vector_column
from lance_engine.search.exact import Bounds, search_exactly
from lance_engine.search.indexed import search_index
from lance_engine.search.options import AskedRows, SearchOptions, positive
from lance_engine.search.query import Query, parse_query

if TYPE_CHECKING:
    from lance_engine import kernels
    from lance_engine.expr.tree import Node
    from lance_engine.scan.fragment import FragmentReader
    from lance_engine.scan.splits import ScanSplit
    from lance_engine.search.metric import Metric
    from lance_engine.table.snapshot import Snapshot

DISTANCE: Final = "_distance"
QUERY_INDEX: Final = "query_index"


def nearest(
    snapshot: Snapshot,
    reader_for: Callable[[int], FragmentReader],
    column: str,
    query: Any,
    k: int,
    metric: str | None,
    rows: AskedRows,
    bounds: Bounds,
    options: SearchOptions,
) -> pa.Table:
    """See `Dataset.nearest`."""
    place, k, asked, node, options = _asked(snapshot, column, k, metric, rows, bounds, options)
    chosen = choose_index(snapshot, place, asked) if options.use_index else None
    parsed = parse_query(place, query, asked)
    if chosen is None:
        nearest_rows = search_exactly(snapshot, reader_for, parsed, k, bounds, node)
    else:
        nearest_rows = search_index(snapshot, reader_for, parsed, k, bounds, node, options, chosen)
    return _table(snapshot, reader_for, parsed, nearest_rows, rows.columns, rows.with_row_id)


def check_nearest(
    snapshot: Snapshot,
    column: str,
    query: Any = None,
    k: int = 10,
    metric: str | None = None,
    *,
    filter: str | None = None,
    columns: Sequence[str] | None = None,
    lower: float | None = None,
    upper: float | None = None,
    **options: Any,
) -> None:
    """Raise the errors of `nearest` for these arguments, without reading rows. None stands for any query."""
    rows, bounds = AskedRows(filter, columns), Bounds(lower, upper)
    place, _, asked, _, _ = _asked(snapshot, column, k, metric, rows, bounds, SearchOptions(**options))
    if query is not None:
        parse_query(place, query, asked)


def _asked(
    snapshot: Snapshot,
    column: str,
    k: int,
    metric: str | None,
    rows: AskedRows,
    bounds: Bounds,
    options: SearchOptions,
) -> tuple[VectorColumn, int, Metric, Node | None, SearchOptions]:
    """The parsed arguments of a search; LanceError if one is invalid."""
    place = vector_column(snapshot, column)
    k = positive("k", k, place.name)
    _check_bounds(place, bounds)
    rows.check(snapshot, (DISTANCE, QUERY_INDEX))
    asked = metric_of(snapshot, place, metric)
    return place, k, asked, parse_filter(rows.filter, snapshot), options.checked(k)


def has_index(snapshot: Snapshot, column: str, metric: str | None) -> bool:
    """Whether `nearest` would use an index."""
    place = vector_column(snapshot, column)
    return choose_index(snapshot, place, metric_of(snapshot, place, metric)) is not None


#: Found rows: their query numbers, row ids and distances.
FoundRows = tuple[npt.NDArray[Any], npt.NDArray[np.uint64], npt.NDArray[np.float32]]


def nearest_among(
    snapshot: Snapshot,
    reader_for: Callable[[int], FragmentReader],
    column: str,
    query: Any,
    k: int,
    metric: str | None = None,
    *,
    splits: Sequence[ScanSplit],
    filter: str | None = None,
    lower: float | None = None,
    upper: float | None = None,
) -> FoundRows:
    """The nearest rows in some ranges of rows, compared exactly."""
    place = vector_column(snapshot, column)
    bounds = Bounds(lower, upper)
    k = positive("k", k, place.name)
    _check_bounds(place, bounds)
    parsed = parse_query(place, query, metric_of(snapshot, place, metric))
    node = parse_filter(filter, snapshot)
    return search_exactly(snapshot, reader_for, parsed, k, bounds, node, splits).result()


def nearest_table(
    snapshot: Snapshot,
    reader_for: Callable[[int], FragmentReader],
    column: str,
    query: Any,
    k: int,
    parts: Sequence[FoundRows],
    columns: Sequence[str] | None = None,
    metric: str | None = None,
    with_row_id: bool = False,
) -> pa.Table:
    """The result of `nearest`, given the nearest rows of each part of the dataset."""
    place = vector_column(snapshot, column)
    parsed = parse_query(place, query, metric_of(snapshot, place, metric))
    merged = Bounds().nearest(parsed.count, k)
    for numbers, ids, distances in parts:
        for number in np.unique(numbers).tolist():
            mine = numbers == number
            merged.offer(int(number), np.ascontiguousarray(distances[mine]), np.ascontiguousarray(ids[mine]))
    return _table(snapshot, reader_for, parsed, merged, columns, with_row_id)


def _check_bounds(column: VectorColumn, bounds: Bounds) -> None:
    for bound in bounds:
        if bound is None:
            continue
        if isinstance(bound, bool) or not isinstance(bound, (int, float, np.number)) or bound != bound:
            raise InvalidSearchError(f"A distance bound must be a number, not {bound!r}", column=column.name)


def _table(
    snapshot: Snapshot,
    reader_for: Callable[[int], FragmentReader],
    query: Query,
    nearest: kernels.Nearest,
    columns: Sequence[str] | None,
    with_row_id: bool,
) -> pa.Table:
    """The found rows: with several queries their query number comes first; the distance is last."""
    names = answer_names(snapshot, columns, (DISTANCE,), with_row_id)
    if query.is_batch and QUERY_INDEX not in names:
        names.insert(0, QUERY_INDEX)
    if QUERY_INDEX in names and not query.is_batch and QUERY_INDEX not in snapshot.schema.names:
        raise ColumnNotFoundError(
            f"Column '{QUERY_INDEX}' only exists with several queries",
            path=snapshot.uri,
            version=snapshot.version,
        )
    numbers, ids, distances = nearest.result()
    computed = {
        DISTANCE: computed_column(DISTANCE, distances),
        QUERY_INDEX: computed_column(QUERY_INDEX, numbers.astype(np.int32)),
    }
    return answer_table(snapshot, reader_for, names, ids, computed)
