"""Values of Arrow as DuckDB returns them to Python: the same as its own fetchall()."""

from __future__ import annotations

import datetime
import itertools
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as at
from lance_engine.base import values_as_python
from lance_engine.errors import UnsupportedTypeError

from lance_sql.scratch import scratch
from lance_sql.types.columns import children, walk
from lance_sql.types.row_numbers import numbers

if TYPE_CHECKING:
    from duckdb.sqltypes import DuckDBPyType

#: Types whose values pyarrow converts as DuckDB does, or not at all.
_ALIKE: Final = frozenset(
    {
        "bigint", "blob", "boolean", "date", "decimal", "double", "enum", "float", "geometry", "integer",
        "null", "smallint", "timestamp", "timestamp with time zone", "timestamp_ms", "timestamp_s",
        "tinyint", "ubigint", "uinteger", "usmallint", "utinyint", "varchar",
    }
)  # fmt: skip
#: Those that pandas holds in arrays of numbers.
NUMBERS: Final = frozenset(
    {
        "bigint", "boolean", "double", "float", "integer", "smallint", "tinyint", "ubigint", "uinteger",
        "usmallint", "utinyint",
    }
)  # fmt: skip
#: Types whose values data frames have as pyarrow converts them.
_ALIKE_IN_FRAMES: Final = frozenset({"array", "time", "time_ns", "timestamp_ns", "timestamptz_ns"})
#: The dtypes of the others in pandas, if they have their own: wide integers become floats, as in DuckDB.
_FRAME_DTYPES: Final = {"interval": "timedelta64[us]", "hugeint": "float64", "uhugeint": "float64"}
_SIGNED_LIMIT: Final = 1 << 127


def values_of(column: pa.Array | pa.ChunkedArray, kind: DuckDBPyType | None = None) -> list[Any]:
    """The values of a column of a result, whose DuckDB type is `kind`, if it has one."""
    if kind is None:
        return values_as_python(column)
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in values_of(chunk, kind)]
    if is_alike(kind):
        try:
            values: list[Any] = column.to_pylist()
        except (OverflowError, ValueError):  # infinity, or a year that Python does not have
            pass
        else:
            return values
    return _converted(column, kind)


def is_alike(kind: DuckDBPyType) -> bool:
    """Whether pyarrow's values of a type are DuckDB's."""
    if kind.id in ("list", "struct"):
        return not _is_tuple(kind) and all(is_alike(child) for _, child in children(kind))
    return kind.id in _ALIKE


def _is_tuple(kind: DuckDBPyType) -> bool:
    """Whether the fields have no names. DuckDB 1 calls such a type a struct."""
    return kind.id == "tuple" or (kind.id == "struct" and not any(name for name, _ in children(kind)))


def is_alike_in_frames(kind: DuckDBPyType) -> bool:
    """Whether data frames have pyarrow's values of a type, not those of Python."""
    return is_alike(kind) or kind.id in _ALIKE_IN_FRAMES


def frame_dtype(kind: DuckDBPyType) -> str:
    """The dtype in pandas of a column with Python's values of a type."""
    return _FRAME_DTYPES.get(kind.id, "object")


def _converted(array: pa.Array, kind: DuckDBPyType) -> list[Any]:
    if kind.id == "time" and array.fill_null(0).cast(pa.int64()).to_numpy().max(initial=0) < _DAY:
        return list(array.to_pylist())
    nested = _NESTED.get(kind.id)
    if nested is None:
        convert = _LEAVES.get(kind.id)
        if convert is None:
            return _by_duckdb(array, kind)
        array = array.storage if isinstance(array, pa.ExtensionArray) else array
        return [None if value is None else convert(value) for value in array.to_pylist()]
    return nested(array, kind)


# ---- types that contain others -----------------------------------------------------------------------


def _list(array: Any, kind: DuckDBPyType) -> list[Any]:
    items = values_of(array.values, dict(children(kind))["child"])
    begins = array.offsets.to_pylist()
    valid = array.is_valid().to_pylist()
    return [
        items[begin:end] if is_valid else None
        for begin, end, is_valid in zip(begins, begins[1:], valid, strict=False)
    ]


def _array(array: Any, kind: DuckDBPyType) -> list[Any]:
    size = array.type.list_size
    # the items of a slice are those of the whole
    items = values_of(array.values.slice(array.offset * size, len(array) * size), children(kind)[0][1])
    return [
        tuple(items[number * size : (number + 1) * size]) if is_valid else None
        for number, is_valid in enumerate(array.is_valid().to_pylist())
    ]


def _fields(array: pa.StructArray, kind: DuckDBPyType) -> list[list[Any]]:
    return [values_of(array.field(number), child) for number, (_, child) in enumerate(children(kind))]


def _struct(array: pa.StructArray, kind: DuckDBPyType) -> list[Any]:
    if _is_tuple(kind):
        return _tuple(array, kind)
    names = [name for name, _ in children(kind)]
    return [
        dict(zip(names, values, strict=True)) if is_valid else None
        for is_valid, *values in zip(array.is_valid().to_pylist(), *_fields(array, kind), strict=True)
    ]


def _tuple(array: pa.StructArray, kind: DuckDBPyType) -> list[Any]:
    return [
        tuple(values) if is_valid else None
        for is_valid, *values in zip(array.is_valid().to_pylist(), *_fields(array, kind), strict=True)
    ]


