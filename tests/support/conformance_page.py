"""What each engine can do, and what differs from DuckDB's own tables, made from queries/conformance.

The tests run every case on every engine; a case marked as unsupported must fail on that engine.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from column_types import recorded

ROOT: Final = Path(__file__).parents[2]
CASES: Final = ROOT / "queries" / "conformance"
DUCKDB: Final = sorted((CASES / "duckdb").glob("*.sql"))
EXTENSION: Final = sorted((CASES / "extension").glob("*.sql"))
PAGE: Final = ROOT / "docs" / "sql-support.md"
TYPES: Final = ROOT / "docs" / "types.md"
MIGRATING: Final = ROOT / "docs" / "migrating.md"
ENGINES: Final = {"duckdb": "DuckDB", "datafusion": "DataFusion", "spark": "Spark"}

_GAP = re.compile(r"^-- not (\w+): (\S.*)$", re.MULTILINE)
_MARK = re.compile(r"-- (refused|differs): (.+)")

_SELECTS = """The conformance files in `queries/conformance`, on DuckDB, DataFusion and Spark: what is not
listed returns the same rows on all three.
"""
_SCRIPTS = """The tests run scripts of these statements on DuckDB and on DataFusion.
[SQL](sql.md#statements-that-change-datasets) describes them; for Spark, see [Spark](spark.md)."""


def page(text: str) -> str:
    """The page about the engines with the generated part as it is now."""
    return with_part(text, "engines", _made())


def types_page(text: str) -> str:
    """The page about types with the names of Arrow's types as they are now."""
    return with_part(text, "types of arrow", _types())


def migrating(text: str) -> str:
    """The page about other tools with the generated part as it is now."""
    return with_part(text, "duckdb statements", _other_than_duckdb())


def with_part(text: str, name: str, made: str) -> str:
    """The page with another generated part of this name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n\n{made}\n{end}{after}"


def _other_than_duckdb() -> str:
    """The statements of DuckDB that are refused on datasets, or differ."""
    statements = [one for path in DUCKDB for one in compared(path)]
    rows = []
    for one in statements:
        why = one.difference or one.refusal
        if why:
            rows.append((one.statement, f"refused: {why}" if one.refusal else why))
    lines = [
        f"Of {len(statements)} statements, these {len(rows)} differ:\n",
        "| statement | on datasets |",
        "|---|---|",
        *(f"| {_cell(f'`{statement}`')} | {_cell(why)} |" for statement, why in rows),
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _made() -> str:
    parts = ["## What `SELECT` can do on each engine\n", _SELECTS]
    for path in sorted(CASES.glob("*.test")):
        introduction, *blocks = path.read_text().strip().split("\n\n")
        cases = _cases(blocks if introduction.startswith("--") else [introduction, *blocks])
        parts.append(f"### {path.stem.capitalize()}\n\n{_introduction(introduction)}\n")
        parts.append(_gaps(cases))
        if path.stem == "functions":
            parts.append(f"On all three: {'; '.join(name for name, gaps in cases if not gaps)}.\n")
    parts.append(f"## Statements that change datasets\n\n{_SCRIPTS}\n")
    parts.append(_scripts())
    return "\n".join(parts)


def _introduction(block: str) -> str:
    return " ".join(line.removeprefix("--").strip() for line in block.splitlines() if line.startswith("--"))


def _cases(blocks: list[str]) -> list[tuple[str, dict[str, str]]]:
    """The name and the gaps of each case."""
    cases = []
    for block in blocks:
        head = block.partition("\n----")[0]
        lines = head.splitlines()
        if any(not line.startswith("--") for line in lines):
            cases.append((lines[0].removeprefix("-- "), dict(_GAP.findall(head))))
    return cases


class Compared(NamedTuple):
    """A statement of a `.sql` file: of DuckDB, which its own tables answer, or of its Lance extension."""

    statement: str
    #: What the error on datasets says, if it is refused.
    refusal: str
    #: How the result differs, if it does.
    difference: str
    #: The rows of the result, for statements that DuckDB itself does not have.
    rows: tuple[str, ...]


def compared(path: Path) -> list[Compared]:
    """The statements of a file, each ending with a line; a comment before it says what becomes of it."""
    found: list[Compared] = []
    lines, marks = [], {"refused": "", "differs": ""}
    for line in path.read_text().splitlines():
        if line.startswith("--> "):
            found[-1] = found[-1]._replace(rows=(*found[-1].rows, line.removeprefix("--> ")))
        elif mark := _MARK.fullmatch(line):
            marks[mark[1]] = mark[2]
        elif not line.startswith("--"):
            lines.append(line)
            if line.endswith(";"):
                text = "\n".join(lines).removesuffix(";")
                found.append(Compared(text, marks["refused"], marks["differs"], ()))
                lines, marks = [], {"refused": "", "differs": ""}
    return found


def _gaps(cases: list[tuple[str, dict[str, str]]]) -> str:
    """The statements that differ, by engine and reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for engine, title in ENGINES.items():
        for name, gaps in cases:
            if engine in gaps:
                found.setdefault((title, gaps[engine]), []).append(name)
    if not found:
        return f"All {len(cases)} statements return the same rows.\n"
    rows = [f"Of {len(cases)} statements, these differ:\n", "| | why | statements |", "|---|---|---|"]
    for (title, why), names in found.items():
        cells = map(_cell, (title, why, "; ".join(names)))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _types() -> str:
    rows = [f"| type | {' | '.join(ENGINES.values())} |", "|---|---|---|---|"]
    for kind, names in recorded().items():
        # In full, since pages do not leave it open whether a word is singular or plural.
        cells = [f"`{name.replace('(s)', '(second)')}`" for name in (kind, *(names[e] for e in ENGINES))]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _scripts() -> str:
    kinds, cases = [], []
    for path in sorted((CASES / "statements").glob("*.test")):
        _, *blocks = path.read_text().strip().split("\n\n")
        kinds.append(path.stem)
        cases += [(f"{path.stem}: {name}", gaps) for name, gaps in _cases(blocks)]
    return f"{', '.join(kinds).capitalize()}. {_gaps(cases)}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
    TYPES.write_text(types_page(TYPES.read_text()))
    MIGRATING.write_text(migrating(MIGRATING.read_text()))
