"""Logical types, the format's textual names of data types, and the Arrow types they stand for.

Extension types are kept as their storage type plus the two ``ARROW:extension:*`` metadata keys.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

import pyarrow as pa

from lance_engine.errors import (
    CorruptFileError,
    SchemaMismatchError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
)

EXTENSION_NAME: Final = "ARROW:extension:name"
EXTENSION_METADATA: Final = "ARROW:extension:metadata"
#: binary JSON, as it is stored, and its text, as it is read
JSON_EXTENSION: Final = "lance.json"
JSON_TEXT_EXTENSION: Final = "arrow.json"
BFLOAT16_EXTENSION: Final = "lance.bfloat16"
#: types that only one other system has, under the name that it uses
OPAQUE_EXTENSION: Final = "arrow.opaque"
_Rows = TypeVar("_Rows", pa.RecordBatch, pa.Table)
# A request for a certain field number, meant for the writer and never stored.
_FIELD_ID_KEY: Final = "lance:field_id"


# ---- logical type -> Arrow ---------------------------------------------------------------------------

_SIMPLE: Final[Mapping[str, pa.DataType]] = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "large_string": pa.large_string(),
    "large_binary": pa.large_binary(),
    "blob": pa.large_binary(),
    "json": pa.large_binary(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    "time32:s": pa.time32("s"),
    "time32:ms": pa.time32("ms"),
    "time64:us": pa.time64("us"),
    "time64:ns": pa.time64("ns"),
    "duration:s": pa.duration("s"),
    "duration:ms": pa.duration("ms"),
    "duration:us": pa.duration("us"),
    "duration:ns": pa.duration("ns"),
    # Only as the item of a fixed-size list, whose item field cannot carry extension metadata.
    BFLOAT16_EXTENSION: pa.binary(2),
}

_FIXED_SIZE_LIST: Final = "fixed_size_list:"
# Deeper nesting than this is not a data type anybody meant.
_MAX_FIXED_SIZE_LIST_DEPTH: Final = 32


class _Node(NamedTuple):
    """A field as the mapping sees it: its children are Arrow fields already."""

    name: str
    logical_type: str
    children: Sequence[pa.Field]


def _unknown(node: _Node) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"Unknown logical type '{node.logical_type}'",
        column=node.name,
        remedy="Exclude this column, or read the dataset with a newer release",
    )


def to_arrow_type(name: str, logical_type: str, children: Sequence[pa.Field]) -> pa.DataType:
    """The Arrow (storage) type of a field from its logical type and its children as Arrow fields.

    UnsupportedFeatureError where the logical type is unknown, CorruptFileError where it has the wrong
    number of children; both name the column.
    """
    node = _Node(name, logical_type, children)
    build = _NESTED.get(logical_type)
    if build is not None:
        return build(node)
    return _scalar_type(node, node.logical_type)


def has_children(logical_type: str) -> bool:
    """Whether values of a type consist of their own fields."""
    items = logical_type
    while items.startswith(_FIXED_SIZE_LIST):
        items = items.removeprefix(_FIXED_SIZE_LIST)
    return items in _NESTED or items.partition(":")[0] in _NESTED


def _scalar_type(node: _Node, logical_type: str) -> pa.DataType:
    simple = _SIMPLE.get(logical_type)
    if simple is not None:
        return simple
    parse = _PARAMETRIC.get(logical_type.partition(":")[0])
    if parse is None:
        raise _unknown(node)
    try:
        return parse(node, logical_type)
    except (ValueError, KeyError, OverflowError) as error:  # invalid numbers, or numbers that Arrow refuses
        if isinstance(error, CorruptFileError):
            raise
        raise _unknown(node) from error


def _decimal(node: _Node, logical_type: str) -> pa.DataType:
    _, bits, precision, scale = logical_type.split(":")
    return {"128": pa.decimal128, "256": pa.decimal256}[bits](int(precision), int(scale))


def _timestamp(node: _Node, logical_type: str) -> pa.DataType:
    # The time zone is the rest of the text: "+05:30" contains the separator.
    _, unit, zone = logical_type.split(":", 2)
    return pa.timestamp(unit, None if zone == "-" else zone)


def _fixed_size_binary(node: _Node, logical_type: str) -> pa.DataType:
    return pa.binary(_size(logical_type.partition(":")[2]))


def _dictionary(node: _Node, logical_type: str) -> pa.DataType:
    _, value, index, _ordered = logical_type.split(":")
    return pa.dictionary(_SIMPLE[index], _SIMPLE[value])


def _fixed_size_list(node: _Node, logical_type: str) -> pa.DataType:
    # "fixed_size_list:fixed_size_list:int8:2:3" is three pairs: the outermost size is last.
    inner, sizes = logical_type, list[int]()
    while inner.startswith(_FIXED_SIZE_LIST):
        inner, _, size = inner.removeprefix(_FIXED_SIZE_LIST).rpartition(":")
        sizes.append(_size(size))
        if len(sizes) > _MAX_FIXED_SIZE_LIST_DEPTH:
            raise ValueError(logical_type)
    if inner == "struct":
        item = _only_child(node)
    else:
        # Items have no field that could carry the name of an extension.
        metadata = {EXTENSION_NAME: inner, EXTENSION_METADATA: ""} if inner == BFLOAT16_EXTENSION else None
        item = pa.field("item", _scalar_type(node, inner), nullable=True, metadata=metadata)
    for size_of_level in reversed(sizes):
        list_type = pa.list_(item, size_of_level)
        item = pa.field("item", list_type, nullable=True)
    return item.type


def _size(text: str) -> int:
    size = int(text)
    if not 0 <= size < 2**31:
        raise ValueError(text)
    return size


def _only_child(node: _Node) -> pa.Field:
    if len(node.children) != 1:
        raise CorruptFileError(
            f"A field of type '{node.logical_type}' needs one child, but has {len(node.children)}",
            column=node.name,
        )
    return node.children[0]


def _list(node: _Node) -> pa.DataType:
    return pa.list_(_only_child(node))


def _large_list(node: _Node) -> pa.DataType:
    return pa.large_list(_only_child(node))


def _struct(node: _Node) -> pa.DataType:
    return pa.struct(node.children)


def _map(node: _Node) -> pa.DataType:
    entries = _only_child(node).type
    if not pa.types.is_struct(entries) or entries.num_fields != 2:
        raise CorruptFileError(
            f"The entries of a map must have a key and a value, but are {entries}", column=node.name
        )
    key, value = entries
    return pa.map_(key.with_nullable(False), value)


_NESTED: Final[Mapping[str, Callable[[_Node], pa.DataType]]] = {
    "struct": _struct,
    "list": _list,
    "list.struct": _list,
    "large_list": _large_list,
    "large_list.struct": _large_list,
    "map": _map,
}
_PARAMETRIC: Final[Mapping[str, Callable[[_Node, str], pa.DataType]]] = {
    "decimal": _decimal,
    "timestamp": _timestamp,
    "fixed_size_binary": _fixed_size_binary,
    "fixed_size_list": _fixed_size_list,
    "dict": _dictionary,
}


# ---- Arrow -> logical type ---------------------------------------------------------------------------

_LOGICAL: Final[Mapping[pa.DataType, str]] = {
    **{
        arrow: logical
        for logical, arrow in _SIMPLE.items()
        if logical not in ("blob", "json", BFLOAT16_EXTENSION)
    },
    pa.string_view(): "string",
    pa.binary_view(): "binary",
}


class Description(NamedTuple):
    """What the format stores of an Arrow field, besides its name and nullability."""

    logical_type: str
    metadata: dict[str, str]
    children: list[pa.Field]


def describe(arrow: pa.Field, path: str) -> Description:
    """How the format describes an Arrow field; UnsupportedTypeError names `path` and what to do instead."""
    metadata = text_metadata(arrow.metadata)
    metadata.pop(_FIELD_ID_KEY, None)
    arrow_type = arrow.type
    if isinstance(arrow_type, pa.BaseExtensionType):
        metadata |= _extension_metadata(arrow_type)
        arrow_type = arrow_type.storage_type
    if _is_json(metadata.get(EXTENSION_NAME), arrow_type):
        return Description("json", {**metadata, EXTENSION_NAME: JSON_EXTENSION, EXTENSION_METADATA: ""}, [])
    return Description(_logical_type(arrow_type, path), metadata, _children(arrow_type))


def _is_json(extension: str | None, storage: pa.DataType) -> bool:
    types = pa.types
    if extension == JSON_TEXT_EXTENSION:
        kinds = (types.is_string, types.is_large_string, types.is_string_view)
        return any(is_kind(storage) for is_kind in kinds)
    return extension == JSON_EXTENSION and bool(types.is_large_binary(storage))


class _ArrowSchema(ctypes.Structure):
    """A type as the Arrow C data interface describes it."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("private_data", ctypes.c_void_p),
    )


