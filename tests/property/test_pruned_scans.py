"""Whatever a scan skips or tests while decoding, its answer is pyarrow's filter over the plain rows.

Random tables go through a random life (files, deletions, appended rows, updates, compaction, indices where
there are any); then random filters are answered with everything that can skip work, and by a reference that
reads all rows and computes every condition value by value, in this file, and what joins them with pyarrow.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from counts import examples
from lance_engine.dataset import DatasetVersion
from lance_engine.write.dataset import write_dataset

Mask = pa.BooleanArray
Condition = tuple[str, Callable[[pa.RecordBatch], Mask]]
UTC = datetime.UTC

WORDS = [
    "",
    "a",
    "ab",
    "abc",
    "special",
    "special requests",
    "no special ab requests",
    "é",
    "aab",
    "%",
    "b\\a_",
    "p" * 31 + "a",
    "p" * 31 + "z",
    "\U0010ffff" * 9,
    "requests special",
    "aaaab",
]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i8": (pa.int8(), [-128, -1, 0, 1, 2, 127]),
    "i32": (pa.int32(), [-(2**31), -7, -1, 0, 1, 2, 3, 5, 8, 2**31 - 1]),
    "i64": (pa.int64(), [-(2**63), -5, 0, 1, 4, 9, 10**12, 2**63 - 1]),
    "u16": (pa.uint16(), [0, 1, 2, 300, 2**16 - 1]),
    "u64": (pa.uint64(), [0, 1, 2**63, 2**64 - 1]),
    "f32": (pa.float32(), [math.nan, -math.inf, -1.5, -0.0, 0.0, 0.25, 3.0, math.inf]),
    "f64": (pa.float64(), [math.nan, -math.inf, -1.5, -0.0, 0.0, 0.25, 3.0, 1e300, 5e-324, math.inf]),
    "t": (pa.string(), WORDS),
    "lt": (pa.large_string(), WORDS[:6]),
    "raw": (pa.binary(), [b"", b"a", b"\xff" * 40, b"\xff", b"ab"]),
    "flag": (pa.bool_(), [True, False]),
    "price": (
        pa.decimal128(9, 2),
        [Decimal(cents).scaleb(-2) for cents in (-99999, -150, 0, 1, 250, 9999999)],
    ),
    "day": (pa.date32(), [datetime.date(2024, 1, 1) + datetime.timedelta(day) for day in range(9)]),
    "at": (pa.timestamp("us"), [datetime.datetime(2024, 1, 1, hour) for hour in range(8)]),
    "zoned": (
        pa.timestamp("ms", "UTC"),
        [datetime.datetime(2024, 3, 1, hour, tzinfo=UTC) for hour in range(8)],
    ),
}
STRUCT = pa.struct([pa.field("i32", pa.int32()), pa.field("t", pa.string())])
TEXTS = ("t", "lt")


def _compare(op: str, left: Any, right: Any) -> bool:
    """One comparison as SQL has it, with NaN equal to itself and above all other numbers."""
    if isinstance(left, float):
        left, right = ((1, 0.0) if x != x else (0, x) for x in (left, right))
    return {
        "=": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[op]


def _rounded(kind: pa.DataType, value: Any) -> Any:
    return float(np.float32(value)) if pa.types.is_float32(kind) else value


def _values(batch: pa.RecordBatch, name: str) -> list[Any]:
    if "." not in name:
        return batch.column(name).to_pylist()
    outer, inner = name.split(".")
    return [None if row is None else row[inner] for row in batch.column(outer).to_pylist()]


def _each(name: str, test: Callable[[Any], bool | None]) -> Callable[[pa.RecordBatch], Mask]:
    """A condition value by value; null stays unknown."""
    return lambda batch: pa.array(
        [None if value is None else test(value) for value in _values(batch, name)], pa.bool_()
    )


def _constant(kind: pa.DataType, value: Any) -> str:
    if pa.types.is_floating(kind):
        return f"'{value}'::double" if not math.isfinite(value) else repr(value)
    if pa.types.is_binary(kind):
        return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::blob"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMPTZ '{value}'" if value.tzinfo else f"TIMESTAMP '{value}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)


def _like(pattern: str) -> Callable[[str], bool]:
    """SQL's LIKE with a backslash as escape, by trying all matches."""

    def matches(at: int, text: str) -> bool:
        if at == len(pattern):
            return not text
        if pattern[at] == "%":
            return any(matches(at + 1, text[cut:]) for cut in range(len(text) + 1))
        if pattern[at] == "_":
            return bool(text) and matches(at + 1, text[1:])
        step = 2 if pattern[at] == "\\" else 1
        return text[:1] == pattern[at + step - 1] and matches(at + step, text[1:])

    return lambda text: matches(0, text)


