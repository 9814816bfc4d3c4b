"""Numbers that a cast made infinite."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at


def check_finite(values: pa.Array, narrow: pa.Array) -> None:
    """ArrowInvalid for finite numbers of `values`, at any depth, that became infinite in `narrow`."""
    if values.type.equals(narrow.type):
        return
    if at.is_dictionary(narrow.type):
        narrow = narrow.dictionary_decode()
    if at.is_dictionary(values.type):
        values = values.dictionary_decode()
    if all(map(_is_list, (values.type, narrow.type))):
        check_finite(values.flatten(), narrow.flatten())
    elif at.is_map(values.type) and at.is_map(narrow.type):
        check_finite(values.keys, narrow.keys)
        check_finite(values.items, narrow.items)
    elif at.is_struct(values.type) and at.is_struct(narrow.type):
        for pair in zip(values.flatten(), narrow.flatten(), strict=True):
            check_finite(*pair)
    elif at.is_floating(narrow.type) and _may_be_number(values.type) and len(values) == len(narrow):
        wide = pc.cast(values, pa.float64(), safe=False)
        became = pc.and_(pc.is_inf(pc.cast(narrow, pa.float64())), pc.is_finite(wide))
        if pc.any(became).as_py():
            raise pa.ArrowInvalid(f"a number is out of the range of {narrow.type}")


def _is_list(kind: pa.DataType) -> bool:
    return bool(at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind))


def _may_be_number(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in (at.is_integer, at.is_floating, at.is_decimal, at.is_string))
