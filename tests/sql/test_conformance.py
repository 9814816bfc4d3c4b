"""The statements of queries/conformance return the rows written there, on every engine."""

from __future__ import annotations

import datetime
import decimal
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

CASES = Path(__file__).parents[2] / "queries" / "conformance"


@dataclass(frozen=True)
class Case:
    name: str
    engines: tuple[str, ...]
    statement: str
    rows: list[str]


def read_cases(path: Path) -> list[Case]:
    cases = []
    for block in path.read_text().strip().split("\n\n"):
        head, _, expected = block.partition("\n----")
        comments = [line for line in head.splitlines() if line.startswith("--")]
        statement = "\n".join(line for line in head.splitlines() if not line.startswith("--"))
        if not statement:
            continue  # the file's introduction
        only = re.search(r"^-- only (\w+): \S", head, re.MULTILINE)
        engines = (only[1],) if only else ("duckdb", "datafusion")
        cases.append(
            Case(f"{path.stem}: {comments[0][3:]}", engines, statement, expected.strip("\n").splitlines())
        )
    return cases


ALL_CASES = [case for path in sorted(CASES.glob("*.test")) for case in read_cases(path)]


def text(value: object) -> str:
    """One spelling for equal values, whichever numeric type an engine chose for them."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float | decimal.Decimal):
        number = float(value)
        return str(int(number)) if number == number // 1 and abs(number) < 1e15 else f"{number:.10g}"
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return str(value)


def test_there_are_cases():
    assert len(ALL_CASES) >= 40
    assert len({case.name for case in ALL_CASES}) == len(ALL_CASES)


@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)
def test_case(case, connection, engine):
    if engine not in case.engines:
        with pytest.raises(Exception):  # noqa: B017, PT011 - a declared gap that closes must be noticed
            connection.sql(case.statement).arrow()
        return
    rows = ["|".join(text(value) for value in row) for row in connection.sql(case.statement).fetchall()]
    assert rows == case.rows
