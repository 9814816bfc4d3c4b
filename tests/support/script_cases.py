"""The scripts of queries/conformance: statements, each with the rows that it returns."""

from __future__ import annotations

import datetime
import decimal
import math
import re
from dataclasses import dataclass
from pathlib import Path

#: A gap must say for which engine, and why.
_GAP = re.compile(r"^-- not (\w+): \S", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    name: str
    gaps: frozenset[str]
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
        gaps = frozenset(_GAP.findall(head))
        cases.append(
            Case(f"{path.stem}: {comments[0][3:]}", gaps, statement, expected.strip("\n").splitlines())
        )
    return cases


def text(value: object) -> str:
    """One spelling for equal values, whichever type an engine chose for them."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, decimal.Decimal):
        return f"{value.normalize():f}" if value else "0"
    if isinstance(value, float):
        whole = math.isfinite(value) and value == value // 1 and abs(value) < 1e15
        return str(int(value)) if whole else f"{value:.10g}"
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return str(value)


def same(found, expected):
    """Whether rows are those of a script, in which ``*`` stands for any value."""
    if isinstance(found, str) or len(found) != len(expected):
        return False
    pairs = [(row.split("|"), wanted.split("|")) for row, wanted in zip(found, expected, strict=True)]
    return all(
        len(row) == len(wanted) and all(w in ("*", value) for value, w in zip(row, wanted, strict=True))
        for row, wanted in pairs
    )
