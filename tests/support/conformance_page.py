"""docs/sql-engines.md: what each engine can do, made from the files of queries/conformance.

The tests run every case on every engine; a case marked as unsupported must fail on that engine.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from column_types import recorded

ROOT: Final = Path(__file__).parents[2]
CASES: Final = ROOT / "queries" / "conformance"
PAGE: Final = ROOT / "docs" / "sql-engines.md"
ENGINES: Final = {"duckdb": "DuckDB", "datafusion": "DataFusion", "spark": "Spark"}

_GAP = re.compile(r"^-- not (\w+): (\S.*)$", re.MULTILINE)

_HEAD = """# SQL on each engine

This page shows what `SELECT` can do with datasets on DuckDB, DataFusion and Spark: operators, functions,
types, subqueries, windows, old versions. A script generates it from the conformance files in
`queries/conformance`, which the tests run on each engine. *yes* means that the engine returns the rows in
the file.

Statements that change datasets are the same on DuckDB and DataFusion: see [SQL](sql.md). For those of
Spark, see [Spark](spark.md).
"""


_TYPES = """The name of each Arrow type on each engine. The tests read the same values on all three."""
_SCRIPTS = "The tests run these scripts on DuckDB and on DataFusion."


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for path in sorted(CASES.glob("*.test")):
        introduction, *blocks = path.read_text().strip().split("\n\n")
        parts.append(f"## {path.stem.capitalize()}\n\n{_introduction(introduction)}\n")
        parts.append(_table(blocks if introduction.startswith("--") else [introduction, *blocks]))
    parts.append(f"## Types of columns\n\n{_TYPES}\n")
    parts.append(_types())
    parts.append(f"## Statements that change datasets\n\n{_SCRIPTS}\n")
    parts.append(_scripts())
    return "\n".join(parts)


def _introduction(block: str) -> str:
    return " ".join(line.removeprefix("--").strip() for line in block.splitlines() if line.startswith("--"))


def _cases(blocks: list[str]) -> list[tuple[str, str, dict[str, str]]]:
    """The name, the statement and the gaps of each case."""
    cases = []
    for block in blocks:
        head = block.partition("\n----")[0]
        lines = head.splitlines()
        statement = " ".join(line.strip() for line in lines if not line.startswith("--"))
        if statement:
            cases.append((lines[0].removeprefix("-- "), statement, dict(_GAP.findall(head))))
    return cases


def _table(blocks: list[str]) -> str:
    rows = [f"| | | {' | '.join(ENGINES.values())} |", "|---|---|---|---|---|"]
    for name, statement, gaps in _cases(blocks):
        text = statement if len(statement) <= 90 else f"{statement[:87]}..."
        cells = [f"no: {gaps[engine]}" if engine in gaps else "yes" for engine in ENGINES]
        escaped = [cell.replace("|", "\\|") for cell in (name, f"`{text}`", *cells)]
        rows.append(f"| {' | '.join(escaped)} |")
    return "\n".join(rows) + "\n"


def _types() -> str:
    rows = [f"| type | {' | '.join(ENGINES.values())} |", "|---|---|---|---|"]
    for kind, names in recorded().items():
        # In full, since pages do not leave it open whether a word is singular or plural.
        cells = [f"`{name.replace('(s)', '(second)')}`" for name in (kind, *(names[e] for e in ENGINES))]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _scripts() -> str:
    rows = ["| statements | cases | not on DuckDB | not on DataFusion |", "|---|---|---|---|"]
    for path in sorted((CASES / "statements").glob("*.test")):
        _, *blocks = path.read_text().strip().split("\n\n")
        cases = _cases(blocks)
        missing = [
            "; ".join(f"{name}: {gaps[engine]}" for name, _, gaps in cases if engine in gaps) or "none"
            for engine in ("duckdb", "datafusion")
        ]
        cells = [cell.replace("|", "\\|") for cell in (path.stem, str(len(cases)), *missing)]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
