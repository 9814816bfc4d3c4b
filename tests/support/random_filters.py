"""Random tables of many types, and random filter texts over their columns."""

from __future__ import annotations

import datetime
import random
import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import datafusion
import lance
import numpy as np
import pyarrow as pa
from lance_engine.errors import InvalidFilterError, LanceError

import lance_sql

NAN, INFINITY = float("nan"), float("inf")
ROWS: Final = 24
#: Rows of every fourth table: engines compute those in several batches.
MANY_ROWS: Final = 20_000

_EDGES: Final = [0, 1, -1, 2, 3, 7, -7]


def _integers(bits: int, signed: bool) -> list[int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return [value for value in [*_EDGES, low, high, high - 1] if low <= value <= high]


_FLOATS: Final = [0.0, -0.0, 0.1, 0.3, 0.5, 1.0, -2.5, 7.0, NAN, INFINITY, -INFINITY]
_FINITE: Final = [0.0, 0.1, 0.3, 0.5, 1.0, -2.5, 7.0]
_TEXTS: Final = ["", "a", "ab", "aB c", "é", "a%b", "a_b", "\\", "'", "7", "0.3", "2024-02-29"]
_BLOBS: Final = [b"", b"a", b"ab", b"\x61\x62\x63"]
_DAYS: Final = [datetime.date(1970, 1, 1), datetime.date(2024, 2, 29), datetime.date(1969, 12, 31)]
_MOMENTS: Final = [
    datetime.datetime(1970, 1, 1),
    datetime.datetime(2024, 2, 29, 12, 30, 1),
    datetime.datetime(1969, 12, 31, 23, 59, 59),
]
_FRACTIONS: Final = ["0", "0.3", "-0.3", "1", "2.5", "7", "0.1"]


def _decimals(scale: int) -> list[Decimal]:
    return [Decimal(text).quantize(Decimal(1).scaleb(-scale)) for text in _FRACTIONS]


#: The columns: name -> kind of value, type, values.
COLUMNS: Final[dict[str, tuple[str, pa.DataType, list[Any]]]] = {
    "i8": ("int", pa.int8(), _integers(8, True)),
    "i16": ("int", pa.int16(), _integers(16, True)),
    "i32": ("int", pa.int32(), _integers(32, True)),
    "i64": ("int", pa.int64(), _integers(64, True)),
    "small": ("int", pa.int64(), _EDGES),
    "u8": ("int", pa.uint8(), _integers(8, False)),
    "u16": ("int", pa.uint16(), _integers(16, False)),
    "u32": ("int", pa.uint32(), _integers(32, False)),
    "u64": ("int", pa.uint64(), _integers(64, False)),
    "f16": ("float", pa.float16(), [np.float16(value) for value in _FLOATS]),
    "f32": ("float", pa.float32(), [float(np.float32(value)) for value in _FLOATS]),
    "f64": ("float", pa.float64(), _FLOATS),
    "g64": ("finite", pa.float64(), _FINITE),
    "g32": ("half", pa.float32(), [0.0, 0.5, 1.0, -2.5, 7.0]),
    "de": ("decimal", pa.decimal128(10, 2), _decimals(2)),
    "dw": ("decimal", pa.decimal128(38, 10), _decimals(10)),
    "dx": ("decimal", pa.decimal256(50, 5), _decimals(5)),
    "t": ("text", pa.string(), _TEXTS),
    "w": ("text", pa.large_string(), _TEXTS),
    "k": ("text", pa.dictionary(pa.int8(), pa.string()), _TEXTS),
    "b": ("binary", pa.binary(), _BLOBS),
    "bw": ("binary", pa.large_binary(), _BLOBS),
    "b2": ("binary", pa.binary(2), [b"ab", b"cd"]),
    "x": ("bool", pa.bool_(), [True, False]),
    "y": ("bool", pa.bool_(), [True, False]),
    "d": ("date", pa.date32(), _DAYS),
    "d64": ("date", pa.date64(), _DAYS),
    "ts": ("time", pa.timestamp("us"), _MOMENTS),
    "ts_s": ("time", pa.timestamp("s"), _MOMENTS),
    "ts_n": ("time", pa.timestamp("ns"), _MOMENTS),
    "tz": ("zoned", pa.timestamp("us", "UTC"), _MOMENTS),
    "tb": ("zoned", pa.timestamp("ms", "Europe/Berlin"), _MOMENTS),
    "dur": (
        "duration",
        pa.duration("us"),
        [datetime.timedelta(0), datetime.timedelta(seconds=-7), datetime.timedelta(days=1)],
    ),
}
#: Items of lists, by the name of the list column.
LISTS: Final = {
    "li": ("i64", "list"),
    "li8": ("i8", "list"),
    "lu": ("u64", "list"),
    "lf": ("f32", "list"),
    "lg": ("f64", "large"),
    "ld": ("de", "list"),
    "lt": ("t", "list"),
    "text": ("t", "large"),
    "lb": ("b", "list"),
    "vector": ("f32", "fixed"),
    "lday": ("d", "list"),
}
STRUCTS: Final = {
    "s": [("a", "i64"), ("b", "t")],
    "s2": [("a", "i64"), ("b", "t")],
    "q": [("a", "i32"), ("de", "de"), ("f", "g32")],
}
NESTED: Final = ["ll"]


def _list_type(name: str) -> pa.DataType:
    item, form = LISTS[name]
    kind = COLUMNS[item][1]
    if form == "fixed":
        return pa.list_(kind, 2)
    return pa.large_list(kind) if form == "large" else pa.list_(kind)


def random_table(chance: random.Random) -> pa.Table:
    """Few rows with many edges, in columns of every kind, and their numbers in `n`."""

    def maybe(make: Any) -> Any:
        return None if chance.random() < 0.15 else make()

    columns: dict[str, pa.Array] = {"n": pa.array(range(ROWS), pa.int64())}
    for name, (_, kind, values) in COLUMNS.items():
        held = [maybe(lambda: chance.choice(values)) for _ in range(ROWS)]  # noqa: B023
        columns[name] = pa.array(held, kind)
    for name, (item, form) in LISTS.items():
        values = COLUMNS[item][2]

        def items() -> list[Any]:
            count = 2 if form == "fixed" else chance.randrange(4)  # noqa: B023
            return [maybe(lambda: chance.choice(values)) for _ in range(count)]  # noqa: B023

        columns[name] = pa.array([maybe(items) for _ in range(ROWS)], _list_type(name))
    for name, fields in STRUCTS.items():
        kind = pa.struct([(field, COLUMNS[source][1]) for field, source in fields])

        def members() -> dict[str, Any]:
            return {field: maybe(lambda: chance.choice(COLUMNS[source][2][:3])) for field, source in fields}  # noqa: B023

        held = [maybe(members) for _ in range(ROWS)]
        # Fields of null structs are null as well, unlike those of `pa.array`.
        columns[name] = pa.StructArray.from_arrays(
            [pa.array([row and row[part.name] for row in held], part.type) for part in kind],
            fields=list(kind),
            mask=pa.array([row is None for row in held]),
        )
    nested = [
        maybe(
            lambda: [
                maybe(lambda: [chance.choice(_EDGES)] * chance.randrange(3))
                for _ in range(chance.randrange(3))
            ]
        )
        for _ in range(ROWS)
    ]
    columns["ll"] = pa.array(nested, pa.list_(pa.list_(pa.int64())))
    return pa.table(columns)


def _repeated(table: pa.Table, rows: int) -> pa.Table:
    """The rows again and again, with numbers of their own."""
    places = pa.array(np.arange(rows) % len(table))
    column = pa.array(np.arange(rows, dtype=np.int64))
    return table.take(places).set_column(0, "n", column)


_MARKS: Final = ("'_'", "'%'", "' '")
_PARTS: Final = ("'a'", "'b'", "''", "'aB'")
_LENGTHS: Final = ("length", "char_length", "octet_length", "ascii", "bit_length")
_JOINED: Final = ("'a'", "'1'", "'0,1'", "''")


class Filters:
    """Random filter texts. Every method returns the text of an expression of one kind."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def one(self, *choices: Any) -> Any:
        return self.chance.choice(choices)

    def column(self, kind: str) -> str:
        extra = {
            "int": ["s.a", "q.a", "s['a']"],
            "text": ["s.b", "s2['b']"],
            "decimal": ["q.de"],
            "float": ["q.f"],
        }
        return self.one(
            *[name for name, (found, _, _) in COLUMNS.items() if found == kind], *extra.get(kind, [])
        )

    def constant(self, kind: str) -> str:
        one = self.one
        match kind:
            case "int":
                return str(
                    one(0, 1, -1, 2, 3, 7, 127, 128, 255, -129, 2**31, 2**63 - 1, 2**63, 2**64 - 1, 1 - 2**63)
                )
            case "float" | "decimal" | "finite":
                return str(
                    one(
                        "0.3",
                        "0.1",
                        "0.0",
                        "-0.3",
                        "2.5",
                        "1.0",
                        "7",
                        "0",
                        "0.30",
                        "1e0",
                        "0.125",
                        "1.5e-1",
                        "-2.5",
                    )
                )
            case "bits":
                return str(one(0, 1, 2, 3, 7))
            case "text":
                return "'" + one(*_TEXTS).replace("'", "''") + "'"
            case "binary":
                return f"X'{one(*_BLOBS).hex()}'"
            case "bool":
                return one("true", "false")
            case "date":
                return f"DATE '{one(*_DAYS)}'"
            case "time" | "zoned":
                return f"TIMESTAMP '{one(*_MOMENTS)}'"
            case "duration":
                return one("INTERVAL '1' DAY", "INTERVAL '7' SECOND")
        raise KeyError(kind)

    # Values

    def value(self, kind: str, depth: int) -> str:
        if depth <= 0 or self.chance.random() < 0.45:
            return self.column(kind)
        made = getattr(self, f"_{kind}", None)
        return made(depth - 1) if made is not None else self.column(kind)

    def operand(self, kind: str, depth: int) -> str:
        return self.constant(kind) if self.chance.random() < 0.3 else self.value(kind, depth)

    def number(self, depth: int) -> str:
        return self.value(self.one("int", "int", "float", "decimal"), depth)

    def _int(self, depth: int) -> str:
        one = self.one
        match one("op", "op", "op", "func", "len", "cast", "element", "part", "choice", "negated", "bits"):
            case "op":
                # Fewer bits overflow in pylance.
                wide = ["i64", "u64", "small", "s.a", "CAST(i8 AS bigint)", "CAST(u32 AS bigint)"]
                left = one(*wide, self._int(depth - 1) if depth > 0 else "i64")
                if left != "u64" and self.chance.random() < 0.3:
                    return (
                        f"({left} / {one('2', '-3', '7')})"  # pylance divides unsigned integers as decimals
                    )
                return f"({left} {one('+', '-', '*', '%')} {one(*wide, self.constant('int'))})"
            case "func":
                return f"{one('abs', 'round', 'ceil', 'floor', 'signum')}({self.value('int', depth)})"
            case "len":
                return one(
                    f"{one(*_LENGTHS)}({self.value('text', depth)})",
                    f"{one('length', 'octet_length', 'bit_length')}({self.column('binary')})",
                    f"{one('length', 'array_length', 'cardinality')}({self.any_list()})",
                    f"strpos({self.value('text', depth)}, {self.constant('text')})",
                    f"array_position({self.list_and_item(depth)})",
                )
            case "cast":
                kind = one("int", "float", "text", "bool")
                target = one("int", "bigint", "smallint", "tinyint", "int unsigned", "bigint unsigned")
                return f"{one('CAST', 'TRY_CAST')}({self.value(kind, depth)} AS {target})"
            case "element":
                return f"{one('li', 'li8', 'lu', 'll[1]')}[{one('1', '2', '-1', '9', '0', 'i8')}]"
            case "part":
                part = one("year", "month", "day", "hour", "dow", "doy", "epoch", "second", "quarter", "week")
                held = self.column(one("date", "time", "zoned"))
                return one(f"date_part('{part}', {held})", f"extract({part} FROM {held})")
            case "choice":
                return self.choice("int", depth)
            case "negated":
                return f"(-{one('small', 'u8')})"
        return f"({self.column('int')} {one('&', '|', '<<', '>>')} {one('1', '2', '3')})"

    def choice(self, kind: str, depth: int) -> str:
        # nvl of pylance compares dates and times as texts.
        name = self.one(
            "coalesce", "nullif", "greatest", "least", *(["nvl"] * (kind in ("int", "float", "text")))
        )
        return f"{name}({self.value(kind, depth)}, {self.operand(kind, depth)})"

    def _float(self, depth: int) -> str:
        one = self.one
        match one("op", "op", "func", "cast", "element", "choice", "negated"):
            case "op":
                return self.exact(depth)
            case "func":
                return one(
                    f"{one('abs', 'ceil', 'floor', 'signum')}({self.value('float', depth)})",
                    f"{one('sqrt', 'round', 'trunc')}(abs({self.column('finite')}))",
                )
            case "cast":
                return f"CAST({self.number(depth)} AS {one('double', 'float', 'real')})"
            case "element":
                return f"{one('lf', 'lg', 'vector')}[{one('1', '2', '-1')}]"
            case "choice":
                return self.choice("float", depth)
        return f"(-{self.value('float', depth)})"

    def _decimal(self, depth: int) -> str:
        one = self.one
        match one("op", "op", "func", "cast", "element", "choice", "negated"):
            case "op":
                sides = [self.value("decimal", depth), self.operand(one("int", "decimal", "decimal"), depth)]
                self.chance.shuffle(sides)
                return f"({sides[0]} {one('+', '-', '*', '/', '%')} {sides[1]})"
            case "func":
                held = self.value("decimal", depth)
                return one(
                    f"{one('abs', 'round', 'ceil', 'floor', 'trunc', 'signum')}({held})",
                    f"{one('round', 'trunc')}({held}, {one(0, 1, 2, -1)})",
                    f"{one('greatest', 'least')}({held}, {self.operand('decimal', depth)})",
                )
            case "cast":
                return f"CAST({self.number(depth)} AS decimal({one('10,2', '20,5', '38,10')}))"
            case "element":
                return "ld[1]"
            case "choice":
                return (
                    # nvl of pylance rounds decimals to double precision.
                    f"{one('coalesce', 'nullif')}({self.value('decimal', depth)}, "
                    f"{self.operand(one('decimal', 'decimal', 'int'), depth)})"
                )
        return f"(-{self.value('decimal', depth)})"

    def _text(self, depth: int) -> str:
        one = self.one
        held = self.value("text", depth)
        match one("func", "parts", "joined", "cast", "element", "choice"):
            case "func":
                return (
                    f"{one('lower', 'upper', 'reverse', 'trim', 'ltrim', 'rtrim', 'initcap', 'md5')}({held})"
                )
            case "parts":
                return one(
                    f"substr({held}, {one(1, 2, 0, -1)}, {one(0, 1, 2)})",
                    f"left({held}, {one(1, -1, 0)})",
                    f"right({held}, {one(1, -1, 0)})",
                    f"replace({held}, 'a', {self.constant('text')})",
                    f"split_part({held}, {one(*_MARKS)}, {one(1, 2, -1)})",
                    f"lpad({held}, 3, 'x')",
                    f"substring({held} FROM 2)",
                    f"translate({held}, 'ab', 'xy')",
                )
            case "joined":
                other = self.operand("text", depth)
                return one(
                    f"concat({held}, {other})",
                    f"({held} || {other})",
                    f"concat_ws('-', {held}, {other})",
                    f"repeat({held}, 2)",
                )
            case "cast":
                return f"CAST({self.value(one('int', 'bool', 'date', 'text', 'time'), depth)} AS string)"
            case "element":
                return f"{one('lt', 'text')}[{one(1, -1)}]"
        return self.choice("text", depth)

    def _date(self, depth: int) -> str:
        one = self.one
        return one(
            f"CAST({self.column(one('time', 'zoned'))} AS date)",
            "lday[1]",
            f"to_date({self.constant('date')[5:]})",
            self.choice("date", depth),
        )

    def _time(self, depth: int) -> str:
        one = self.one
        return one(
            f"date_trunc('{one('day', 'month', 'hour', 'year')}', {self.value(one('time', 'date'), depth)})",
            f"CAST({self.column(one('date', 'time'))} AS timestamp)",
            f"({self.column('time')} {one('+', '-')} {self.constant('duration')})",
            self.choice("time", depth),
        )

    def _bool(self, depth: int) -> str:
        return self.predicate(depth)

    def any_list(self) -> str:
        return self.one(*LISTS, *LISTS, *NESTED)

    def item_kind(self, name: str) -> str:
        return COLUMNS[LISTS[name][0]][0]

    def list_and_item(self, depth: int) -> str:
        name = self.one(*LISTS)
        # Numbers that the type of the items has: others become null in pylance.
        kind = self.item_kind(name)
        return f"{name}, {self.constant('bits') if kind == 'int' else self.operand(kind, depth)}"

    def list_constant(self, name: str) -> str:
        # Numbers that every item type has: others become null in pylance.
        kind = "bits" if self.item_kind(name) in ("int", "float") else self.item_kind(name)
        held = [self.constant(kind) for _ in range(2 if LISTS[name][1] == "fixed" else self.one(1, 1, 2, 3))]
        return self.one(f"[{', '.join(held)}]", f"make_array({', '.join(held)})")

    # Conditions

    def comparison(self, depth: int) -> str:
        one = self.one
        op = one("=", "<>", "<", "<=", ">", ">=", "=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
        kinds = ("int", "float", "finite", "decimal", "text", "binary", "date", "time", "zoned", "duration")
        kind = one(*kinds, "int", "decimal", "finite")
        if kind == "float":
            return f"({self.value('float', depth)} {op} {one(self.column('float'), 0.5, 1, 7.0, -2.5)})"
        if kind == "finite":
            return f"({self.exact(depth)} {op} {one(self.exact(depth), *_FRACTIONS)})"
        other = kind
        if kind in ("int", "decimal") and self.chance.random() < 0.4:
            other = one("int", "decimal")
        elif kind in ("date", "time") and self.chance.random() < 0.4:
            other = one("date", "time")
        sides = [self.value(kind, depth), self.operand(other, depth)]
        if self.chance.random() < 0.2:
            sides.reverse()
        return f"({sides[0]} {op} {sides[1]})"

    def exact(self, depth: int) -> str:
        """A value in double precision that is not NaN."""
        one = self.one
        return one(
            "g64",
            f"(g64 {one('+', '-', '*')} {one('g64', 'g32', 'small', '2', '0.3')})",
            f"(g64 {one('/', '%')} {one('2', '0.3', '-0.7', '1e0')})",
            f"{one('abs', 'ceil', 'floor', 'round', 'trunc', 'signum')}(g64)",
            f"CAST({one('small', 'de', 'g32', 'q.de')} AS double)",
            "sqrt(abs(g64))",
        )

    def nested(self) -> str:
        one = self.one
        op = one("=", "<>", "=", "<", ">", "<=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
        match one("struct", "struct constant", "lists", "list constant", "list in", "struct null"):
            case "struct":
                return f"({one('s', 's2')} {op} {one('s', 's2')})"
            case "struct constant":
                text = one("'a'", "'ab'", "''")
                return f"(s {op} named_struct('a', {one(0, 1, -1)}, 'b', {text}))"
            case "lists":
                left = one(*LISTS)
                alike = [name for name in LISTS if self.item_kind(name) == self.item_kind(left)]
                return f"({left} {op} {one(*alike)})"
            case "list constant":
                name = one(*LISTS)
                return f"({name} {op} {self.list_constant(name)})"
            case "list in":
                name = one(*LISTS)
                return f"({name} IN ({self.list_constant(name)}, {self.list_constant(name)}))"
        return f"({one('s', 'q', 'll', *LISTS)} IS {one('', 'NOT ')}NULL)"

    def predicate(self, depth: int) -> str:
        one = self.one
        match one(
            "compare",
            "compare",
            "compare",
            "between",
            "in",
            "like",
            "null",
            "list",
            "list",
            "nested",
            "and",
            "or",
            "not",
            "truth",
            "match",
        ):
            case "compare":
                return self.comparison(depth)
            case "between":
                kind = one("int", "finite", "decimal", "text", "date", "time")
                low, high = self.operand(kind, 0), self.operand(kind, 0)
                return f"({self.value(kind, depth)} {one('', 'NOT ')}BETWEEN {low} AND {high})"
            case "in":
                kind = one("int", "finite", "decimal", "text", "date", "binary")
                held = [self.constant(kind) for _ in range(one(1, 2, 4))]
                if self.chance.random() < 0.2:
                    held.append("NULL")  # pylance merges lists that hold the column itself wrongly
                return f"({self.value(kind, depth)} {one('', 'NOT ')}IN ({', '.join(held)}))"
            case "like":
                pattern = one("a%", "%b", "_", "%\\%%", "%\\_%", "a!%b", "", "%", "\\\\", "A%", "a_b", "%''%")
                pattern = f"'{pattern}' ESCAPE '!'" if "!" in pattern else f"'{pattern}'"
                return f"({self.value('text', depth)} {one('', 'NOT ')}{one('LIKE', 'ILIKE')} {pattern})"
            case "match":
                name = one("starts_with", "ends_with", "contains", "regexp_like")
                return f"{name}({self.value('text', depth)}, {one(*_PARTS)})"
            case "null":
                kind = one(*{found for found, _, _ in COLUMNS.values()})
                return f"({self.value(kind, depth)} IS {one('', 'NOT ')}NULL)"
            case "list":
                return self.list_test(depth)
            case "nested":
                return self.nested()
            case ("and" | "or") as logic if depth > 0:
                return f"({self.predicate(depth - 1)} {logic.upper()} {self.predicate(depth - 1)})"
            case "not" if depth > 0:
                return f"(NOT {self.predicate(depth - 1)})"
            case "truth":
                return f"({one('x', 'y', self.comparison(0))} IS {one('', 'NOT ')}{one('TRUE', 'FALSE')})"
        return self.comparison(depth)

    def list_test(self, depth: int) -> str:
        one = self.one
        name = one(*LISTS)
        match one("has", "any", "empty", "joined", "extreme"):
            case "has":
                return f"{one('array_has', 'list_contains', 'array_contains')}({self.list_and_item(depth)})"
            case "any":
                return f"{one('array_has_any', 'array_has_all')}({name}, {self.list_constant(name)})"
            case "empty":
                return f"empty({self.any_list()})"
            case "joined":
                return f"(array_to_string({one('li', 'lt', 'text', 'lu')}, ',') = {one(*_JOINED)})"
        name = one("li", "li8", "lu", "lf", "lg", "ld", "lday")
        wanted = self.operand(self.item_kind(name), 0)
        return f"({one('array_max', 'array_min')}({name}) {one('=', '<', '>')} {wanted})"


#: What DataFusion, which is asked where pylance refuses, answers otherwise than pylance in other filters:
#: intervals, and -0.0, which products and functions return, too.
_OTHERWISE: Final = re.compile(
    r"INTERVAL|\b(f16|f32|f64|g32|g64|q\.f|lf|lg|vector)\b|\b(ceil|floor|round|trunc|signum)\(|"
    r"AS (double|float|real)"
)
#: pylance rounds decimals as doubles, which have other remainders; DataFusion rounds them exactly.
_ROUNDED: Final = re.compile(r"\b(ceil|floor|round|trunc)\(d.*%")
#: pylance compares i where TRY_CAST(i AS bigint unsigned), of a negative number, is null.
_UNWRAPPED: Final = re.compile(r"TRY_CAST\(.* AS \w+ unsigned\)")
#: Arithmetic that overflows is an error here; pylance goes on with the lowest bits.
_OVERFLOW: Final = re.compile(
    r"overflow|not in range|does not fit|out of bounds|Precision is not great enough"
)
#: How often the answers of each outcome came out.
Outcomes = Counter[str]


def _passing(find: Callable[[], pa.ChunkedArray]) -> list[int] | BaseException:
    try:
        return sorted(find().to_pylist())
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # panics of Rust, too
        return error


def compared(seed: int, count: int, path: Path) -> tuple[Outcomes, list[str]]:
    """`count` random filters over a random table here, in pylance and in DataFusion: outcomes, and faults."""
    chance = random.Random(seed)
    table = random_table(chance)
    if seed % 4 == 3:
        table = _repeated(table, MANY_ROWS)
    theirs = lance.write_dataset(table, str(path), data_storage_version="2.2")
    ours, context = lance_sql.open(path), datafusion.SessionContext()
    context.register_record_batches("t", [table.to_batches()])
    outcomes: Outcomes = Counter()
    faults = []
    for _ in range(count):
        where = Filters(chance).predicate(2)
        found = _passing(lambda: ours.scan(["n"], where).to_table()["n"])  # noqa: B023
        wanted = _passing(lambda: theirs.to_table(columns=["n"], filter=where)["n"])  # noqa: B023
        if isinstance(wanted, BaseException) and isinstance(found, list) and not _OTHERWISE.search(where):
            wanted = _passing(lambda: context.sql(f"SELECT n FROM t WHERE {where}").to_arrow_table()["n"])  # noqa: B023
        outcome = _outcome(found, wanted)
        if outcome == "wrong rows" and _ROUNDED.search(where):
            outcome = "rounded by pylance"
        if outcome == "wrong rows" and _UNWRAPPED.search(where):
            outcome = "not null in pylance"
        outcomes[outcome] += 1
        if outcome.startswith("wrong"):
            faults.append(
                f"{outcome}, seed {seed}: {where}\n    here   {found!r:.300}\n    pylance {wanted!r:.300}"
            )
    return outcomes, faults


def _outcome(found: list[int] | BaseException, wanted: list[int] | BaseException) -> str:
    if isinstance(found, BaseException):
        if not isinstance(found, LanceError):
            return "wrong error"
        if isinstance(wanted, BaseException):
            return "both refuse"
        overflows = isinstance(found, InvalidFilterError) and _OVERFLOW.search(str(found))
        return "overflow" if overflows else "wrong refusal"
    if isinstance(wanted, BaseException):
        return "only here"
    return "same" if found == wanted else "wrong rows"
