"""Uses indices for conditions on elements of lists and parts of strings.

For ``WHERE list_contains(tags, 'x')`` or ``WHERE title LIKE '%x%'``, the engine gets only the rows that the
index finds, and tests its conditions again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from lance_engine.errors import LanceError

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.searches.one_table import OneTable, as_condition, one_table, only_name
from lance_sql.syntax.scopes import conjuncts
from lance_sql.text.reference import Reference
from lance_sql.text.statement import Statement

if TYPE_CHECKING:
    from lance_engine.expr import Node

#: The kinds of indices that support them.
_KINDS: Final = ("label_list", "ngram")
#: Maximum share of rows left by an index for it to be used.
_LEFT_SHARE: Final = 1 / 20
_MATCHES: Final = ("like", "contains", "starts_with", "ends_with")


@dataclass(frozen=True, slots=True)
class IndexedCondition:
    """The rows of `dataset` that pass a condition which an index supports."""

    dataset: SqlDataset
    condition: str

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of these rows."""
        yield from self.dataset.scan(list(columns), self.condition).to_batches()

    def description(self) -> list[str]:
        """Describes the operation, for people."""
        return self.dataset.scan([], self.condition).explain().splitlines()


def indexed_condition(
    statement: Statement, find: Callable[[Reference], SqlDataset | None], value: Callable[[str], Any]
) -> tuple[OneTable, IndexedCondition] | None:
    """The index result for the conditions of a query, and its only table; None if no index applies.

    `find` resolves a dataset name, `value` evaluates an expression without columns.
    """
    name = only_name(statement)
    dataset = None if name is None else find(name)
    if dataset is None or not _has_index(dataset):
        return None
    table = one_table(statement)
    if table is None or not _is_over_rows(table.select):
        return None
    conditions = conjuncts(table.select.args["where"].this)
    texts = (as_condition(table, condition, dataset, value) for condition in conditions)
    served = [text for text in texts if text is not None and _is_served(text, dataset)]
    if not served:
        return None
    rows = IndexedCondition(dataset, " AND ".join(f"({text})" for text in served))
    return table, rows


def _has_index(dataset: SqlDataset) -> bool:
    if not dataset.snapshot.index_section:
        return False
    from lance_engine.index import usable_indices

    indices = usable_indices(dataset.snapshot).values()
    return any(index.kind.name in _KINDS for of_column in indices for index in of_column)


def _is_over_rows(tree: Any) -> bool:
    """Whether the query tests its conditions on the rows of its table before anything else."""
    from sqlglot import exp

    others = {"joins", "laterals", "with", "with_", "pivots", "match", "sample"}
    if tree.args.get("where") is None or any(tree.args.get(name) for name in others):
        return False
    odd = (exp.Query, exp.Join, exp.TableSample, exp.Unnest)
    return not any(tree.find(kind) is not (tree if kind is exp.Query else None) for kind in odd)


def _is_served(text: str, dataset: SqlDataset) -> bool:
    """Whether an index leaves few rows for a condition with the same meaning in engines and scans."""
    from lance_engine.expr import parse_sql

    try:
        node = parse_sql(text, dataset.storage_schema)
        if not _is_certain(node):
            return False
        metrics = dataset.scan([], node).look_ahead()
    except LanceError:
        return False
    kinds = {use.kind for use in metrics.indices}
    return not kinds.isdisjoint(_KINDS) and metrics.rows_left <= metrics.rows * _LEFT_SHARE


def _is_certain(node: Node) -> bool:
    """Whether engines and scans agree on a condition: engines differ in escape characters of patterns."""
    from lance_engine.expr import Column, Function, Literal, Match, is_text

    if isinstance(node, Match):
        return node.kind in _MATCHES and isinstance(node.operand, Column) and "\\" not in node.pattern
    wanted = node.arguments[-1] if isinstance(node, Function) and len(node.arguments) == 2 else None
    if not isinstance(wanted, Literal):
        return False
    kind = wanted.type
    item = kind.value_type if pa.types.is_list(kind) or pa.types.is_large_list(kind) else kind
    return bool(is_text(item) or pa.types.is_integer(item))
