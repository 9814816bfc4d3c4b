"""Converts batches to the schema of a dataset."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_engine import kernels
from lance_engine.encodings.jsonb import json_text
from lance_engine.errors import SchemaMismatchError
from lance_engine.finite import check_finite
from lance_engine.logical_types import (
    EXTENSION_METADATA,
    EXTENSION_NAME,
    JSON_TEXT_EXTENSION,
    OPAQUE_EXTENSION,
    is_of_another_system,
    plain_field,
    text_metadata,
    without_extensions,
)
from lance_engine.schema_tree import BLOB_ENCODING, Schema

#: Values as those of a column, or None; ArrowInvalid for those that do not fit.
Converter: TypeAlias = Callable[[pa.Array, pa.Field], "pa.Array | None"]


def conform(
    batches: Iterable[pa.RecordBatch], schema: Schema, convert: Converter | None = None
) -> Iterator[pa.RecordBatch]:
    """Convert each batch to the schema.

    Columns are matched by name; missing nullable columns are filled with nulls; values are cast if that
    cannot change their meaning (views and dictionaries to plain values, narrower to wider numbers). Otherwise
    SchemaMismatchError names the column. `convert` first converts values to types that Arrow does not have.
    """
    target = schema.to_arrow()
    if not any(map(is_of_another_system, target)):
        convert = None
    for batch in batches:
        is_ready = convert is None and batch.schema.equals(target)
        yield batch if is_ready else _fit(batch, target, convert)


def _fit(batch: pa.RecordBatch, target: pa.Schema, convert: Converter | None) -> pa.RecordBatch:
    check_compatible(batch.schema, target)
    positions = {name: position for position, name in enumerate(batch.schema.names)}
    columns = []
    for wanted in target:
        position = positions.get(wanted.name)
        if position is None:
            columns.append(pa.nulls(batch.num_rows, wanted.type))
        else:
            column, offered = batch.column(position), batch.schema.field(position)
            converted = None if convert is None else _converted(column, offered, wanted, convert)
            columns.append(_cast(column, wanted) if converted is None else converted)
    return pa.RecordBatch.from_arrays(columns, schema=target) if columns else batch


def check_compatible(offered: pa.Schema, target: pa.Schema) -> None:
    """SchemaMismatchError unless `offered` can be converted to `target`; values are checked later."""
    if len(set(offered.names)) != len(offered.names):
        twice = next(name for name in offered.names if offered.names.count(name) > 1)
        raise SchemaMismatchError(f"Duplicate column name '{twice}'", remedy="Rename one of them")
    known = set(target.names)
    unknown = [name for name in offered.names if name not in known]
    if unknown:
        raise SchemaMismatchError(
            f"Column '{unknown[0]}' not found in the dataset",
            remedy="Available columns: " + ", ".join(target.names[:20]) + ". Drop or rename the column",
        )
    present = set(offered.names)
    missing = [field.name for field in target if field.name not in present and not field.nullable]
    if missing:
        raise SchemaMismatchError(
            f"The column '{missing[0]}' is missing and is non-nullable in the dataset",
            remedy="Add the column to the data",
        )


def _converted(array: pa.Array, offered: pa.Field, wanted: pa.Field, convert: Converter) -> pa.Array | None:
    """Values for a type that Arrow does not have; None if they are of that type, or it has the type."""
    if not is_of_another_system(wanted) or _extensions(offered) == _extensions(wanted):
        return None
    if is_of_another_system(offered) and not _is_text(plain_field(offered).type):
        raise _mismatch(offered.type, wanted, "of another extension type")
    try:
        return convert(array, wanted)
    except pa.ArrowInvalid as error:
        raise SchemaMismatchError(
            f"The values do not fit the type of the column: {error}",
            column=wanted.name,
            remedy="Correct or cast them before writing",
        ) from error


def _extensions(field: pa.Field) -> list[tuple[str, Any]]:
    """The extension types of a field and the fields inside it; opaque ones with their parameters."""
    field = plain_field(field)
    metadata = text_metadata(field.metadata)
    name, parameters = metadata.get(EXTENSION_NAME, ""), None
    if name == OPAQUE_EXTENSION:
        with suppress(ValueError, RecursionError):
            parameters = json.loads(metadata.get(EXTENSION_METADATA, ""))
    inner = (field.type.field(place) for place in range(field.type.num_fields))
    return [(name, parameters), *(extension for child in inner for extension in _extensions(child))]


def _cast(array: pa.Array, wanted: pa.Field) -> pa.Array:
    array = without_extensions(array)
    if array.type.equals(wanted.type):
        return array
    if pa.types.is_large_binary(array.type) and _is_json(wanted):
        try:
            return json_text(array)
        except kernels.InvalidJsonError as error:
            raise _mismatch(array.type, wanted, error.args[0]) from error
    if pa.types.is_struct(array.type) and (wanted.metadata or {}).get(BLOB_ENCODING.encode()) == b"true":
        return _blob_bytes(array, wanted)
    if not _may_cast(array.type, wanted.type):
        raise _mismatch(array.type, wanted)
    try:
        cast = _with_values(array, wanted.type).cast(wanted.type)
        check_finite(array, cast)
        return cast
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _mismatch(array.type, wanted, str(error)) from error


def _with_values(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The array with buffers of values: Arrow's cast of lists to fixed-size lists reads them for nulls, too.

    Arrays from other processes, such as those of Spark, have none if all their lists are null or empty.
    """
    if not _lacks_values(array):
        return array
    return pa.concat_arrays([array, pa.array([_one_value(wanted)], array.type)]).slice(0, len(array))


