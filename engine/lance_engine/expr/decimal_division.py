"""Division of decimals, which Arrow computes with other numbers of digits than SQL engines."""

from __future__ import annotations

import decimal
from typing import Final

import pyarrow as pa

from lance_engine.expr.value_types import decimal_type

#: Digits that a quotient has in addition to those of the dividend, as in DataFusion.
_MORE_DIGITS: Final = 4
# More digits than quotients of two decimals of 76 digits have.
_EXACT: Final = decimal.Context(prec=240)


def quotient_type(op: str, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """The decimal type of ``left op right`` for / // %."""
    whole, scale = left.precision - left.scale + right.scale, 0
    if op == "/":
        scale = left.scale + _MORE_DIGITS
    elif op == "%":
        whole, scale = right.precision - right.scale, max(left.scale, right.scale)
    return decimal_type(max(1, min(whole + scale, 76)), scale)


def divide(op: str, left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar, kind: pa.DataType) -> pa.Array:
    """Quotients, truncated to the digits of `kind`, or remainders; null for the divisor 0."""
    rows = next((len(side) for side in (left, right) if not isinstance(side, pa.Scalar)), 1)
    pairs = zip(
        *(
            [side.as_py()] * rows if isinstance(side, pa.Scalar) else side.to_pylist()
            for side in (left, right)
        ),
        strict=True,
    )
    step = decimal.Decimal(1).scaleb(-kind.scale)
    quotients = [None if a is None or not b else _quotient(op, a, b, step) for a, b in pairs]
    return pa.array(quotients, kind)


def _quotient(
    op: str, left: decimal.Decimal, right: decimal.Decimal, step: decimal.Decimal
) -> decimal.Decimal:
    if op == "%":
        return _EXACT.remainder(left, right)
    return _EXACT.divide(left, right).quantize(step, decimal.ROUND_DOWN, _EXACT)
