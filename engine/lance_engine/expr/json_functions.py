"""Functions over JSON, which is text here: `json_extract`, `json_exists` and `json_get`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from lance_engine.errors import InvalidFilterError

# A step of a path: .name, ."name", .*, [number] or [*].
_STEP: Final = re.compile(r'\.([A-Za-z_][\w]*|\*)|\."((?:[^"\\]|\\.)*)"|\[(\d+|\*)\]|\["((?:[^"\\]|\\.)*)"\]')
_MISSING: Final = object()
# Text that is a JSON path, and not a key.
_PATH_STARTS: Final = ("$.", "$[")


def _texts(values: pa.Array) -> list[str | None]:
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        raise pa.ArrowTypeError(f"{values.type} is not JSON")
    texts: list[str | None] = values.to_pylist()
    return texts


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidFilterError(f"{text[:100]!r} is not JSON: {error}") from error


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _constant(value: pa.Scalar, what: str) -> Any:
    if not isinstance(value, pa.Scalar):
        raise InvalidFilterError(f"The {what} of a JSON function must be a constant")
    return value.as_py()


@lru_cache(256)
def _steps(path: str) -> tuple[str | int | None, ...]:
    """The steps of a JSON path; None stands for every item or value."""
    steps: list[str | int | None] = []
    position = 1 if path.startswith("$") else -1
    while 0 <= position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            position = -1
            break
        name, quoted, index, quoted_index = match.groups()
        text = quoted if quoted is not None else quoted_index
        if text is not None:
            steps.append(str(json.loads(f'"{text}"')))
        elif index is not None:
            steps.append(None if index == "*" else int(index))
        else:
            steps.append(None if name == "*" else name)
        position = match.end()
    if position < 0:
        raise InvalidFilterError(
            f"{path!r} is not a supported JSON path",
            remedy='Write a path like $.a.b, $."a b", $.list[0] or $.list[*]',
        )
    return tuple(steps)


def member_steps(key: str) -> tuple[str | int, ...]:
    """The steps that `json_get` and similar functions follow: a path such as ``$.a.b``, or the name of a key.

    InvalidFilterError if it may lead to several values, or is a number, which may be a key or a position.
    """
    steps = _steps(key) if key.startswith(_PATH_STARTS) else (key,)
    known = tuple(step for step in steps if step is not None)
    if len(known) < len(steps) or (steps == (key,) and key.isdigit()):
        raise InvalidFilterError(f"{key!r} does not lead to one value")
    return known


def _matches(value: Any, steps: tuple[str | int | None, ...]) -> Iterator[Any]:
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    if step is None:
        held = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for item in held:
            yield from _matches(item, rest)
    elif isinstance(step, int):
        if isinstance(value, list) and step < len(value):
            yield from _matches(value[step], rest)
    elif isinstance(value, dict) and step in value:
        yield from _matches(value[step], rest)


def _by_path(values: pa.Array, path: pa.Scalar) -> Iterator[list[Any] | None]:
    """The matches of a path in each value; None for null."""
    steps = _steps(str(_constant(path, "path")))
    for text in _texts(values):
        yield None if text is None else list(_matches(_parsed(text), steps))


def json_extract(values: pa.Array, path: pa.Scalar) -> pa.Array:
    """The match of a path as JSON: an array for several matches, null for no match."""
    texts = [
        _text(matches[0] if len(matches) == 1 else matches) if matches else None
        for matches in _by_path(values, path)
    ]
    return pa.array(texts, pa.string())


def json_exists(values: pa.Array, path: pa.Scalar) -> pa.Array:
    """Whether a path has a match."""
    return pa.array([None if match is None else bool(match) for match in _by_path(values, path)], pa.bool_())


def json_array_length(values: pa.Array, path: pa.Scalar) -> pa.Array:
    """The number of items in the array at a path; 0 if it is not an array."""
    lengths = [
        (len(matches[0]) if isinstance(matches[0], list) else 0) if matches else None
        for matches in _by_path(values, path)
    ]
    return pa.array(lengths, pa.int64())


def json_array_contains(values: pa.Array, path: pa.Scalar, wanted: pa.Scalar) -> pa.Array:
    """Whether the array at a path has an item with this text."""
    item = _constant(wanted, "item")
    text = item if isinstance(item, str) else _text(item)
    contains = [
        None
        if matches is None
        else bool(matches)
        and isinstance(matches[0], list)
        and any((held if isinstance(held, str) else _text(held)) == text for held in matches[0])
        for matches in _by_path(values, path)
    ]
    return pa.array(contains, pa.bool_())


def _member(value: Any, key: Any) -> Any:
    """The value of a key of an object, or the item of an array with a number, maybe written as text.

    Text that begins with ``$.`` is a path; several matches become an array.
    """
    if isinstance(key, str) and key.startswith(_PATH_STARTS):
        matches = list(_matches(value, _steps(key)))
        return matches if len(matches) > 1 else matches[0] if matches else _MISSING
    if isinstance(value, dict):
        return value.get(str(key), _MISSING)
    if isinstance(value, list):
        text = str(key)
        index = int(text) if text.isascii() and text.isdigit() else len(value)
        return value[index] if index < len(value) else _MISSING
    return _MISSING


def _as_text(value: Any) -> str:
    if isinstance(value, (list, dict)):
        raise InvalidFilterError(
            "Cannot read a JSON array or object as a string", remedy="Use json_get or json_extract"
        )
    return value if isinstance(value, str) else _text(value)


def _as_integer(value: Any) -> int:
    number = _as_number(value)
    return number if isinstance(number, int) else math.floor(abs(number) + 0.5) * (1 if number >= 0 else -1)


def _as_number(value: Any) -> int | float:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (int, float)):
        return value
    try:
        return int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else float(value)
    except (TypeError, ValueError) as error:
        raise InvalidFilterError(f"The JSON value {_text(value)[:100]} is not a number") from error


def _as_boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return bool(value == "true")
    raise InvalidFilterError(f"The JSON value {_text(value)[:100]} is not a boolean")


def _getter(kind: pa.DataType, convert: Callable[[Any], Any]) -> Callable[[pa.Array, pa.Scalar], pa.Array]:
    def get(values: pa.Array, key: pa.Scalar) -> pa.Array:
        name = _constant(key, "key")
        converted = []
        for text in _texts(values):
            value = _MISSING if text is None else _member(_parsed(text), name)
            converted.append(None if value is _MISSING or value is None else convert(value))
        return pa.array(converted, kind)

    return get


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "json_extract": json_extract,
    "json_exists": json_exists,
    "json_array_length": json_array_length,
    "json_array_contains": json_array_contains,
    "json_get": _getter(pa.string(), _text),
    "json_get_string": _getter(pa.string(), _as_text),
    "json_get_int": _getter(pa.int64(), _as_integer),
    "json_get_float": _getter(pa.float64(), lambda value: float(_as_number(value))),
    "json_get_bool": _getter(pa.bool_(), _as_boolean),
}