def _extension_metadata(arrow_type: pa.BaseExtensionType) -> dict[str, str]:
    """The two metadata keys of an extension type.

    Types that pyarrow implements natively show their parameters only in the Arrow C data interface:
    a native-endian int32 count, then for each entry length and bytes of key and value.
    """
    exported = _ArrowSchema()
    arrow_type._export_to_c(ctypes.addressof(exported))
    try:
        position = exported.metadata

        def take(size: int) -> bytes:
            nonlocal position
            position += size
            return ctypes.string_at(position - size, size)

        def take_text() -> str:
            return take(int.from_bytes(take(4), sys.byteorder)).decode("utf-8", "surrogateescape")

        count = int.from_bytes(take(4), sys.byteorder)
        return {take_text(): take_text() for _ in range(count)}
    finally:
        exported.release(ctypes.addressof(exported))


class _ArrowArray(ctypes.Structure):
    """An array as the Arrow C data interface describes it."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
        *((name, ctypes.c_void_p) for name in ("buffers", "children", "dictionary", "release", "private")),
    )


def with_extensions(schema: pa.Schema) -> pa.Schema:
    """The schema with the registered extension types that metadata names, as imported batches have them."""
    try:
        return pa.Schema._import_from_c_capsule(schema.__arrow_c_schema__())
    except pa.ArrowException:  # a name that its storage type contradicts
        return schema


def with_types(rows: _Rows, schema: pa.Schema) -> _Rows:
    """The rows in the types of `schema`.

    Arrow cannot cast nulls in structs with a field that is not nullable, not even to their own type.
    """
    columns = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return type(rows).from_arrays(columns, schema=schema)


def is_of_another_system(field: pa.Field) -> bool:
    """Whether a column, or a field inside it, has an extension type that is not one of Lance."""
    name = (field.metadata or {}).get(EXTENSION_NAME.encode(), b"").decode("utf-8", "replace")
    inner = (field.type.field(place) for place in range(field.type.num_fields))
    is_own = name.startswith((JSON_TEXT_EXTENSION, "lance."))
    return (bool(name) and not is_own) or any(map(is_of_another_system, inner))


def without_extensions(array: pa.Array) -> pa.Array:
    """The array with the storage of extension types instead of these, at any depth; nothing is copied."""
    plain = _storage_type(array.type)
    return array if plain.equals(array.type) else viewed(array, plain)


def viewed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same buffers as an array of another type, which must have the same layout."""
    exported = _ArrowArray()
    array._export_to_c(ctypes.addressof(exported))
    return pa.Array._import_from_c(ctypes.addressof(exported), kind)


