"""New values of a column, computed from other columns by SQL text or a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import pyarrow as pa

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
from lance_engine.expr.tree import Cast, Column, Function, Literal, Node, columns_of, rebuilt, walk
from lance_engine.expr.value_types import value_type
from lance_engine.finite import check_finite
from lance_engine.logical_types import is_of_another_system
from lance_engine.schema_tree import Schema

BatchFunction: TypeAlias = Callable[[pa.RecordBatch], "pa.Array | pa.ChunkedArray"]
# The accepted types for the values of a column.
Value: TypeAlias = "str | BatchFunction"


class Compiler(Protocol):
    """Computes and converts values as a SQL engine does; methods raise a LanceError if they cannot."""

    def compile(
        self, text: str, schema: pa.Schema, target: pa.Field | None = None
    ) -> tuple[tuple[str, ...], BatchFunction]:
        """The columns of an expression, and a function of these to values, of `target` if given."""

    def convert(self, values: pa.Array, target: pa.Field) -> pa.Array | None:
        """The values as those of a column, or ArrowInvalid; None if that is the same as here."""


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
    #: makes them values of the column
    _convert: Callable[[pa.Array], pa.Array]

    def compute(self, batch: pa.RecordBatch) -> pa.Array:
        """One value per row of `batch`, which has at least `columns`."""
        try:
            values = self._function(batch)
        except LanceError as error:
            raise error.at(column=self.name) from error.__cause__
        except pa.ArrowInvalid as error:
            raise InvalidFilterError(f"Cannot compute the value: {error}", column=self.name) from error
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
        try:
            return self._convert(values)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise InvalidFilterError(
                f"Cannot convert values of type {values.type} to {self.type}: {error}", column=self.name
            ) from error


def _plain(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values in the type of a column, without any encoding; ArrowInvalid for those that do not fit."""
    plain = convert(values, kind if pa.types.is_fixed_size_binary(kind) else value_type(kind))
    check_finite(values, plain)
    return plain


def _is_narrowed(cast: Cast) -> bool:
    """Whether numbers may become infinite."""
    types, given = pa.types, cast.operand.type
    is_narrow = types.is_float32(cast.target) or types.is_float16(cast.target)
    return bool(
        is_narrow and (types.is_floating(given) or types.is_decimal(given) or types.is_integer(given))
    )


def _null_if_infinite(node: Node) -> Node:
    """TRY_CAST as an engine computes it: null for numbers that do not fit. Filters follow pylance instead."""
    if not (isinstance(node, Cast) and node.lenient and _is_narrowed(node)):
        return node
    became = Function(
        "and",
        (
            Function("is_finite", (node.operand,), pa.bool_()),
            Function("is_inf", (node,), pa.bool_()),
        ),
        pa.bool_(),
    )
    return Function("if_else", (became, Literal(pa.scalar(None, node.target)), node), node.target)


def column_values(
    name: str, value: Value, schema: pa.Schema, target: pa.Field | None, compiler: Compiler | None
) -> ColumnValues:
    """`value` over columns of `schema`, as values of the column `target` if given.

    SQL text is evaluated here if it only uses features of filters: constants, columns, arithmetic, casts and
    simple functions. Other text is passed to `compiler`; without one it is an InvalidFilterError. The
    compiler also computes values of types that only it has, and converts values.
    """
    kind = None if target is None else target.type

    def converted(values: pa.Array) -> pa.Array:
        if target is None:
            return values
        exact = None if compiler is None else compiler.convert(values, target)
        return _plain(values, target.type) if exact is None else exact

    if callable(value):
        return ColumnValues(name, None, kind, value, converted)
    if not isinstance(value, str):
        raise InvalidArgumentError(
            f"The value of column '{name}' must be SQL text or a function, not {value!r}"
        )
    node, problem = None, None
    try:
        node = parse_value(value, schema)
        read = tuple(sorted(columns_of(node)))
    except InvalidFilterError as error:
        problem = error
    if compiler is not None:
        fields = [] if node is None else [*map(schema.field, read), *([target] if target is not None else [])]
        if node is None or any(map(is_of_another_system, fields)):
            try:
                columns, function = compiler.compile(value, schema, target)
                return ColumnValues(name, columns, kind, function, lambda values: values)
            except InvalidFilterError:
                if node is None:
                    raise
    if node is None:
        assert problem is not None
        raise problem.at(column=name) from problem.__cause__

    node = rebuilt(node, _null_if_infinite)
    narrowed = [
        part for part in walk(node) if isinstance(part, Cast) and _is_narrowed(part) and not part.lenient
    ]

    def compute(batch: pa.RecordBatch) -> pa.Array:
        for cast in narrowed:
            check_finite(evaluate_value(cast.operand, batch), evaluate_value(cast, batch))
        return evaluate_value(node, batch)

    if target is None and isinstance(node, Column) and pa.types.is_fixed_size_binary(node.stored_type):
        fixed = node.stored_type  # a copy of the column has its type, although values are compared without
        return ColumnValues(name, read, fixed, compute, lambda values: _plain(values, fixed))
    return ColumnValues(name, read, kind or node.type, compute, converted)


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
