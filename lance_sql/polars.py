"""Polars: a dataset as a lazy frame that reads only the columns, rows and ranges a query needs."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
from lance_engine.base import public, with_extensions

from lance_sql.api import open as open_dataset
from lance_sql.dataset import Dataset
from lance_sql.errors import extra

with extra("polars"):
    import polars as pl
    from polars.io.plugins import register_io_source


if TYPE_CHECKING:
    from lance_engine.io import AllowExternal

__all__ = ["scan_polars"]

Kinds: TypeAlias = Mapping[str, Any]

_COMPARISONS = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtEq": operator.le,
    "Gt": operator.gt,
    "GtEq": operator.ge,
}
_TURNED = {"Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq"}
_BOUNDS = {
    "Both": (operator.ge, operator.le),
    "Left": (operator.ge, operator.lt),
    "Right": (operator.gt, operator.le),
    "None": (operator.gt, operator.lt),
}
_ALIKE = (
    at.is_boolean,
    at.is_integer,
    at.is_float64,
    at.is_string,
    at.is_large_string,
    at.is_date32,
    at.is_timestamp,
)
#: Larger predicates are left to Polars: converting them would take longer.
_MOST_LEVELS = 100
_MOST_CHARACTERS = 1 << 20


@public
def scan_polars(
    source: str | os.PathLike[str] | Dataset,
    version: int | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    allow_external: AllowExternal | None = None,
) -> pl.LazyFrame:
    """A Polars `LazyFrame` over the dataset at `source`, or over an open `Dataset`.

    Polars passes the required columns, number of rows and predicate to the scan. Comparisons of a column with
    a value, ``is_in``, ``is_between``, ``is_null``, ``str.starts_with``, and their combinations with ``&``
    and ``|`` skip rows with zone maps and indices. Polars tests every predicate again, so its semantics
    always apply. The frame stays at the version that was opened. Requires ``lance-sql[polars]``.
    """
    if isinstance(source, Dataset):
        dataset = source
    else:
        dataset = open_dataset(
            source, version, storage_options=storage_options, allow_external=allow_external
        )
    schema = _frame(with_extensions(dataset.storage_schema).empty_table()).schema
    return register_io_source(partial(_frames, dataset), schema=schema, is_pure=True)


def _frames(
    dataset: Dataset,
    columns: list[str] | None,
    predicate: pl.Expr | None,
    rows: int | None,
    _batch_rows: int | None,  # only a hint; our batches are limited in bytes as well
) -> Iterator[pl.DataFrame]:
    names = dataset.schema.names if columns is None else columns
    tested = [] if predicate is None else predicate.meta.root_names()
    scan = dataset.scan(
        list(dict.fromkeys([*names, *tested])),
        None if predicate is None else superset(predicate, _comparable(dataset.schema)),
        limit=rows if predicate is None else None,
    )
    for batch in scan.to_batches():
        frame = _frame(batch)
        if predicate is not None:
            frame = frame.filter(predicate)
        if rows is not None:
            frame = frame.head(rows)
            rows -= len(frame)
        yield frame.select(names)
        if rows == 0:
            return


def superset(predicate: pl.Expr, kinds: Kinds, depth: int = 0) -> pc.Expression | None:
    """A condition that is true for all rows that pass `predicate`; None if none is known.

    Polars has already resolved the types: a literal with the type of its column needs no conversion, and
    others are left to Polars.
    """
    tree = predicate.meta.serialize(format="json")
    if depth > _MOST_LEVELS or len(tree) > _MOST_CHARACTERS:
        return None
    if predicate.meta.is_column():
        name = predicate.meta.output_name()
        return pc.field(name) == True if kinds.get(name) == pl.Boolean else None  # noqa: E712 - an expression
    inputs = predicate.meta.pop()[::-1]
    match json.loads(tree):
        case {"BinaryExpr": {"op": "And" | "LogicalAnd"}}:
            known = [part for side in inputs if (part := superset(side, kinds, depth + 1)) is not None]
            return reduce(operator.and_, known) if known else None
        case {"BinaryExpr": {"op": "Or" | "LogicalOr"}}:
            either = [superset(side, kinds, depth + 1) for side in inputs]
            return None if any(side is None for side in either) else reduce(operator.or_, either)
        case {"BinaryExpr": {"op": op}} if op in _COMPARISONS:
            if inputs[0].meta.is_literal():
                inputs, op = inputs[::-1], _TURNED.get(op, op)
            return _leaf(inputs, kinds, _COMPARISONS[op])
        case {"Function": {"function": {"Boolean": {"IsBetween": {"closed": closed}}}}} if closed in _BOUNDS:
            least, most = _BOUNDS[closed]
            return _leaf(inputs, kinds, lambda column, low, high: least(column, low) & most(column, high))
        case {"Function": {"function": {"Boolean": {"IsIn": {"nulls_equal": False}}}}}:
            return _leaf(inputs, kinds, lambda column, values: column.isin(values.values))
        case {"Function": {"function": {"Boolean": "IsNull"}}}:
            return _leaf(inputs, kinds, lambda column: column.is_null())
        case {"Function": {"function": {"Boolean": "IsNotNull"}}}:
            return _leaf(inputs, kinds, lambda column: column.is_valid())
        case {"Function": {"function": {"StringExpr": "StartsWith"}}}:
            return _leaf(inputs, kinds, lambda column, start: pc.starts_with(column, start.as_py()))
    return None


def _leaf(inputs: list[pl.Expr], kinds: Kinds, make: Callable[..., pc.Expression]) -> pc.Expression | None:
    """The result of `make` for a column and literals of its type; None for other inputs."""
    column, *literals = inputs
    if not column.meta.is_column() or column.meta.output_name() not in kinds:
        return None
    name = column.meta.output_name()
    values = []
    for literal in literals:
        if not literal.meta.is_literal():
            return None
        series = pl.select(literal).to_series()
        value = series.to_arrow()[0]
        if series.dtype not in (kinds[name], pl.List(kinds[name])) or not value.is_valid or value != value:
            return None
        values.append(value)
    return make(pc.field(name), *values)


def _comparable(schema: pa.Schema) -> dict[str, Any]:
    """The Polars types of the columns that Polars and Lance filters compare in the same way."""
    fields = [field for field in schema if any(test(field.type) for test in _ALIKE)]
    return dict(_frame(pa.schema(fields).empty_table()).schema) if fields else {}


def _frame(data: pa.Table | pa.RecordBatch) -> pl.DataFrame:
    frame = pl.from_arrow(data)
    assert isinstance(frame, pl.DataFrame)
    return frame
