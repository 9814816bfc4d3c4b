"""Vector and full-text search combined: both results are merged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine.errors import InvalidSearchError
from lance_engine.scan.system import ROW_ID
from lance_engine.search.answer import answer_names, answer_table, computed_column
from lance_engine.search.exact import Bounds
from lance_engine.search.nearest import DISTANCE, check_nearest, nearest
from lance_engine.search.options import AskedRows, SearchOptions, positive
from lance_engine.search.text.query import TextQuery
from lance_engine.search.text.search import SCORE, check_search, search

if TYPE_CHECKING:
    from lance_engine.scan.fragment import FragmentReader
    from lance_engine.table.snapshot import Snapshot

F64Array = npt.NDArray[np.float64]

HYBRID_SCORE: Final = "_hybrid_score"
# Added to ranks, so that the first few do not dominate.
_RANK_OFFSET: Final = 60


def hybrid(
    snapshot: Snapshot,
    reader_for: Callable[[int], FragmentReader],
    vector_column: str,
    vector: Any,
    query: str | TextQuery,
    column: str | Sequence[str] | None,
    k: int,
    alpha: float | None,
    oversample: int,
    metric: str | None,
    rows: AskedRows,
    options: SearchOptions,
) -> pa.Table:
    """See `Dataset.hybrid`."""
    k, wanted = _asked(snapshot, k, alpha, oversample, rows)
    ids_only = AskedRows(rows.filter, [], with_row_id=True)
    vectors = nearest(
        snapshot, reader_for, vector_column, vector, wanted, metric, ids_only, Bounds(), options
    )
    if vectors.column_names[0] != DISTANCE:
        raise InvalidSearchError("A hybrid search takes one vector", column=vector_column)
    # Without its index, texts would be cut into other words.
    by_words = options._replace(use_index=True)
    texts = search(snapshot, reader_for, query, column, wanted, ids_only, by_words)
    near, far = (vectors[name].to_numpy() for name in (ROW_ID, DISTANCE))
    having, scores = (texts[name].to_numpy() for name in (ROW_ID, SCORE))
    ids = np.union1d(near, having)
    by_vector, by_text = np.searchsorted(ids, near), np.searchsorted(ids, having)
    if alpha is None:
        total = _by_rank(by_vector, len(ids)) + _by_rank(by_text, len(ids))
    else:
        total = alpha * _scaled(-far.astype(np.float64), by_vector, len(ids))
        total += (1 - alpha) * _scaled(scores.astype(np.float64), by_text, len(ids))
    best = np.lexsort((ids, -total))[:k]
    computed = {
        DISTANCE: _some(DISTANCE, far, by_vector, len(ids), best),
        SCORE: _some(SCORE, scores, by_text, len(ids), best),
        HYBRID_SCORE: computed_column(HYBRID_SCORE, total[best].astype(np.float32)),
    }
    names = answer_names(snapshot, rows.columns, list(computed), rows.with_row_id)
    return answer_table(snapshot, reader_for, names, ids[best], computed)


def check_hybrid(
    snapshot: Snapshot,
    vector_column: str,
    vector: Any,
    query: str | TextQuery,
    column: str | Sequence[str] | None = None,
    k: int = 10,
    *,
    alpha: float | None = None,
    oversample: int = 4,
    metric: str | None = None,
    filter: str | None = None,
    columns: Sequence[str] | None = None,
    **options: Any,
) -> None:
    """Raise the errors of `hybrid` for these arguments, without reading files."""
    _asked(snapshot, k, alpha, oversample, AskedRows(filter, columns))
    check_nearest(snapshot, vector_column, vector, metric=metric, filter=filter, **options)
    check_search(snapshot, query, column, filter=filter)


def _asked(
    snapshot: Snapshot, k: int, alpha: float | None, oversample: int, rows: AskedRows
) -> tuple[int, int]:
    """The number of rows to return, and to request from each search; InvalidSearchError if invalid."""
    if alpha is not None and (
        isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 <= alpha <= 1
    ):
        raise InvalidSearchError(f"alpha must be between 0 and 1, not {alpha!r}")
    k = positive("k", k)
    rows.check(snapshot, (DISTANCE, SCORE, HYBRID_SCORE))
    return k, positive("k", k * positive("oversample", oversample))


def _by_rank(places: npt.NDArray[np.int64], count: int) -> F64Array:
    """The score of each row for its rank; none for rows that were not found."""
    scores = np.zeros(count)
    scores[places] = 1 / (_RANK_OFFSET + 1 + np.arange(len(places)))
    return scores


def _scaled(values: F64Array, places: npt.NDArray[np.int64], count: int) -> F64Array:
    """Values scaled to 0 ... 1, the largest to 1; 0 for rows without one."""
    scaled = np.zeros(count)
    if len(values):
        low, high = values.min(), values.max()
        scaled[places] = (values - low) / (high - low) if high > low else 1.0
    return scaled


def _some(
    name: str,
    values: npt.NDArray[np.float32],
    places: npt.NDArray[np.int64],
    count: int,
    best: npt.NDArray[np.int64],
) -> tuple[pa.Field, pa.Array]:
    """The values of the best rows, null for rows without one."""
    scores = np.zeros(count, dtype=np.float32)
    scores[places] = values
    missing = np.ones(count, dtype=np.bool_)
    missing[places] = False
    return pa.field(name, pa.float32()), pa.array(scores[best], mask=missing[best])
