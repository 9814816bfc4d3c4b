"""DuckDB's names for column types."""

from __future__ import annotations

import atexit
import functools
import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.types as at
from lance_engine.base import EXTENSION_METADATA, EXTENSION_NAME
from lance_engine.errors import UnsupportedTypeError

from lance_sql.scratch import scratch
from lance_sql.types.declared import declared
from lance_sql.types.kinds import KINDS, opaque_name

if TYPE_CHECKING:
    from duckdb.sqltypes import DuckDBPyType

#: The name of an ENUM or an ARRAY with its parameters. As it may be that of a received file, it must not
#: contain anything else.
_ENUM: Final = re.compile(r"ENUM\('(?:[^']|'')*'(?:, '(?:[^']|'')*')*\)")
_ARRAY: Final = re.compile(r"array\(([1-9][0-9]{0,5})\)")


def duckdb_types(schema: pa.Schema) -> list[str]:
    """DuckDB's names for the types of the columns."""
    return list(map(str, duckdb_kinds(schema)))


def shown_types(schema: pa.Schema) -> list[str]:
    """The types of the columns as DESCRIBE names them; Arrow's names of those that DuckDB lacks."""
    shown = []
    for field in schema:
        try:
            shown += duckdb_types(pa.schema([field]))
        except UnsupportedTypeError:
            shown.append(str(field.type))
    return shown


def duckdb_kinds(schema: pa.Schema) -> list[DuckDBPyType]:
    """DuckDB's types of the columns."""
    return [named_kind(_type_text(field)) for field in schema]


@functools.lru_cache(maxsize=1024)
def named_kind(text: str) -> DuckDBPyType:
    """DuckDB's type of that name."""
    import duckdb

    with scratch() as connection:
        try:
            return connection.sqltype(text)
        except duckdb.Error as error:  # such as fields without a name
            raise UnsupportedTypeError(
                f"DuckDB has no type {text}", remedy="Cast the column to another type"
            ) from error


# DuckDB complains of its types that are deleted after its module.
atexit.register(named_kind.cache_clear)


def _type_text(field: pa.Field) -> str:
    kind, own = field.type, declared(field)
    if own.metadata is not None:
        return _imported(own)
    return _opaque_type(opaque_name(field), kind) or _nested_type(kind) or _imported(own)


def _opaque_type(name: str, kind: pa.DataType) -> str:
    """The type that a stored type stands for, or an empty text."""
    own = KINDS.get(name.upper())
    if own is not None and own.extension and own.arrow == kind:
        return own.name
    if at.is_string(kind) and _ENUM.fullmatch(name):
        return name
    if at.is_list(kind) and (array := _ARRAY.fullmatch(name)):
        return f"{_type_text(kind.value_field)}[{array[1]}]"
    if at.is_struct(kind) and kind.num_fields and name == "tuple":
        return f"TUPLE({', '.join(map(_type_text, kind))})"
    if at.is_struct(kind) and kind.num_fields > 1 and name == "union" and at.is_string(kind.field(0).type):
        return f"UNION({_named([*kind][1:])})"
    return ""


def _nested_type(kind: pa.DataType) -> str:
    if at.is_fixed_size_list(kind):
        return f"{_type_text(kind.value_field)}[{kind.list_size}]"
    if at.is_list(kind) or at.is_large_list(kind):
        return f"{_type_text(kind.value_field)}[]"
    if at.is_map(kind):
        return f"MAP({_type_text(kind.key_field)}, {_type_text(kind.item_field)})"
    return f"STRUCT({_named([*kind])})" if at.is_struct(kind) and kind.num_fields else ""


def _named(fields: list[pa.Field]) -> str:
    return ", ".join(f"{quoted(field.name)} {_type_text(field)}" for field in fields)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _imported(field: pa.Field) -> str:
    """The type in which DuckDB reads a field."""
    metadata = field.metadata or {}
    return _read_as(field.type, *(metadata.get(key.encode()) for key in (EXTENSION_NAME, EXTENSION_METADATA)))


@functools.lru_cache(maxsize=1024)
def _read_as(kind: pa.DataType, name: bytes | None, parameters: bytes | None) -> str:
    import duckdb

    metadata = {} if name is None else {EXTENSION_NAME: name, EXTENSION_METADATA: parameters or b""}
    with scratch() as connection:
        schema = pa.schema([pa.field("value", kind, metadata=metadata)])
        try:
            return str(connection.from_arrow(schema.empty_table()).types[0])
        except duckdb.Error as error:
            called = "" if name is None else f" with the extension {name.decode('utf-8', 'replace')!r}"
            raise UnsupportedTypeError(
                f"DuckDB has no type for columns of type {kind}{called}",
                remedy="Cast the column to another type",
            ) from error
