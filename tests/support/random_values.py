"""Random column types, and SQL expressions for values: exact ones, near ones, and some that do not fit."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

#: Literals of each type without parameters, from the middle of its range and from the ends. UPDATE of DuckDB
#: does not replace 0.0 by -0.0, which is equal.
#: Without JSON, whose binary form does not keep how a number was written (0.10).
LITERALS = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["1", "-128", "127"],
    "SMALLINT": ["300", "-32768"],
    "INTEGER": ["70000", "-2147483648", "2147483647"],
    "BIGINT": ["9223372036854775807", "-5"],
    "UTINYINT": ["0", "255"],
    "USMALLINT": ["65535", "7"],
    "UINTEGER": ["4294967295", "7"],
    "UBIGINT": ["18446744073709551615::UBIGINT", "7"],
    "HUGEINT": ["170141183460469231731687303715884105727::HUGEINT", "-7::HUGEINT"],
    "UHUGEINT": ["340282366920938463463374607431768211455::UHUGEINT", "7::UHUGEINT"],
    "FLOAT": ["1.5::FLOAT", "'nan'::FLOAT", "'-infinity'::FLOAT", "3.4e38::FLOAT"],
    "DOUBLE": ["0.1::DOUBLE", "1e300", "'nan'::DOUBLE", "1e-320"],
    "VARCHAR": ["'a'", "''", "'Zoë'", "'it''s'", r"'\x41'", "'12'", "'2024-02-29'", "'true'", "' 7.5 '"],
    "BLOB": [r"'\x00\xFF'::BLOB", "'ab'::BLOB", "''::BLOB"],
    "DATE": ["DATE '2024-02-29'", "DATE '1899-12-31'", "DATE '5000-01-01'"],
    "TIME": ["TIME '12:34:56.789012'", "TIME '00:00:00'", "TIME '23:59:59.999999'"],
    "TIME_NS": ["'12:34:56.789012345'::TIME_NS", "'00:00:00.000000001'::TIME_NS"],
    "TIMESTAMP_S": ["'2024-02-29 12:34:56'::TIMESTAMP_S", "'1900-01-01'::TIMESTAMP_S"],
    "TIMESTAMP_MS": ["'2024-02-29 12:34:56.789'::TIMESTAMP_MS", "'1900-01-01'::TIMESTAMP_MS"],
    "TIMESTAMP": ["TIMESTAMP '2024-02-29 12:34:56.789012'", "TIMESTAMP '0044-03-15 (BC) 00:00:00'"],
    "TIMESTAMP_NS": ["'2024-02-29 12:34:56.789012345'::TIMESTAMP_NS", "'1900-01-01'::TIMESTAMP_NS"],
    "TIMESTAMPTZ": ["TIMESTAMPTZ '2024-02-29 12:34:56.789012+05'", "TIMESTAMPTZ '1900-01-01 00:00:00+00'"],
    "TIMETZ": ["'12:34:56.789012+05:30'::TIMETZ", "'00:00:00-15:59'::TIMETZ"],
    "INTERVAL": ["INTERVAL 1 MONTH", "'-3 days 04:05:06.789'::INTERVAL"],
    "UUID": ["'5B7A9B5E-0000-4000-8000-00000000000F'::UUID", "'ffffffff-ffff-ffff-ffff-ffffffffffff'::UUID"],
    "BIT": ["'0101'::BIT", "'1'::BIT", "'000000001'::BIT"],
    "GEOMETRY": ["'POINT (1 2)'::GEOMETRY", "'LINESTRING (0 0, 1 1)'::GEOMETRY"],
    "ENUM('a', 'Zoë')": ["'a'", "'Zoë'::ENUM('a', 'Zoë')"],
}
#: Names of fields, some of which differ only in case.
FIELDS = ["a", "B", "name", "Größe", "with space", "select"]
#: Types of numbers, whose values are often near to those of another.
NUMBERS = [*list(LITERALS)[1:13], "DECIMAL(5,2)", "DECIMAL(38,3)", "DECIMAL(18,0)"]
TIMES = ["DATE", "TIME", "TIME_NS", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMPTZ"]
TIMES += ["TIMETZ", "INTERVAL"]


@dataclass(frozen=True)
class Kind:
    """A type: its name in SQL, its shape ("leaf", "list", "map" or "struct"), and the types inside."""

    name: str
    shape: str = "leaf"
    inside: tuple[tuple[str, Kind], ...] = ()
    #: the number of items, if it is fixed
    size: int = 0


def leaf(random: Random) -> Kind:
    if random.random() < 0.1:
        width = random.randint(1, 38)
        return Kind(f"DECIMAL({width},{random.randint(0, width)})")
    return Kind(random.choice(list(LITERALS)))


def list_of(item: Kind, size: int = 0) -> Kind:
    return Kind(f"{item.name}[{size or ''}]", "list", (("item", item),), size)


def kind(random: Random, depth: int = 2) -> Kind:
    """A random type."""
    if depth == 0 or random.random() < 0.65:
        return leaf(random)
    match random.randint(0, 3):
        case 0:
            return list_of(kind(random, depth - 1))
        case 1:
            return list_of(kind(random, depth - 1), random.randint(1, 3))
        case 2:
            names = random.sample(FIELDS, random.randint(1, 3))
            fields = tuple((name, kind(random, depth - 1)) for name in names)
            inside = ", ".join(f'"{name}" {field.name}' for name, field in fields)
            return Kind(f"STRUCT({inside})", "struct", fields)
    key, item = leaf(random), kind(random, depth - 1)
    return Kind(f"MAP({key.name}, {item.name})", "map", (("key", key), ("value", item)))


def kind_of(described: Any) -> Kind | None:
    """The type as DuckDB describes it; None for one without random values."""
    name = str(described).replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ")
    name = name.replace("TIME WITH TIME ZONE", "TIMETZ")
    if described.id not in ("list", "array", "map", "struct"):
        return Kind(name) if name in LITERALS or name.startswith("DECIMAL") else None
    children = dict(described.children)
    size = children.pop("size", 0)
    inside = {child: kind_of(one) for child, one in children.items()}
    if None in inside.values():
        return None
    shape = "list" if described.id == "array" else described.id
    found = [("item" if shape == "list" else child, one) for child, one in inside.items() if one is not None]
    return Kind(name, shape, tuple(found), size)


def value(random: Random, wanted: Kind, odd: float = 0.08) -> str:
    """An expression for a value of a type; with the probability `odd` of another type at each level."""
    if random.random() < 0.12:
        return "NULL"
    if random.random() < odd:
        return value(random, near(random, wanted), odd)
    if not wanted.inside:
        return _literal(random, wanted)
    if wanted.shape == "list":
        count = wanted.size or random.randint(0, 3)
        if wanted.size and random.random() < odd:
            count += 1
        items = ", ".join(value(random, wanted.inside[0][1], odd) for _ in range(count))
        return f"[{items}]"
    if wanted.shape == "map":
        count = random.randint(0, 2)
        (_, key), (_, item) = wanted.inside
        pairs = {_literal(random, key): value(random, item, odd) for _ in range(count)}
        return f"MAP {{{', '.join(f'{one}: {other}' for one, other in pairs.items())}}}"
    fields = [(name, value(random, field, odd)) for name, field in wanted.inside]
    if random.random() < odd:
        fields = random.sample(fields, random.randint(1, len(fields)))
    if random.random() < odd:
        fields = [(name.swapcase(), field) for name, field in fields]
    if random.random() < odd:
        return f"row({', '.join(field for _, field in fields)})"
    return f"{{{', '.join(f'{_quoted(name)}: {field}' for name, field in fields)}}}"


def _quoted(name: str) -> str:
    return "'" + name + "'"


def _literal(random: Random, wanted: Kind) -> str:
    if wanted.name.startswith("DECIMAL"):
        width, scale = map(int, wanted.name[8:-1].split(","))
        digits = str(random.randrange(10 ** random.randint(1, width)))
        whole = digits[: max(0, len(digits) - scale)] or "0"
        text = f"{random.choice(['', '-'])}{whole}" + (f".{digits[-scale:]:0>{scale}}" if scale else "")
        return f"'{text}'::{wanted.name}" if width > 18 else text
    return random.choice(LITERALS[wanted.name])


def near(random: Random, wanted: Kind) -> Kind:
    """A type whose values may be cast to `wanted`, or may not."""
    for family in (NUMBERS, TIMES):
        if wanted.name in family or (family is NUMBERS and wanted.name.startswith("DECIMAL")):
            return Kind(random.choice([*family, "VARCHAR", "BOOLEAN"]))
    if wanted.shape == "list" and random.random() < 0.7:
        return list_of(near(random, wanted.inside[0][1]))
    return leaf(random)


def computed(random: Random, wanted: Kind, columns: list[tuple[str, Kind]]) -> str:
    """An expression over columns, or a constant."""
    choice = random.random()
    name, own = random.choice(columns)
    if choice < 0.45:
        return value(random, wanted)
    if choice < 0.6:
        return name
    same = [one for one, found in columns if found.name == wanted.name]
    if same and choice < 0.75:
        one = random.choice(same)
        other = value(random, wanted, 0)
        return random.choice(
            [
                f"coalesce({one}, {other})",
                f"CASE WHEN id % 2 = 0 THEN {one} ELSE {other} END",
                f"nullif({one}, {other})",
            ]
        )
    if own.name in NUMBERS and choice < 0.9:
        return random.choice([f"{name} + 1", f"{name} / 3", f"{name} // 2", f"-{name}", f"{name} * {name}"])
    if own.name == "VARCHAR":
        return random.choice([f"{name} || '7'", f"upper({name})", f"length({name})", f"[{name}]"])
    if own.shape == "list":
        return random.choice([f"{name}[1]", f"len({name})"])
    if own.shape == "struct":
        return f'{name}."{random.choice(own.inside)[0]}"'
    return f"{name}::VARCHAR"