PATTERNS = [
    "a%",
    "%b",
    "%ab%",
    "%special%requests%",
    "_b%",
    "%a%b",
    "a%b%",
    "",
    "%",
    "%aab",
    "special",
    "%é%",
    "%\\%%",
    "b\\\\a\\_%",
    "p%z",
    "%aaab",
    "ab%ab",
    "a%a",
]


def _leaf(rng: random.Random) -> Condition:
    name = rng.choice([*VALUES, *TEXTS, *TEXTS, "s.i32", "s.t", "row", "pair"])
    if name == "row":
        low = rng.randrange(0, 60)
        return f"_rowaddr >= {low}", _each("_rowaddr", lambda value: value >= low)
    if name == "pair":
        left, right = rng.choice([("i32", "s.i32"), ("f64", "f64"), ("t", "s.t"), ("day", "day")])
        op = rng.choice(["=", "<>", "<", ">="])

        def pair(batch: pa.RecordBatch) -> Mask:
            rows = zip(_values(batch, left), _values(batch, right), strict=True)
            return pa.array(
                [None if a is None or b is None else _compare(op, a, b) for a, b in rows], pa.bool_()
            )

        return f"{left} {op} {right}", pair
    kind, values = VALUES[{"s.i32": "i32", "s.t": "t"}.get(name, name)]
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    form = rng.choice(
        [
            "compare",
            "compare",
            "between",
            "in",
            "null",
            *["like", "like"] * text,
            *["arith"] * (name in ("i8", "i32")),
            *["cast"] * (name in ("i32", "u16", "day")),
        ]
    )
    if form == "compare":
        op, value = rng.choice(["=", "<>", "<", "<=", ">", ">="]), rng.choice(values)
        held = _rounded(kind, value)
        return f"{name} {op} {_constant(kind, value)}", _each(name, lambda x: _compare(op, x, held))
    if form == "between":
        low, high = rng.choice(values), rng.choice(values)
        first, last = _rounded(kind, low), _rounded(kind, high)
        return (
            f"{name} BETWEEN {_constant(kind, low)} AND {_constant(kind, high)}",
            _each(name, lambda x: _compare(">=", x, first) and _compare("<=", x, last)),
        )
    if form == "in":
        some = [rng.choice(values) for _ in range(rng.randint(1, 12))]
        held_list = [_rounded(kind, value) for value in some]
        null, negated = rng.random() < 0.2, rng.random() < 0.4

        def listed(x: Any) -> bool | None:
            found = any(_compare("=", x, value) for value in held_list)
            return (
                (None if null and not found else found)
                if not negated
                else (None if null and not found else not found)
            )

        shown = ", ".join([*(_constant(kind, value) for value in some), *["NULL"] * null])
        return f"{name} {'NOT ' * negated}IN ({shown})", _each(name, listed)
    if form == "like":
        pattern, negated = rng.choice(PATTERNS), rng.random() < 0.3
        matches = _like(pattern)
        escape = " ESCAPE '\\'" if "\\" in pattern else ""
        if rng.random() < 0.3 and pattern.strip("%") and not set(pattern.strip("%")) & set("%_\\"):
            word = pattern.strip("%")
            function, test = rng.choice(
                [("contains", str.__contains__), ("starts_with", str.startswith), ("ends_with", str.endswith)]
            )
            return f"{function}({name}, '{word}')", _each(name, lambda x: test(x, word))
        return (
            f"{name} {'NOT ' * negated}LIKE '{pattern}'{escape}",
            _each(name, lambda x: matches(x) != negated),
        )
    if form == "arith":
        value = rng.randint(-3, 9)
        return f"{name}::BIGINT * 2 + 1 > {value}", _each(name, lambda x: x * 2 + 1 > value)
    if form == "cast":
        if name == "day":
            moment = datetime.datetime(2024, 1, 4, 12)
            return f"day::TIMESTAMP > TIMESTAMP '{moment}'", _each(
                name, lambda x: datetime.datetime.combine(x, datetime.time()) > moment
            )
        value = rng.choice(["-1", "0", "1", "300"])
        return f"{name}::VARCHAR = '{value}'", _each(name, lambda x: str(x) == value)
    negated = rng.random() < 0.5
    return f"{name} IS {'NOT ' * negated}NULL", lambda batch: pa.array(
        [(value is None) != negated for value in _values(batch, name)], pa.bool_()
    )


