"""pyarrow expressions as trees, read from their pickled form."""

from __future__ import annotations

import datetime
import pickle
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_engine.errors import ColumnNotFoundError, InvalidFilterError
from lance_engine.expr.evaluate import evaluate
from lance_engine.expr.from_arrow import from_arrow

F = pc.field
NAN = float("nan")
UNKNOWN = pa.scalar(None, pa.bool_())


@pytest.fixture(scope="module")
def batch() -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "i": pa.array([1, 2, None, 5], pa.int32()),
            "u": pa.array([1, 2, None, 5], pa.uint64()),
            "f": pa.array([0.1, NAN, None, -0.0], pa.float32()),
            "x": pa.array([1.5, None, NAN, 0.0]),
            "d": pa.array([Decimal("0.05"), None, Decimal("2.00"), Decimal("-1.00")], pa.decimal128(15, 2)),
            "s": pa.array(["abc", None, "a%c", "B_d"]),
            "k": pa.array(["u", None, "v", "u"]).dictionary_encode(),
            "bl": pa.array([b"\xaa", None, b"", b"b"]),
            "bo": pa.array([True, None, False, True]),
            "day": pa.array([0, None, 18262, -1], pa.date32()),
            "tz": pa.array([0, None, 10**6, -1], pa.timestamp("us", "Europe/Berlin")),
            "st": pa.array([{"a": 1, "b.c": "x"}, None, {"a": None, "b.c": None}, {"a": 3, "b.c": "y"}]),
        }
    )


T, N = True, None
NO = False
CASES = [
    (F("i") > 1, "i > 1", [NO, T, N, T]),
    (F("i") > 1.5, "i > 1", [NO, T, N, T]),
    (pc.scalar(1) < F("i"), "i > 1", [NO, T, N, T]),
    ((F("i") == 1) | ~(F("s") == "abc"), "i = 1 OR s <> 'abc'", [T, N, T, T]),
    (F("i").isin([1, 2]), "i IN (1, 2)", [T, T, N, NO]),
    (~F("i").isin([1, 2]), "i NOT IN (1, 2)", [NO, NO, N, T]),
    (F("i").isin(pa.array([1, None])), "i IN (1, NULL)", [T, N, N, N]),
    (F("k").isin(["u", "w"]), "k IN ('u', 'w')", [T, N, NO, T]),
    (F("d").isin([Decimal("0.050"), Decimal("0.051")]), "d = 0.05", [T, N, NO, NO]),
    (pc.if_else(F("i").is_valid(), F("i").isin([1, 2, 3]), UNKNOWN), "i IN (1, 2, 3)", [T, T, N, NO]),
    (F("x").is_null(nan_is_null=True), "x IS NULL OR x = CAST('nan' AS DOUBLE)", [NO, T, T, NO]),
    (F("i").is_null(nan_is_null=True), "i IS NULL", [NO, NO, T, NO]),
    (F("x").is_valid(), "x IS NOT NULL", [T, NO, T, T]),
    ((F("f") > pa.scalar(3, pa.float32())) | (F("f") != F("f")), "f > 3.0 OR f <> f", [NO, T, N, NO]),
    (F("bo") & ~F("bo"), "bo AND NOT bo", [NO, N, NO, NO]),
    (F("st", "a") == 1, "st.a = 1", [T, N, N, NO]),
    (pc.struct_field(F("st"), [0]) == 1, "st.a = 1", [T, N, N, NO]),
    (pc.struct_field(F("st"), "b.c") == "x", "st.\"b.c\" = 'x'", [T, N, N, NO]),
    (pc.starts_with(F("s"), "a%"), "starts_with(s, 'a%')", [NO, N, T, NO]),
    (pc.match_like(F("s"), "a\\%%"), "starts_with(s, 'a%')", [NO, N, T, NO]),
    (
        pc.match_substring(F("s"), "A%", ignore_case=True),
        "s ILIKE '%A\\%%' ESCAPE '\\'",
        [NO, N, T, NO],
    ),
    (pc.starts_with(F("s"), "b_", ignore_case=True), "s ILIKE 'b\\_%' ESCAPE '\\'", [NO, N, NO, T]),
    (F("i").cast(pa.int64()) + 1 > 3, "CAST(i AS BIGINT) + 1 > 3", [NO, NO, N, T]),
    (F("i") / 2 == 1, "CAST(i AS BIGINT) // 2 = 1", [NO, T, N, NO]),
    (pc.utf8_upper(F("s")) == "ABC", "upper(s) = 'ABC'", [T, N, NO, NO]),
    (pc.coalesce(F("i"), 0) == 0, "coalesce(i, 0) = 0", [NO, NO, T, NO]),
    (pc.xor(F("bo"), F("bo")), "xor(bo, bo)", [NO, N, NO, NO]),
    (F("d") < Decimal("0.0501"), "d <= 0.05", [T, N, NO, T]),
    (F("day") < datetime.date(2020, 1, 1), "day < DATE '2020-01-01'", [T, N, NO, T]),
    (
        F("tz") >= pa.scalar(0, pa.timestamp("ns", "UTC")),
        "tz >= TIMESTAMPTZ '1970-01-01 00:00:00+00'",
        [T, N, T, NO],
    ),
    (F("bl") == b"\xaa", "bl = CAST('\\xAA' AS BLOB)", [T, N, NO, NO]),
    (F("u") > -1, "u = u", [T, T, N, T]),
    (pc.scalar(True), "TRUE", [T, T, T, T]),
]


@pytest.mark.parametrize(("expression", "text", "truth"), CASES, ids=[case[1] for case in CASES])
def test_expressions(
    batch: pa.RecordBatch, expression: pc.Expression, text: str, truth: list[bool | None]
) -> None:
    node = from_arrow(expression, batch.schema)
    assert str(node) == text
    assert evaluate(node, batch).to_pylist() == truth
    assert pickle.loads(pickle.dumps(node)) == node


def test_functions_with_options_are_called_as_they_are(batch: pa.RecordBatch) -> None:
    node = from_arrow(pc.match_substring_regex(F("s"), "^a.c$"), batch.schema)
    assert evaluate(pickle.loads(pickle.dumps(node)), batch).to_pylist() == [T, N, T, NO]
    assert 'pattern="^a.c$"' in str(node)
    node = from_arrow(pc.round(F("x"), ndigits=0) == 2, batch.schema)
    assert evaluate(node, batch).to_pylist() == [T, N, NO, NO]


def test_deep_chains(batch: pa.RecordBatch) -> None:
    expression = F("i") == 0
    for value in range(1, 3000):
        expression = expression | (F("i") == value)
    assert evaluate(from_arrow(expression, batch.schema), batch).to_pylist() == [T, T, N, T]


def test_errors(batch: pa.RecordBatch) -> None:
    with pytest.raises(ColumnNotFoundError, match=r"[Cc]olumn 'nope' not found"):
        from_arrow(F("nope") == 1, batch.schema)
    with pytest.raises(InvalidFilterError, match="Cannot convert"):
        from_arrow(F(0) == 1, batch.schema)
    with pytest.raises(InvalidFilterError, match="not a condition"):
        from_arrow(F("i") + 1, batch.schema)
    with pytest.raises(InvalidFilterError, match="cannot be compared"):
        from_arrow(F("s") == 1, batch.schema)
    with pytest.raises(InvalidFilterError, match="does not name the fields of st"):
        from_arrow(pc.struct_field(F("st"), "c") == 1, batch.schema)
    with pytest.raises(InvalidFilterError, match="cannot be cast"):
        from_arrow(F("st").cast(pa.int32()) == 1, batch.schema)
