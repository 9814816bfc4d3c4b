"""Conversion between Arrow values and Python or numpy, directly from their bytes.

`pa.scalar`, `pa.array` and `to_numpy` of pyarrow check whether a value belongs to pandas, and import pandas
for that if it is installed: the first query of a process would take a fifth of a second longer. They are only
called for values that are not converted here.
"""

from __future__ import annotations

import datetime
import decimal
import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as at
from numpy.typing import NDArray

_FORMATS: Final = {
    pa.int8(): "b",
    pa.int16(): "h",
    pa.int32(): "i",
    pa.int64(): "q",
    pa.uint8(): "B",
    pa.uint16(): "H",
    pa.uint32(): "I",
    pa.uint64(): "Q",
    pa.float32(): "f",
    pa.float64(): "d",
    pa.date32(): "i",
    pa.timestamp("us"): "q",
}
_DTYPES: Final = {pa.from_numpy_dtype(code): np.dtype(code) for code in "bhiqBHIQfd"}
_EPOCH_DAY: Final = datetime.date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime.datetime(1970, 1, 1)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)


def scalar(value: object, arrow_type: pa.DataType | None = None) -> pa.Scalar:
    """`pa.scalar(value, arrow_type)`, errors included."""
    kind = _type_of(value) if arrow_type is None else arrow_type
    made = None if kind is None else _made([value], kind)
    return pa.scalar(value, arrow_type) if made is None else made[0]


def array(values: Sequence[Any], arrow_type: pa.DataType) -> pa.Array:
    """`pa.array(values, arrow_type)` of Python values or scalars, errors included."""
    try:
        plain = [value.as_py() if isinstance(value, pa.Scalar) else value for value in values]
    except (OverflowError, ValueError):  # Python has no years beyond 9999, and no nanoseconds
        return pa.array(values, arrow_type)
    made = _made(plain, arrow_type)
    return pa.array(values, arrow_type) if made is None else made


def list_scalar(items: Sequence[pa.Scalar], kind: pa.DataType) -> pa.Scalar:
    """A list of type `kind` of items of one type, which do not pass through Python: it would round times."""
    values = array(items, items[0].type if items else kind.value_type).cast(kind.value_type)
    if at.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(values, type=kind)[0]
    lists = pa.LargeListArray if at.is_large_list(kind) else pa.ListArray
    return lists.from_arrays([0, len(values)], values, type=kind)[0]


def plain(values: pa.Array) -> pa.Array:
    """Values as Arrow compares them: those of extension types as stored, and dictionaries decoded."""
    values = stored(values)
    return values.dictionary_decode() if at.is_dictionary(values.type) else values


def stored(values: pa.Array) -> pa.Array:
    """Values without their extension type, which Arrow's functions do not know."""
    return values.storage if isinstance(values, pa.ExtensionArray) else values


def as_integers(times: pa.Array) -> pa.Array:
    """Dates, times or durations as integers: Python has no nanoseconds and no years beyond 9999."""
    return times.view(pa.int32() if times.type.bit_width == 32 else pa.int64())


def of_numpy(values: NDArray[Any]) -> pa.Array:
    """`pa.array(values)` of booleans or numbers; contiguous numbers are not copied."""
    if values.dtype == np.bool_:
        bits = np.packbits(values, bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def to_numpy(values: pa.Array) -> NDArray[Any]:
    """`values.to_numpy(zero_copy_only=False)`; numbers without nulls are not copied."""
    kind = values.type
    if values.null_count or not (at.is_boolean(kind) or kind in _DTYPES):
        others: NDArray[Any] = values.to_numpy(zero_copy_only=False)
        return others
    data, first, count = values.buffers()[1] or b"", values.offset, len(values)
    if at.is_boolean(kind):
        bits = np.unpackbits(np.frombuffer(data, np.uint8), count=first + count, bitorder="little")
        return bits[first:].view(np.bool_)
    dtype = _DTYPES[kind]
    return np.frombuffer(data, dtype, count, first * dtype.itemsize)


def _type_of(value: object) -> pa.DataType | None:
    """The Arrow type of a Python value."""
    if value is None:
        return pa.null()
    if isinstance(value, decimal.Decimal):
        return _decimal_type(value)
    return _TYPES.get(type(value))


_TYPES: Final = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    datetime.date: pa.date32(),
    datetime.datetime: pa.timestamp("us"),
}


