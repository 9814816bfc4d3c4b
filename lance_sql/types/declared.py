"""The types in which DuckDB is offered columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.types as at
from lance_engine.base import EXTENSION_NAME, text_metadata

from lance_sql.types.kinds import KINDS, opaque_name

#: Extension types that DuckDB reads safely, whatever the bytes are, by the types they are stored in.
_READ: Final[Mapping[str, Callable[[pa.DataType], bool]]] = {
    "arrow.bool8": at.is_int8,
    "arrow.json": lambda kind: at.is_string(kind) or at.is_large_string(kind),
    "arrow.uuid": lambda kind: kind == KINDS["UUID"].arrow,
    "geoarrow.wkb": lambda kind: at.is_binary(kind) or at.is_large_binary(kind),
    "arrow.parquet.variant": lambda kind: kind == KINDS["VARIANT"].arrow,
}
#: of decimals in DuckDB
MAX_DIGITS: Final = 38


def declared(field: pa.Field) -> pa.Field:
    """`field`, or one that DuckDB can read instead.

    A float16 or decimal256 column blocks the table, and an extension type whose storage is not what its name
    promises makes DuckDB read beyond the values.
    """
    field = field.with_type(declared_type(field.type))
    return field if _is_read(field) else field.remove_metadata()


def _is_read(field: pa.Field) -> bool:
    """Whether DuckDB itself reads the extension type of a field."""
    if field.metadata is None:
        return False
    if opaque_name(field) in ("hugeint", "uhugeint") and field.type == KINDS["HUGEINT"].arrow:
        return True
    is_read = _READ.get(text_metadata(field.metadata).get(EXTENSION_NAME, ""))
    return is_read is not None and is_read(field.type)


def is_known(field: pa.Field) -> bool:
    """Whether a column, or a field inside it, has values of a type that DuckDB has and Arrow lacks."""
    inner = (field.type.field(place) for place in range(field.type.num_fields))
    return bool(opaque_name(field)) or _is_read(field) or any(map(is_known, inner))


def has_wide_decimals(kind: pa.DataType) -> bool:
    """Whether there are decimals of more digits than those of DuckDB, which reads them as DOUBLE."""
    inner = (kind.field(place).type for place in range(kind.num_fields))
    return (at.is_decimal256(kind) and kind.precision > MAX_DIGITS) or any(map(has_wide_decimals, inner))


def has_nanoseconds(kind: pa.DataType) -> bool:
    """Whether there are durations of nanoseconds, of which DuckDB reads whole microseconds only."""
    inner = (kind.field(place).type for place in range(kind.num_fields))
    return kind == pa.duration("ns") or any(map(has_nanoseconds, inner))


def declared_type(kind: pa.DataType) -> pa.DataType:
    """`kind`, or a type that DuckDB can read instead."""
    if at.is_float16(kind):
        return pa.float32()
    if at.is_decimal256(kind):
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= MAX_DIGITS else pa.float64()
    if kind == pa.duration("ns"):
        return pa.duration("us")  # DuckDB drops the digits behind; the cast refuses them
    if at.is_struct(kind):
        return pa.struct([declared(field) for field in kind])
    if at.is_fixed_size_list(kind):
        return pa.list_(declared(kind.value_field), kind.list_size)
    if at.is_large_list(kind):
        return pa.large_list(declared(kind.value_field))
    if at.is_list(kind):
        return pa.list_(declared(kind.value_field))
    if at.is_map(kind):
        return pa.map_(declared(kind.key_field), declared(kind.item_field), kind.keys_sorted)
    return kind
