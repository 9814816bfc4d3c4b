"""Limits for the depth and width of schemas, so that written schemas can be read at low cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lance_engine.errors import UnsupportedTypeError
from lance_engine.schema_tree import Field

#: Schemas travel as Arrow, which takes no deeper ones. Fields of structs, items of lists, and both entries
#: and items of maps are their own levels.
MAX_DEPTH: Final = 63
MAX_LISTS: Final = 30
MAX_FIXED_SIZE_LISTS: Final = 15
MAX_FIELDS: Final = 100_000


def is_list(logical_type: str) -> bool:
    """Whether a field of this type counts against `MAX_LISTS`."""
    return logical_type.partition(".")[0] in ("list", "large_list")


def check_limits(fields: Sequence[Field]) -> None:
    """UnsupportedTypeError if a schema with these fields could not be read again by the same names."""
    count = 0
    nodes = [(field, field.name, 1, 0) for field in fields]
    while nodes:
        field, path, depth, lists = nodes.pop()
        count += 1
        if "\0" in field.name:
            raise UnsupportedTypeError(
                f"The name '{field.name}' has a NUL character, at which Arrow ends names",
                column=path,
                remedy="Rename the column",
            )
        lists += is_list(field.logical_type)
        fixed = field.logical_type.count("fixed_size_list:")
        if depth > MAX_DEPTH or lists > MAX_LISTS or fixed > MAX_FIXED_SIZE_LISTS:
            raise UnsupportedTypeError(
                f"At most {MAX_DEPTH} levels of nesting, {MAX_LISTS} levels of lists and "
                f"{MAX_FIXED_SIZE_LISTS} of fixed-size lists are supported; this one is nested deeper",
                column=path,
                remedy="Flatten it, or store it as JSON",
            )
        nodes += [(child, path, depth + 1, lists) for child in field.children]
    if count > MAX_FIELDS:
        raise UnsupportedTypeError(
            f"The schema has {count:,} fields; the limit is {MAX_FIELDS:,}",
            remedy="Store many values of the same type as a list or a map",
        )