def _decimal_type(value: decimal.Decimal) -> pa.DataType | None:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent > 0:
        return None
    precision = max(len(digits), -exponent)
    return pa.decimal128(precision, -exponent) if precision <= 38 else None


def _made(values: Sequence[Any], arrow_type: pa.DataType) -> pa.Array | None:
    """An array of values in the representation of the type; None if Arrow has to convert them."""
    if at.is_null(arrow_type):
        return pa.nulls(len(values)) if all(value is None for value in values) else None
    if any(value is None for value in values):
        return pa.nulls(1, arrow_type) if len(values) == 1 else None
    try:
        buffers = _buffers(values, arrow_type)
    except (TypeError, ValueError, AttributeError, OverflowError, struct.error):
        return None
    return None if buffers is None else pa.Array.from_buffers(arrow_type, len(values), [None, *buffers])


def _buffers(values: Sequence[Any], arrow_type: pa.DataType) -> list[pa.Buffer] | None:
    if at.is_boolean(arrow_type) and all(type(value) is bool for value in values):
        bits = sum(value << place for place, value in enumerate(values))
        return [pa.py_buffer(bits.to_bytes(len(values) // 8 + 1, "little"))]
    if at.is_string(arrow_type) and all(type(value) is str for value in values):
        return _texts([value.encode() for value in values])
    if at.is_binary(arrow_type) and all(type(value) is bytes for value in values):
        return _texts(values)
    if at.is_decimal128(arrow_type) and all(type(value) is decimal.Decimal for value in values):
        return [pa.py_buffer(b"".join(_unscaled(value, arrow_type) for value in values))]
    letter = _FORMATS.get(arrow_type)
    if letter is None:
        return None
    return [pa.py_buffer(struct.pack(f"<{len(values)}{letter}", *_numbers(values, arrow_type)))]


def _numbers(values: Sequence[Any], arrow_type: pa.DataType) -> Sequence[Any]:
    if at.is_date32(arrow_type):
        wanted: type = datetime.date
        numbers = [value.toordinal() - _EPOCH_DAY for value in values]
    elif at.is_timestamp(arrow_type):
        wanted = datetime.datetime
        numbers = [(value - _EPOCH) // _MICROSECOND for value in values]
    else:
        wanted, numbers = float if at.is_floating(arrow_type) else int, list(values)
    if any(type(value) is not wanted for value in values):
        raise TypeError(f"not only {wanted.__name__}")
    return numbers


def _texts(values: Sequence[bytes]) -> list[pa.Buffer]:
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len(value))
    return [pa.py_buffer(struct.pack(f"<{len(offsets)}i", *offsets)), pa.py_buffer(b"".join(values))]


def _unscaled(value: decimal.Decimal, arrow_type: pa.DataType) -> bytes:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or -exponent > arrow_type.scale:
        raise ValueError("more digits than the type keeps")
    number: int = int("".join(map(str, digits))) * 10 ** (arrow_type.scale + exponent)
    if number >= 10**arrow_type.precision:
        raise OverflowError("too large for the type")
    return (-number if sign else number).to_bytes(16, "little", signed=True)


def empty_columns(rows: int) -> pa.RecordBatch:
    """A batch without columns that still has rows."""
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))


def false_for_null(mask: pa.BooleanArray) -> pa.BooleanArray:
    """`pc.fill_null(mask, False)`, which goes through runs of nulls, in a hundredth of its time."""
    if not mask.null_count:
        return mask
    valid, true = (
        pa.Array.from_buffers(mask.type, len(mask), [None, bits], offset=mask.offset)
        for bits in mask.buffers()
    )
    import pyarrow.compute as pc  # takes longer to import than a query

    return pc.and_(valid, true)
