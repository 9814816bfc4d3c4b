"""Functions over text and numbers that no SQL engine has, or not as the official implementation."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from lance_engine.errors import InvalidFilterError
from lance_engine.expr.value_types import is_bytes, is_text

# An array of pyarrow, or a scalar where the value is constant.
Value = Any
# More digits than a number has; Arrow counts up to the number given.
_MOST_DIGITS: Final = 400
_WORDS: Final = re.compile(r"[^\W_]+")


def _as_text(value: Value) -> Value:
    if at.is_floating(value.type):
        raise pa.ArrowTypeError("numbers of floating point have other texts in Arrow than in SQL")
    return value.cast(pa.string())


def concatenated(*parts: Value) -> Value:
    """The texts of the values, joined; null if a part is null: the operator ``||``."""
    if any(is_bytes(part.type) for part in parts):
        return pc.binary_join_element_wise(*parts, b"", null_handling="emit_null")
    return pc.binary_join_element_wise(*map(_as_text, parts), "", null_handling="emit_null")


def _count(value: pa.Scalar) -> int:
    if not isinstance(value, pa.Scalar) or not value.is_valid or not at.is_integer(value.type):
        raise InvalidFilterError("The length or position must be a constant whole number")
    return int(value.as_py())


def replace(values: Value, wanted: Value, replacement: Value) -> Value:
    """Every occurrence of a text replaced by another; the empty text is around every character."""
    constant = isinstance(wanted, pa.Scalar) and isinstance(replacement, pa.Scalar)
    if not constant or not wanted.as_py():
        if not all(is_text(value.type) for value in (values, wanted, replacement)):
            raise pa.ArrowTypeError("replace needs strings")
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


def regexp_count(
    values: pa.Array, pattern: pa.Scalar, start: pa.Scalar | None = None, flags: pa.Scalar | None = None
) -> pa.Array:
    """How often a regular expression matches a text, from a position onwards; 0 for null."""
    begin = 1 if start is None else _count(start)
    if begin < 1:
        raise InvalidFilterError("The start position of regexp_count must be at least 1")
    searched = values if begin == 1 else pc.utf8_slice_codeunits(values, begin - 1)
    counts = pc.count_substring_regex(searched, _expression(pattern, flags))
    return pc.fill_null(counts, 0).cast(pa.int64())


def contains_tokens(values: Value, wanted: pa.Scalar) -> pa.Array:
    """Whether a text has every word of another."""
    if not is_text(values.type):
        raise pa.ArrowTypeError(f"{values.type} is not a string")
    words = set(_WORDS.findall(_pattern(wanted)))
    contained = [None if text is None else words <= set(_WORDS.findall(text)) for text in values.to_pylist()]
    return pa.array(contained, pa.bool_())


def rounded(values: Value, digits: pa.Scalar | None = None) -> Value:
    """Rounded, halves away from zero; pyarrow's function of this name rounds them to even numbers."""
    places = 0 if digits is None else max(-_MOST_DIGITS, min(_count(digits), _MOST_DIGITS))
    return pc.round(values, places, round_mode="half_towards_infinity")


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "concatenated": concatenated,
    "contains_tokens": contains_tokens,
    "regexp_count": regexp_count,
    "regexp_like": regexp_like,
    "replace": replace,
    "round": rounded,
}