def _lacks_values(array: pa.Array) -> bool:
    kind = array.type
    if pa.types.is_struct(kind):
        return any(_lacks_values(array.field(place)) for place in range(kind.num_fields))
    return _is_list(kind) and (len(array.values) == 0 or _lacks_values(array.values))


def _one_value(kind: pa.DataType) -> Any:
    """A value with one value in each list, or as many as the type says."""
    if pa.types.is_struct(kind):
        return {field.name: _one_value(field.type) for field in kind}
    if pa.types.is_fixed_size_list(kind):
        return [_one_value(kind.value_type)] * kind.list_size
    return [_one_value(kind.value_type)] if _is_list(kind) else None


def _is_json(field: pa.Field) -> bool:
    return (field.metadata or {}).get(EXTENSION_NAME.encode()) == JSON_TEXT_EXTENSION.encode()


def _blob_bytes(array: pa.StructArray, wanted: pa.Field) -> pa.Array:
    """The bytes of blobs given as structs of data and, for external blobs, a URI."""
    names = {field.name for field in array.type}
    if not {"data", "uri"} <= names:
        raise _mismatch(array.type, wanted)
    if pc.any(pc.and_(array.is_valid(), pc.is_valid(pc.struct_field(array, "uri")))).as_py():
        raise SchemaMismatchError(
            "Writing references to external blobs is not supported",
            column=wanted.name,
            remedy="Pass its bytes as data",
        )
    return pc.struct_field(array, "data").cast(wanted.type)


def _mismatch(offered: pa.DataType, wanted: pa.Field, detail: str = "") -> SchemaMismatchError:
    return SchemaMismatchError(
        f"The data has type {offered}, but the dataset has {wanted.type}"
        + (f" ({detail})" if detail else ""),
        column=wanted.name,
        remedy="Cast the column before writing",
    )


def _may_cast(offered: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values keep their meaning; a safe cast then refuses single values that cannot be converted."""
    types = pa.types
    if offered.equals(wanted) or types.is_null(offered):
        return True
    if types.is_dictionary(offered):
        return _may_cast(offered.value_type, wanted)
    if types.is_dictionary(wanted):
        return _may_cast(offered, wanted.value_type)
    for kind in (_is_text, _is_bytes, types.is_integer, types.is_floating, types.is_decimal, _is_list):
        if kind(offered) and kind(wanted):
            return not _is_list(wanted) or _may_cast(offered.value_type, wanted.value_type)
    if types.is_struct(offered) and types.is_struct(wanted):
        names = [field.name for field in wanted]
        return [field.name for field in offered] == names and all(
            _may_cast(offered.field(name).type, wanted.field(name).type) for name in names
        )
    if types.is_map(offered) and types.is_map(wanted):
        return _may_cast(offered.key_type, wanted.key_type) and _may_cast(offered.item_type, wanted.item_type)
    if types.is_timestamp(offered) and types.is_timestamp(wanted):
        return (offered.tz is None) == (wanted.tz is None)
    return any(kind(offered) and kind(wanted) for kind in (types.is_time, types.is_duration, types.is_date))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
