"""A filter as steps: which columns to read first, and which rows remain for the next step."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from lance_engine.arrow_values import empty_columns, false_for_null
from lance_engine.expr.build import conjunction
from lance_engine.expr.evaluate import evaluate
from lance_engine.expr.tree import (
    Arithmetic,
    Cast,
    Column,
    Comparison,
    Function,
    In,
    IsNull,
    Match,
    Node,
    columns_of,
    conjuncts,
    rebuilt,
    walk,
)
from lance_engine.scan.native_tests import native_tests
from lance_engine.scan.paths import field_path, path_text
from lance_engine.scan.reader import RowsReader
from lance_engine.scan.selection import Selection
from lance_engine.scan.system import SYSTEM_FIELDS

if TYPE_CHECKING:
    from lance_engine.schema_tree import Schema

# A step reads individual rows if less than this share remains after earlier steps.
_FEW_SHARE = 1 / 4
# The same for what kernels test as numbers or codes: testing all rows takes less time than picking some.
_FEW_SHARE_NATIVE = 1 / 32
_CHEAP = 4.0
# Number of tested rows after which the observed share replaces the guess.
_PRIOR_ROWS = 20_000
# Relative cost per row of decoding and testing values.
_STRING_COST, _NESTED_COST, _MATCH_COST = 10.0, 12.0, 8.0
# The assumed share of passing rows before any row was tested.
_PASSING = {"=": 0.02, "<>": 0.95, "in": 0.1, "null": 0.2, "match": 0.2}
_PASSING_OTHERWISE = 0.4


class Step:
    """Conditions on the same columns, tested together, and the number of rows that passed so far."""

    def __init__(self, nodes: Sequence[Node], *, of_json: bool = False) -> None:
        nodes = _without_implied(nodes)
        self.node = conjunction(nodes)
        self.names = tuple(sorted(columns_of(self.node)))
        self.can_fail = any(_can_fail(node) for node in nodes)
        #: the conditions in the form that kernels test while decoding, if possible
        self.native = None if of_json else native_tests(tuple(nodes))
        self.cost = _cost(self.node)
        self._guess = min(_guess(node) for node in nodes)
        self._tested = self._passed = 0

    def count(self, tested: int, passed: int) -> None:
        """Update the counts; losing an update between threads does not matter."""
        self._tested += tested
        self._passed += passed

    @property
    def rank(self) -> float:
        """Cost per row that the step excludes."""
        passing = (self._passed + self._guess * _PRIOR_ROWS) / (self._tested + _PRIOR_ROWS)
        return self.cost / max(1e-6, 1.0 - passing)


class FilterSteps:
    """The conjuncts of a filter, ordered by cost and selectivity.

    Conditions that can fail, such as casts, come last and in their original order: earlier ones may protect
    them. Struct fields are treated as separate columns, named by their paths.
    """

    def __init__(self, filter: Node, schema: Schema) -> None:
        filter = _with_paths(filter, schema)
        grouped: dict[frozenset[str], list[Node]] = {}
        self._fallible: list[Step] = []
        for node in conjuncts(filter):
            if _can_fail(node):
                self._fallible.append(Step([node], of_json=_is_of_json([node], schema)))
            else:
                grouped.setdefault(frozenset(columns_of(node)), []).append(node)
        self._steps = [Step(nodes, of_json=_is_of_json(nodes, schema)) for nodes in grouped.values()]
        self.names = tuple(sorted(columns_of(filter)))

    @property
    def are_native(self) -> bool:
        """Whether kernels can test everything, so that testing many rows at once takes no memory."""
        return all(step.native is not None for step in (*self._steps, *self._fallible))

    def ordered(self) -> list[Step]:
        """The steps, most selective per cost first."""
        if len(self._steps) < 2:
            return [*self._steps, *self._fallible]
        return [*sorted(self._steps, key=lambda step: step.rank), *self._fallible]


class Passing:
    """The rows of a selection that passed so far, and the columns that were read for them.

    While many rows pass, they are a mask over the selection; if few do, a separate selection.
    """

    def __init__(self, reader: RowsReader, selection: Selection, live: pa.BooleanArray | None) -> None:
        self.reader = reader
        self.selection = selection
        #: columns of all rows of the selection
        self.columns: dict[str, pa.Array] = {}
        self._mask = live
        self.count = selection.count if live is None else int(live.true_count)
        self.decoded = 0

    def test(
        self,
        step: Step,
        coded: Callable[[str], bool],
        wanted: Collection[str],
    ) -> None:
        """Keep only the rows that pass `step`; of the columns read, keep those that are `wanted`.

        Columns for which `coded` is true are read as dictionaries.
        """
        tested = self.count
        if step.can_fail or self.count < self.selection.count * self._few_share(step, coded):
            self.compress()
        mask = self._tested_natively(step)
        if mask is None:
            mask = self._evaluated(step, coded, wanted)
        mask = false_for_null(mask)
        self._mask = mask if self._mask is None else pc.and_(self._mask, mask)
        self.count = int(self._mask.true_count)
        step.count(tested, self.count)

    def _few_share(self, step: Step, coded: Callable[[str], bool]) -> float:
        """The share of passing rows below which `step` tests only these."""
        if step.native is None or (step.cost > _CHEAP and not all(map(coded, step.names))):
            return _FEW_SHARE
        return _FEW_SHARE_NATIVE

    def _tested_natively(self, step: Step) -> pa.BooleanArray | None:
        """The result of a step that kernels test, unless its columns are already available."""
        if step.native is None or all(name in self.columns for name in step.names):
            return None
        projection = step.native.projection(self.reader)
        if projection is None:
            return None
        self.decoded += self.selection.count
        return evaluate(step.native.node, projection.read(self.selection))

    def _evaluated(
        self, step: Step, coded: Callable[[str], bool], wanted: Collection[str]
    ) -> pa.BooleanArray:
        missing = tuple(name for name in step.names if name not in self.columns)
        if missing:
            batch = self.reader.projection(missing, frozenset(filter(coded, missing))).read(self.selection)
            self.decoded += self.selection.count
            self.columns.update(zip(missing, batch.columns, strict=True))
        arrays = [self.columns[name] for name in step.names]
        batch = (
            pa.RecordBatch.from_arrays(arrays, names=list(step.names))
            if arrays
            else empty_columns(self.selection.count)
        )
        mask = evaluate(step.node, batch)
        for name in missing:
            if name not in wanted:
                del self.columns[name]
        return mask

    def dense_mask(self, distance: int) -> pa.BooleanArray | None:
        """The passing rows of a range, if they are at most `distance` apart on average; otherwise None.

        Also None if they are a single run, for which `compress` avoids a copy.
        """
        is_dense = self.selection.is_range and self.count * distance >= self.selection.count
        return self._mask if is_dense and self._run() is None else None

    def compress(self) -> None:
        """Remove rows that do not pass from the selection and the columns; some row must pass."""
        # A slice keeps the whole array.
        run = self._run() if 2 * self.count >= self.selection.count else None
        mask, self._mask = self._mask, None
        if run is not None:
            self.columns = {name: array.slice(run[0], self.count) for name, array in self.columns.items()}
            self.selection = self.selection.part(*run)
        elif mask is not None and self.count < self.selection.count:
            self.columns = {name: pc.filter(array, mask) for name, array in self.columns.items()}
            self.selection = self.selection.where(mask)

    def _run(self) -> tuple[int, int] | None:
        """The begin and end of the passing rows of a range, if they are contiguous."""
        if self._mask is None or not self.selection.is_range:
            return None
        first = int(pc.index(self._mask, True).as_py())
        is_run = self._mask.slice(first, self.count).true_count == self.count
        return (first, first + self.count) if is_run else None


def _is_of_json(nodes: Sequence[Node], schema: Schema) -> bool:
    """Whether one of the columns of conditions is JSON, of which kernels have no text."""
    columns = {child.parts[0] for node in nodes for child in walk(node) if isinstance(child, Column)}
    return any(field_path(schema, name)[-1].is_json for name in columns if name not in SYSTEM_FIELDS)


def _with_paths(filter: Node, schema: Schema) -> Node:
    """The filter with struct fields as columns that are read separately."""

    def as_column(node: Node) -> Node:
        if isinstance(node, Column) and len(node.parts) > 1:
            path = path_text(schema, node.parts)
            return node if path is None else Column((path,), node.stored_type)
        return node

    return rebuilt(filter, as_column)


def _without_implied(nodes: Sequence[Node]) -> Sequence[Node]:
    """Conditions that must all be true, without ``IS NOT NULL`` tests of what another one compares.

    Spark adds such tests to all comparisons, and the kernels do not test for null.
    """
    nulls_fail = {node.left for node in nodes if isinstance(node, Comparison)}
    nulls_fail.update(node.operand for node in nodes if isinstance(node, (In, Match)))
    return [
        node
        for node in nodes
        if not (isinstance(node, IsNull) and node.negated and node.operand in nulls_fail)
    ]


def _can_fail(node: Node) -> bool:
    return any(
        isinstance(child, (Arithmetic, Function)) or (isinstance(child, Cast) and not child.lenient)
        for child in walk(node)
    )


def _cost(node: Node) -> float:
    columns = {child for child in walk(node) if isinstance(child, Column)}
    matches = sum(isinstance(child, Match) for child in walk(node))
    return 1.0 + sum(_type_cost(column.stored_type) for column in columns) + matches * _MATCH_COST


def _type_cost(kind: pa.DataType) -> float:
    if at.is_dictionary(kind):
        return _type_cost(kind.index_type)
    try:
        return float(kind.bit_width) / 64
    except ValueError:
        return _NESTED_COST if at.is_nested(kind) else _STRING_COST


def _guess(node: Node) -> float:
    match node:
        case Comparison():
            return _PASSING.get(node.op, _PASSING_OTHERWISE)
        case In():
            return _PASSING["in"]
        case IsNull():
            return 1 - _PASSING["null"] if node.negated else _PASSING["null"]
        case Match():
            return _PASSING["match"]
        case _:
            return _PASSING_OTHERWISE