def _condition(rng: random.Random, depth: int) -> Condition:
    if not depth or rng.random() < 0.35:
        return _leaf(rng)
    (left, first), (right, second) = _condition(rng, depth - 1), _condition(rng, depth - 1)
    word, combine = rng.choice([("AND", pc.and_kleene), ("AND", pc.and_kleene), ("OR", pc.or_kleene)])
    text = f"({left}) {word} ({right})"
    if rng.random() < 0.2:
        return f"NOT ({text})", lambda batch: pc.invert(combine(first(batch), second(batch)))
    return text, lambda batch: combine(first(batch), second(batch))


def _table(rng: random.Random, rows: int, null_structs: float) -> pa.Table:
    arrays = {}
    for name, (kind, values) in VALUES.items():
        some = rng.sample(values, rng.randint(1, len(values)))
        nulls = rng.choice([0, 0, 0.1, 0.9, 1])
        cells = [None if rng.random() < nulls else rng.choice(some) for _ in range(rows)]
        if rng.random() < 0.5:  # zone maps and constant pages like order
            cells.sort(key=lambda value: (value is None, value != value, value if value == value else 0))
        arrays[name] = pa.array(cells, kind)
    pairs = [
        None
        if rng.random() < null_structs
        else {"i32": rng.choice([None, *VALUES["i32"][1]]), "t": rng.choice([None, *WORDS])}
        for _ in range(rows)
    ]
    arrays["s"] = pa.array(pairs, STRUCT)
    return pa.table(arrays)


def _dataset(rng: random.Random, location: str) -> DatasetVersion:
    rows = rng.choice([1, 20, 80, 80, 400])
    options = {
        "max_rows_per_file": rng.choice([rows, max(1, rows // 3)]),
        "zone_rows": rng.choice([3, 8, 64]),
    }
    version = rng.choice(["2.0", "2.1", "2.1", "2.2"])
    null_structs = 0 if version == "2.0" else 0.2  # 2.0 cannot hold them
    dataset = DatasetVersion(
        write_dataset(_table(rng, rows, null_structs), location, data_storage_version=version, **options)
    )
    for step in rng.sample(["delete", "append", "update", "compact", "index", "delete"], rng.randint(0, 4)):
        if step == "delete":
            dataset = dataset.delete(rng.choice(["i32 < 0", "flag", "t = 'a' OR i8 IS NULL"]))
        elif step == "append":
            write_dataset(
                _table(rng, rng.randint(1, 40), null_structs),
                location,
                "append",
                zone_maps=rng.random() < 0.7,
            )
            dataset = DatasetVersion.open(location)
        elif step == "update":
            dataset = dataset.update({"i32": "i32"}, "i64 > 0")
        elif step == "compact":
            dataset = dataset.compact()
        elif step == "index" and hasattr(dataset, "create_index"):
            column, kinds = rng.choice(
                [
                    ("i32", ["zonemap", "btree", "bitmap", "bloomfilter"]),
                    ("t", ["btree", "bitmap"]),
                    ("day", ["zonemap", "btree"]),
                    ("flag", ["bitmap"]),
                ]
            )
            dataset = dataset.create_index(column, rng.choice(kinds), replace=True)
    return dataset


def _check(seed: int, location: str, filters: int) -> None:
    rng = random.Random(seed)
    dataset = _dataset(rng, location)
    plain = dataset.scan(
        columns=["_rowid", "_rowaddr", *dataset.schema.names], zone_maps=False, indices=False
    ).to_table()
    batch = pa.RecordBatch.from_arrays(
        [column.combine_chunks() for column in plain.columns], names=plain.column_names
    )
    for _ in range(filters):
        text, reference = _condition(rng, rng.choice([0, 1, 2, 3]))
        mask = reference(batch)
        names = rng.sample(plain.column_names, rng.randint(1, 5))
        expected = plain.filter(mask)["_rowid"].to_pylist()
        scan = dataset.scan(
            columns=["_rowid", *(name for name in names if name != "_rowid")],
            filter=text,
            batch_size=rng.choice([None, 1000, 7]),
        )
        place = f"seed {seed}: {text}"
        found = scan.to_table()
        assert found["_rowid"].to_pylist() == expected, place
        for name in found.column_names:
            wanted = plain.filter(mask)[name]
            assert str(found[name].to_pylist()) == str(wanted.to_pylist()), f"{place}: {name}"
        assert scan.count() == len(expected), place


@pytest.mark.parametrize("seed", range(10))
def test_random_filters(seed: int, tmp_path: Path) -> None:
    _check(seed, str(tmp_path), examples(7))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_many_random_filters(part: int, tmp_path: Path) -> None:
    """20,000 filters over 500 tables."""
    for number in range(25):
        _check(1_000 + part * 25 + number, str(tmp_path / str(number)), 40)
