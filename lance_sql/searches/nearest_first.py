"""``ORDER BY array_distance(v, $q) LIMIT k``: the engine only gets rows that may be among the first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as at
from lance_engine.errors import LanceError

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.searches.mentions import DISTANCES
from lance_sql.searches.one_table import OneTable, as_condition, one_table, only_name
from lance_sql.text.reference import Reference
from lance_sql.text.statement import Statement

if TYPE_CHECKING:
    from lance_engine.expr import Node

#: Minimum number of rows for a search to be worthwhile.
_MOST_ROWS: Final = 10_000
#: Number of candidates beyond `k` after which the engine gets all rows, because too many are equally near.
_MOST_TIES: Final = 100_000
#: Relative error per element between two ways to sum 32-bit floats.
_ROUNDING: Final = 2.4e-7


@dataclass(frozen=True, slots=True)
class NearestFirst:
    """The rows of `dataset` that the engine needs to find the first `k` itself."""

    dataset: SqlDataset
    column: str
    metric: str
    query: Any
    k: int
    filter: str | None
    by_index: bool

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The columns of rows that include the first `k`; all rows if that is unknown."""
        candidates = self._candidates(columns)
        if candidates is None:
            yield from self.dataset.scan(list(columns), self.filter).to_batches()
        else:
            yield from candidates.select(list(columns)).to_batches()

    def _candidates(self, columns: Sequence[str]) -> pa.Table | None:
        names = list(dict.fromkeys([*columns, self.column]))
        if self.by_index and self._has_index():
            return self._nearest(names, self.k, use_index=True)
        wanted = self.k + max(16, self.k // 4)
        while wanted <= _MOST_TIES:
            candidates = self._nearest(names, wanted, use_index=False)
            if candidates.num_rows < wanted:
                return candidates if candidates.num_rows >= self.k else None
            distances = candidates["_distance"].to_numpy()
            if distances[-1] - distances[self.k - 1] > self._margin(candidates):
                return candidates
            wanted *= 4
        return None

    def _nearest(self, columns: list[str], k: int, use_index: bool) -> pa.Table:
        stored = [name for name in columns if name != "_rowid"]
        nearest: pa.Table = self.dataset.nearest(
            self.column,
            self.query,
            k,
            self.metric,
            filter=self.filter,
            columns=[*stored, "_distance"],
            with_row_id="_rowid" in columns,
            use_index=use_index,
        )
        return nearest

    def _margin(self, rows: pa.Table) -> float:
        """The minimum difference of two distances that the engine orders as we do."""
        query = np.asarray(self.query, dtype=np.float64)
        share = 1e-6 + _ROUNDING * len(query)
        vectors = rows[self.column].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        matrix = vectors.reshape(-1, len(query)).astype(np.float64)
        distance = float(rows["_distance"].to_numpy()[-1])
        match self.metric:
            case "l2":
                return 2 * share * abs(distance)
            case "cosine":
                return 2 * share
            case _:
                norms = np.sqrt((matrix**2).sum(axis=1)).max(initial=0.0)
                return 2 * share * max(float(np.sqrt((query**2).sum()) * norms), abs(distance), 1.0)

    def _has_index(self) -> bool:
        from lance_engine.search import has_index

        return has_index(self.dataset.snapshot, self.column, self.metric)

    def description(self) -> list[str]:
        """Describes the operation, for people."""
        from lance_engine.search import explain_nearest

        by_index = self.by_index and self._has_index()
        snapshot = self.dataset.snapshot
        lines = explain_nearest(snapshot, self.column, self.k, self.metric, {"use_index": by_index})
        return [*lines, *([f"filter    {self.filter}"] if self.filter else [])]


def nearest_first(
    statement: Statement,
    find: Callable[[Reference], SqlDataset | None],
    value: Callable[[str], Any],
    nulls_are_last: Callable[[bool], bool],
    by_index: bool,
) -> tuple[OneTable, NearestFirst] | None:
    """The search for a query ordered by a distance, and its table; None for other queries.

    `find` resolves a dataset name, `value` evaluates an expression without columns.
    """
    name = only_name(statement)
    query_over = None if name is None else one_table(statement)
    if name is None or query_over is None or not _is_plain(query_over.select):
        return None
    tree = query_over.select
    ordered = tree.args["order"].expressions[0]
    distance = _distance(tree, ordered.this)
    k = _number(tree.args["limit"], value)
    skipped = _number(tree.args.get("offset"), value)
    if distance is None or k is None or skipped is None or not 0 < k + skipped <= _MOST_ROWS:
        return None
    metric, ascending, column, query, is_single = distance
    descending = bool(ordered.args.get("desc"))
    # NaN is the largest number, so it comes first in descending order, but it is not near to anything.
    if descending is ascending or (descending and not by_index):
        return None
    words = [token.upper for token in statement.tokens]
    if "FIRST" in words or ("NULLS" not in words and not nulls_are_last(descending)):
        return None
    dataset = find(name)
    if dataset is None or not _is_vector(dataset, column):
        return None
    where = tree.args.get("where")
    condition = None if where is None else _condition(query_over, where.this, dataset, value)
    if where is not None and condition is None:
        return None
    try:
        vector = value(query)
        if is_single:
            vector = np.asarray(vector, dtype=np.float32).tolist()
        if len(vector) != dataset.storage_schema.field(column).type.list_size:
            return None
        if not np.isfinite(np.asarray(vector, dtype=np.float64)).all():
            return None
    except (LanceError, TypeError, ValueError):
        return None
    rows = NearestFirst(dataset, column, metric, vector, k + skipped, condition, by_index)
    return query_over, rows


def _is_plain(tree: Any) -> bool:
    """Whether only the order and the limit of a query determine its rows."""
    from sqlglot import exp

    allowed = {"expressions", "from", "from_", "where", "order", "limit", "offset", "kind", "hint"}
    others = {name for name, value in tree.args.items() if value and name not in allowed}
    if others or tree.args.get("order") is None or not isinstance(tree.args.get("limit"), exp.Limit):
        return False
    odd = (exp.AggFunc, exp.Window, exp.Query, exp.Join, exp.TableSample, exp.Explode, exp.Unnest)
    return not any(tree.find(kind) is not (tree if kind is exp.Query else None) for kind in odd)


def _distance(tree: Any, key: Any) -> tuple[str, bool, str, str, bool] | None:
    """Metric, order, column and the text of the query vector, given a distance or its alias.

    The last value: whether the query vector is cast to single precision.
    """
    from sqlglot import exp

    if isinstance(key, exp.Column) and not key.table:
        named = [item.this for item in tree.expressions if item.alias == key.name]
        key = named[0] if len(named) == 1 else key
    name = key.name.lower() if isinstance(key, exp.Anonymous) else key.key.lower()
    if isinstance(key, exp.Func) and not isinstance(key, exp.Anonymous):
        name = key.sql_name().lower()
    if name not in DISTANCES:
        return None
    given = key.expressions if isinstance(key, exp.Anonymous) else [key.this, key.args.get("expression")]
    columns = [item for item in given if isinstance(item, exp.Column)]
    constants = [item for item in given if item is not None and not list(item.find_all(exp.Column))]
    if len(given) != 2 or len(columns) != 1 or len(constants) != 1:
        return None
    metric, ascending = DISTANCES[name]
    query, is_single = constants[0], False
    if isinstance(query, exp.Cast):
        element = query.to.expressions[0] if query.to.is_type(exp.DataType.Type.ARRAY) else None
        if element is None or not element.is_type(exp.DataType.Type.FLOAT, exp.DataType.Type.DOUBLE):
            return None
        query, is_single = query.this, element.is_type(exp.DataType.Type.FLOAT)
    return metric, ascending, columns[0].name, query.sql(dialect="duckdb"), is_single


def _number(clause: Any, value: Callable[[str], Any]) -> int | None:
    """The number in a LIMIT or OFFSET, None if it is not a number."""
    if clause is None:
        return 0
    try:
        number = value(clause.expression.sql(dialect="duckdb"))
    except LanceError:
        return None
    return number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None


def _is_vector(dataset: SqlDataset, column: str) -> bool:
    """Whether a column contains vectors that the engine computes with as they are stored."""
    if column not in dataset.schema.names:
        return False
    kind = dataset.storage_schema.field(column).type
    return bool(
        at.is_fixed_size_list(kind) and (at.is_float32(kind.value_type) or at.is_float64(kind.value_type))
    )


def _condition(table: OneTable, tree: Any, dataset: SqlDataset, value: Callable[[str], Any]) -> str | None:
    """An equivalent condition for a scan, None if that is not certain."""
    from lance_engine.expr import has_zone, parse_sql, walk
    from sqlglot import exp

    certain = (
        exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Is, exp.Null,
        exp.Between, exp.Paren, exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Neg, exp.Parameter,
        exp.Placeholder, exp.Var,
    )  # fmt: skip
    if not all(isinstance(node, certain) for node in tree.walk()):
        return None
    condition = as_condition(table, tree, dataset, value)
    try:
        parsed: Node | None = None if condition is None else parse_sql(condition, dataset.storage_schema)
    except LanceError:
        return None
    # Engines compare zoned timestamps in the time zone of the session.
    if parsed is None or any(has_zone(node.type) for node in walk(parsed)):
        return None
    return condition
