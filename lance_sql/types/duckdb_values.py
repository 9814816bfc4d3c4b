"""Values as DuckDB returns them to Python, for types that Arrow does not have."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

#: Converts Python values of pyarrow; None if no conversion is needed.
Convert = Callable[[Any], Any]


def whole_number(value: Any) -> int | None:
    """An integer that Arrow stores as a decimal."""
    return None if value is None else int(value)


def converters(kinds: Sequence[Any]) -> list[Convert | None]:
    """For columns of these types, the conversion of pyarrow's Python values; None if they are equal."""
    return [_converter(kind) for kind in kinds]


def _converter(kind: Any) -> Convert | None:
    convert = _plain(kind)
    if convert is None or convert is whole_number:
        return convert
    return lambda value: None if value is None else convert(value)


def _plain(kind: Any) -> Convert | None:
    match kind.id:
        case "hugeint" | "uhugeint":
            return whole_number
        case "uuid":
            return lambda value: value if isinstance(value, uuid.UUID) else _uuid(value)
        case "map":
            children = dict(kind.children)
            key, item = _converter(children["key"]), _converter(children["value"])
            return lambda pairs: {_applied(key, name): _applied(item, value) for name, value in pairs}
        case "list" | "array":
            inner = _converter(dict(kind.children)["child"])
            return None if inner is None else lambda items: [inner(item) for item in items]
        case "struct":
            fields = {name: _converter(child) for name, child in kind.children}
            if not any(fields.values()):
                return None
            return lambda values: {name: _applied(fields.get(name), value) for name, value in values.items()}
    return None


def _applied(convert: Convert | None, value: Any) -> Any:
    return value if convert is None else convert(value)


def _uuid(value: str | bytes) -> uuid.UUID:
    return uuid.UUID(bytes=value) if isinstance(value, bytes) else uuid.UUID(value)