def plain_field(field: pa.Field) -> pa.Field:
    """The field with storage types and metadata instead of extension types, at any depth."""
    if isinstance(field.type, pa.BaseExtensionType):
        field = field.with_metadata({**(field.metadata or {}), **_extension_metadata(field.type)})
    return field.with_type(_storage_type(field.type))


def _storage_type(arrow_type: pa.DataType) -> pa.DataType:
    types, plain = pa.types, plain_field
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _storage_type(arrow_type.storage_type)
    if types.is_struct(arrow_type):
        return pa.struct([plain(field) for field in arrow_type])
    if types.is_map(arrow_type):
        return pa.map_(plain(arrow_type.key_field), plain(arrow_type.item_field))
    if types.is_fixed_size_list(arrow_type):
        return pa.list_(plain(arrow_type.value_field), arrow_type.list_size)
    if types.is_large_list(arrow_type):
        return pa.large_list(plain(arrow_type.value_field))
    return pa.list_(plain(arrow_type.value_field)) if types.is_list(arrow_type) else arrow_type


def _logical_type(arrow_type: pa.DataType, path: str) -> str:
    simple = _LOGICAL.get(arrow_type)
    if simple is not None:
        return simple
    types = pa.types
    if types.is_timestamp(arrow_type):
        if arrow_type.tz == "-":
            raise UnsupportedTypeError("The time zone '-' is not supported", column=path)
        return f"timestamp:{arrow_type.unit}:{arrow_type.tz or '-'}"
    if types.is_decimal128(arrow_type) or types.is_decimal256(arrow_type):
        return f"decimal:{arrow_type.bit_width}:{arrow_type.precision}:{arrow_type.scale}"
    if types.is_fixed_size_binary(arrow_type):
        return f"fixed_size_binary:{arrow_type.byte_width}"
    if types.is_dictionary(arrow_type):
        return _dictionary_logical_type(arrow_type, path)
    if types.is_struct(arrow_type):
        return "struct"
    if types.is_list(arrow_type) or types.is_large_list(arrow_type):
        kind = "list" if types.is_list(arrow_type) else "large_list"
        return f"{kind}.struct" if types.is_struct(arrow_type.value_type) else kind
    if types.is_fixed_size_list(arrow_type):
        return _fixed_size_list_logical_type(arrow_type, path)
    if types.is_map(arrow_type):
        if arrow_type.keys_sorted:
            raise UnsupportedTypeError(
                "Maps with sorted keys are not supported", column=path, remedy=_CAST_MAP
            )
        if types.is_null(arrow_type.key_type):
            raise UnsupportedTypeError(
                "Maps whose keys have no type are not supported",
                column=path,
                remedy="Cast the column, for example CAST(MAP {} AS MAP(VARCHAR, INTEGER))",
            )
        return "map"
    raise UnsupportedTypeError(
        f"The Arrow type {arrow_type} is not supported", column=path, remedy=_remedy(arrow_type)
    )


