"""Conditions on one table from the join keys of another, and whether it pays to test them.

A statement that runs again usually collects the same keys: what was found for them is kept.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from lance_engine.base import of_numpy
from lance_engine.expr import Column, SummarizedIn
from lance_engine.scan import FilterPlan

from lance_sql.engines.sampling import percent, sampled_share

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from lance_engine.dataset import DatasetVersion

#: Maximum number of keys that are looked up in an index.
_MOST_LOOKED_UP: Final = 10_000
#: Maximum number of keys per row of the probe side for remote files, whose rows are not sampled.
_REMOTE_SHARE: Final = 1 / 64
#: Maximum share of rows that pass, for testing and selecting rows to be faster than reading all. Engines that
#: filter joins gain less.
MOST_PASSING_SHARE: Final = 1 / 8
MOST_PASSING_SHARE_FILTERED: Final = 1 / 12
#: Number of places at which rows of the probe side are sampled: each costs as much as reading thousands in
#: sequence.
_SAMPLED_PLACES: Final = 8
#: Maximum number of keys that are kept with their condition, for each path.
_MOST_KEPT: Final = 10_000


class KeyPath(NamedTuple):
    """Rows of `probe` only matter if their `column` is the `key` of a row of `build` that matters.

    If `build` occurs several times, that is a row which matters to any of them.
    """

    build: str
    key: str
    probe: str
    column: str


class _Known(NamedTuple):
    """What was found for some keys and a dataset."""

    dataset: weakref.ref[DatasetVersion]
    keys: npt.NDArray[np.int64]
    plan: FilterPlan | None
    reason: str


class KeyConditions:
    """The conditions of a statement by path, from one run to the next."""

    def __init__(self) -> None:
        self._known: dict[KeyPath, _Known] = {}

    def condition(
        self,
        path: KeyPath,
        keys: npt.NDArray[np.int64],
        rows: int,
        dataset: DatasetVersion,
        most_passing: float,
    ) -> tuple[FilterPlan | None, str]:
        """A condition that skips rows with other keys, and the reason.

        None if reading all `rows` is as fast: a larger share of them than `most_passing` is left.
        """
        import numpy as np

        known = self._known.get(path)
        if known is not None and known.dataset() is dataset and np.array_equal(known.keys, keys):
            return known.plan, known.reason
        plan, reason = _plan(path, keys, rows, dataset, most_passing)
        # What an index has found may be the addresses of many rows.
        if len(keys) <= _MOST_KEPT and (plan is None or plan.indexed is None):
            self._known[path] = _Known(weakref.ref(dataset), keys, plan, reason)
        return plan, reason


def _plan(
    path: KeyPath, keys: npt.NDArray[np.int64], rows: int, dataset: DatasetVersion, most_passing: float
) -> tuple[FilterPlan | None, str]:
    if len(keys) > rows * most_passing:
        return None, "these are too many"
    node = _listed(path, keys, dataset)
    if not len(node.values):
        return None, "there is nothing to test"
    plan = FilterPlan(node, dataset.snapshot, indices=len(keys) <= _MOST_LOOKED_UP)
    if not dataset.snapshot.is_local:
        known = len(keys) <= rows * _REMOTE_SHARE
        return plan if known else None, "remote files are not sampled"
    share = sampled_share(dataset, plan, places=_SAMPLED_PLACES)
    return plan if share <= most_passing else None, f"{percent(share)} of sampled rows pass"


def _listed(path: KeyPath, keys: npt.NDArray[np.int64], dataset: DatasetVersion) -> SummarizedIn:
    """The condition that a column of the probe side is one of some keys."""
    kind = dataset.storage_schema.field(path.column).type
    stored = pa.int32() if pa.types.is_date32(kind) else kind
    least, most = integer_bounds(stored)
    fitting = keys[(keys >= least) & (keys <= most)]
    values = of_numpy(fitting).cast(stored).view(kind)
    keys_of = "key of" if len(values) == 1 else "keys of"
    summary = f"{len(values):,} {keys_of} {path.build}.{path.key}"
    return SummarizedIn(Column((path.column,), kind), values, summary=summary)


def integer_bounds(kind: pa.DataType) -> tuple[int, int]:
    """The min and max value of an integer type, limited to the range of signed 64 bits."""
    bits = int(kind.bit_width)
    if pa.types.is_unsigned_integer(kind):
        return 0, min((1 << bits) - 1, (1 << 63) - 1)
    return -(1 << bits - 1), (1 << bits - 1) - 1
