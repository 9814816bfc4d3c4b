"""SQL text -> tree -> truth per row, over one small table with a column of every kind of type."""

from __future__ import annotations

import datetime
import pickle
import subprocess
import sys
from decimal import Decimal

import pyarrow as pa
import pytest
from lance_engine.errors import ColumnNotFoundError, InvalidFilterError
from lance_engine.expr.evaluate import evaluate, evaluate_value
from lance_engine.expr.from_sql import parse_sql, parse_value
from lance_engine.expr.tree import columns_of, conjuncts

NAN = float("nan")
DAY = datetime.date


@pytest.fixture(scope="module")
def batch() -> pa.RecordBatch:
    columns = {
        "i": pa.array([1, 2, None, 5], pa.int32()),
        "b": pa.array([2**53 + 1, None, -1, 3], pa.int64()),
        "u": pa.array([1, 2**64 - 1, None, 0], pa.uint64()),
        "f": pa.array([0.1, NAN, None, -0.0], pa.float32()),
        "x": pa.array([1.5, None, NAN, 0.0], pa.float64()),
        "h": pa.array([1.0, None, 2.5, NAN], pa.float16()),
        "d": pa.array([Decimal("0.05"), Decimal("0.07"), None, Decimal("10.00")], pa.decimal128(15, 2)),
        "s": pa.array(["abc", None, "a%c", "B_d"]),
        "sv": pa.array(["u", None, "v", "u"], pa.string_view()),
        "dc": pa.array(["u", None, "v", "u"]).dictionary_encode(),
        "bl": pa.array([b"\xaa", b"", None, b"ab"]),
        "bo": pa.array([True, None, False, True]),
        "dt": pa.array([DAY(1998, 9, 2), None, DAY(1998, 9, 3), DAY(2020, 1, 1)]),
        "ts": pa.array([0, None, 10**15, 5], pa.timestamp("us")),
        "tz": pa.array([0, None, 10**12, 5], pa.timestamp("ms", "Europe/Berlin")),
        "t": pa.array([1, 2, None, 4], pa.time32("s")),
        "st": pa.array(
            [{"a": 1, "b b": {"c": "x"}}, None, {"a": None, "b b": None}, {"a": 3, "b b": {"c": "y"}}]
        ),
        "nothing": pa.nulls(4),
        "li": pa.array([[1], None, [], [2]]),
        "odd name": pa.array([1, 2, 3, 4]),
    }
    return pa.RecordBatch.from_pydict(columns)


T, F, N = True, False, None

