"""Random filters over random tables: answers are DuckDB's, statistics do not contradict, text parses back."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import duckdb
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
import pytest
from counts import examples
from hypothesis import HealthCheck, given, settings
from lance_engine.expr.evaluate import evaluate
from lance_engine.expr.from_sql import parse_sql
from lance_engine.expr.statistics import ColumnStatistics, match_zones
from lance_engine.expr.value_types import value_type

NAN, INFINITY = float("nan"), float("inf")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def _day(days: int) -> datetime.date:
    return datetime.date(2020, 1, 1) + datetime.timedelta(days=days)


def _moment(seconds: int) -> datetime.datetime:
    return datetime.datetime(2020, 1, 1) + datetime.timedelta(seconds=seconds * 7200)


SMALL = st.integers(-3, 3)
TEXTS = st.sampled_from(["", "a", "ab", "abc", "B", "é", "a%b", "a_", "\\", "'", "zz\U0010ffff"])
FLOATS = st.sampled_from([0.0, -0.0, 0.1, 0.5, 1.0, -2.5, 1e30, NAN, INFINITY, -INFINITY])
BLOBS = st.sampled_from([b"", b"a", b"\xff", b"\x00'", b"ab"])

#: Columns: name -> type and a strategy of values.
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "i": (pa.int32(), SMALL),
    "tiny": (pa.int8(), st.sampled_from([-128, -1, 0, 1, 127])),
    "big": (pa.int64(), st.one_of(SMALL, st.sampled_from([2**62, -(2**62)]))),
    "u": (pa.uint64(), st.sampled_from([0, 1, 2, 2**64 - 1])),
    "f": (pa.float32(), FLOATS.map(lambda value: float(np.float32(value)))),
    "x": (pa.float64(), FLOATS),
    "d": (pa.decimal128(15, 2), st.integers(-210, 210).map(lambda cents: Decimal(cents).scaleb(-2))),
    "e": (pa.decimal128(9, 3), st.integers(-21, 21).map(lambda value: Decimal(value * 100).scaleb(-3))),
    "s": (pa.string(), TEXTS),
    "w": (pa.large_string(), TEXTS),
    "v": (pa.string_view(), TEXTS),
    "k": (pa.dictionary(pa.int8(), pa.string()), TEXTS),
    "bl": (pa.binary(), BLOBS),
    "bo": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), SMALL.map(_day)),
    "ts": (pa.timestamp("us"), SMALL.map(_moment)),
    "ms": (pa.timestamp("ms"), SMALL.map(_moment)),
    "tz": (pa.timestamp("us", "UTC"), SMALL.map(_moment)),
    "st": (
        pa.struct([pa.field("n", pa.int32()), pa.field("t", pa.string())]),
        st.fixed_dictionaries({"n": st.one_of(st.none(), SMALL), "t": st.one_of(st.none(), TEXTS)}),
    ),
}

NUMBERS = ("i", "tiny", "big", "u", "f", "x", "d", "e", "st.n")
STRINGS = ("s", "w", "v", "k", "st.t")
DATES = ("day", "ts", "ms")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


NUMBER_CONSTANTS = st.sampled_from(
    [
        "0",
        "1",
        "-1",
        "2",
        "-3",
        "127",
        "128",
        "-129",
        "0.5",
        "-2.5",
        "0.1",
        "1.005",
        "0.05 + 0.01",
        "2147483648",
    ]
)
FLOAT_CONSTANTS = st.sampled_from(
    ["0.1::DOUBLE", "1e0", "'nan'::DOUBLE", "'inf'::FLOAT", "1e30", "-0.0::DOUBLE"]
)
DATE_CONSTANTS = st.sampled_from(
    [
        "DATE '2020-01-01'",
        "'2020-01-02'",
        "TIMESTAMP '2020-01-01 02:00:00'",
        "TIMESTAMP '2019-12-31 23:59:59.5'",
        "DATE '2020-02-01' - INTERVAL '1' MONTH",
        "DATE '2020-01-01' + 1",
    ]
)


@st.composite
def predicates(draw: st.DrawFn, nested: int = 2) -> str:
    """A random predicate as SQL text."""
    kinds = ["compare", "compare", "in", "null", "match", "boolean", "columns", "distinct", "zoned"]
    kind = draw(st.sampled_from(kinds + (["and", "or", "not", "is"] * 2 if nested else [])))
    if kind in ("and", "or"):
        parts = draw(st.lists(predicates(nested - 1), min_size=2, max_size=3))
        return "(" + f" {kind.upper()} ".join(parts) + ")"
    if kind == "not":
        return f"(NOT {draw(predicates(nested - 1))})"
    if kind == "is":
        truth = draw(st.sampled_from(["TRUE", "FALSE", "NOT TRUE", "NOT FALSE", "NULL", "NOT NULL"]))
        return f"({draw(predicates(nested - 1))} IS {truth})"
    if kind == "boolean":
        return draw(st.sampled_from(["bo", "(NOT bo)", "(bo = TRUE)", "(bo IS TRUE)", "(bo > FALSE)"]))
    if kind == "null":
        column = draw(st.sampled_from([*COLUMNS, "st.n", "st.t"]))
        return f"({column} IS {draw(st.sampled_from(['', 'NOT ']))}NULL)"
    if kind == "zoned":
        constant = "TIMESTAMPTZ '2020-01-01 00:00:00+00'"
        return f"(tz {draw(st.sampled_from(COMPARISONS))} {constant})"
    if kind == "columns":
        left, right = draw(
            st.sampled_from(
                [("i", "big"), ("f", "x"), ("x", "i"), ("d", "e"), ("d", "i"), ("s", "k"), ("i", "i")]
            )
            | st.sampled_from(
                [("day", "ts"), ("ts", "ms"), ("tiny", "st.n"), ("u", "i"), ("x", "x"), ("w", "v")]
            )
        )
        return f"({left} {draw(st.sampled_from(COMPARISONS))} {right})"
    if kind == "match":
        return draw(_matches())
    column, constants = draw(_columns_and_constants())
    if kind == "in":
        values = draw(st.lists(constants | st.just("NULL"), min_size=1, max_size=9))
        return f"({column} {draw(st.sampled_from(['', 'NOT ']))}IN ({', '.join(values)}))"
    if kind == "distinct":
        test = draw(st.sampled_from(["IS DISTINCT FROM", "IS NOT DISTINCT FROM"]))
        return f"({column} {test} {draw(constants | st.just('NULL'))})"
    if draw(st.integers(0, 4)) == 0:
        return f"({column} BETWEEN {draw(constants)} AND {draw(constants)})"
    sides = [column, draw(constants)]
    sides = sides if draw(st.booleans()) else sides[::-1]
    return f"({sides[0]} {draw(st.sampled_from(COMPARISONS))} {sides[1]})"


def _columns_and_constants() -> st.SearchStrategy[tuple[str, st.SearchStrategy[str]]]:
    blobs = BLOBS.map(lambda value: "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB")
    return st.one_of(
        st.tuples(st.sampled_from(NUMBERS), st.just(NUMBER_CONSTANTS)),
        st.tuples(
            st.sampled_from(["f", "x", "i", "d", "i + 1", "i * 2 - tiny", "d * e", "x / 2"]),
            st.just(NUMBER_CONSTANTS),
        ),
        st.tuples(st.sampled_from(["f", "x", "i", "d", "CAST(f AS DOUBLE)"]), st.just(FLOAT_CONSTANTS)),
        st.tuples(st.sampled_from(STRINGS), st.just(TEXTS.map(_quoted))),
        st.tuples(st.sampled_from(DATES), st.just(DATE_CONSTANTS)),
        st.tuples(st.just("bl"), st.just(blobs)),
    )


@st.composite
def _matches(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from(STRINGS))
    function = draw(st.sampled_from(["starts_with", "ends_with", "contains", "LIKE", "ILIKE"]))
    if function.isupper():
        pattern = draw(st.sampled_from(["a%", "%b", "%a%", "a_", "ab", "%", "", "a!%%", "_", "A%", "\\"]))
        escape = " ESCAPE '!'" if "!" in pattern else ""
        return f"({column} {draw(st.sampled_from(['', 'NOT ']))}{function} {_quoted(pattern)}{escape})"
    return f"{function}({column}, {_quoted(draw(TEXTS))})"


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    """A few rows; each column without nulls, with some, or with nothing else."""
    rows = draw(st.integers(0, 6))
    arrays = {}
    for name, (kind, values) in COLUMNS.items():
        nulls = draw(st.integers(0, 5))
        chosen = values if nulls > 1 else st.none() if nulls == 1 else st.one_of(st.none(), values)
        held = draw(st.lists(chosen, min_size=rows, max_size=rows))
        plain = pa.string() if at.is_dictionary(kind) else kind
        array = pa.array(held, plain)
        arrays[name] = array.dictionary_encode().cast(kind) if at.is_dictionary(kind) else array
    return pa.RecordBatch.from_pydict(arrays)


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def _duckdb_answer(con: duckdb.DuckDBPyConnection, text: str, batch: pa.RecordBatch) -> list[bool | None]:
    con.register("t", pa.Table.from_batches([batch]))
    try:
        return [row[0] for row in con.execute(f"SELECT {text} FROM t").fetchall()]
    finally:
        con.unregister("t")


@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(batch=batches(), text=predicates())
def test_the_answer_is_that_of_duckdb(
    con: duckdb.DuckDBPyConnection, batch: pa.RecordBatch, text: str
) -> None:
    node = parse_sql(text, batch.schema)
    answer = evaluate(node, batch).to_pylist()
    assert answer == _duckdb_answer(con, text, batch), f"{text}  as  {node}"
    again = parse_sql(str(node), batch.schema)
    assert str(again) == str(node)
    assert evaluate(again, batch).to_pylist() == answer
    # The tree's own text means the same to DuckDB.
    assert _duckdb_answer(con, str(node), batch) == answer


@settings(max_examples=examples(20), deadline=None)
@given(batch=batches(), text=predicates(), data=st.data())
def test_statistics_never_contradict_the_answer(
    batch: pa.RecordBatch, text: str, data: st.DataObject
) -> None:
    node = parse_sql(text, batch.schema)
    answer = evaluate(node, batch).to_pylist()
    known = data.draw(st.integers(0, 2))
    statistics = {
        parts: held
        for parts, held in _statistics(batch, data.draw if known == 1 else None).items()
        if known != 2 or data.draw(st.booleans())
    }
    found = match_zones(node, statistics, 1)
    if any(truth is True for truth in answer):
        assert found.may[0], f"{node} matches but may not"
    if found.must[0]:
        assert all(truth is True for truth in answer), f"{node} must match but does not"


def _statistics(
    batch: pa.RecordBatch, draw: Callable[..., Any] | None
) -> dict[tuple[str, ...], ColumnStatistics]:
    found = {}
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        if at.is_struct(array.type):
            for field in array.type:
                found[(name, field.name)] = _column_statistics(pc.struct_field(array, [field.name]), draw)
        found[(name,)] = _column_statistics(array, draw)
    return found


def _column_statistics(array: pa.Array, draw: Callable[..., Any] | None = None) -> ColumnStatistics:
    """The statistics of a zone; with `draw`, known less well: no counts, no bounds, truncated strings."""
    rows, nulls = np.array([len(array)]), np.array([array.null_count])
    array = array.dictionary_decode() if at.is_dictionary(array.type) else array
    array = array.cast(value_type(array.type)).drop_null()
    nans = None
    if at.is_floating(array.type):
        nan = pc.is_nan(array)
        nans = np.array([nan.true_count])
        array = array.filter(pc.invert(nan))
    minimum = maximum = None
    if not at.is_struct(array.type) and len(array):
        order = array.take(pc.sort_indices(array))
        minimum, maximum = order.slice(0, 1), order.slice(len(order) - 1)
    if draw is not None:
        if minimum is not None and at.is_string(minimum.type) and draw(st.booleans()):
            minimum = pc.utf8_slice_codeunits(minimum, 0, 1)
            maximum = pa.array([maximum[0].as_py()[:1] + "\U0010ffff"])
        minimum = minimum if draw(st.booleans()) else None
        maximum = maximum if draw(st.booleans()) else None
        nulls = nulls if draw(st.booleans()) else None
        nans = nans if draw(st.booleans()) else None
    return ColumnStatistics.from_counts(rows, minimum, maximum, nulls, nans)
