"""Vectors and words in one search: two answers become one order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance_engine.errors import InvalidSearchError
from lance_engine.scan.system import ROW_ID

from lance_sql.catalog.dataset import SqlDataset

DISTANCE: Final = pa.field("_distance", pa.float32())
SCORE: Final = pa.field("_score", pa.float32())
HYBRID_SCORE: Final = pa.field("_hybrid_score", pa.float32(), nullable=False)

#: How many times the rows wanted each of the two searches finds.
_OVERSAMPLING: Final = 4
#: What ranks are counted from: the larger, the less the first ranks stand out.
_RANK_CONSTANT: Final = 60
_BOTH: Final = ("filter", "use_index", "fast_search")

F64Array = npt.NDArray[np.float64]


def hybrid_search(
    dataset: SqlDataset,
    vector_column: str,
    vector: Any,
    text_column: str,
    text: str,
    columns: Sequence[str],
    options: Mapping[str, Any],
) -> pa.Table:
    """The `k` rows that are best by vector and by text, with their distance and score where they were found.

    Without `alpha` the order is that of the sum of ``1 / (60 + rank)`` over both answers. With it, distances
    and scores are each spread from 0 to 1, and `alpha` is the share of the vectors.
    """
    given = dict(options)
    k, alpha = given.pop("k", 10), given.pop("alpha", None)
    wanted = k * given.pop("oversample_factor", _OVERSAMPLING)
    if alpha is not None and not 0 <= alpha <= 1:
        raise InvalidSearchError(f"alpha is a share from 0 to 1, not {alpha!r}")
    if wanted < k or k < 1:
        raise InvalidSearchError("k and oversample_factor are numbers from 1 on")
    near = dataset.nearest(vector_column, vector, wanted, columns=[DISTANCE.name], with_row_id=True, **given)
    both = {name: value for name, value in given.items() if name in _BOTH}
    matching = dataset.search(text, text_column, wanted, columns=[SCORE.name], with_row_id=True, **both)
    near_ids, matching_ids = near[ROW_ID].to_numpy(), matching[ROW_ID].to_numpy()
    ids = np.union1d(near_ids, matching_ids)
    distances = _placed(ids, near_ids, near[DISTANCE.name].to_numpy())
    scores = _placed(ids, matching_ids, matching[SCORE.name].to_numpy())
    if alpha is None:
        total = _ranked(ids, near_ids) + _ranked(ids, matching_ids)
    else:
        total = alpha * _spread(-distances) + (1 - alpha) * _spread(scores)
    best = np.lexsort((ids, -total))[:k]
    computed = {
        DISTANCE.name: pa.array(distances[best].astype(np.float32), from_pandas=True),
        SCORE.name: pa.array(scores[best].astype(np.float32), from_pandas=True),
        HYBRID_SCORE.name: pa.array(total[best].astype(np.float32)),
        ROW_ID: pa.array(ids[best]),
    }
    stored = [name for name in columns if name not in computed]
    rows = dataset.take(ids[best], stored) if stored else None
    return pa.table(
        {
            name: computed[name] if name in computed or rows is None else rows.column(name)
            for name in (columns or [HYBRID_SCORE.name])
        }
    )


def _placed(ids: npt.NDArray[Any], found: npt.NDArray[Any], values: npt.NDArray[Any]) -> F64Array:
    """The values of rows that were found, NaN for the others."""
    placed = np.full(len(ids), np.nan)
    placed[np.searchsorted(ids, found)] = values
    return placed


def _ranked(ids: npt.NDArray[Any], found: npt.NDArray[Any]) -> F64Array:
    ranked = _placed(ids, found, 1 / (_RANK_CONSTANT + 1 + np.arange(len(found))))
    return np.nan_to_num(ranked, nan=0.0)


def _spread(values: F64Array) -> F64Array:
    """From 0 for the worst to 1 for the best, 0 for rows that were not found; 1 where all are the same."""
    known = values[~np.isnan(values)]
    if not len(known):
        return np.zeros(len(values))
    least, most = float(known.min()), float(known.max())
    spread = (values - least) / (most - least) if most > least else np.ones(len(values))
    return np.where(np.isnan(values), 0.0, spread)