#: Filter, the tree's own text, and the answer for the four rows.
CASES = [
    ("i < 1.5", "i <= 1", [T, F, N, F]),
    ("i = 1.5", "i <> i", [F, F, N, F]),
    ("i <> 1.5", "i = i", [T, T, N, T]),
    ("1 < i", "i > 1", [F, T, N, T]),
    ("i >= 1e10", "i <> i", [F, F, N, F]),
    ("i < 99999999999999999999", "i = i", [T, T, N, T]),
    ("i = '5'", "i = 5", [F, F, N, T]),
    ("b = 9007199254740993", "b = 9007199254740993", [T, N, F, F]),
    ("b > 9.007199254740992e15", "b > 9007199254740992", [T, N, F, F]),
    ("u > -1", "u = u", [T, T, N, T]),
    ("u = 18446744073709551615", "u = 18446744073709551615", [F, T, N, F]),
    ("u > i", "CAST(u AS DECIMAL(20, 0)) > CAST(i AS DECIMAL(20, 0))", [F, T, N, F]),
    ("CAST(i AS BIGINT) > 1", "i > 1", [F, T, N, T]),
    ("i::double < 1.5", "i <= 1", [T, F, N, F]),
    # Floating point: NaN is larger than other values and equal to itself; -0.0 equals 0.0.
    ("f = 0.1", "f = 0.1", [T, F, N, F]),
    ("f = 0.1::double", "f <> f", [F, F, N, F]),
    ("CAST(f AS DOUBLE) = 0.1", "f <> f", [F, F, N, F]),
    ("f > 0.5", "f > 0.5", [F, T, N, F]),
    ("f <= 0.5", "f <= 0.5", [T, F, N, T]),
    ("f = 0", "f = 0.0", [F, F, N, T]),
    ("f IN (0, 1)", "f IN (0.0, 1.0)", [F, F, N, T]),
    ("f = 'nan'::float", "f = CAST('nan' AS FLOAT)", [F, T, N, F]),
    ("x < 'nan'", "x < CAST('nan' AS DOUBLE)", [T, N, F, T]),
    ("x >= 'nan'", "x >= CAST('nan' AS DOUBLE)", [F, N, T, F]),
    ("x > 'infinity'::double", "x > CAST('inf' AS DOUBLE)", [F, N, T, F]),
    (
        "x IN (0, 1, 2, 3, 4, 5, 'nan'::double)",
        "x IN (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, CAST('nan' AS DOUBLE))",
        [F, N, T, T],
    ),
    ("x > b", "x > CAST(b AS DOUBLE)", [F, N, T, F]),
    ("h > 1.5", "h > 1.5", [F, N, T, T]),
    # Decimals are exact.
    ("d < 10.00", "d < 10.00", [T, T, N, F]),
    ("d BETWEEN 0.06 - 0.01 AND 0.06 + 0.01", "d >= 0.05 AND d <= 0.07", [T, T, N, F]),
    ("d < 1.005", "d <= 1.00", [T, T, N, F]),
    ("d IN (0.05, 0.055)", "d = 0.05", [T, F, N, F]),
    ("d = 0.05::double", "CAST(d AS DOUBLE) = 0.05", [T, F, N, F]),
    ("d * d > 0.01", "d * d > 0.0100", [F, F, N, T]),
    # Strings and blobs.
    ("s LIKE 'a%'", "starts_with(s, 'a')", [T, N, T, F]),
    ("s LIKE 'a_c'", "s LIKE 'a_c'", [T, N, T, F]),
    ("s LIKE '%'", "contains(s, '')", [T, N, T, T]),
    ("s LIKE 'abc'", "s = 'abc'", [T, N, F, F]),
    ("s NOT LIKE '%c'", "NOT (ends_with(s, 'c'))", [F, N, F, T]),
    ("s LIKE 'a!%c' ESCAPE '!'", "s = 'a%c'", [F, N, T, F]),
    ("s LIKE '_!%_' ESCAPE '!'", "s LIKE '_\\%_' ESCAPE '\\'", [F, N, T, F]),
    ("s LIKE 'a\\%c'", "s LIKE 'a\\\\%c' ESCAPE '\\'", [F, N, F, F]),
    ("s ILIKE 'b_D'", "s ILIKE 'b_D'", [F, N, F, T]),
    ("starts_with(s, 'a') AND contains(s, '%')", "starts_with(s, 'a') AND contains(s, '%')", [F, N, T, F]),
    ("ends_with(s, 'd')", "ends_with(s, 'd')", [F, N, F, T]),
    ("lower(s) = 'b_d'", "lower(s) = 'b_d'", [F, N, F, T]),
    ("length(s) = 3", "length(s) = 3", [T, N, T, T]),
    ("dc <> 'u'", "dc <> 'u'", [F, N, T, F]),
    ("dc IN ('u', 'w')", "dc IN ('u', 'w')", [T, N, F, T]),
    ("dc IS NULL", "dc IS NULL", [F, T, F, F]),
    ("sv LIKE 'u%'", "starts_with(sv, 'u')", [T, N, F, T]),
    ("bl = '\\xAA'::blob", "bl = CAST('\\xAA' AS BLOB)", [T, F, N, F]),
    # Dates and times.
    ("dt <= DATE '1998-12-01' - INTERVAL '90' DAY", "dt <= DATE '1998-09-02'", [T, N, F, F]),
    ("dt < TIMESTAMP '1998-09-02 12:00:00'", "dt <= DATE '1998-09-02'", [T, N, F, F]),
    ("dt = '1998-09-02'", "dt = DATE '1998-09-02'", [T, N, F, F]),
    ("dt > DATE '1998-01-31' + INTERVAL 1 MONTH", "dt > DATE '1998-02-28'", [T, N, T, T]),
    ("dt + 1 = DATE '1998-09-03'", "dt + 1 = DATE '1998-09-03'", [T, N, F, F]),
    ("DATE '1998-09-03' - dt > 0", "DATE '1998-09-03' - dt > 0", [T, N, F, F]),
    ("ts >= DATE '1970-01-02'", "ts >= TIMESTAMP '1970-01-02 00:00:00'", [F, N, T, F]),
    (
        "tz < TIMESTAMPTZ '2001-09-09 03:46:40+02'",
        "tz < TIMESTAMPTZ '2001-09-09 01:46:40+00'",
        [T, N, F, T],
    ),
    ("tz = '1970-01-01 01:00:00+01'", "tz = TIMESTAMPTZ '1970-01-01 00:00:00+00'", [T, N, F, F]),
    ("t > TIME '00:00:01.5'", "t > TIME '00:00:01'", [F, T, N, T]),
    ("year(dt) = 1998", "year(dt) = 1998", [T, N, T, F]),
    # Logic, booleans, nulls.
    ("bo", "bo", [T, N, F, T]),
    ("NOT bo", "NOT bo", [F, N, T, F]),
    ("bo IS TRUE", "bo IS NOT NULL AND bo", [T, F, F, T]),
    ("bo IS NOT TRUE", "bo IS NULL OR NOT bo", [F, T, T, F]),
    ("bo IS FALSE", "bo IS NOT NULL AND NOT bo", [F, F, T, F]),
    ("(i > 1) IS NOT FALSE", "(i > 1) IS NULL OR i > 1", [F, T, T, T]),
    ("i IS DISTINCT FROM 1", "i IS NULL OR i <> 1", [F, T, T, T]),
    ("i IS NOT DISTINCT FROM NULL", "i IS NULL", [F, F, T, F]),
    ("i IN (1, 2.5, NULL)", "i IN (1, NULL)", [T, N, N, N]),
    ("i NOT IN (1, 2)", "i NOT IN (1, 2)", [F, F, N, T]),
    ("i NOT IN (1, 2, 3, 4, 6, 7, 8, NULL)", "i NOT IN (1, 2, 3, 4, 6, 7, 8, NULL)", [F, F, N, N]),
    ("i = NULL", "NULL", [N, N, N, N]),
    ("TRUE", "TRUE", [T, T, T, T]),
    ("FALSE OR i = 1", "i = 1", [T, F, N, F]),
    ("NOT (i > 1 AND bo)", "i <= 1 OR NOT bo", [T, N, T, F]),
    ("1 = 1.0 AND 'a' < 'b'", "TRUE", [T, T, T, T]),
    ("nothing = 1", "NULL", [N, N, N, N]),
    ("nothing IS NULL", "nothing IS NULL", [T, T, T, T]),
    ("li IS NULL", "li IS NULL", [F, T, F, F]),
    # Names.
    ("st.a = 1", "st.a = 1", [T, N, N, F]),
    ("st['a'] = 1", "st.a = 1", [T, N, N, F]),
    ('"st"."b b"."c" = \'x\'', "st.\"b b\".c = 'x'", [T, N, N, F]),
    ("st IS NULL", "st IS NULL", [F, T, F, F]),
    ("I = 1 OR ST.A = 3", "i = 1 OR st.a = 3", [T, N, N, T]),
    ('"odd name" > 2', '"odd name" > 2', [F, F, T, T]),
    # Arithmetic.
    ("i * 2 > 3", "CAST(i AS BIGINT) * 2 > 3", [F, T, N, T]),
    ("i % 2 = 1", "CAST(i AS BIGINT) % 2 = 1", [T, F, N, T]),
    ("i / 2.0 = 0.5", "CAST(i AS DOUBLE) / 2.0 = 0.5", [T, F, N, F]),
    ("i // 2 = 1", "CAST(i AS BIGINT) // 2 = 1", [F, T, N, F]),
    ("i % 0 = 1", "CAST(i AS BIGINT) % 0 = 1", [N, N, N, N]),
    ("coalesce(i, 0) = 0", "coalesce(i, 0) = 0", [F, F, T, F]),
    ("TRY_CAST(s AS INTEGER) IS NULL", "TRY_CAST(s AS INTEGER) IS NULL", [T, T, T, T]),
]