def _map(array: Any, kind: DuckDBPyType) -> list[Any]:
    inner = dict(children(kind))
    keys, items = values_of(array.keys, inner["key"]), values_of(array.items, inner["value"])
    begins = array.offsets.to_pylist()
    pairs = [(keys[begin:end], items[begin:end]) for begin, end in itertools.pairwise(begins)]
    hashable = not any(part.id in _UNHASHABLE for part in walk(inner["key"]))
    return [
        None
        if not is_valid
        else dict(zip(some, others, strict=True))
        if hashable
        else {"key": some, "value": others}
        for (some, others), is_valid in zip(pairs, array.is_valid().to_pylist(), strict=True)
    ]


def _union(array: pa.UnionArray, kind: DuckDBPyType) -> list[Any]:
    members = [child for name, child in children(kind) if name]
    values = [values_of(array.field(number), child) for number, child in enumerate(members)]
    return [values[code][row] for row, code in enumerate(array.type_codes.to_pylist())]


#: Types of keys for which DuckDB returns maps as two lists.
_UNHASHABLE: Final = ("list", "array", "struct", "tuple", "map", "variant")


_NESTED: Final[Mapping[str, Callable[[Any, DuckDBPyType], list[Any]]]] = {
    "list": _list,
    "array": _array,
    "struct": _struct,
    "tuple": _tuple,
    "map": _map,
    "union": _union,
}


# ---- types of their own ------------------------------------------------------------------------------


def _whole(value: Any) -> int:
    """An integer of 128 bits, which Arrow stores as a decimal, or as bytes."""
    return int.from_bytes(value, "little", signed=True) if isinstance(value, bytes) else int(value)


def _unsigned(value: Any) -> int:
    number = _whole(value)
    return number if number >= 0 else number + 2 * _SIGNED_LIMIT


def _uuid(value: str | bytes | uuid.UUID) -> uuid.UUID:
    if isinstance(value, uuid.UUID):
        return value
    return uuid.UUID(bytes=value) if isinstance(value, bytes) else uuid.UUID(value)


_LEAVES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "hugeint": _whole,
    "uhugeint": _unsigned,
    "uuid": _uuid,
    "bit": str,
}


def _by_duckdb(array: pa.Array, kind: DuckDBPyType) -> list[Any]:
    """The values as DuckDB converts them itself."""
    if kind.id == "timestamp with time zone":
        return [_moment(value) for value in array]
    if kind.id == "timestamptz_ns":  # for these, DuckDB needs another package
        return list(values_as_python(array.cast(pa.timestamp("us", array.type.tz), safe=False)))
    import duckdb

    metadata = {"ARROW:extension:name": "arrow.parquet.variant"} if kind.id == "variant" else None
    schema = pa.schema([pa.field("value", array.type, metadata=metadata), pa.field("number", pa.int64())])
    with scratch() as connection:
        relation = connection.from_arrow(pa.table([array, numbers(len(array))], schema=schema))
        if at.is_string(array.type):
            relation = relation.project(f"CAST(value AS {kind}) AS value, number")
        try:
            numbered = sorted(relation.fetchall(), key=lambda row: row[1])
            return [value for value, _ in numbered]
        except duckdb.Error:  # text that is not UTF-8
            return values_as_python(array)


def _moment(value: pa.Scalar) -> Any:
    """A time with a zone; what Python cannot hold as DuckDB writes it."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        pass
    if value.value in (_INFINITY, -_INFINITY):
        return datetime.datetime.max if value.value > 0 else datetime.datetime.min
    zone = str(value.type.tz).replace("'", "''")
    with scratch() as connection:
        connection.execute(f"SET SESSION TimeZone = '{zone}'")
        ((text,),) = connection.execute(
            "SELECT CAST(make_timestamptz(?) AS VARCHAR)", [value.value]
        ).fetchall()
    return text


#: Microseconds of a day: for Arrow, 24:00 is midnight.
_DAY: Final = 86_400 * 10**6
#: Infinity in microseconds.
_INFINITY: Final = (1 << 63) - 1


def check_widths(rows: pa.Table | pa.RecordBatch, kinds: Sequence[Any]) -> None:
    """UnsupportedTypeError for integers from 2**127 on: in Arrow, DuckDB makes negative ones of them."""
    for number, kind in enumerate(kinds):
        if any(inner.id == "uhugeint" for inner in walk(kind)):
            name = rows.schema.names[number]
            if _has_wide(values_of(rows.column(number), kind)):
                raise UnsupportedTypeError(
                    "DuckDB has no Arrow type for integers from 2**127 on",
                    column=name,
                    remedy="Use CAST(... AS VARCHAR) or AS DOUBLE, or read the rows with fetchall()",
                )


def _has_wide(value: Any) -> bool:
    if isinstance(value, dict):
        return _has_wide([*value.keys(), *value.values()])
    if isinstance(value, list | tuple):
        return any(map(_has_wide, value))
    return isinstance(value, int) and value >= _SIGNED_LIMIT


def rows_of(table: pa.Table, kinds: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The rows of a result, with the DuckDB types of its columns, or none."""
    if table.num_columns == 0:
        return []
    types = kinds or [None] * table.num_columns
    return list(zip(*map(values_of, table.columns, types), strict=True))
