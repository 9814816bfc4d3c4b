"""Evaluates a filter over a record batch, exactly, with Arrow's vectorized kernels.

Logic follows SQL: null is unknown, NaN equals NaN and is greater than every other number, unless a comparison
uses the total order. Predicates over dictionary columns are evaluated once per dictionary entry.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as at

from lance_engine import compute as pc
from lance_engine.arrow_values import scalar
from lance_engine.errors import ColumnNotFoundError, InvalidFilterError
from lance_engine.expr import external
from lance_engine.expr.convert import convert
from lance_engine.expr.decimal_division import divide
from lance_engine.expr.membership import MANY, members
from lance_engine.expr.total_order import is_negative_nan, total_key
from lance_engine.expr.tree import (
    And,
    Arithmetic,
    Cast,
    Column,
    Comparison,
    Function,
    In,
    IsNull,
    Literal,
    Match,
    Node,
    Not,
    Or,
)
from lance_engine.expr.value_types import is_bytes, is_text, value_type

#: The functions of pyarrow, by operator.
_COMPARE = {
    "=": "equal",
    "<>": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
_MATCH = {
    "starts_with": "starts_with",
    "ends_with": "ends_with",
    "contains": "match_substring",
    "like": "match_like",
    "ilike": "match_like",
}
_UNKNOWN = scalar(None, pa.bool_())
#: What kernels and Python raise for values that do not fit.
_FAILURES = (pa.ArrowException, OverflowError, decimal.DecimalException, UnicodeError)
#: Up to this many values, comparing with each one is faster than a hash table.
_FEW_NUMBERS = 16
_FEW_STRINGS = 3

Compute = Callable[..., Any]
Mask = Callable[[pa.Array], pa.BooleanArray]


def _function(name: str) -> Compute:
    function: Compute = getattr(pc, name)
    return function


def _compare(op: str) -> Compute:
    return _function(_COMPARE[op])


def evaluate(node: Node, batch: pa.RecordBatch) -> pa.BooleanArray:
    """The truth of predicate `node` for each row of `batch`: true, false, or null for unknown.

    Raises `InvalidFilterError` when a cast or an arithmetic operation has no result for some row.
    """
    try:
        return _predicate(node, batch)
    except _FAILURES as error:
        raise InvalidFilterError(
            f"Cannot evaluate the filter {node}: {error}",
            remedy="Exclude these rows with another condition, or use TRY_CAST",
        ) from error


def evaluate_value(node: Node, batch: pa.RecordBatch, target: pa.DataType | None = None) -> pa.Array:
    """The value of `node`, of any type, for each row of `batch`, cast to `target` if given.

    Raises `InvalidFilterError` when an operation has no result for some row, or one that does not fit.
    """
    try:
        values = _array(_values(node, batch), len(batch))
        return values if target is None else convert(values, target)
    except _FAILURES as error:
        raise InvalidFilterError(
            f"Cannot compute the value {node}: {error}",
            remedy="Exclude these rows with a filter, or use TRY_CAST",
        ) from error


def evaluate_constant(node: Node) -> Literal:
    """The value of a node that reads no column."""
    row = pa.RecordBatch.from_struct_array(pa.array([{}], pa.struct([])))
    try:
        value = _predicate(node, row) if at.is_boolean(node.type) else _values(node, row)
    except _FAILURES as error:
        raise InvalidFilterError(f"Cannot evaluate {node}: {error}", remedy="Fix the constant") from error
    return Literal(value if isinstance(value, pa.Scalar) else value[0])


def _predicate(node: Node, batch: pa.RecordBatch) -> pa.BooleanArray:
    match node:
        case And():
            return _all(node.operands, batch)
        case Or():
            return _any(node.operands, batch)
        case Not():
            return pc.invert(_predicate(node.operand, batch))
        case Comparison():
            return _comparison(node, batch)
        case In():
            return _over_entries(_stored(node.operand, batch), lambda values: _is_in(values, node))
        case Match():
            return _over_entries(_stored(node.operand, batch), lambda values: _matches(values, node))
        case IsNull():
            return _null_test(node, batch)
        case _:
            return _array(_values(node, batch), len(batch))


def _all(operands: tuple[Node, ...], batch: pa.RecordBatch) -> pa.BooleanArray:
    result = _predicate(operands[0], batch)
    for operand in operands[1:]:
        if result.null_count == 0 and result.true_count == 0:
            return result
        undecided = partial(pc.fill_null, result, True)
        # and_kleene automatically uses the fast path if neither side has nulls.
        result = pc.and_kleene(result, _needed(_predicate, operand, batch, undecided))
    return result


def _any(operands: tuple[Node, ...], batch: pa.RecordBatch) -> pa.BooleanArray:
    result = _predicate(operands[0], batch)
    for operand in operands[1:]:
        if result.true_count == len(result):
            return result
        undecided = partial(_unless_true, result)
        result = pc.or_kleene(result, _needed(_predicate, operand, batch, undecided))
    return result


def _unless_true(truths: pa.BooleanArray) -> pa.BooleanArray:
    return pc.invert(pc.fill_null(truths, False))


def _needed(
    compute: Callable[[Node, pa.RecordBatch], pa.Array | pa.Scalar],
    node: Node,
    batch: pa.RecordBatch,
    rows: Callable[[], pa.BooleanArray],
) -> pa.Array | pa.Scalar:
    """The values of `node`: null in other rows than `rows`, which nobody asks for, where those fail."""
    try:
        return compute(node, batch)
    except (InvalidFilterError, *_FAILURES):
        needed = rows()
        if needed.true_count == len(needed):
            raise
        values = _array(compute(node, batch.filter(needed)), needed.true_count)
        places = pc.subtract(pc.cumulative_sum(pc.cast(needed, pa.int64())), 1)
        return values.take(pc.if_else(needed, places, scalar(None, pa.int64())))


def _comparison(node: Comparison, batch: pa.RecordBatch) -> pa.BooleanArray:
    if isinstance(node.right, Literal):
        constant = node.right.value
        return _over_entries(
            _stored(node.left, batch), lambda values: _compare_constant(node.op, values, constant, node.total)
        )
    left = _array(_values(node.left, batch), len(batch))
    if node.left == node.right:
        return _constant_unless_null(left, node.op in ("=", "<=", ">="))
    right = _array(_values(node.right, batch), len(batch))
    if not at.is_floating(left.type):
        return _compare(node.op)(left, right)
    if node.total:
        return _compare(node.op)(total_key(left), total_key(right))
    return _compare_floating(node.op, left, right)


def _compare_constant(op: str, values: pa.Array, constant: pa.Scalar, total: bool = False) -> pa.BooleanArray:
    if not at.is_floating(values.type):
        return _compare(op)(values, constant)
    if total:
        return _compare_in_total_order(op, values, constant)
    values, constant = _single(values), _single(constant)
    if constant.is_valid and constant.as_py() != constant.as_py():
        if op in ("<=", ">"):
            return _constant_unless_null(values, op == "<=")
        nan = pc.is_nan(values)
        return nan if op in ("=", ">=") else pc.invert(nan)
    if op in (">", ">="):
        # NaN is greater than the constant, and IEEE comparisons with NaN are false: negate the opposite.
        return pc.invert(_compare("<=" if op == ">" else "<")(values, constant))
    return _compare(op)(values, constant)


def _compare_in_total_order(op: str, values: pa.Array, constant: pa.Scalar) -> pa.BooleanArray:
    if np.isnan(constant.as_py()):
        return _compare(op)(total_key(values), total_key(pa.repeat(constant, 1))[0])
    if op in ("=", "<>"):
        return _compare_constant(op, values, constant)
    if op in (">", ">="):
        return pc.invert(_compare_in_total_order("<=" if op == ">" else "<", values, constant))
    # IEEE comparisons with NaN are false; NaN with a sign is less than every number.
    plain = _compare(op)(_single(values), _single(constant))
    return pc.or_(plain, is_negative_nan(values))


def _compare_floating(op: str, left: pa.Array, right: pa.Array) -> pa.BooleanArray:
    left, right = _single(left), _single(right)
    plain = _compare(op)(left, right)
    left_nan, right_nan = pc.is_nan(left), pc.is_nan(right)
    if not left_nan.true_count and not right_nan.true_count:
        return plain
    if op in ("<>", ">", ">="):
        return pc.invert(_compare_floating({"<>": "=", ">": "<=", ">=": "<"}[op], left, right))
    # IEEE comparisons with NaN are false; add the rows that match because NaN is the largest value.
    if op == "=":
        also = pc.and_(left_nan, right_nan)
    elif op == "<":
        also = pc.and_not(right_nan, left_nan)
    else:
        also = right_nan
    return pc.or_(plain, also)


def _single(values: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    """There are no comparison kernels for half floats; single precision represents their values exactly."""
    return pc.cast(values, pa.float32()) if at.is_float16(values.type) else values


def _is_in(values: pa.Array, node: In) -> pa.BooleanArray:
    held = node.values
    if values.type != held.type:
        values = pc.cast(values, held.type)
    if node.total:
        # Adding 0.0 makes -0.0 equal to 0.0; half floats have no addition.
        sides = (_single(side) for side in (values, held))
        values, held = (total_key(pc.add(side, scalar(0.0, side.type))) for side in sides)
    if len(held) <= (_FEW_STRINGS if is_text(held.type) or is_bytes(held.type) else _FEW_NUMBERS):
        is_in = reduce(pc.or_, (_compare_constant("=", values, value) for value in held))
    else:
        if at.is_float16(held.type):
            values, held = _single(values), _single(held)
        test = members(node, held) if len(held) >= MANY else None
        if test is not None:
            is_in = test(values)
        else:
            if at.is_floating(held.type):
                # is_in compares bits, and -0.0 equals 0.0.
                zeros = pc.filter(held, pc.equal(held, scalar(0.0, held.type)))
                held = pa.concat_arrays([held, pc.negate(zeros)])
            is_in = pc.is_in(values, value_set=held)
        if values.null_count:
            is_in = pc.if_else(pc.is_valid(values), is_in, _UNKNOWN)
    return pc.if_else(is_in, True, _UNKNOWN) if node.has_null else is_in


def _matches(values: pa.Array, node: Match) -> pa.BooleanArray:
    if node.kind == "ilike":
        return pc.match_like(values, node.pattern, ignore_case=True)
    return _function(_MATCH[node.kind])(values, node.pattern)


def _null_test(node: IsNull, batch: pa.RecordBatch) -> pa.BooleanArray:
    operand = node.operand
    values = _predicate(operand, batch) if at.is_boolean(operand.type) else _stored(operand, batch)
    if at.is_run_end_encoded(values.type) or (at.is_dictionary(values.type) and values.dictionary.null_count):
        values = _plain(values)
    return pc.is_valid(values) if node.negated else pc.is_null(values)


def _constant_unless_null(values: pa.Array, truth: bool) -> pa.BooleanArray:
    mask = pa.repeat(scalar(truth), len(values))
    return pc.if_else(pc.is_valid(values), mask, _UNKNOWN) if values.null_count else mask


def _over_entries(values: pa.Array, test: Mask) -> pa.BooleanArray:
    """`test` over the values of an array as stored: once per entry if it is a dictionary."""
    if at.is_dictionary(values.type) and len(values.dictionary) <= len(values):
        return pc.take(test(_plain(values.dictionary)), values.indices)
    return test(_plain(values))


def _stored(node: Node, batch: pa.RecordBatch) -> pa.Array:
    """The values of `node` in the encoding of the batch."""
    if not isinstance(node, Column):
        if at.is_boolean(node.type):
            return _predicate(node, batch)
        return _array(_values(node, batch), len(batch))
    index = batch.schema.get_field_index(node.parts[0])
    if index < 0:
        raise ColumnNotFoundError(
            f"The batch has no column {node.parts[0]!r}",
            remedy="Read the columns returned by columns_of(filter)",
        )
    values = batch.column(index)
    return pc.struct_field(values, list(node.parts[1:])) if len(node.parts) > 1 else values


def _plain(values: pa.Array) -> pa.Array:
    """The values without dictionary, run-end, extension or view encoding."""
    if isinstance(values, pa.ExtensionArray):
        return _plain(values.storage)
    if at.is_run_end_encoded(values.type):
        return _plain(pc.run_end_decode(values))
    if at.is_dictionary(values.type):
        return _plain(pc.take(values.dictionary, values.indices))
    kind = value_type(values.type)
    return values if values.type == kind else pc.cast(values, kind)


def _values(node: Node, batch: pa.RecordBatch) -> pa.Array | pa.Scalar:
    """The values of any node, plainly encoded: an array of one per row, or a scalar for all rows."""
    match node:
        case Column():
            return _plain(_stored(node, batch))
        case Literal():
            return node.value
        case Arithmetic():
            return _arithmetic(node, batch)
        case Cast():
            return convert(_values(node.operand, batch), node.target, lenient=node.lenient)
        case Function():
            return _call(node, batch)
        case _:
            return _predicate(node, batch)


def _array(values: pa.Array | pa.Scalar, length: int) -> pa.Array:
    return pa.repeat(values, length) if isinstance(values, pa.Scalar) else values


def _arithmetic(node: Arithmetic, batch: pa.RecordBatch) -> pa.Array | pa.Scalar:
    left, right = (_countable(_values(side, batch)) for side in node.children)
    if at.is_decimal(node.type) and at.is_decimal(left.type) and node.op in ("/", "//", "%"):
        return divide(node.op, left, right, node.type)
    if node.op == "+":
        result = pc.add_checked(left, right)
    elif node.op == "-":
        result = pc.subtract_checked(left, right)
    elif node.op == "*":
        result = pc.multiply_checked(left, right)
    elif node.op == "/":
        result = pc.divide(left, right)
    else:
        result = _divide_whole(node.op, left, right)
    if at.is_date(node.type):
        return pc.cast(pc.cast(result, pa.int32()), node.type)
    return result if result.type == node.type else convert(result, node.type)


def _countable(values: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    """Dates as numbers of days."""
    return pc.cast(pc.cast(values, pa.int32()), pa.int64()) if at.is_date32(values.type) else values


def _divide_whole(op: str, left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    if isinstance(right, pa.Int64Scalar) and isinstance(left, pa.Int64Array) and not left.null_count:
        divisor = right.as_py()
        if divisor is not None and divisor > 0:
            return _divide_by_constant(op, left.to_numpy(), divisor)
    if at.is_integer(right.type):
        zero = scalar(0, right.type)
        right = pc.if_else(pc.equal(right, zero), scalar(None, right.type), right)
        if op == "%" and at.is_signed_integer(right.type):
            # The quotient of the minimum and -1 does not fit, its remainder does.
            minus_one = scalar(-1, right.type)
            right = pc.if_else(pc.equal(right, minus_one), scalar(1, right.type), right)
    if op == "%" and at.is_floating(right.type):
        return _float_rest(left, right)
    quotient = (
        pc.divide_checked(left, right) if at.is_integer(right.type) else pc.trunc(pc.divide(left, right))
    )
    return quotient if op == "//" else pc.subtract(left, pc.multiply(quotient, right))


def _float_rest(left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    """The exact remainders; Arrow has no function for them."""
    if isinstance(left, pa.Scalar) and isinstance(right, pa.Scalar):
        return _float_rest(pa.repeat(left, 1), right)[0]
    rows = len(right if isinstance(left, pa.Scalar) else left)
    columns = [_array(side, rows) for side in (left, right)]
    valid = pc.and_(*(column.is_valid() for column in columns))
    with np.errstate(invalid="ignore"):
        rest = np.fmod(*(column.to_numpy(zero_copy_only=False) for column in columns))
    return pa.array(rest, mask=pc.invert(valid).to_numpy(zero_copy_only=False))


def _divide_by_constant(op: str, left: npt.NDArray[np.int64], divisor: int) -> pa.Array:
    """Quotient or remainder, rounded towards zero; numpy divides by a constant without dividing."""
    quotient = left // divisor
    if len(left) and left.min() < 0:
        # Rounded down so far.
        quotient += (left < 0) & (quotient * divisor != left)
    if op == "%":
        # In place: new memory costs more than the arithmetic.
        quotient *= divisor
        np.subtract(left, quotient, out=quotient)
    return pa.array(quotient)


def _call(node: Function, batch: pa.RecordBatch) -> pa.Array | pa.Scalar:
    from lance_engine.expr.functions import OWN, call  # few filters call functions

    if node.name == "coalesce":
        return _coalesce(node, batch)
    values = [_values(argument, batch) for argument in node.arguments]
    is_external = node.name.startswith(external.PREFIX)
    if is_external and not external.is_provided():
        raise InvalidFilterError(f"No engine is available to compute {node}", remedy="Import lance_sql")
    if is_external or node.name in OWN:
        return call(node.name, values)
    options = None if node.options is None else pc.FunctionOptions.deserialize(pa.py_buffer(node.options))
    return pc.call_function(node.name, values, options)


def _coalesce(node: Function, batch: pa.RecordBatch) -> pa.Array | pa.Scalar:
    """The first values that are not null; later ones may fail where they are not needed."""
    values: list[pa.Array | pa.Scalar] = []

    def missing() -> pa.BooleanArray:
        known = (_array(one, len(batch)).is_null() for one in values)
        return reduce(pc.and_, known, pa.repeat(True, len(batch)))

    for argument in node.arguments:
        later = _needed(_values, argument, batch, missing)
        values.append(later)
    return pc.call_function(node.name, values)
