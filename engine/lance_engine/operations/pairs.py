"""SQL over a row of the source of a merge and the row of the dataset that it matches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lance_engine.errors import InvalidFilterError, LanceError
from lance_engine.expr.evaluate import evaluate
from lance_engine.expr.from_sql import parse_sql, parse_value
from lance_engine.expr.tree import Column, Node, walk
from lance_engine.operations.values import ColumnValues, Compiler, Value, column_values

BoolArray = npt.NDArray[np.bool_]
SOURCE, TARGET = "source", "target"


class Sides:
    """The columns of both rows, as structs; without a target for rows of the source without a match."""

    def __init__(self, source: pa.Schema, target: pa.Schema | None, compiler: Compiler | None) -> None:
        self.compiler = compiler
        self._columns = {SOURCE: source} if target is None else {SOURCE: source, TARGET: target}
        self.schema = self.restricted({name: columns.names for name, columns in self._columns.items()})

    def restricted(self, names: dict[str, list[str]]) -> pa.Schema:
        """Structs with some of the columns; empty ones are skipped."""
        return pa.schema(
            [
                (side, pa.struct([columns.field(name) for name in names[side]]))
                for side, columns in self._columns.items()
                if names[side]
            ]
        )

    def named(self, node: Node | None) -> dict[str, list[str]]:
        """The columns of each side that an expression needs; all if unknown."""
        names_by_side: dict[str, set[str]] = {SOURCE: set(), TARGET: set()}
        for column in walk(node) if node is not None else ():
            if isinstance(column, Column):
                side, *fields = column.parts
                names_by_side[side].update(fields[:1] or self._columns[side].names)
        names = {
            side: [name for name in columns.names if node is None or name in names_by_side[side]]
            for side, columns in self._columns.items()
        }
        if not any(names.values()):
            # A constant has as many values as there are rows.
            names[SOURCE] = self._columns[SOURCE].names[:1]
        return {SOURCE: names[SOURCE], TARGET: names.get(TARGET, [])}


class _Expression:
    """The common part of values and conditions: the columns that they read from both rows."""

    def __init__(self, sides: Sides, node: Node | None) -> None:
        names = sides.named(node)
        self.source_columns, self.target_columns = names[SOURCE], names[TARGET]
        self.schema = sides.restricted(
            {side: columns for side, columns in names.items() if side in sides.schema.names}
        )

    def pairs(self, source: pa.RecordBatch, target: pa.RecordBatch | None) -> pa.RecordBatch:
        """Both rows as structs."""
        arrays = []
        for field in self.schema:
            batch = source if field.name == SOURCE else target
            assert batch is not None
            arrays.append(batch.select([part.name for part in field.type]).to_struct_array().cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


class PairCondition(_Expression):
    """Whether pairs pass a condition."""

    def __init__(self, text: str, sides: Sides) -> None:
        self._test: Callable[[pa.RecordBatch], pa.Array]
        try:
            node: Node | None = parse_sql(text, sides.schema)
        except InvalidFilterError:
            if sides.compiler is None:
                raise
            node = None
        super().__init__(sides, node)
        if node is None:
            assert sides.compiler is not None
            self._test = sides.compiler.compile(text, self.schema)[1]
            kind = self._test(pa.RecordBatch.from_pylist([], schema=self.schema)).type
            if not pa.types.is_boolean(kind):
                raise InvalidFilterError(f"The condition of a merge must be boolean, not {kind}: {text}")
        else:
            condition = parse_sql(text, self.schema)
            self._test = lambda batch: evaluate(condition, batch)

    def passing(self, source: pa.RecordBatch, target: pa.RecordBatch | None) -> BoolArray:
        """For each pair, whether it passes: null does not."""
        truths = self._test(self.pairs(source, target))
        passing: BoolArray = pc.fill_null(truths, False).to_numpy(zero_copy_only=False)
        return passing


class PairValues(_Expression):
    """New values of a column, computed from pairs."""

    def __init__(self, name: str, value: Value, target: pa.Field, sides: Sides) -> None:
        node = None
        if isinstance(value, str):
            try:
                node = parse_value(value, sides.schema)
            except InvalidFilterError:
                node = None
        super().__init__(sides, node)
        self.name = name
        self._values: ColumnValues
        try:
            self._values = column_values(name, value, self.schema, target, sides.compiler)
        except LanceError as error:
            raise error.at(column=name) from error.__cause__

    def compute(self, source: pa.RecordBatch, target: pa.RecordBatch | None) -> pa.Array:
        """One value per pair."""
        return self._values.compute(self.pairs(source, target))
