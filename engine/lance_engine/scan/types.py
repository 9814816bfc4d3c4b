"""Types that are stored in another form: dictionaries, JSON, and blobs as what leads to them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lance_engine import kernels
from lance_engine.encodings.jsonb import json_text
from lance_engine.logical_types import to_arrow_type
from lance_engine.scan.blobs import DESCRIPTOR
from lance_engine.schema_tree import Field


def without_dictionaries(arrow_type: pa.DataType) -> pa.DataType:
    """The type with every dictionary replaced by its values, at any depth."""
    if pa.types.is_dictionary(arrow_type):
        return arrow_type.value_type
    if pa.types.is_struct(arrow_type):
        return pa.struct([_plain_field(arrow_type.field(i)) for i in range(arrow_type.num_fields)])
    if pa.types.is_large_list(arrow_type):
        return pa.large_list(_plain_field(arrow_type.value_field))
    if pa.types.is_list(arrow_type):
        return pa.list_(_plain_field(arrow_type.value_field))
    if pa.types.is_fixed_size_list(arrow_type):
        return pa.list_(_plain_field(arrow_type.value_field), arrow_type.list_size)
    if pa.types.is_map(arrow_type):
        return pa.map_(_plain_field(arrow_type.key_field), _plain_field(arrow_type.item_field))
    return arrow_type


def stored_type(field: Field) -> pa.DataType:
    """What pages of a field are decoded to: no dictionaries, binary JSON, and descriptors for blobs of the
    second kind.
    """
    if field.is_blob_v2:
        return DESCRIPTOR
    if field.is_json:
        return field.column_type
    if not any(node.is_blob_v2 or node.is_json for node in field.walk()):
        return without_dictionaries(field.arrow_type)
    children = [child.to_arrow().with_type(stored_type(child)) for child in field.children]
    return to_arrow_type(field.name, field.logical_type, children)


def to_declared(
    array: pa.Array, stored: Field, wanted: Field, blobs: Callable[[Field, pa.StructArray], pa.Array]
) -> pa.Array:
    """The values of `wanted`, of which `array` holds what is `stored`: all of it but some fields of structs.

    These are null. `blobs` reads what descriptors lead to. `kernels.InvalidJsonError` where a JSON value is
    damaged. `kernels.BatchTooLargeError` asks for fewer rows: the codes are too narrow for the values, which
    may come from several pages with dictionaries of their own.
    """
    if wanted.is_blob_v2:
        return blobs(wanted, array)
    arrow_type = wanted.arrow_type
    if array.type.equals(arrow_type):
        return array
    if wanted.is_json:
        return json_text(array)
    if pa.types.is_dictionary(arrow_type):
        return _coded(array, arrow_type)
    if pa.types.is_struct(arrow_type):
        return _struct(array, stored, wanted, blobs)
    ((stored_child,), (child,)) = stored.children, wanted.children
    if pa.types.is_map(arrow_type):
        entries = pa.StructArray.from_arrays(
            [array.keys, array.items], fields=list(stored_type(stored_child))
        )
        items = _struct(entries, stored_child, child, blobs)
        return pa.MapArray.from_arrays(
            array.offsets, items.field(0), items.field(1), type=arrow_type, mask=array.is_null()
        )
    items = to_declared(array.values, stored_child, child, blobs)
    if pa.types.is_fixed_size_list(arrow_type):
        return pa.FixedSizeListArray.from_arrays(items, type=arrow_type, mask=array.is_null())
    kind = pa.LargeListArray if pa.types.is_large_list(arrow_type) else pa.ListArray
    return kind.from_arrays(array.offsets, items, type=arrow_type, mask=array.is_null())


def _struct(
    array: pa.StructArray,
    stored: Field,
    wanted: Field,
    blobs: Callable[[Field, pa.StructArray], pa.Array],
) -> pa.StructArray:
    held = {child.id: (number, child) for number, child in enumerate(stored.children)}
    children = []
    for child in wanted.children:
        if child.id in held:
            number, part = held[child.id]
            children.append(to_declared(array.field(number), part, child, blobs))
        else:
            children.append(pa.nulls(len(array), child.arrow_type))
    return pa.StructArray.from_arrays(children, fields=list(wanted.arrow_type), mask=array.is_null())


def _coded(array: pa.Array, arrow_type: pa.DictionaryType) -> pa.DictionaryArray:
    codes = array.dictionary_encode()
    width = arrow_type.index_type.bit_width - pa.types.is_signed_integer(arrow_type.index_type)
    if len(codes.dictionary) > 1 << width:
        raise kernels.BatchTooLargeError(f"{len(codes.dictionary)} values for {arrow_type.index_type} codes")
    return codes.cast(arrow_type)


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(without_dictionaries(field.type))
