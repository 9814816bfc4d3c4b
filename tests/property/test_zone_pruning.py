"""A scan that skips rows by zone maps returns the same as a scan that skips nothing."""

from __future__ import annotations

import datetime
import math
import tempfile
from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import lance
import pyarrow as pa
from counts import examples
from hypothesis import HealthCheck, given, settings
from lance_engine.dataset import DatasetVersion
from lance_engine.scan.scanner import Scanner
from lance_engine.scan.splits import ScanSplit
from lance_engine.write.dataset import write_dataset

NAN, INFINITY = math.nan, math.inf
START = datetime.datetime(2024, 1, 1)
PREFIX = "p" * 31  # longer values differ only behind what bounds keep

INTEGERS = st.sampled_from([-(2**31), -7, -1, 0, 1, 2, 3, 5, 8, 2**31 - 1])
FLOATS = st.sampled_from([NAN, -INFINITY, -1.5, -0.0, 0.0, 0.25, 3.0, 1e300, INFINITY])
TEXTS = st.sampled_from(
    [
        "",
        "a",
        "ab",
        "abc",
        "b",
        "é",
        "\U0010ffff",
        PREFIX + "a",
        PREFIX + "abc",
        PREFIX + "z",
        "\U0010ffff" * 9,
    ]
)
DAYS = st.integers(0, 9).map(lambda day: START.date() + datetime.timedelta(day))
MOMENTS = st.integers(0, 9).map(lambda hour: START + datetime.timedelta(hours=hour))
PRICES = st.integers(-300, 300).map(lambda cents: Decimal(cents).scaleb(-2))

COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i": (pa.int32(), INTEGERS),
    "u": (pa.uint64(), st.sampled_from([0, 1, 2**63, 2**64 - 1])),
    "f": (pa.float64(), FLOATS),
    "h": (pa.float16(), FLOATS),
    "t": (pa.string(), TEXTS),
    "raw": (pa.large_binary(), st.sampled_from([b"", b"a", b"\xff" * 40, b"\xff"])),
    "flag": (pa.bool_(), st.booleans()),
    "price": (pa.decimal128(9, 2), PRICES),
    "day": (pa.date32(), DAYS),
    "moment": (pa.timestamp("us"), MOMENTS),
}
INNER = pa.struct([pa.field("a", pa.int32()), pa.field("t", pa.string())])


def _constant(draw: st.DrawFn, name: str) -> str:
    kind, values = COLUMNS[{"s.a": "i", "s.t": "t"}.get(name, name)]
    value = draw(values)
    if pa.types.is_floating(kind):
        return f"'{value}'::double" if not math.isfinite(value) else repr(value)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        shown = "".join(f"\\x{byte:02X}" for byte in value)
        return f"'{shown}'::blob"
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMP '{value}'"
    return f"'{value}'" if isinstance(value, (str, datetime.date)) else str(value)


@st.composite
def predicates(draw: st.DrawFn, depth: int = 2) -> str:
    if depth and draw(st.booleans()):
        left, right = draw(predicates(depth - 1)), draw(predicates(depth - 1))
        joined = f"({left}) {draw(st.sampled_from(['AND', 'OR']))} ({right})"
        return f"NOT ({joined})" if draw(st.booleans()) else joined
    name = draw(st.sampled_from([*COLUMNS, "s.a", "s.t"]))
    text = name in ("t", "s.t")
    form = draw(st.sampled_from(["compare", "between", "in", "null", "row", "pair", *["like"] * text]))
    if form == "compare":
        op = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]))
        return f"{name} {op} {_constant(draw, name)}"
    if form == "between":
        return f"{name} BETWEEN {_constant(draw, name)} AND {_constant(draw, name)}"
    if form == "in":
        values = [_constant(draw, name) for _ in range(draw(st.integers(1, 4)))]
        values += ["NULL"] * draw(st.integers(0, 1))
        return f"{name} {draw(st.sampled_from(['IN', 'NOT IN']))} ({', '.join(values)})"
    if form == "like":
        pattern = draw(st.sampled_from(["a%", "ab%", "%b", "p%", PREFIX + "a%", "_b%", "\U0010ffff%"]))
        return f"{name} {draw(st.sampled_from(['LIKE', 'NOT LIKE']))} '{pattern}'"
    if form == "row":
        return f"_rowid {draw(st.sampled_from(['<', '>=', '=']))} {draw(st.integers(0, 60))}"
    if form == "pair":
        return draw(st.sampled_from(["i < s.a", "i = s.a", "t <= s.t", "f > 2.0 * i", "i % 2 = 0", "flag"]))
    return f"{name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(1, 40))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        cells = draw(st.lists(st.one_of(values, values, st.none()), min_size=rows, max_size=rows))
        # Sorted columns are those that zone maps are made for.
        if draw(st.booleans()):
            cells.sort(key=lambda value: (value is None, str(type(value)), value != value, value))
        return cells

    arrays = {name: pa.array(column(values), kind) for name, (kind, values) in COLUMNS.items()}
    pairs = zip(column(INTEGERS), column(TEXTS), column(st.just(1)), strict=True)
    arrays["s"] = pa.array([{"a": a, "t": t} if held else None for a, t, held in pairs], INNER)
    return pa.table(arrays)


@settings(max_examples=examples(10), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    table=tables(),
    filters=st.lists(predicates(), min_size=6, max_size=6),
    zone_rows=st.integers(1, 9),
    file_rows=st.integers(3, 50),
    batch_rows=st.sampled_from([1, 4, 1000]),
    split_rows=st.integers(2, 20),
    deleted=st.sampled_from([None, "i < 0", "flag", "t = 'a' OR i IS NULL"]),
)
def test_a_pruned_scan_gives_the_same_rows(
    table: pa.Table,
    filters: list[str],
    zone_rows: int,
    file_rows: int,
    batch_rows: int,
    split_rows: int,
    deleted: str | None,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_dataset(table, folder, max_rows_per_file=file_rows, zone_rows=zone_rows)
        # Files with other zones, or none, in the same dataset.
        write_dataset(table.slice(0, 5), folder, "append", zone_rows=zone_rows + 1)
        write_dataset(table.slice(0, 3), folder, "append", zone_maps=False)
        if deleted is not None:
            lance.dataset(folder).delete(deleted)
        dataset = DatasetVersion.open(folder)
        splits = [
            ScanSplit(fragment.id, start, min(start + split_rows, fragment.physical_rows))
            for fragment in dataset.snapshot.fragments
            for start in range(0, fragment.physical_rows, split_rows)
        ]
        for text in filters:

            def scan(text: str = text, **options: Any) -> Scanner:
                names = ["_rowid", "i", "t", "s"]
                return dataset.scan(columns=names, filter=text, batch_size=batch_rows, **options)

            expected = scan(zone_maps=False).to_table()
            assert scan().to_table().equals(expected), text
            assert scan().count() == expected.num_rows, text
            parts = [scan(splits=[split]).to_table() for split in splits]
            assert pa.concat_tables([expected.slice(0, 0), *parts]).equals(expected), text
            assert scan(limit=2, offset=1).to_table().equals(expected.slice(1, 2)), text
