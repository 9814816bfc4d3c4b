"""The functions of filters by SQL name: pyarrow kernels, and our own functions over arrays.

An engine computes all others (`external`): `lance_sql` provides those of DataFusion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from lance_engine.expr import external, json_functions, list_functions, nested, text_functions

#: Evaluates a function: arguments are arrays of equal length, or scalars if they are constant.
OwnFunction = Callable[..., Any]

#: The pyarrow kernels of functions by SQL name.
KERNELS: Final = {
    "abs": "abs_checked",
    "acos": "acos",
    "asin": "asin",
    "atan": "atan",
    "atan2": "atan2",
    "ceil": "ceil",
    "ceiling": "ceil",
    "char_length": "utf8_length",
    "coalesce": "coalesce",
    "character_length": "utf8_length",
    "cos": "cos",
    "day": "day",
    "exp": "exp",
    "floor": "floor",
    "hour": "hour",
    "isnan": "is_nan",
    "length": "utf8_length",
    "ln": "ln",
    "log10": "log10",
    "log2": "log2",
    "lower": "utf8_lower",
    "ltrim": "utf8_ltrim_whitespace",
    "minute": "minute",
    "month": "month",
    "prefix": "starts_with",
    "reverse": "utf8_reverse",
    "rtrim": "utf8_rtrim_whitespace",
    "sin": "sin",
    "sqrt": "sqrt",
    "suffix": "ends_with",
    "tan": "tan",
    "trim": "utf8_trim_whitespace",
    "btrim": "utf8_trim_whitespace",
    "upper": "utf8_upper",
    "year": "year",
}
#: Kernels that remove the characters of a second argument, by the kernel that removes white space.
TRIMMED: Final = {
    "utf8_trim_whitespace": "utf8_trim",
    "utf8_ltrim_whitespace": "utf8_ltrim",
    "utf8_rtrim_whitespace": "utf8_rtrim",
}
#: Our own functions by name, in SQL and in the tree.
OWN: Final[dict[str, OwnFunction]] = {
    **list_functions.FUNCTIONS,
    **nested.FUNCTIONS,
    **json_functions.FUNCTIONS,
    **text_functions.FUNCTIONS,
}
#: Aliases of functions, also of those that an engine computes.
ALIASES: Final = {
    "array_contains": "array_has",
    "list_contains": "array_has",
    "list_has": "array_has",
    "list_has_any": "array_has_any",
    "arrays_overlap": "array_has_any",
    "list_has_all": "array_has_all",
    "list_length": "array_length",
    "array_extract": "array_element",
    "list_element": "array_element",
    "list_extract": "array_element",
    "list_position": "array_position",
    "array_indexof": "array_position",
    "list_indexof": "array_position",
    "array_empty": "empty",
    "list_empty": "empty",
    "list_max": "array_max",
    "list_min": "array_min",
    "instr": "strpos",
    "datepart": "date_part",
    "datetrunc": "date_trunc",
    "nvl": "coalesce",
    "sign": "signum",
    "ifnull": "coalesce",
    "regexp_matches": "regexp_like",
}


def call(name: str, values: Sequence[pa.Array | pa.Scalar]) -> pa.Array | pa.Scalar:
    """The values of a function of `OWN`, or of an engine; one constant where all arguments are constants."""
    own = OWN.get(name)
    is_constant = all(isinstance(value, pa.Scalar) for value in values)
    if own is None:
        result = external.compute(name, values)
    elif is_constant and values:
        result = own(pa.repeat(values[0], 1), *values[1:])
    else:
        result = own(*values)
    return result[0] if is_constant else result
