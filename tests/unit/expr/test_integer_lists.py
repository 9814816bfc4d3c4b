"""Long lists of numbers are read without the parser, with the same result."""

from __future__ import annotations

import pyarrow as pa
import pytest
from lance_engine.errors import ColumnNotFoundError, InvalidFilterError
from lance_engine.expr.evaluate import evaluate
from lance_engine.expr.from_sql import parse_sql
from lance_engine.expr.integer_lists import without_integer_lists

SCHEMA = pa.schema(
    [("a", pa.int64()), ("b", pa.int8()), ("c", pa.float64()), ("d", pa.uint64()), ("s", pa.string())]
)
NUMBERS = [-(10**17), -129, -128, -7, -1, *range(0, 300, 7), 2**53 + 1, 10**17]
LIST = ", ".join(map(str, NUMBERS))
ROWS = pa.record_batch(
    [
        pa.array([7, None, 8, 10**17], pa.int64()),
        pa.array([-128, 14, None, 13], pa.int8()),
        pa.array([14.0, 14.5, None, -7.0], pa.float64()),
        pa.array([7, 8, None, 2**64 - 1], pa.uint64()),
        pa.array([f"a IN ({LIST})", "x", None, ""]),
    ],
    schema=SCHEMA,
)


@pytest.mark.parametrize(
    "text",
    [
        "a IN ({})",
        "a NOT IN ({}) OR b in\n(\n{}\n)",
        "b IN ({}) AND c IN ({})",
        "d IN ({})",
        "NOT (a IN ({}))",
        "s = 'a IN ({})' AND a IN ({})",
        "\"a\" IN ({}) OR s = 'it''s IN ({})'",
    ],
)
def test_long_lists_mean_what_the_parser_reads(text: str) -> None:
    filled = text.replace("{}", LIST)
    assert without_integer_lists(filled)[1]
    # A comment leaves everything to the parser.
    plain = f"{filled} /* */"
    assert without_integer_lists(plain) == (plain, [])
    assert evaluate(parse_sql(filled, SCHEMA), ROWS).equals(evaluate(parse_sql(plain, SCHEMA), ROWS))
    assert str(parse_sql(filled, SCHEMA)) == str(parse_sql(plain, SCHEMA))


@pytest.mark.parametrize(
    "text",
    [
        f"a IN ({LIST}, 1.5)",
        f"a IN ({LIST}, NULL)",
        f"a IN ({LIST}, 9223372036854775807)",
        f"a IN (b, {LIST})",
        f"s = 'a IN ({LIST})'",
        f"a IN ({LIST}) -- and more",
        "a IN (1, 2, 3)",
    ],
)
def test_other_lists_are_left_to_the_parser(text: str) -> None:
    assert without_integer_lists(text) == (text, [])
    parse_sql(text, SCHEMA)


def test_errors_tell_the_position_in_the_text() -> None:
    with pytest.raises(ColumnNotFoundError, match="line 3, column 4"):
        parse_sql(f"a IN (\n{LIST})\nOR missing = 1", SCHEMA)
    with pytest.raises(InvalidFilterError, match="not valid SQL"):
        parse_sql(f"a IN ({LIST}) OR", SCHEMA)
    with pytest.raises(InvalidFilterError):
        parse_sql(f"a IN ({LIST}) OR a IN (:other)", SCHEMA)
    with pytest.raises(InvalidFilterError):
        parse_sql(f"a IN ({LIST}) OR a IN (:integer_list_0)", SCHEMA)
