"""Plans of the conditions that engines, and statements in addition, have for the scans of a table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from lance_engine.base import LruCache
from lance_engine.expr import Column, Comparison, In, IsNull, Literal, Node, conjuncts, in_total_order
from lance_engine.expr.build import conjunction
from lance_engine.scan import FilterPlan, parse_filter

if TYPE_CHECKING:
    import pyarrow.compute as pc
    from lance_engine.table import Snapshot

#: Number of expressions of an engine whose plans are kept, with the index results in them.
_CACHED_EXPRESSIONS: Final = 8


class TableFilters:
    """The conditions for scans of `snapshot`, whose columns are those of `schema`.

    `total_order` is for engines that order NaN by its sign.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        schema: pa.Schema,
        *,
        total_order: bool,
    ) -> None:
        self._snapshot = snapshot
        self._schema = schema
        self._total_order = total_order
        #: by the pickled bytes of expressions
        self._plans: LruCache[bytes, FilterPlan] = LruCache(_CACHED_EXPRESSIONS)

    def of_filter(self, filter: pc.Expression | FilterPlan) -> FilterPlan:
        """The plan of an expression, unless it is one."""
        return filter if isinstance(filter, FilterPlan) else self.of_expression(filter)

    def of_expression(self, filter: pc.Expression) -> FilterPlan:
        """The plan of an expression: an engine passes it when it plans, and again for each partition."""
        from lance_engine.expr import arrow_filter, pickled  # slow to import

        def plan() -> FilterPlan:
            tree = arrow_filter(filter, self._schema)
            return FilterPlan(in_total_order(tree) if self._total_order else tree, self._snapshot)

        return self._plans.computed(pickled(filter).to_pybytes(), plan)

    def of_condition(self, condition: Node | FilterPlan) -> FilterPlan:
        """The plan of a condition of a statement, which may have been made for another version."""
        if not isinstance(condition, FilterPlan):
            return FilterPlan(condition, self._snapshot)
        if condition.snapshot is self._snapshot:
            return condition
        return FilterPlan(condition.filter, self._snapshot)

    def both(self, filter: Any, narrow: FilterPlan) -> FilterPlan:
        """The conjunction of `filter`, of an engine, and `narrow`."""
        snapshot = self._snapshot
        if isinstance(filter, FilterPlan):
            return narrow.joined((filter,), partial(_conjunction, snapshot, filter, narrow))
        tree = parse_filter(filter, snapshot)
        return narrow if tree is None else _conjunction(snapshot, FilterPlan(tree, snapshot), narrow)


def _conjunction(snapshot: Snapshot, filter: FilterPlan, narrow: FilterPlan) -> FilterPlan:
    # Rows that pass a comparison of a column with a constant are not null there; kernels test this once.
    compared = {
        child
        for node in conjuncts(narrow.filter)
        if isinstance(node, Comparison | In)
        and all(isinstance(child, Column | Literal) for child in node.children)
        for child in node.children
        if isinstance(child, Column)
    }
    others = [
        node
        for node in conjuncts(filter.filter)
        if not (isinstance(node, IsNull) and node.negated and node.operand in compared)
    ]
    if not others:
        return narrow
    return FilterPlan(conjunction([*others, narrow.filter]), snapshot, parts=[filter, narrow])
