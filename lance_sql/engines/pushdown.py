"""Which conditions of a statement our scan applies, and why.

DuckDB offers conditions, and does not test accepted ones again; others are found in the text of statements.
It pays to apply a condition if the scan then reads less than the whole table, or if so few rows pass that the
other columns need not be decoded. Otherwise, the vectorized filter of the engine is at least as fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lance_engine.errors import LanceError
from lance_engine.scan import ROW_NUMBERS, ScanSplit, estimated_row_bytes

from lance_sql.engines.base import Decision
from lance_sql.engines.sampling import percent, sampled_share

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion
    from lance_engine.expr import Node
    from lance_engine.scan import FilterPlan

#: Smaller tables are read completely in the time that a decision would take.
_SMALL_BYTES = 8 << 20
#: Maximum share of rows left by indices and zone maps, or by kernels that test the encoded values.
_LEFT_SHARE = 1 / 4
#: If so few rows remain to be tested, the condition is always accepted, because it costs nothing.
_TESTED_SHARE = 1 / 16
#: Maximum share of rows that pass, if only testing decoded values decides.
_SELECTIVE_SHARE = 1 / 32
#: The same on the build side of a join, whose keys the scan of a larger table tests.
_SELECTIVE_KEYS_SHARE = 1 / 8

#: Versions of files from whose pages kernels do not drop rows.
_WITHOUT_CHUNKS = ("0.1", "2.0")

#: Number of fragments whose zone maps are checked, spread over the dataset: remote ones cost requests.
_FRAGMENTS, _REMOTE_FRAGMENTS = 64, 4


def is_small(dataset: DatasetVersion) -> bool:
    """Whether reading all of `dataset` takes no longer than deciding what to read."""
    return dataset.count_rows() * estimated_row_bytes(dataset.storage_schema) < _SMALL_BYTES


class _Pruned(NamedTuple):
    """The remaining rows before any are read, as shares of all rows: `tested` ones may or may not pass."""

    left: float
    tested: float
    by: str


class Condition:
    """A condition over `dataset`; indices and zone maps are consulted once."""

    def __init__(self, dataset: DatasetVersion, tree: Node) -> None:
        self.dataset = dataset
        self.tree = tree
        self._plan: FilterPlan | None = None

    def __str__(self) -> str:
        return str(self.tree)

    @property
    def plan(self) -> FilterPlan:
        """The condition in the form that scans accept."""
        if self._plan is None:
            from lance_engine.scan import FilterPlan

            self._plan = FilterPlan(self.tree, self.dataset.snapshot)
        return self._plan

    @property
    def is_native(self) -> bool:
        """Whether kernels test the condition, and drop the other rows while they decode."""
        from lance_engine.scan import FilterSteps

        snapshot = self.dataset.snapshot
        return (
            all(file.storage_version not in _WITHOUT_CHUNKS for file in snapshot.fragments[0].files)
            and FilterSteps(self.tree, snapshot.schema).are_native
        )

    def forget_plan(self) -> None:
        """Free the index results, which may be the addresses of many rows."""
        self._plan = None


def decide(condition: Condition, *, is_build_side: bool = False) -> Decision:
    """Whether it pays for a scan to apply `condition`; takes milliseconds on local files.

    `is_build_side`: the scan of another table tests the keys of its rows.
    """
    try:
        return _decide(condition, is_build_side)
    except (LanceError, OSError):  # the scan itself will fail and report it
        return Decision(str(condition), False, "table statistics are unavailable")


def _decide(condition: Condition, is_build_side: bool) -> Decision:
    from lance_engine.expr import columns_of

    text, dataset = str(condition), condition.dataset
    if columns_of(condition.tree) <= ROW_NUMBERS:
        return Decision(text, True, "rows are looked up by id", _pruned(condition).left)
    if is_small(dataset):
        return Decision(text, False, "the table is small")
    pruned = _pruned(condition)
    if pruned.left <= _LEFT_SHARE:
        return Decision(text, True, f"{pruned.by} keep {percent(pruned.left)} of the rows", pruned.left)
    if pruned.tested <= _TESTED_SHARE:
        reason = f"{pruned.by} decide all but {percent(pruned.tested)} of the rows"
        return Decision(text, True, reason, pruned.left)
    if not dataset.snapshot.is_local:
        reason = "indices and zone maps keep most of the rows, and remote files are not sampled"
        return Decision(text, False, reason)
    share = sampled_share(dataset, condition.plan)
    # Engines plan joins with the estimated number of passing rows, and keys are best known early.
    most = _SELECTIVE_SHARE if is_build_side or not condition.is_native else _LEFT_SHARE
    return Decision(text, share <= most, f"{percent(share)} of sampled rows pass", share)


def _pruned(condition: Condition) -> _Pruned:
    dataset = condition.dataset
    fragments = dataset.snapshot.fragments
    step = -(-len(fragments) // (_FRAGMENTS if dataset.snapshot.is_local else _REMOTE_FRAGMENTS))
    splits = [ScanSplit(fragment.id, 0, fragment.physical_rows) for fragment in fragments[::step]]
    scanner = dataset.scan(columns=[], filter=condition.plan, splits=splits)
    metrics = scanner.look_ahead()
    rows, left, untested = metrics.counts("rows", "rows_left", "rows_untested")
    by = "indices" if metrics.indices else "zone maps"
    return _Pruned(left / max(rows, 1), (left - untested) / max(rows, 1), by)


def excludes_for_keys(condition: Condition, decision: Decision) -> bool:
    """Whether a scan on a build side should apply a condition, which the engine applies as well.

    The engine keeps the condition, so that it plans with its own estimate.
    """
    dataset = condition.dataset
    if decision.pushed or not dataset.snapshot.is_local:
        return False
    share = decision.share
    if is_small(dataset):  # without a sample
        try:
            share = sampled_share(dataset, condition.plan)
        except (LanceError, OSError):  # the scan itself will fail and report it
            return False
    return share <= _SELECTIVE_KEYS_SHARE