@pytest.mark.parametrize(("text", "rendered", "truth"), CASES, ids=[case[0] for case in CASES])
def test_filter(batch: pa.RecordBatch, text: str, rendered: str, truth: list[bool | None]) -> None:
    node = parse_sql(text, batch.schema)
    assert str(node) == rendered
    assert evaluate(node, batch).to_pylist() == truth
    again = parse_sql(rendered, batch.schema)
    assert again == node
    assert hash(again) == hash(node)
    assert pickle.loads(pickle.dumps(node)) == node


@pytest.mark.parametrize("text", [case[0] for case in CASES])
def test_slices_and_empty_batches(batch: pa.RecordBatch, text: str) -> None:
    node = parse_sql(text, batch.schema)
    whole = evaluate(node, batch).to_pylist()
    assert evaluate(node, batch.slice(1, 2)).to_pylist() == whole[1:3]
    assert evaluate(node, batch.slice(2)).to_pylist() == whole[2:]
    empty = evaluate(node, batch.slice(0, 0))
    assert empty.type == pa.bool_()
    assert len(empty) == 0


INVALID = [
    ("i = 'abc'", "'abc' is not a value of type INTEGER", "line 1, column 1"),
    ("i = 1\n  AND s = 5", "cannot be compared with a value of type VARCHAR", "line 2, column 7"),
    ("dt > 5", "cannot be compared", "line 1, column 1"),
    ("li = 1", "which filters cannot compare", "line 1, column 1"),
    ("i >", "not valid SQL", "line 1, column 3"),
    ("s = 'x", "not valid SQL", None),
    ("(i = 1", "not valid SQL", "line 1"),
    ("i + 1", "not a condition", None),
    ("i IN (SELECT 1)", "subquery", "line 1, column 1"),
    ("SELECT 1", "not valid SQL", "line 1"),
    ("", "empty", None),
    ("i = 1; DROP TABLE x", "not valid SQL", "line 1"),
    ("cumulative_sum(i) = 1", "Unknown function cumulative_sum(INTEGER)", "line 1"),
    ("random() > 0.5", "", "line 1"),
    ("frobnicate(i) = 1", "Unknown function frobnicate(INTEGER)", "line 1"),
    ("s LIKE 'a!' ESCAPE '!'", "ends with its escape", "line 1, column 1"),
    ("s LIKE s", "not a constant", "line 1, column 1"),
    ("ts > INTERVAL 1 MONTH", "not have a fixed length", "line 1"),
    ("ts > TIMESTAMP '2020-13-01'", "not a value of type TIMESTAMP", "line 1"),
    ("CAST(i AS MAP(INT, INT)) IS NULL", "cannot cast", "line 1"),
]


