"""Arguments of functions that compare them with each other, in a common type.

Constants are converted exactly where a value equals them, so that lists and columns keep their types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as at

from lance_engine.arrow_values import list_scalar
from lance_engine.errors import InvalidFilterError
from lance_engine.expr import build, render
from lance_engine.expr.coerce import Place, place
from lance_engine.expr.tree import Column, Literal, Node
from lance_engine.expr.value_types import common_type, is_list, is_nested, list_type, value_type


def comparable(name: str, arguments: Sequence[Node]) -> Sequence[Node]:
    """The arguments of our own function `name`, with types that it can compare."""
    if name in _ALIKE and arguments:
        return alike(arguments)
    if name in _OF_LISTS and len(arguments) == 2 and is_list(arguments[0].type):
        return _OF_LISTS[name](*arguments)
    return arguments


def alike(nodes: Sequence[Node]) -> list[Node]:
    """The nodes in their common type, for functions that compare or return them.

    Constants with a decimal point are double precision next to floating-point numbers, otherwise exact.
    """
    if any(at.is_floating(_item_type(node.type)) for node in nodes):
        nodes = [as_double(node) for node in nodes]
    varying = [node for node in nodes if not isinstance(node, Literal)]
    kind = _common([node.type for node in varying]) if varying else None
    if kind is not None:
        nodes = [fitted(node, kind) or node for node in nodes]
    kind = _common([node.type for node in nodes])
    if kind is None:
        shown = ", ".join(f"{node} ({render.type_name(node.type)})" for node in nodes)
        raise InvalidFilterError(f"{shown} have no type in common", remedy="CAST them")
    return [build.cast(node, kind) for node in nodes]


def _common(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    common: pa.DataType | None = kinds[0]
    for kind in kinds[1:]:
        common = None if common is None else common_type(common, kind)
    return common


def _item_type(kind: pa.DataType) -> pa.DataType:
    return _item_type(value_type(kind.value_type)) if is_list(kind) else kind


def as_double(node: Node) -> Node:
    """A constant with a decimal point, or a list with such items, in double precision."""
    if not isinstance(node, Literal) or not at.is_decimal(_item_type(node.type)):
        return node
    if at.is_decimal(node.type) and node.type.scale == 0:
        return node  # a whole number
    # Through Python, as Arrow rounds twice.
    return Literal(pa.scalar(_floats(node.value.as_py()), _with_items(node.type, pa.float64())))


def _floats(value: Any) -> Any:
    return (
        [_floats(item) for item in value]
        if isinstance(value, list)
        else None
        if value is None
        else float(value)
    )


def _with_items(kind: pa.DataType, item: pa.DataType) -> pa.DataType:
    return pa.list_(_with_items(kind.value_type, item)) if is_list(kind) else item


def fitted(node: Node, kind: pa.DataType) -> Literal | None:
    """A constant in the type of the values that it is compared with; None if that has no such value."""
    if not isinstance(node, Literal) or node.is_null:
        return None
    try:
        held = _fitted(node.value, kind)
    except InvalidFilterError:
        return None
    return None if held is None else Literal(held)


def _fitted(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar | None:
    if value.type == kind or not value.is_valid:
        return value.cast(kind)
    if is_list(kind) and is_list(value.type):
        fitted_items = [_fitted(item, value_type(kind.value_type)) for item in value]
        items = [item for item in fitted_items if item is not None]
        if len(items) < len(fitted_items) or (at.is_fixed_size_list(kind) and len(items) != kind.list_size):
            return None
        return list_scalar(items, kind)
    if is_nested(kind) or is_nested(value.type):
        return None
    where, held = place(value, kind)
    return held if where is Place.EXACT else None


def _with_alike_items(lists: Node, wanted: Node) -> list[Node]:
    """A list, and an item for it, of a common type."""
    kind = value_type(lists.type.value_type)
    if at.is_floating(_item_type(kind)):
        wanted = as_double(wanted)
    fitting = fitted(wanted, kind)
    if fitting is not None:
        return [lists, fitting]
    item, wanted = alike([Column(("item",), kind), wanted])
    return [build.cast(lists, list_type(lists.type, item.type)), wanted]


def _alike_lists(lists: Node, wanted: Node) -> list[Node]:
    """Two lists of a common type."""
    if at.is_floating(_item_type(lists.type)):
        wanted = as_double(wanted)
    fitting = fitted(wanted, lists.type)
    return alike([lists, wanted]) if fitting is None else [lists, fitting]


#: Functions that compare their arguments with each other, or return one of them.
_ALIKE: Final = ("make_array", "nullif")
#: Functions over a list and an item, or over two lists.
_OF_LISTS: Final[dict[str, Callable[[Node, Node], list[Node]]]] = {
    "array_has": _with_alike_items,
    "array_position": _with_alike_items,
    "array_has_any": _alike_lists,
    "array_has_all": _alike_lists,
}
