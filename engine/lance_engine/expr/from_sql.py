"""SQL text (DuckDB dialect) -> filter tree."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.types as at

from lance_engine.errors import ColumnNotFoundError, InvalidFilterError, LanceError
from lance_engine.expr import build, constants, operations, render
from lance_engine.expr.coerce import duration_scalar, read_text
from lance_engine.expr.constants import Interval
from lance_engine.expr.integer_lists import NAME, without_integer_lists
from lance_engine.expr.tree import Column, Literal, Node
from lance_engine.expr.value_types import is_number, is_text, is_zoned

_COMPARISONS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "IntDiv": "//", "Mod": "%"}
_MATCHES = {
    "Like": "like",
    "ILike": "ilike",
    "StartsWith": "starts_with",
    "EndsWith": "ends_with",
    "Contains": "contains",
}
#: The pyarrow kernels of functions, by sqlglot's class or by the name of one that has no class.
_FUNCTIONS = {
    "Lower": "utf8_lower",
    "Upper": "utf8_upper",
    "Length": "utf8_length",
    "Abs": "abs",
    "Floor": "floor",
    "Ceil": "ceil",
    "Year": "year",
    "Month": "month",
    "Day": "day",
    "Hour": "hour",
    "Minute": "minute",
    "Coalesce": "coalesce",
    "IsNan": "is_nan",
    "Trim": "utf8_trim_whitespace",
    "ltrim": "utf8_ltrim_whitespace",
    "rtrim": "utf8_rtrim_whitespace",
    "prefix": "starts_with",
    "suffix": "ends_with",
}
_TYPES = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINT": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "INT128": pa.decimal128(38, 0),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "TEXT": pa.string(),
    "VARBINARY": pa.binary(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPNTZ": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"),
    "TIMESTAMPLTZ": pa.timestamp("us", tz="UTC"),
    "TIMESTAMP_S": pa.timestamp("s"),
    "TIMESTAMP_MS": pa.timestamp("ms"),
    "TIMESTAMP_NS": pa.timestamp("ns"),
}


def parse_sql(text: str, schema: pa.Schema) -> Node:
    """The predicate over the columns of `schema` that `text`, what follows WHERE in DuckDB's dialect, states.

    Struct fields are written ``a.b``; names match exactly or else regardless of case, unless quoted. Zoned
    and naive timestamps meet in UTC. Raises `InvalidFilterError` and `ColumnNotFoundError`, which tell the
    position in the text.
    """
    value = parse_value(text, schema)
    try:
        return build.require_boolean(value)
    except LanceError as error:
        error.at(filter=text)
        raise


def parse_value(text: str, schema: pa.Schema) -> Node:
    """The value, of any type, that `text` computes from the columns of `schema`; errors as of `parse_sql`."""
    try:
        shortened, lists = without_integer_lists(text)
        return _Reader(text, schema, lists).read(_parsed(shortened))
    except LanceError as error:
        error.at(filter=text)
        raise
    except RecursionError as error:
        raise InvalidFilterError(
            "The filter is nested too deeply", remedy="Use IN for long lists of values", filter=text[:200]
        ) from error


@lru_cache(maxsize=1)
def _sqlglot() -> Any:
    # Imported on first use: reading a dataset without a SQL filter does not need the parser.
    import sqlglot

    return sqlglot


def _parsed(text: str) -> Any:
    sqlglot = _sqlglot()
    try:
        # A condition, not a statement: a column may be called "use" or "set".
        parsed = sqlglot.Dialect.get_or_raise("duckdb").parse_into(sqlglot.exp.Condition, text)
    except sqlglot.errors.ParseError as error:
        found = error.errors[0] if error.errors else {}
        place = f"line {found['line']}, column {found['col']}" if found.get("line") else None
        what = str(found.get("description") or error).splitlines()[0].rstrip(".")
        near = f" near {found['highlight']!r}" if found.get("highlight") else ""
        raise InvalidFilterError(
            f"The filter is not valid SQL: {what}{near}",
            remedy="Write a condition as after WHERE, for example price > 10 AND day = DATE '2026-01-01'",
            position=place,
        ) from error
    except sqlglot.errors.TokenError as error:
        raise InvalidFilterError(
            f"The filter is not valid SQL: {str(error).splitlines()[0]}",
            remedy="Close every quote and comment; a string constant takes single quotes",
        ) from error
    if parsed[0] is None:
        raise InvalidFilterError("The filter is empty", remedy="Leave it out to read all rows")
    return parsed[0]


def _position(text: str, parsed: Any) -> str | None:
    """Where in the text what `parsed` was read from begins."""
    starts = [found.meta["start"] for found in parsed.walk() if "start" in found.meta]
    if not starts:
        return None
    before = text[: min(starts)]
    return f"line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}"


class _Reader:
    """Turns the parser's tree into nodes. Every method takes one node of the parser's tree."""

    def __init__(self, text: str, schema: pa.Schema, lists: Sequence[pa.Int64Array]) -> None:
        self.text = text
        self.schema = schema
        self.lists = {f"{NAME}{number}": values for number, values in enumerate(lists)}

    def read(self, parsed: Any) -> Node:
        try:
            return self._read(parsed)
        except (InvalidFilterError, ColumnNotFoundError) as error:
            error.at(position=_position(self.text, parsed))
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
        if name in _FUNCTIONS:
            return self._function(_FUNCTIONS[name], [parsed.this, *parsed.expressions])
        if isinstance(parsed, (_sqlglot().exp.Query, _sqlglot().exp.Subquery)):
            raise InvalidFilterError(
                "A filter cannot hold a subquery", remedy="Run the subquery first, or join in SQL"
            )
        raise InvalidFilterError(
            f"Filters do not know {parsed.sql(dialect='duckdb')}",
            remedy="Apply it in the SQL query instead of the scan's filter",
        )

    # Logic

    def _operands(self, parsed: Any) -> list[Node]:
        """The operands of a chain of ANDs or ORs, without recursion: chains can be thousands long."""
        kind, found, pending = type(parsed), [], [parsed]
        while pending:
            current = pending.pop()
            if isinstance(current, kind):
                pending += (current.expression, current.this)
            elif isinstance(current, _sqlglot().exp.Paren) and isinstance(current.this, kind):
                pending.append(current.this)
            else:
                found.append(self.read(current))
        return found

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
        return build.compare(op, self.read(left), self.read(right))

    def _read_between(self, parsed: Any) -> Node:
        low = self._comparison(">=", parsed.this, parsed.args["low"])
        return build.conjunction([low, self._comparison("<=", parsed.this, parsed.args["high"])])

    def _read_in(self, parsed: Any) -> Node:
        if parsed.args.get("query") is not None or parsed.args.get("unnest") is not None:
            raise InvalidFilterError(
                "A filter cannot hold a subquery", remedy="Write the values: IN (1, 2, 3)"
            )
        if isinstance(parsed.this, _sqlglot().exp.Tuple):
            raise InvalidFilterError("IN takes a single column here", remedy="Write (a = 1 AND b = 2) OR ...")
        operand = self.read(parsed.this)
        long = self.lists.get(parsed.expressions[0].name) if len(parsed.expressions) == 1 else None
        if long is not None:
            return build.member(operand, long)
        values = [self.read(value) for value in parsed.expressions]
        known = [value.value for value in values if isinstance(value, Literal)]
        others = [build.compare("=", operand, value) for value in values if not isinstance(value, Literal)]
        if not others:
            return build.member(operand, known)
        return build.disjunction([*([build.member(operand, known)] if known else []), *others])

    def _read_nullsafeeq(self, parsed: Any) -> Node:
        return build.distinct(self.read(parsed.this), self.read(parsed.expression), negated=True)

    def _read_nullsafeneq(self, parsed: Any) -> Node:
        return build.distinct(self.read(parsed.this), self.read(parsed.expression))

    def _read_is(self, parsed: Any) -> Node:
        operand, exp = self.read(parsed.this), _sqlglot().exp
        if isinstance(parsed.expression, exp.Null):
            return build.is_null(operand)
        if isinstance(parsed.expression, exp.Boolean):
            return build.is_truth(build.require_boolean(operand), parsed.expression.this)
        raise InvalidFilterError(
            "IS takes NULL, TRUE, FALSE or DISTINCT FROM", remedy="Use = to compare values"
        )

    def _match(self, kind: str, parsed: Any, escape: str | None) -> Node:
        node = operations.match(kind, self.read(parsed.this), self.read(parsed.expression), escape=escape)
        return build.negate(node) if parsed.args.get("negate") else node

    def _read_escape(self, parsed: Any) -> Node:
        pattern, escape = parsed.this, self.read(parsed.expression)
        if type(pattern).__name__ not in ("Like", "ILike") or not isinstance(escape, Literal):
            raise InvalidFilterError(
                "ESCAPE follows LIKE and takes a string", remedy="Write LIKE '10!%' ESCAPE '!'"
            )
        return self._match(_MATCHES[type(pattern).__name__], pattern, escape.value.as_py())

    # Columns and constants

    def _read_column(self, parsed: Any) -> Node:
        return self._column(list(parsed.parts))

    def _read_dot(self, parsed: Any) -> Node:
        parts = list(parsed.parts)
        if not all(isinstance(part, _sqlglot().exp.Identifier) for part in parts):
            raise InvalidFilterError(f"{parsed.sql()} is not a column", remedy="Write a struct field as a.b")
        return self._column(parts)

    def _read_structextract(self, parsed: Any) -> Node:
        return self._field(parsed.this, self.read(parsed.expression))

    def _read_bracket(self, parsed: Any) -> Node:
        return self._field(parsed.this, self.read(parsed.expressions[0]))

    def _field(self, parent: Any, name: Node) -> Node:
        if not isinstance(name, Literal) or not is_text(name.type):
            raise InvalidFilterError(
                "Only struct fields are selected in filters", remedy="Write a struct field as a.b"
            )
        column = self.read(parent)
        if not isinstance(column, Column):
            raise InvalidFilterError(f"{column} is not a struct column", remedy="Write a struct field as a.b")
        return build.column(self.schema, [*column.parts, name.value.as_py()], exact=False)

    def _column(self, parts: list[Any]) -> Node:
        names = [part.name for part in parts]
        return build.column(self.schema, names, exact=any(part.args.get("quoted") for part in parts))

    def _read_literal(self, parsed: Any) -> Node:
        if parsed.is_string:
            return Literal(pa.scalar(parsed.this))
        value = constants.parse_number(parsed.this)
        if value is None:
            raise InvalidFilterError(
                f"{parsed.this} is not a number", remedy="Write numbers like 1, 1.5 or 1e3"
            )
        return Literal(value)

    def _read_boolean(self, parsed: Any) -> Node:
        return build.TRUE if parsed.this else build.FALSE

    def _read_null(self, parsed: Any) -> Node:
        return Literal(pa.scalar(None))

    def _read_neg(self, parsed: Any) -> Node:
        operand = self.read(parsed.this)
        if isinstance(operand, Literal) and is_number(operand.type) and not operand.is_null:
            value = operand.value.as_py()
            if isinstance(value, int):
                return Literal(constants.whole_scalar(-value))
            # copy_negate is exact where unary minus rounds to the decimal context.
            negated = value.copy_negate() if isinstance(value, decimal.Decimal) else -value
            return Literal(pa.scalar(negated, operand.type))
        return operations.arithmetic("-", Literal(pa.scalar(0)), operand)

    # Casts, arithmetic and functions

    def _read_cast(self, parsed: Any, *, lenient: bool = False) -> Node:
        operand, target = self.read(parsed.this), self._type(parsed.to)
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
                return Literal(pa.scalar(None, target))
            raise
        if at.is_timestamp(target) and is_zoned(value.type) == is_zoned(target):
            return Literal(value) if target.unit == "us" else build.cast(Literal(value), target)
        return build.cast(Literal(value), target, lenient=lenient)

    def _type(self, parsed: Any) -> pa.DataType:
        name = parsed.this.name if hasattr(parsed.this, "name") else str(parsed.this)
        if name in ("DECIMAL", "BIGDECIMAL"):
            sizes = [int(size.this.name) for size in parsed.expressions] or [18, 3]
            precision, scale = sizes[0], sizes[1] if len(sizes) > 1 else 0
            return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
        if name not in _TYPES or parsed.expressions:
            raise InvalidFilterError(
                f"Filters do not cast to {parsed.sql(dialect='duckdb')}",
                remedy=f"Use one of {', '.join(dict.fromkeys(map(render.type_name, _TYPES.values())))}",
            )
        return _TYPES[name]

    def _interval(self, parsed: Any) -> Interval | None:
        exp = _sqlglot().exp
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
                "An interval of months has no fixed length", remedy="Add it to a constant date, or use days"
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
        return operations.arithmetic(op, self.read(parsed.this), self.read(parsed.expression))

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

    def _read_extract(self, parsed: Any) -> Node:
        part = parsed.this.name.capitalize()
        if part not in ("Year", "Month", "Day", "Hour", "Minute"):
            raise InvalidFilterError(
                f"Filters do not extract {part}", remedy="Use year, month, day, hour or minute"
            )
        return self._function(_FUNCTIONS[part], [parsed.expression])

    def _read_anonymous(self, parsed: Any) -> Node:
        name = str(parsed.this).lower()
        return self._function(_FUNCTIONS.get(name, name), list(parsed.expressions))

    def _function(self, name: str, arguments: list[Any]) -> Node:
        nodes = [self.read(argument) for argument in arguments]
        if name in ("starts_with", "ends_with") and len(nodes) == 2:
            return operations.match(name, *nodes)
        if name == "coalesce":
            nodes = list(self._alike(nodes))
        return operations.function(name, nodes)

    def _alike(self, nodes: list[Node]) -> Iterator[Node]:
        """The nodes, constants converted to the type of the first that is not constant."""
        kind = next((node.type for node in nodes if not isinstance(node, Literal)), nodes[0].type)
        for node in nodes:
            yield build.cast(node, kind) if isinstance(node, Literal) else node