@pytest.mark.parametrize(("text", "message", "position"), INVALID, ids=[case[0] for case in INVALID])
def test_invalid(batch: pa.RecordBatch, text: str, message: str, position: str | None) -> None:
    with pytest.raises(InvalidFilterError) as caught:
        parse_sql(text, batch.schema)
    assert message in str(caught.value)
    assert caught.value.remedy
    assert caught.value.place["filter"] == text
    assert str(caught.value.place.get("position", None)).startswith(str(position))


def test_unknown_columns_name_the_nearest(batch: pa.RecordBatch) -> None:
    with pytest.raises(ColumnNotFoundError, match=r"[Cc]olumn 'nothin' not found.*Did you mean 'nothing'"):
        parse_sql("nothin = 1", batch.schema)
    with pytest.raises(ColumnNotFoundError, match=r"[Cc]olumn 'st.bb' not found.*Did you mean 'st.b b'"):
        parse_sql("st.bb = 1", batch.schema)
    with pytest.raises(ColumnNotFoundError, match=r"[Cc]olumn 'I' not found"):
        parse_sql('"I" = 1', batch.schema)


def test_a_row_without_a_result_is_an_error(batch: pa.RecordBatch) -> None:
    for text in ("CAST(s AS INTEGER) = 1", "CAST(x AS INTEGER) = 1", "b * 9223372036854775807 > 1"):
        with pytest.raises(InvalidFilterError, match="Cannot evaluate"):
            evaluate(parse_sql(text, batch.schema), batch)


def test_columns_and_conjuncts(batch: pa.RecordBatch) -> None:
    node = parse_sql("i > 1 AND (st.a = 2 OR lower(s) = 'x') AND i + b < 3", batch.schema)
    assert columns_of(node) == {"i", "st", "s", "b"}
    assert [str(part) for part in conjuncts(node)][:2] == ["i > 1", "st.a = 2 OR lower(s) = 'x'"]
    assert conjuncts(parse_sql("bo", batch.schema)) == (parse_sql("bo", batch.schema),)


def test_long_chains_do_not_recurse(batch: pa.RecordBatch) -> None:
    text = " OR ".join(f"i = {value}" for value in range(3000))
    node = parse_sql(text, batch.schema)
    assert evaluate(node, batch).to_pylist() == [T, T, N, T]
    assert str(node) == text


def test_large_lists_hash_quickly_and_match(batch: pa.RecordBatch) -> None:
    node = parse_sql(f"i IN ({', '.join(map(str, range(2, 5000)))})", batch.schema)
    assert evaluate(node, batch).to_pylist() == [F, T, N, T]
    assert len({node, parse_sql(str(node), batch.schema)}) == 1


def test_importing_does_not_load_the_parser_or_pyarrow_dataset() -> None:
    heavy = "{'sqlglot', 'pyarrow.dataset', 'duckdb'}"
    code = f"import sys, lance_engine.expr; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("divisor", [1, 2, 7, 100, 2**62, -3, 0])
def test_whole_division_rounds_towards_zero(divisor: int) -> None:
    values = [0, 1, -1, 6, 7, -7, -8, 2**63 - 1, -(2**63) + 1]
    for held in (values, [*values, None]):
        schema = pa.schema([("a", pa.int64())])
        batch = pa.record_batch({"a": pa.array(held, pa.int64())})
        for op in ("//", "%"):
            expected = []
            for value in held:
                if value is None or divisor == 0:
                    expected.append(None)
                    continue
                quotient = abs(value) // abs(divisor) * (1 if (value < 0) == (divisor < 0) else -1)
                expected.append(quotient if op == "//" else value - quotient * divisor)
            assert evaluate_value(parse_value(f"a {op} ({divisor})", schema), batch).to_pylist() == expected
