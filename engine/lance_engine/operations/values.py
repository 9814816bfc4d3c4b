"""New values of a column, computed from other columns by SQL text or a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_engine.errors import (
    InvalidArgumentError,
    InvalidFilterError,
    LanceError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from lance_engine.expr.convert import convert
from lance_engine.expr.evaluate import evaluate_value
from lance_engine.expr.from_sql import parse_value
from lance_engine.expr.tree import columns_of
from lance_engine.expr.value_types import value_type
from lance_engine.schema_tree import Schema

BatchFunction: TypeAlias = Callable[[pa.RecordBatch], "pa.Array | pa.ChunkedArray"]
# The accepted types for the values of a column.
Value: TypeAlias = "str | BatchFunction"
# Compiles SQL text that filters do not support to its columns and a function of these, or raises a
# LanceError.
Compiler: TypeAlias = Callable[[str, pa.Schema], tuple[tuple[str, ...], BatchFunction]]


@dataclass(frozen=True)
class ColumnValues:
    """How the values of the column `name` are computed.

    `columns` are the columns that are read for it, None for all. `type` is the Arrow type of the result if it
    is known before any row is read.
    """

    name: str
    columns: tuple[str, ...] | None
    type: pa.DataType | None
    _function: BatchFunction

    def compute(self, batch: pa.RecordBatch) -> pa.Array:
        """One value per row of `batch`, which has at least `columns`."""
        try:
            values = self._function(batch)
        except LanceError as error:
            raise error.at(column=self.name) from error.__cause__
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
        if not isinstance(values, pa.Array):
            raise InvalidArgumentError(
                f"The function for column '{self.name}' returned {type(values).__name__}"
            )
        if len(values) != batch.num_rows:
            raise SchemaMismatchError(
                f"Got {len(values)} values for {batch.num_rows} rows",
                column=self.name,
                remedy="Return exactly one value per row of the batch",
            )
        return values if self.type is None else self._cast(values, value_type(self.type))

    def _cast(self, values: pa.Array, kind: pa.DataType) -> pa.Array:
        try:
            found = convert(values, kind)
            _check_finite(values, found)
            return found
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise InvalidFilterError(
                f"Cannot convert values of type {values.type} to {kind}: {error}", column=self.name
            ) from error


def _check_finite(values: pa.Array, narrow: pa.Array) -> None:
    """ArrowInvalid for finite numbers, also in lists, that became infinite: casts in filters allow that."""
    while _is_list(narrow.type) and _is_list(values.type):
        values, narrow = values.flatten(), narrow.flatten()
    if not pa.types.is_floating(narrow.type) or values.type == narrow.type or len(values) != len(narrow):
        return
    wide = convert(values, pa.float64())
    became = pc.and_(pc.is_inf(pc.cast(narrow, pa.float64())), pc.is_finite(wide))
    if pc.any(became).as_py():
        raise pa.ArrowInvalid("a number is out of range")


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def column_values(
    name: str, value: Value, schema: pa.Schema, target: pa.DataType | None, compiler: Compiler | None
) -> ColumnValues:
    """`value` over columns of `schema`, cast to `target` if given.

    SQL text is evaluated here if it only uses features of filters: constants, columns, arithmetic, casts and
    simple functions. Other text is passed to `compiler`; without one it is an InvalidFilterError.
    """
    if callable(value):
        return ColumnValues(name, None, target, value)
    if not isinstance(value, str):
        raise InvalidArgumentError(
            f"The value of column '{name}' must be SQL text or a function, not {value!r}"
        )
    try:
        node = parse_value(value, schema)
    except InvalidFilterError as error:
        if compiler is None:
            raise error.at(column=name) from error.__cause__
        columns, function = compiler(value, schema)
        return ColumnValues(name, columns, target, function)

    def compute(batch: pa.RecordBatch) -> pa.Array:
        return evaluate_value(node, batch)

    return ColumnValues(name, tuple(sorted(columns_of(node))), target or node.type, compute)


def check_whole_columns(schema: Schema, names: Iterable[str]) -> None:
    """ColumnNotFoundError for unknown names, UnsupportedFeatureError for fields inside a column."""
    for name in names:
        schema.field(name)
        if name not in schema.names:
            raise UnsupportedFeatureError(
                "Updating a single struct field is not supported",
                column=name,
                remedy="Update the whole struct column",
            )


def columns_read(computed: Iterable[ColumnValues], schema: Schema) -> list[str]:
    """The columns to read for computing values, in schema order; all columns for a function."""
    wanted: set[str] = set()
    for column in computed:
        wanted.update(schema.names if column.columns is None else column.columns)
    return [name for name in schema.names if name in wanted]
