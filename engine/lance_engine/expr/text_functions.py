"""Functions over text that pyarrow's kernels do not compute as SQL does, and some over any values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from lance_engine.errors import InvalidFilterError
from lance_engine.expr.nested import repeated, same
from lance_engine.expr.value_types import is_bytes, is_text

# An array of pyarrow, or a scalar where the value is constant.
Value = Any
_WORDS: Final = re.compile(r"[^\W_]+")
# More digits than a number has; Arrow counts up to the number given.
_MOST_DIGITS: Final = 400
# A group of a regular expression without a name.
_GROUP: Final = re.compile(r"(?<!\\)((?:\\\\)*)\((?!\?)")


def _as_text(value: Value) -> Value:
    if is_text(value.type) or at.is_null(value.type):
        return value.cast(pa.string())
    if at.is_boolean(value.type) or at.is_integer(value.type) or at.is_floating(value.type):
        text = value.cast(pa.string())
        if at.is_floating(value.type):
            # Whole numbers keep a digit after the point.
            return _mapped(text, lambda held: _float_text(held))
        return text
    return value.cast(pa.string())


def _float_text(text: str) -> str:
    if text in ("nan", "-nan"):
        return "NaN"
    return f"{text}.0" if text.lstrip("-").isdigit() else text


def _mapped(value: Value, change: Callable[[str], str]) -> Value:
    if isinstance(value, pa.Scalar):
        return pa.scalar(change(value.as_py()) if value.is_valid else None, pa.string())
    return pa.array([None if text is None else change(text) for text in value.to_pylist()], pa.string())


def _require_text(value: Value) -> None:
    if not is_text(value.type):
        raise pa.ArrowTypeError(f"{value.type} is not a string")


def concat(*parts: Value) -> Value:
    """The texts of the values, joined; nulls are left out."""
    texts = [_as_text(part) for part in parts]
    return pc.binary_join_element_wise(*texts, "", null_handling="replace", null_replacement="")


def concatenated(*parts: Value) -> Value:
    """Like `concat`, but null if a part is null: the operator ``||``."""
    if any(is_bytes(part.type) for part in parts):
        return pc.binary_join_element_wise(*parts, b"", null_handling="emit_null")
    return pc.binary_join_element_wise(*map(_as_text, parts), "", null_handling="emit_null")


def concat_ws(separator: pa.Scalar, *parts: Value) -> Value:
    """Texts with a separator between them, without nulls."""
    # The kernel that joins and skips nulls leaves rows out in which all parts are null.
    begin = _pattern(separator)
    pieces = [pc.fill_null(concatenated(pa.scalar(begin), part), "") for part in parts]
    return pc.utf8_slice_codeunits(concat(*pieces), len(begin))


def strpos(values: Value, wanted: Value) -> pa.Array:
    """The position of the first occurrence of a text, from 1; 0 if it does not occur."""
    _require_text(values)
    _require_text(wanted)
    others = [wanted.as_py()] * len(values) if isinstance(wanted, pa.Scalar) else wanted.to_pylist()
    pairs = zip(values.to_pylist(), others, strict=True)
    found = [None if text is None or part is None else text.find(part) + 1 for text, part in pairs]
    return pa.array(found, pa.int64())


def nullif(values: Value, other: Value) -> pa.Array:
    """The values, or null where they equal the other value."""
    rows = next((len(value) for value in (values, other) if not isinstance(value, pa.Scalar)), 1)
    values, other = repeated(values, rows), repeated(other, rows)
    # The same bits of floating-point numbers: 0.0 is not -0.0 here, and NaN is itself.
    equal = pc.fill_null(same(values, other), False)
    return pc.if_else(equal, pa.scalar(None, values.type), values)


def octet_length(values: Value) -> pa.Array:
    """The bytes of a text or binary value."""
    return pc.binary_length(values).cast(pa.int64())


def bit_length(values: Value) -> pa.Array:
    """The bits of a text or binary value."""
    return pc.multiply(octet_length(values), 8)


def _sliced(values: Value, start: int, stop: int | None) -> Value:
    return pc.utf8_slice_codeunits(values, start, stop)


def left(values: Value, count: pa.Scalar) -> Value:
    """The first characters; with a negative number all but the last."""
    return _sliced(values, 0, _count(count))


def right(values: Value, count: pa.Scalar) -> Value:
    """The last characters; with a negative number all but the first."""
    number = _count(count)
    if number == 0:
        return _sliced(values, 0, 0)
    return _sliced(values, -number, None)


def substr(values: Value, start: pa.Scalar, length: pa.Scalar | None = None) -> Value:
    """Characters from a position, counted from 1."""
    first = _count(start) - 1
    stop = None if length is None else max(0, first + _count(length))
    return _sliced(values, max(0, first), stop)


def _count(value: pa.Scalar) -> int:
    if not isinstance(value, pa.Scalar) or not value.is_valid or not at.is_integer(value.type):
        raise InvalidFilterError("The length or position must be a constant whole number")
    return int(value.as_py())


def repeat(values: Value, count: pa.Scalar) -> Value:
    """A text, repeated."""
    return pc.binary_repeat(values, max(0, _count(count)))


def replace(values: Value, wanted: Value, replacement: Value) -> Value:
    """Every occurrence of a text replaced by another; the empty text is around every character."""
    constant = isinstance(wanted, pa.Scalar) and isinstance(replacement, pa.Scalar)
    if not constant or not wanted.as_py():
        for value in (values, wanted, replacement):
            _require_text(value)
        rows = zip(*(_each(value, len(values)) for value in (values, wanted, replacement)), strict=True)
        replaced = [None if None in row else row[0].replace(row[1], row[2]) for row in rows]
        return pa.array(replaced, pa.string())
    return pc.replace_substring(values, _pattern(wanted), _pattern(replacement))


def _each(value: Value, rows: int) -> list[Any]:
    return [value.as_py()] * rows if isinstance(value, pa.Scalar) else value.to_pylist()


def _pattern(value: pa.Scalar) -> str:
    if not isinstance(value, pa.Scalar) or not value.is_valid or not is_text(value.type):
        raise InvalidFilterError("The pattern must be a constant string")
    return str(value.as_py())


def _expression(pattern: pa.Scalar, flags: pa.Scalar | None) -> str:
    held = "" if flags is None else "".join(flag for flag in _pattern(flags) if flag != "g")
    if not set(held) <= set("imsU"):
        raise InvalidFilterError(f"Unknown regular expression flags: {held!r}", remedy="Use i, m, s or U")
    return f"(?{held}){_pattern(pattern)}" if held else _pattern(pattern)


def regexp_like(values: Value, pattern: pa.Scalar, flags: pa.Scalar | None = None) -> Value:
    """Whether a regular expression matches some part of a text."""
    return pc.match_substring_regex(values, _expression(pattern, flags))


def regexp_match(values: pa.Array, pattern: pa.Scalar, flags: pa.Scalar | None = None) -> pa.Array:
    """The groups of the first match, or the whole match without groups; null where nothing matches."""
    number = -1

    def named(match: re.Match[str]) -> str:
        nonlocal number
        number += 1
        return f"{match[1]}(?P<g{number}>"

    expression = _GROUP.sub(named, _expression(pattern, flags))
    if number < 0:
        expression, number = f"(?P<g0>{expression})", 0
    groups_struct = pc.extract_regex(values, expression)
    lists = [
        None if groups is None else [groups[f"g{group}"] for group in range(number + 1)]
        for groups in groups_struct.to_pylist()
    ]
    return pa.array(lists, pa.list_(pa.string()))


def contains_tokens(values: Value, wanted: pa.Scalar) -> pa.Array:
    """Whether a text has every word of another."""
    _require_text(values)
    words = set(_WORDS.findall(_pattern(wanted)))
    contained = [None if text is None else words <= set(_WORDS.findall(text)) for text in values.to_pylist()]
    return pa.array(contained, pa.bool_())


def regexp_count(
    values: pa.Array, pattern: pa.Scalar, start: pa.Scalar | None = None, flags: pa.Scalar | None = None
) -> pa.Array:
    """How often a regular expression matches a text, from a position onwards; 0 for null."""
    begin = 1 if start is None else _count(start)
    if begin < 1:
        raise InvalidFilterError("The start position of regexp_count must be at least 1")
    searched = values if begin == 1 else _sliced(values, begin - 1, None)
    counts = pc.count_substring_regex(searched, _expression(pattern, flags))
    return pc.fill_null(counts, 0).cast(pa.int64())


def sign(values: Value) -> Value:
    """-1, 0 or 1, in floating point; NaN of either sign is NaN without one."""
    signs = pc.sign(values if at.is_floating(values.type) else values.cast(pa.float64(), safe=False))
    if not at.is_floating(signs.type):
        return signs
    return pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), signs.type), signs)


def power(values: Value, exponent: Value) -> Value:
    """A power, in floating point."""
    return pc.power(values.cast(pa.float64(), safe=False), exponent.cast(pa.float64(), safe=False))


def rounded(values: Value, digits: pa.Scalar | None = None) -> Value:
    """Rounded, halves away from zero."""
    places = 0 if digits is None else max(-_MOST_DIGITS, min(_count(digits), _MOST_DIGITS))
    return pc.round(values, places, round_mode="half_towards_infinity")


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "bit_length": bit_length,
    "concat": concat,
    "concat_ws": concat_ws,
    "concatenated": concatenated,
    "contains_tokens": contains_tokens,
    "left": left,
    "nullif": nullif,
    "octet_length": octet_length,
    "pow": power,
    "power": power,
    "regexp_count": regexp_count,
    "regexp_like": regexp_like,
    "regexp_match": regexp_match,
    "repeat": repeat,
    "replace": replace,
    "right": right,
    "signum": sign,
    "round": rounded,
    "strpos": strpos,
    "substr": substr,
    "trunc": pc.trunc,
}
