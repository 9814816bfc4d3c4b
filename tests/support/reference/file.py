"""A whole data file of version 2.1 or 2.2: footer, column metadata, and columns as Arrow arrays.

The last 40 bytes: u64 position of the first column metadata, of the table of column metadata offsets and of
the table of global buffer offsets, u32 number of global buffers and of columns, u16 major and minor version,
``LANC``. Both tables hold (u64 position, u64 size) pairs. Only leaves of the schema own a column, numbered
depth first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.format.pb import file_pb2, file_v2_pb2

from reference import page as page_module
from reference.arrow import leaf_array, nested_array
from reference.levels import FixedSizeLists, Items, Lists, Slots, unravel
from reference.sections import section

FOOTER = struct.Struct("<QQQIIHH4s")
MAGIC = b"LANC"


@dataclass(frozen=True, slots=True)
class Footer:
    """The fixed-size end of the file."""

    column_metadata: int
    column_offsets: int
    global_buffer_offsets: int
    global_buffer_count: int
    column_count: int
    major: int
    minor: int


@dataclass(frozen=True, slots=True)
class LeafColumn:
    """One decoded column: the leaf array and its slots, leaf layer first."""

    array: pa.Array
    slots: list[Slots]


def parse_footer(data: bytes) -> Footer:
    """Read and check the footer."""
    *numbers, magic = FOOTER.unpack(section(data, len(data) - FOOTER.size, FOOTER.size, "footer"))
    if magic != MAGIC:
        raise CorruptFileError(f"the file ends in {magic!r} instead of {MAGIC!r}")
    footer = Footer(*numbers)
    if (footer.major, footer.minor) not in ((2, 1), (2, 2)):
        raise UnsupportedFeatureError(f"file version {footer.major}.{footer.minor}")
    if footer.column_offsets + 16 * footer.column_count != footer.global_buffer_offsets:
        raise CorruptFileError("the column table does not end where the global buffer table starts")
    return footer


def _entries(data: bytes, position: int, count: int, what: str) -> list[bytes]:
    table = struct.unpack(f"<{2 * count}Q", section(data, position, 16 * count, what))
    return [section(data, *pair, what) for pair in zip(table[::2], table[1::2], strict=True)]


def global_buffers(data: bytes) -> list[bytes]:
    """All global buffers; the first is the file schema."""
    footer = parse_footer(data)
    return _entries(data, footer.global_buffer_offsets, footer.global_buffer_count, "global buffer")


def file_descriptor(data: bytes) -> Any:
    """The ``FileDescriptor`` message: schema and row count."""
    buffers = global_buffers(data)
    if not buffers:
        raise CorruptFileError("a file without schema")
    try:
        return file_pb2.FileDescriptor.FromString(buffers[0])
    except DecodeError as error:
        raise CorruptFileError(f"the file schema is not a protobuf message: {error}") from error


def column_metadata(data: bytes) -> list[Any]:
    """The ``ColumnMetadata`` message of every column."""
    footer = parse_footer(data)
    try:
        return [
            file_v2_pb2.ColumnMetadata.FromString(raw)
            for raw in _entries(data, footer.column_offsets, footer.column_count, "column metadata")
        ]
    except DecodeError as error:
        raise CorruptFileError(f"column metadata is not a protobuf message: {error}") from error


def is_leaf(field: pa.Field) -> bool:
    """Whether the field owns one column for all below it."""
    metadata = field.metadata or {}
    if metadata.get(b"lance-encoding:packed") == b"true" or metadata.get(b"packed") == b"true":
        return True
    return not children_of(field)


def children_of(field: pa.Field) -> list[pa.Field]:
    """The child fields with columns of their own."""
    arrow_type = field.type
    if pa.types.is_struct(arrow_type):
        return [arrow_type.field(index) for index in range(arrow_type.num_fields)]
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return [arrow_type.value_field]
    if pa.types.is_map(arrow_type):
        entries = pa.struct([arrow_type.key_field, arrow_type.item_field])
        return [pa.field("entries", entries, nullable=False)]
    if pa.types.is_fixed_size_list(arrow_type) and pa.types.is_struct(arrow_type.value_type):
        return [arrow_type.value_field]
    return []


def paths(field: pa.Field) -> Iterator[list[pa.Field]]:
    """The path to every leaf, leaf first, in column order."""
    if is_leaf(field):
        yield [field]
        return
    for child in children_of(field):
        for path in paths(child):
            yield [*path, field]


def _is_list(field: pa.Field) -> bool:
    arrow_type = field.type
    return bool(
        pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type) or pa.types.is_map(arrow_type)
    )


def _join(parts: list[Slots]) -> Slots:
    """The slots of consecutive pages."""
    validity = None
    if any(part.validity is not None for part in parts):
        flags = [np.ones(part.count, np.bool_) if part.validity is None else part.validity for part in parts]
        validity = np.concatenate(flags)
    first = parts[0]
    if isinstance(first, Lists):
        lengths = [np.diff(part.offsets) for part in parts if isinstance(part, Lists)]
        return Lists(np.concatenate([[0], *lengths]).cumsum().astype(np.int64), validity)
    count = sum(part.count for part in parts)
    if isinstance(first, FixedSizeLists):
        return FixedSizeLists(count, first.dimension, validity)
    return Items(count, validity)


def decode_leaf(data: bytes, metadata: Any, path: list[pa.Field]) -> LeafColumn:
    """Decode one column; `path` leads from the leaf to the top-level field."""
    leaf = path[0].type
    nested = [field.type for field in path[1:]]
    dimensions = [None] + [each.list_size if pa.types.is_fixed_size_list(each) else None for each in nested]
    if not metadata.pages:
        empty: list[Slots] = [
            Lists(np.zeros(1, np.int64))
            if field is not path[0] and _is_list(field)
            else Items(0)
            if dimension is None
            else FixedSizeLists(0, dimension)
            for field, dimension in zip(path, dimensions, strict=True)
        ]
        return LeafColumn(pa.array([], leaf), empty)
    arrays = []
    layers: list[list[Slots]] = []
    for page in metadata.pages:
        levels, values = page_module.decode(data, page, leaf)
        slots = unravel(levels, dimensions)
        if [isinstance(slot, Lists) for slot in slots] != [_is_list(field) for field in path]:
            raise CorruptFileError("the layers of a page do not fit the type of the column")
        layers.append(slots)
        if slots[0].count != len(values):
            raise CorruptFileError(f"{len(values)} values for {slots[0].count} slots")
        arrays.append(leaf_array(values, slots[0].validity, leaf))
    joined = pa.chunked_array(arrays, leaf)
    if pa.types.is_dictionary(leaf):
        joined = joined.unify_dictionaries()
    array = pa.concat_arrays(joined.chunks)
    return LeafColumn(array, [_join(list(parts)) for parts in zip(*layers, strict=True)])


def _assemble(field: pa.Field, columns: list[LeafColumn], depth: int) -> pa.Array:
    """Consume the columns of `field`, whose layer is `depth` steps below the top-level one."""
    if is_leaf(field):
        return columns.pop(0).array
    slots = columns[0].slots[-1 - depth]
    children = [_assemble(child, columns, depth + 1) for child in children_of(field)]
    return nested_array(slots, children, field.type)


def decode_field(data: bytes, field: pa.Field, first_column: int) -> pa.Array:
    """The top-level `field`, whose first leaf is column `first_column`."""
    metadata = column_metadata(data)
    leaves = list(paths(field))
    if first_column + len(leaves) > len(metadata):
        raise CorruptFileError(
            f"{field.name} needs {len(leaves)} columns from {first_column} of {len(metadata)}"
        )
    columns = [decode_leaf(data, metadata[first_column + index], path) for index, path in enumerate(leaves)]
    array = _assemble(field, columns, 0)
    array.validate(full=True)
    return array


def read_table(data: bytes, schema: pa.Schema) -> pa.Table:
    """All columns of a standalone file; `schema` is the Arrow schema of its contents."""
    rows = int(file_descriptor(data).length)
    arrays = []
    column = 0
    for field in schema:
        array = decode_field(data, field, column)
        if len(array) != rows:
            raise CorruptFileError(f"{field.name} has {len(array)} of {rows} rows")
        arrays.append(array)
        column += len(list(paths(field)))
    return pa.Table.from_arrays(arrays, schema=schema)
