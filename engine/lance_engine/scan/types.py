"""Types that are stored in another form: dictionaries, JSON, and blobs as descriptors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine import compute as pc
from lance_engine import kernels
from lance_engine.logical_types import to_arrow_type
from lance_engine.schema_tree import Field

#: Stored values, and their field, which may lack some of its children.
Part = tuple[pa.Array, Field]
ReadBlobs = Callable[[Field, pa.StructArray], pa.Array]


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
        from lance_engine.scan.blobs import DESCRIPTOR  # few tables have blobs

        return DESCRIPTOR
    if field.is_json:
        return field.column_type
    if not any(node.is_blob_v2 or node.is_json for node in field.walk()):
        return without_dictionaries(field.arrow_type)
    children = [child.to_arrow().with_type(stored_type(child)) for child in field.children]
    return to_arrow_type(field.name, field.logical_type, children)


def to_declared(parts: Sequence[Part], wanted: Field, blobs: ReadBlobs) -> pa.Array:
    """The values of `wanted` from arrays with the stored data: everything except some struct fields.

    Missing fields are null. A struct is null if it is null in every part. `blobs` reads the data of
    descriptors. `kernels.InvalidJsonError` if a JSON value is damaged. `kernels.BatchTooLargeError` requests
    fewer rows: the codes are too narrow for the values, which may come from pages with different
    dictionaries. `kernels.CorruptDataError` if lists differ in length between parts.
    """
    array = parts[0][0]
    if wanted.is_blob_v2:
        return blobs(wanted, array)
    arrow_type = wanted.arrow_type
    if len(parts) == 1 and array.type.equals(arrow_type):
        return array
    if wanted.is_json:
        from lance_engine.encodings.jsonb import json_text  # few tables have JSON

        return json_text(array)
    if pa.types.is_dictionary(arrow_type):
        return _coded(array, arrow_type)
    if pa.types.is_struct(arrow_type):
        return _struct(parts, wanted, blobs)
    mask = _null_in_all([held for held, _ in parts])
    (child,) = wanted.children
    if pa.types.is_map(arrow_type):
        if len(parts) > 1:
            raise kernels.CorruptDataError(
                "Keys and values of a map are in different files", wanted.name, None, None
            )
        entry = parts[0][1].children[0]
        entries = pa.StructArray.from_arrays([array.keys, array.items], fields=list(stored_type(entry)))
        items = _struct([(entries, entry)], child, blobs)
        return pa.MapArray.from_arrays(
            array.offsets, items.field(0), items.field(1), type=arrow_type, mask=mask
        )
    if pa.types.is_fixed_size_list(arrow_type):
        held = [(part.values, stored.children[0]) for part, stored in parts]
        return pa.FixedSizeListArray.from_arrays(to_declared(held, child, blobs), type=arrow_type, mask=mask)
    kind = pa.LargeListArray if pa.types.is_large_list(arrow_type) else pa.ListArray
    if len(parts) == 1:
        items = to_declared([(array.values, parts[0][1].children[0])], child, blobs)
        return kind.from_arrays(array.offsets, items, type=arrow_type, mask=mask)
    lengths, held = _aligned_items([part for part, _ in parts], wanted.name)
    stored_items = [stored.children[0] for _, stored in parts]
    items = to_declared(list(zip(held, stored_items, strict=True)), child, blobs)
    ends = np.append(0, np.cumsum(lengths))
    offsets = pa.array(ends.astype(np.int64 if kind is pa.LargeListArray else np.int32))
    return kind.from_arrays(offsets, items, type=arrow_type, mask=mask)


def _aligned_items(parts: Sequence[pa.Array], name: str) -> tuple[npt.NDArray[np.int64], list[pa.Array]]:
    """The lengths of lists in several parts, and for each part as many items: null where it has none.

    If a part is null, for example at a deleted row, another part has the length.
    """
    own = [pc.fill_null(pc.list_value_length(part), 0).to_numpy(zero_copy_only=False) for part in parts]
    valid = [part.is_valid().to_numpy(zero_copy_only=False) for part in parts]
    lengths: npt.NDArray[np.int64] = np.select(valid, own, 0).astype(np.int64)
    if any((known & (length != lengths)).any() for known, length in zip(valid, own, strict=True)):
        raise kernels.CorruptDataError("List lengths differ between the files", name, None, None)
    starts = np.cumsum(lengths) - lengths
    items = []
    for part, known, length in zip(parts, valid, own, strict=True):
        first = np.cumsum(length) - length - starts
        index = np.arange(lengths.sum()) + np.repeat(first, lengths)
        items.append(part.flatten().take(pa.array(index, mask=np.repeat(~known, lengths))))
    return lengths, items


def _null_in_all(arrays: Sequence[pa.Array]) -> pa.BooleanArray:
    return reduce(pc.and_, (array.is_null() for array in arrays))


def _struct(parts: Sequence[Part], wanted: Field, blobs: ReadBlobs) -> pa.StructArray:
    # What is below the nulls of one part is not a value of a struct that another part has.
    columns = [
        array.flatten()
        if len(parts) > 1
        else [array.field(number) for number in range(array.type.num_fields)]
        for array, _ in parts
    ]
    held: dict[int, list[Part]] = {}
    for (_, stored), values in zip(parts, columns, strict=True):
        for child, array in zip(stored.children, values, strict=True):
            held.setdefault(child.id, []).append((array, child))
    rows = len(parts[0][0])
    children = [
        to_declared(held[child.id], child, blobs) if child.id in held else pa.nulls(rows, child.arrow_type)
        for child in wanted.children
    ]
    mask = _null_in_all([array for array, _ in parts])
    return pa.StructArray.from_arrays(children, fields=list(wanted.arrow_type), mask=mask)


def _coded(array: pa.Array, arrow_type: pa.DictionaryType) -> pa.DictionaryArray:
    codes = array.dictionary_encode()
    width = arrow_type.index_type.bit_width - pa.types.is_signed_integer(arrow_type.index_type)
    if len(codes.dictionary) > 1 << width:
        raise kernels.BatchTooLargeError(
            f"too many values ({len(codes.dictionary)}) for {arrow_type.index_type} codes"
        )
    return codes.cast(arrow_type)


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(without_dictionaries(field.type))
