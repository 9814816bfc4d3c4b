"""JSON columns: text for readers and writers, binary values in files (logical type ``json``).

Binary values contain 64-bit integers and doubles; the keys of objects are sorted and unique.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine import kernels
from lance_engine.errors import SchemaMismatchError
from lance_engine.schema_tree import Field

STORED = pa.large_binary()
# The first byte of binary values: a scalar, an object, an array (of less than 16 million items).
_CONTAINERS = (0x20, 0x40, 0x80)


def json_text(values: pa.LargeBinaryArray) -> pa.StringArray:
    """The texts of binary values, without white space.

    `kernels.InvalidJsonError` if a value is damaged; `kernels.BatchTooLargeError` requests fewer rows.
    """
    try:
        text, offsets = kernels.decode_jsonb(*_buffers(values))
    except kernels.InvalidJsonError:
        stored = _with_texts_stored(values)
        if stored is None:
            raise
        text, offsets = kernels.decode_jsonb(*_buffers(stored))
    return _array(pa.string(), values, text, offsets)


def _with_texts_stored(values: pa.LargeBinaryArray) -> pa.LargeBinaryArray | None:
    """The values, with texts among them converted to binary; None without texts, or if any is damaged.

    Releases before 7.0 stored texts unchanged when rows were merged.
    """
    documents = values.to_pylist()
    places = [row for row, value in enumerate(documents) if value and value[0] not in _CONTAINERS]
    try:
        texts = pa.array([documents[row].decode() for row in places], pa.large_string())
        stored = _array(STORED, texts, *kernels.encode_jsonb(*_buffers(texts))).to_pylist()
    except (UnicodeDecodeError, kernels.InvalidJsonError):
        return None
    for row, value in zip(places, stored, strict=True):
        documents[row] = value
    return pa.array(documents, STORED) if places else None


def stored_json(array: pa.Array, field: Field) -> pa.Array:
    """A column of a dataset as stored in files: the texts of JSON fields as binary values, at any depth.

    SchemaMismatchError if a text is not JSON (RFC 8259), has a duplicate key, or a number beyond doubles.
    """
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if field.is_json:
        return _binary(array.cast(pa.large_string()), field)
    if not any(node.is_json for node in field.walk()):
        return array
    mask = array.is_null() if array.null_count else None
    types = pa.types
    # Values below nulls need not be JSON: only visible children and items are checked.
    if types.is_struct(array.type):
        children = [stored_json(*pair) for pair in zip(array.flatten(), field.children, strict=True)]
        fields = [array.type.field(i).with_type(child.type) for i, child in enumerate(children)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    (child,) = field.children
    if types.is_fixed_size_list(array.type):
        size = array.type.list_size
        items = stored_json(array.values.slice(array.offset * size, len(array) * size), child)
        kind = pa.list_(array.type.value_field.with_type(items.type), size)
        return pa.FixedSizeListArray.from_arrays(items, type=kind, mask=mask)
    is_map = types.is_map(array.type)
    lists = _as_lists(array) if is_map else array
    lengths = np.diff(np.asarray(lists.offsets))
    if mask is not None:
        lengths[np.asarray(mask)] = 0
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(lengths.dtype))
    items = stored_json(lists.flatten(), child)
    if is_map:
        own = array.type.key_field, array.type.item_field
        key, item = (field.with_type(part.type) for field, part in zip(own, items.type, strict=True))
        kind = pa.map_(key, item)
        return pa.MapArray.from_arrays(offsets, items.field(0), items.field(1), type=kind, mask=mask)
    item = array.type.value_field.with_type(items.type)
    if types.is_large_list(array.type):
        return pa.LargeListArray.from_arrays(offsets, items, type=pa.large_list(item), mask=mask)
    return pa.ListArray.from_arrays(offsets, items, type=pa.list_(item), mask=mask)


def _as_lists(maps: pa.MapArray) -> pa.ListArray:
    """Maps in their stored form, lists of structs."""
    fields = [maps.type.key_field, maps.type.item_field]
    entries = pa.StructArray.from_arrays([maps.keys, maps.items], fields=fields)
    buffers = maps.buffers()[:2]
    return pa.Array.from_buffers(
        pa.list_(entries.type), len(maps), buffers, offset=maps.offset, children=[entries]
    )


def _binary(texts: pa.LargeStringArray, field: Field) -> pa.LargeBinaryArray:
    try:
        values, offsets = kernels.encode_jsonb(*_buffers(texts))
    except kernels.InvalidJsonError as error:
        what, row = error.args
        text = texts[row].as_py()
        shown = text if len(text) <= 80 else text[:80] + "..."
        raise SchemaMismatchError(
            f"The string {shown!r} is not valid JSON: {what}",
            column=field.name,
            remedy="Fix the JSON, or write the column as a string",
        ) from error
    return _array(STORED, texts, values, offsets)


def _buffers(
    array: pa.Array,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.uint8] | None]:
    """Bytes, 64-bit offsets, and a validity byte per value."""
    _, offsets, data = array.buffers()
    positions = np.zeros(1, np.int64)
    if offsets is not None and len(array):
        positions = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    valid = np.asarray(array.is_valid()).view(np.uint8) if array.null_count else None
    return content, positions, valid


def _array(
    kind: pa.DataType, like: pa.Array, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.uint8]
) -> pa.Array:
    validity = None
    if like.null_count:
        validity = pa.py_buffer(np.packbits(np.asarray(like.is_valid()), bitorder="little"))
    return pa.Array.from_buffers(kind, len(like), [validity, pa.py_buffer(offsets), pa.py_buffer(data)])
