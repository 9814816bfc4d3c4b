"""Parses the text of a filter with sqlglot."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from lance_engine.errors import InvalidFilterError
from lance_engine.interrupts import load


@lru_cache(maxsize=1)
def sqlglot() -> Any:
    # Imported on first use: reading a dataset without a SQL filter does not need the parser.
    load("sqlglot")
    load("sqlglot.dialects.duckdb")
    import sqlglot as module

    return module


@lru_cache(maxsize=1)
def _dialect() -> Any:
    from lance_engine.expr.dialect import FilterDialect

    return FilterDialect()


def parsed_condition(text: str) -> Any:
    """The sqlglot expression for `text`; InvalidFilterError says what is wrong and where."""
    exp, errors = sqlglot().exp, sqlglot().errors
    try:
        # A condition, not a statement: a column may be called "use" or "set".
        parsed = _dialect().parse_into(exp.Condition, text)
    except errors.ParseError as error:
        problem = error.errors[0] if error.errors else {}
        place = f"line {problem['line']}, column {problem['col']}" if problem.get("line") else None
        what = str(problem.get("description") or error).splitlines()[0].rstrip(".")
        if what.startswith("Required keyword"):  # which continues with a class of the parser
            what = "a value is missing"
        near = f" near {problem['highlight']!r}" if problem.get("highlight") else ""
        raise InvalidFilterError(
            f"The filter is not valid SQL: {what}{near}",
            remedy="Write a condition as in WHERE, for example price > 10 AND day = DATE '2026-01-01'",
            position=place,
        ) from error
    except errors.TokenError as error:
        raise InvalidFilterError(
            f"The filter is not valid SQL: {str(error).splitlines()[0]}",
            remedy="Close all quotes and comments, and use single quotes for strings",
        ) from error
    if not parsed or parsed[0] is None:
        raise InvalidFilterError("The filter is empty", remedy="For all rows, omit it or write true")
    return parsed[0]


def position_of(text: str, parsed: Any) -> str | None:
    """The position in the text at which the source of `parsed` begins."""
    starts = [node.meta["start"] for node in parsed.walk() if "start" in node.meta]
    if not starts:
        return None
    before = text[: min(starts)]
    return f"line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}"