_CAST_MAP: Final = "Cast the column to a map without keys_sorted"


def _remedy(arrow_type: pa.DataType) -> str:
    types = pa.types
    if types.is_decimal(arrow_type):
        return f"Cast the column to decimal128({arrow_type.precision}, {arrow_type.scale})"
    if types.is_run_end_encoded(arrow_type):
        return f"Cast the column to {arrow_type.value_type}"
    if types.is_list_view(arrow_type) or types.is_large_list_view(arrow_type):
        return f"Cast the column to a list of {arrow_type.value_type}"
    if types.is_interval(arrow_type):
        return "Store the interval parts as a struct, or cast the column to duration"
    return "Cast the column to a supported type, or drop it"


def _dictionary_logical_type(arrow_type: pa.DictionaryType, path: str) -> str:
    value = _LOGICAL.get(arrow_type.value_type)
    if value is None or ":" in value or value == "null":
        raise UnsupportedTypeError(
            f"Dictionaries of {arrow_type.value_type} are not supported",
            column=path,
            remedy=f"Cast the column to {arrow_type.value_type}",
        )
    # The last part says "ordered"; the format always writes false.
    return f"dict:{value}:{_LOGICAL[arrow_type.index_type]}:false"


def _fixed_size_list_logical_type(arrow_type: pa.FixedSizeListType, path: str) -> str:
    value, size = arrow_type.value_type, arrow_type.list_size
    if isinstance(value, pa.BaseExtensionType):
        if value.extension_name == BFLOAT16_EXTENSION:
            return f"{_FIXED_SIZE_LIST}{BFLOAT16_EXTENSION}:{size}"
        value = value.storage_type
    types = pa.types
    if (
        (types.is_nested(value) and not (types.is_struct(value) or types.is_fixed_size_list(value)))
        or types.is_dictionary(value)
        or _LOGICAL.get(value) in ("string", "binary", "large_string", "large_binary")
    ):
        raise UnsupportedTypeError(
            f"Fixed-size lists of {value} are not supported",
            column=path,
            remedy="Cast the column to a variable-size list",
        )
    return f"{_FIXED_SIZE_LIST}{_logical_type(value, path)}:{size}"


def _children(arrow_type: pa.DataType) -> list[pa.Field]:
    types = pa.types
    if types.is_struct(arrow_type):
        return list(arrow_type)
    if types.is_list(arrow_type) or types.is_large_list(arrow_type):
        return [arrow_type.value_field]
    if types.is_map(arrow_type):
        entries = pa.struct([arrow_type.key_field, arrow_type.item_field])
        return [pa.field("entries", entries, nullable=False)]
    if types.is_fixed_size_list(arrow_type):
        # Items with children keep their fields; the logical type alone describes other fixed-size lists.
        item = arrow_type.value_field
        while types.is_fixed_size_list(item.type):
            item = item.type.value_field
        return [item] if types.is_struct(item.type) else []
    return []


def text_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    """Arrow metadata as text; values that are not UTF-8 have surrogates, so nothing is lost."""
    try:
        return {
            key.decode(): value.decode("utf-8", "surrogateescape") for key, value in (metadata or {}).items()
        }
    except UnicodeDecodeError as error:
        raise SchemaMismatchError(
            f"The key {error.object!r} in the metadata of a schema is not UTF-8",
            remedy="Remove it, or rename it",
        ) from error


def arrow_metadata(metadata: Mapping[str, str]) -> dict[bytes, bytes] | None:
    """Metadata in Arrow, None when there is nothing; engines take only UTF-8, so other bytes are replaced."""
    return {_utf8(key): _utf8(value) for key, value in metadata.items()} or None


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").encode()


@lru_cache(maxsize=256)
def is_stored_as(kind: pa.DataType, name: str, details: str | None) -> bool:
    """Whether values of the extension type `name` may be stored as `kind`: unknown types may be."""
    metadata = {EXTENSION_NAME: name} | ({EXTENSION_METADATA: details} if details is not None else {})
    schema = pa.schema([pa.field("value", kind, metadata=arrow_metadata(metadata))])
    try:
        read_back = pa.ipc.read_schema(schema.serialize()).field(0).type
    except Exception:  # types of other packages check it in Python
        return False
    return not isinstance(read_back, pa.BaseExtensionType) or bool(
        _storage_type(read_back) == _storage_type(kind)
    )
