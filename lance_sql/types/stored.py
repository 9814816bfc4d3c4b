"""Values that DuckDB has cast to the type of a column, in the form in which the column is stored.

DuckDB converts values; here only their form changes. It has fewer types than Arrow, and leaves the case of
names inside structs as it is: fields are matched by position. A value that the stored form cannot hold is an
error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as at
from lance_engine.base import viewed, without_extensions
from lance_engine.errors import SchemaMismatchError


def stored_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches in exactly these types; SchemaMismatchError for a value that they cannot hold."""
    for batch in batches:
        arrays = [stored(column, field) for column, field in zip(batch.columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def stored(array: pa.Array, field: pa.Field) -> pa.Array:
    """The values in the type of `field`; SchemaMismatchError for a value that it cannot hold."""
    try:
        array = in_type(array, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise SchemaMismatchError(
            f"Cannot convert values of type {array.type} to {field.type}: {error}", column=field.name
        ) from error
    if array.null_count and not field.nullable:
        raise SchemaMismatchError("NULL value in a NOT NULL column", column=field.name)
    return array


def in_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values in the type of a column; ArrowInvalid for a value that it cannot hold."""
    return _as(without_extensions(array), kind)


def _as(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if array.type.equals(wanted):
        return array
    if isinstance(wanted, pa.BaseExtensionType):
        return wanted.wrap_array(_as(array, wanted.storage_type))
    for is_kind, convert in _NESTED:
        if is_kind(array.type) and is_kind(wanted):
            return convert(array, wanted)
    if at.is_interval(array.type) and at.is_duration(wanted):
        return _durations(array).cast(wanted)
    if at.is_decimal128(array.type) and wanted == _WIDE_INTEGER:
        return viewed(array, wanted)  # integers of 128 bits leave DuckDB as decimals of the same layout
    if at.is_decimal256(wanted) and at.is_string(array.type):
        return _wide_decimals(array, wanted)
    if at.is_float16(wanted):
        return _halves(array)
    return array.cast(wanted)


# ---- types that contain others -----------------------------------------------------------------------


def _inside(array: pa.Array, field: pa.Field, reached: Callable[[], pa.Array]) -> pa.Array:
    """The values of a field; `reached` are those that are not inside a null."""
    if not field.nullable and array.null_count and reached().null_count:
        raise pa.ArrowInvalid(f"NULL value in the field {field.name}, which is NOT NULL")
    return _as(array, field.type)


def _nulls(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _struct(array: pa.StructArray, wanted: Any) -> pa.Array:
    if array.type.num_fields != wanted.num_fields:
        raise pa.ArrowInvalid("another number of fields")
    fields = list(wanted)
    valid = array.is_valid()
    parts = [
        _inside(part, field, lambda part=part: part.filter(valid))  # type: ignore[misc]
        for part, field in ((array.field(number), field) for number, field in enumerate(fields))
    ]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=_nulls(array))


def _offsets(array: Any, kind: pa.DataType) -> pa.Array:
    """The offsets of a list as a copy: with nulls, Arrow refuses those of a slice."""
    return pa.array(array.offsets.to_numpy(zero_copy_only=False), kind)


def _list(array: Any, wanted: Any) -> pa.Array:
    made, offsets = (
        (pa.LargeListArray, pa.int64()) if at.is_large_list(wanted) else (pa.ListArray, pa.int32())
    )
    items = _inside(array.values, wanted.value_field, array.flatten)
    return made.from_arrays(_offsets(array, offsets), items, type=wanted, mask=_nulls(array))


def _array(array: Any, wanted: Any) -> pa.Array:
    size = wanted.list_size
    if array.type.list_size != size:
        raise pa.ArrowInvalid(f"not {size} items")
    items = array.values.slice(array.offset * size, len(array) * size)
    return pa.FixedSizeListArray.from_arrays(
        _inside(items, wanted.value_field, array.flatten), type=wanted, mask=_nulls(array)
    )


def _map(array: Any, wanted: Any) -> pa.Array:
    keys = _as(array.keys, wanted.key_type)
    items = _inside(array.items, wanted.item_field, lambda: array.items)
    return pa.MapArray.from_arrays(_offsets(array, pa.int32()), keys, items, type=wanted, mask=_nulls(array))


_NESTED: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any, Any], pa.Array]], ...]] = (
    (at.is_struct, _struct),
    (lambda kind: at.is_list(kind) or at.is_large_list(kind), _list),
    (at.is_fixed_size_list, _array),
    (at.is_map, _map),
)


# ---- types that DuckDB lacks -------------------------------------------------------------------------


def _durations(intervals: pa.Array) -> pa.Array:
    """Intervals, which DuckDB uses for durations; ArrowInvalid for those with months."""
    lengths: list[int | None] = []
    for interval in intervals.to_pylist():
        if interval is not None and interval.months:
            raise pa.ArrowInvalid("an interval of months has no fixed length")
        lengths.append(None if interval is None else interval.days * _DAY + interval.nanoseconds)
    return pa.array(lengths, pa.duration("ns"))


def _wide_decimals(texts: pa.Array, wanted: Any) -> pa.Array:
    """Decimals of more digits than DuckDB has, rounded as by its casts; ArrowInvalid for other text."""
    digit = Decimal(1).scaleb(-wanted.scale)
    try:
        values = [
            None if text is None else Decimal(text).quantize(digit, ROUND_HALF_UP, _EXACT)
            for text in texts.to_pylist()
        ]
    except InvalidOperation as error:
        raise pa.ArrowInvalid(f"not a number of {wanted.precision} digits") from error
    return pa.array(values, wanted)


def _halves(array: pa.Array) -> pa.Array:
    """Numbers of 16 bits; ArrowInvalid for finite ones that only wider types hold."""
    import pyarrow.compute as pc  # takes longer to import than a query

    numbers = pc.cast(array, pa.float32())
    wide = pc.and_(pc.is_finite(numbers), pc.greater_equal(pc.abs(numbers), pa.scalar(_HALF_LIMIT)))
    if pc.any(wide).as_py():
        raise pa.ArrowInvalid("a number is out of range for 16 bits")
    return pc.cast(numbers, pa.float16(), safe=False)


_DAY: Final = 86_400 * 10**9
#: With more digits than any decimal of Arrow has.
_EXACT: Final = Context(prec=200)
_WIDE_INTEGER: Final = pa.binary(16)
#: Numbers from here on would be rounded to infinity.
_HALF_LIMIT: Final = np.float32(65520)
