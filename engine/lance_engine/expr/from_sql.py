"""Parses SQL text to a filter tree; `docs/filters.md` describes the dialect.

One class has a short method for each kind of expression.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as at

from lance_engine.arrow_values import scalar
from lance_engine.errors import ColumnNotFoundError, InvalidFilterError, LanceError
from lance_engine.expr import build, constants, operations
from lance_engine.expr.alike import alike, as_double, fitted
from lance_engine.expr.arithmetic import arithmetic, decimal_quotient
from lance_engine.expr.coerce import duration_scalar, read_text
from lance_engine.expr.constants import Interval
from lance_engine.expr.functions import ALIASES, KERNELS
from lance_engine.expr.integer_lists import NAME, without_integer_lists
from lance_engine.expr.sql_parser import parsed_condition, position_of, sqlglot
from lance_engine.expr.sql_types import named_type
from lance_engine.expr.tree import Column, Literal, Node
from lance_engine.expr.value_types import is_list, is_nested, is_number, is_text, is_zoned

_COMPARISONS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "IntDiv": "//", "Mod": "%"}
_MATCHES = {
    "Like": "like",
    "ILike": "ilike",
    "StartsWith": "starts_with",
    "EndsWith": "ends_with",
    "Contains": "contains",
}
_OPERATORS = {
    "DPipe": "concatenated",
    "BitwiseAnd": "bit_wise_and",
    "BitwiseOr": "bit_wise_or",
    "BitwiseLeftShift": "shift_left",
    "BitwiseRightShift": "shift_right",
    "RegexpLike": "regexp_like",
    "Array": "make_array",
}
_STRING_TESTS = {
    "prefix": "starts_with",
    "starts_with": "starts_with",
    "suffix": "ends_with",
    "ends_with": "ends_with",
    "contains": "contains",
}
#: Functions that return floating-point numbers for integers as well.
_IN_FLOATING_POINT = ("ceil", "ceiling", "floor", "round", "trunc")
_MOMENTS = ("now", "current_timestamp", "current_date", "today", "current_time")


def parse_sql(text: str, schema: pa.Schema, *, official: bool = False) -> Node:
    """The predicate over the columns of `schema` in `text`, which is the part after WHERE.

    Struct fields are written ``a.b``; names match exactly, or otherwise ignoring case, unless quoted with
    backticks or double quotes. Dividing whole numbers gives a whole number. Naive timestamps are local time
    next to zoned ones. `official` follows the official implementation, not DuckDB, in what constants and
    patterns mean. Raises `InvalidFilterError` and `ColumnNotFoundError`, which give the
    position in the text.
    """
    value = parse_value(text, schema, official=official)
    try:
        return build.require_boolean(value)
    except LanceError as error:
        error.at(filter=text)
        raise


def parse_value(text: str, schema: pa.Schema, *, official: bool = False) -> Node:
    """The value of the expression `text` over the columns of `schema`; errors as in `parse_sql`."""
    try:
        shortened, lists = without_integer_lists(text)
        return _Reader(text, schema, lists, official).read(parsed_condition(shortened))
    except LanceError as error:
        error.at(filter=text)
        raise
    except (OverflowError, pa.ArrowException, ArithmeticError) as error:
        raise InvalidFilterError(
            f"A constant in the filter does not fit its type: {error}", remedy="Fix the constant", filter=text
        ) from error
    except RecursionError as error:
        raise InvalidFilterError(
            "The filter is nested too deeply", remedy="Use IN for a long list of values", filter=text[:200]
        ) from error


class _Reader:
    """Converts the parser's tree to nodes. Every method takes one node of the parser's tree."""

    def __init__(self, text: str, schema: pa.Schema, lists: Sequence[pa.Int64Array], official: bool) -> None:
        self.text = text
        self.schema = schema
        self.official = official
        self.lists = {f"{NAME}{number}": values for number, values in enumerate(lists)}

    def read(self, parsed: Any) -> Node:
        try:
            return self._read(parsed)
        except (InvalidFilterError, ColumnNotFoundError) as error:
            error.at(position=position_of(self.text, parsed))
            raise

    def _read(self, parsed: Any) -> Node:
        name = type(parsed).__name__
        if name in _COMPARISONS:
            return self._comparison(_COMPARISONS[name], parsed.this, parsed.expression)
        if name in _ARITHMETIC:
            return self._arithmetic(_ARITHMETIC[name], parsed)
        if name in _MATCHES:
            return self._match(_MATCHES[name], parsed, None)
        handler: Callable[[Any], Node] | None = getattr(self, f"_read_{name.lower()}", None)
        if handler is not None:
            return handler(parsed)
        if name in _OPERATORS:
            return operations.sql_function(_OPERATORS[name], _unsigned(self._arguments(parsed)))
        if isinstance(parsed, (sqlglot().exp.Query, sqlglot().exp.Subquery)):
            raise InvalidFilterError(
                "A filter cannot hold a subquery", remedy="Run the subquery first, or join in SQL"
            )
        raise InvalidFilterError(
            f"Filters do not support {parsed.sql(dialect='duckdb')}",
            remedy="Use it in the SQL query instead of the filter of the scan",
        )

    # Logic

    def _operands(self, parsed: Any) -> list[Node]:
        """The operands of a chain of ANDs or ORs, without recursion: chains can be thousands long."""
        kind, operands, pending = type(parsed), [], [parsed]
        while pending:
            current = pending.pop()
            if isinstance(current, kind):
                pending += (current.expression, current.this)
            elif isinstance(current, sqlglot().exp.Paren) and isinstance(current.this, kind):
                pending.append(current.this)
            else:
                operands.append(self.read(current))
        return operands

    def _read_and(self, parsed: Any) -> Node:
        return build.conjunction(self._operands(parsed))

    def _read_or(self, parsed: Any) -> Node:
        return build.disjunction(self._operands(parsed))

    def _read_not(self, parsed: Any) -> Node:
        return build.negate(self.read(parsed.this))

    def _read_paren(self, parsed: Any) -> Node:
        return self.read(parsed.this)

    # Comparisons

    def _comparison(self, op: str, left: Any, right: Any) -> Node:
        return operations.compare(op, *self._sides(left, right))

    def _sides(self, left: Any, right: Any) -> tuple[Node, Node]:
        """Both sides of a comparison."""
        sides = self.read(left), self.read(right)
        if not self.official and all(is_nested(side.type) for side in sides):
            raise InvalidFilterError(
                "Lists and structs are compared by the engine, as it has its own order of them",
                remedy="Use SQL",
            )
        return self._meant(sides[0], sides[1], right), self._meant(sides[1], sides[0], left)

    def _meant(self, constant: Node, other: Node, parsed: Any) -> Node:
        """A constant next to `other`: with a decimal point, it has the precision of a column, or double."""
        is_column = isinstance(other, Column) and not isinstance(parsed, sqlglot().exp.Cast)
        return (
            constant
            if is_column or not self.official or not at.is_floating(other.type)
            else as_double(constant)
        )

    def _read_between(self, parsed: Any) -> Node:
        low, high = parsed.args["low"], parsed.args["high"]
        between = self._between(parsed.this, low, high)
        if parsed.args.get("symmetric"):
            return build.disjunction([between, self._between(parsed.this, high, low)])
        return between

    def _between(self, operand: Any, low: Any, high: Any) -> Node:
        return build.conjunction(
            [self._comparison(">=", operand, low), self._comparison("<=", operand, high)]
        )

    def _read_in(self, parsed: Any) -> Node:
        if parsed.args.get("query") is not None or parsed.args.get("unnest") is not None:
            raise InvalidFilterError(
                "A filter cannot hold a subquery", remedy="Write the values: IN (1, 2, 3)"
            )
        if parsed.args.get("field") is not None:
            raise InvalidFilterError(
                "IN needs values in parentheses", remedy="For the items of a list: array_has(items, 1)"
            )
        if isinstance(parsed.this, sqlglot().exp.Tuple):
            raise InvalidFilterError(
                "IN only supports a single column", remedy="Write (a = 1 AND b = 2) OR ..."
            )
        operand = self.read(parsed.this)
        long = self.lists.get(parsed.expressions[0].name) if len(parsed.expressions) == 1 else None
        if long is not None:
            return build.member(operand, long)
        if is_nested(operand.type):
            return build.disjunction(
                self._comparison("=", parsed.this, value) for value in parsed.expressions
            )
        values = [self._meant(self.read(value), operand, parsed.this) for value in parsed.expressions]
        known = [value.value for value in values if isinstance(value, Literal)]
        others = [build.compare("=", operand, value) for value in values if not isinstance(value, Literal)]
        if not others:
            return build.member(operand, known)
        return build.disjunction([*([build.member(operand, known)] if known else []), *others])

    def _read_nullsafeeq(self, parsed: Any) -> Node:
        return self._distinct(parsed, negated=True)

    def _read_nullsafeneq(self, parsed: Any) -> Node:
        return self._distinct(parsed, negated=False)

    def _distinct(self, parsed: Any, *, negated: bool) -> Node:
        left, right = self._sides(parsed.this, parsed.expression)
        return build.distinct(left, right, operations.compare, negated=negated)

    def _read_is(self, parsed: Any) -> Node:
        operand, exp = self.read(parsed.this), sqlglot().exp
        if isinstance(parsed.expression, exp.Null):
            return build.is_null(operand)
        if isinstance(parsed.expression, exp.Boolean):
            return build.is_truth(build.require_boolean(operand), parsed.expression.this)
        raise InvalidFilterError(
            "IS must be followed by NULL, TRUE, FALSE or DISTINCT FROM", remedy="Use = to compare values"
        )

    def _match(self, kind: str, parsed: Any, escape: str | None) -> Node:
        operand, pattern = self.read(parsed.this), self.read(parsed.expression)
        if escape is None and self.official and kind in ("like", "ilike"):
            pattern, escape = _with_escapes(pattern), "\\"
        node = operations.match(kind, operand, pattern, escape=escape)
        return build.negate(node) if parsed.args.get("negate") else node

    def _read_escape(self, parsed: Any) -> Node:
        pattern, escape = parsed.this, self.read(parsed.expression)
        if type(pattern).__name__ not in ("Like", "ILike") or not isinstance(escape, Literal):
            raise InvalidFilterError(
                "ESCAPE is only allowed after LIKE and needs a string", remedy="Write LIKE '10!%' ESCAPE '!'"
            )
        return self._match(_MATCHES[type(pattern).__name__], pattern, escape.value.as_py())

    # Columns and constants

    def _read_column(self, parsed: Any) -> Node:
        return self._column(list(parsed.parts))

    def _read_dot(self, parsed: Any) -> Node:
        parts, exp = list(parsed.parts), sqlglot().exp
        if all(isinstance(part, exp.Identifier) for part in parts):
            return self._column(parts)
        if not isinstance(parsed.expression, exp.Identifier):
            raise InvalidFilterError(f"{parsed.sql()} is not a column", remedy="Write a struct field as a.b")
        return self._field(self.read(parsed.this), Literal(scalar(parsed.expression.name)))

    def _read_bracket(self, parsed: Any) -> Node:
        if parsed.this.sql().lower() == "array" and "array" not in self.schema.names:
            return operations.sql_function("make_array", [self.read(item) for item in parsed.expressions])
        held, key = self.read(parsed.this), self.read(parsed.expressions[0])
        if is_list(held.type):
            return operations.sql_function("array_element", [held, key])
        return self._field(held, key)

    def _field(self, column: Node, name: Node) -> Node:
        if not isinstance(name, Literal) or not is_text(name.type):
            raise InvalidFilterError(
                f"Select a field of {column} by a constant name, or a list item by its position",
                remedy="Write a struct field as a.b",
            )
        if isinstance(column, Column):
            return build.column(self.schema, [*column.parts, name.value.as_py()], exact=False)
        if not at.is_struct(column.type):
            raise InvalidFilterError(f"{column} is not a struct", remedy="Write a struct field as a.b")
        field = build.column(pa.schema(list(column.type)), [name.value.as_py()], exact=False)
        return operations.sql_function("get_field", [column, Literal(scalar(field.parts[0]))])

    def _column(self, parts: list[Any]) -> Node:
        names = [part.name for part in parts]
        quoted = any(part.args.get("quoted") for part in parts)
        moment = names[0].lower() if len(names) == 1 and not quoted else ""
        try:
            return build.column(self.schema, names, exact=quoted)
        except ColumnNotFoundError as error:
            if moment.startswith("current_") and moment in _MOMENTS:
                return self._moment(moment)
            if quoted and "`" not in self.text:
                error.remedy = (
                    f"Double quotes name a column: write '{names[-1]}' for a string. {error.remedy}"
                )
            raise

    @staticmethod
    def _moment(name: str) -> Literal:
        """The time at which the filter is read, in UTC."""
        now = datetime.datetime.now(datetime.UTC)
        if name in ("current_date", "today"):
            return Literal(scalar(now.date()))
        if name == "current_time":
            return Literal(scalar(now.time(), pa.time64("ns")))
        return Literal(scalar(now, pa.timestamp("us", tz="UTC")))

    def _read_hexstring(self, parsed: Any) -> Node:
        try:
            return Literal(scalar(bytes.fromhex(parsed.this)))
        except ValueError as error:
            raise InvalidFilterError(
                f"X'{parsed.this}' is not binary", remedy="Write two hexadecimal digits per byte: X'0aff'"
            ) from error

    def _read_literal(self, parsed: Any) -> Node:
        if parsed.is_string:
            return Literal(scalar(parsed.this))
        value = constants.parse_number(parsed.this)
        if value is None:
            raise InvalidFilterError(
                f"{parsed.this} is not a number", remedy="Write numbers like 1, 1.5 or 1e3"
            )
        return Literal(value)

    def _read_boolean(self, parsed: Any) -> Node:
        return build.TRUE if parsed.this else build.FALSE

    def _read_null(self, parsed: Any) -> Node:
        return Literal(scalar(None))

    def _read_neg(self, parsed: Any) -> Node:
        operand = self.read(parsed.this)
        if isinstance(operand, Literal) and is_number(operand.type) and not operand.is_null:
            value = operand.value.as_py()
            if isinstance(value, int):
                return Literal(constants.whole_scalar(-value))
            # copy_negate is exact where unary minus rounds to the decimal context.
            negated = value.copy_negate() if isinstance(value, decimal.Decimal) else -value
            return Literal(scalar(negated, operand.type))
        if at.is_floating(operand.type):
            return operations.function("negate", [operand])  # 0 - x keeps the sign of NaN
        return arithmetic("-", Literal(scalar(0)), operand)

    # Casts, arithmetic and functions

    def _read_cast(self, parsed: Any, *, lenient: bool = False) -> Node:
        operand, target = self.read(parsed.this), named_type(parsed.to)
        if (
            isinstance(operand, Literal)
            and is_text(operand.type)
            and not is_text(target)
            and not operand.is_null
        ):
            return self._cast_text(operand, target, lenient)
        return build.cast(operand, target, lenient=lenient)

    def _read_trycast(self, parsed: Any) -> Node:
        return self._read_cast(parsed, lenient=True)

    def _cast_text(self, operand: Literal, target: pa.DataType, lenient: bool) -> Node:
        """A typed constant such as DATE '2026-01-01'; timestamps keep the digits that the text has."""
        try:
            value = read_text(operand.value.as_py(), target)
        except InvalidFilterError:
            if lenient:
                return Literal(scalar(None, target))
            raise
        if at.is_timestamp(target) and is_zoned(value.type) == is_zoned(target):
            return Literal(value) if target.unit == "us" else build.cast(Literal(value), target)
        return build.cast(Literal(value), target, lenient=lenient)

    def _interval(self, parsed: Any) -> Interval | None:
        exp = sqlglot().exp
        if isinstance(parsed, exp.Paren):
            return self._interval(parsed.this)
        if isinstance(parsed, exp.Neg):
            held = self._interval(parsed.this)
            return -held if held else None
        if not isinstance(parsed, exp.Interval):
            return None
        amount = self.read(parsed.this)
        if not isinstance(amount, Literal) or amount.is_null:
            raise InvalidFilterError(
                "The length of an interval must be a constant", remedy="Write INTERVAL '90' DAY"
            )
        return constants.parse_interval(str(amount.value.as_py()), parsed.unit.name if parsed.unit else None)

    def _read_interval(self, parsed: Any) -> Node:
        interval = self._interval(parsed)
        if interval is None or interval.months:
            raise InvalidFilterError(
                "An interval of months does not have a fixed length",
                remedy="Add it to a constant date, or use days",
            )
        return Literal(duration_scalar(interval.nanoseconds))

    def _arithmetic(self, op: str, parsed: Any) -> Node:
        interval, other = self._interval(parsed.expression), parsed.this
        if interval is None and op == "+":
            interval, other = self._interval(parsed.this), parsed.expression
        if interval is not None and op in ("+", "-"):
            moment = self.read(other)
            if isinstance(moment, Literal) and not moment.is_null:
                if is_text(moment.type):
                    moment = self._cast_text(moment, pa.timestamp("us"), False)
                if isinstance(moment, Literal) and (at.is_date(moment.type) or at.is_timestamp(moment.type)):
                    return self._shifted(moment, interval if op == "+" else -interval)
        left, right = self.read(parsed.this), self.read(parsed.expression)
        if self.official:
            left, right = as_double(left), as_double(right)
        if op == "/" and at.is_integer(left.type) and at.is_integer(right.type):
            op = "//"
        kinds = (left.type, right.type)
        exact = all(at.is_integer(kind) or at.is_decimal(kind) for kind in kinds)
        if self.official and op == "/" and exact and any(map(at.is_decimal, kinds)):
            return decimal_quotient(left, right)
        return arithmetic(op, left, right)

    def _shifted(self, moment: Literal, interval: Interval) -> Node:
        """A constant date or timestamp plus an interval: a timestamp, as in DuckDB."""
        instant = (
            build.cast(
                moment, pa.timestamp("ns" if moment.type == pa.timestamp("ns") else "us", moment.type.tz)
            )
            if at.is_timestamp(moment.type)
            else build.cast(moment, pa.timestamp("us"))
        )
        assert isinstance(instant, Literal)
        per_unit = 1 if instant.type.unit == "ns" else 1_000
        return Literal(
            constants.timestamp_scalar(
                constants.shift(instant.value.value * per_unit, interval), is_zoned(instant.type)
            )
        )

    def _arguments(self, parsed: Any) -> list[Node]:
        """The operands of an operator, in order."""
        held = [parsed.this, parsed.args.get("expression"), *parsed.expressions]
        return [self.read(argument) for argument in held if argument is not None]

    def _read_extract(self, parsed: Any) -> Node:
        part = parsed.this.name.lower()
        name = part if part in KERNELS else "date_part"
        operand = self.read(parsed.expression)
        return operations.sql_function(
            name, [operand] if part in KERNELS else [Literal(scalar(part)), operand]
        )

    def _read_trim(self, parsed: Any) -> Node:
        position = str(parsed.args.get("position") or "BOTH").upper()
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(position, "trim")
        return operations.sql_function(name, self._arguments(parsed))

    def _read_substring(self, parsed: Any) -> Node:
        parts = [parsed.this, parsed.args.get("start"), parsed.args.get("length")]
        return operations.sql_function("substr", [self.read(part) for part in parts if part is not None])

    def _read_strposition(self, parsed: Any) -> Node:
        return operations.sql_function("strpos", [self.read(parsed.this), self.read(parsed.args["substr"])])

    def _read_anonymous(self, parsed: Any) -> Node:
        name = str(parsed.this).lower()
        if name in _MOMENTS and not parsed.expressions:
            return self._moment(name)
        nodes = [self.read(argument) for argument in parsed.expressions]
        if len(nodes) == 2 and name in ("struct_extract", "get_field"):
            return self._field(*nodes)
        if name in _STRING_TESTS and len(nodes) == 2:
            return operations.match(_STRING_TESTS[name], *nodes)
        if ALIASES.get(name, name) == "coalesce" and nodes:
            return operations.sql_function("coalesce", alike(nodes))
        if self.official and name in _IN_FLOATING_POINT and nodes and at.is_integer(nodes[0].type):
            nodes[0] = build.cast(nodes[0], pa.float64())
        return operations.sql_function(name, nodes)


def _unsigned(nodes: Sequence[Node]) -> list[Node]:
    """Operands, constants as unsigned 64-bit integers next to these."""
    if not any(node.type == pa.uint64() for node in nodes):
        return list(nodes)
    return [fitted(node, pa.uint64()) or node if at.is_integer(node.type) else node for node in nodes]


def _with_escapes(pattern: Node) -> Node:
    """A pattern in which a backslash at the end is meant literally."""
    if not isinstance(pattern, Literal) or pattern.is_null or not is_text(pattern.type):
        return pattern
    text = pattern.value.as_py()
    backslashes = len(text) - len(text.rstrip("\\"))
    return Literal(scalar(text + "\\")) if backslashes % 2 else pattern
