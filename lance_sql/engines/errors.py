"""Converts engine errors to ours: the same classes and remedies for all engines."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lance_engine.base import nearest_name
from lance_engine.errors import ColumnNotFoundError, LanceError

from lance_sql.engines.capabilities import Capabilities
from lance_sql.engines.table import EngineTable
from lance_sql.errors import SqlError, TableNotFoundError

#: Class names that engines put in front of their messages.
_PREFIX = re.compile(r"^(?:(?:Binder|Catalog|Parser|Schema|SQL) [Ee]rror|Error during planning): ")

#: The steps in which DataFusion found an error, before the error itself.
_STEPS = re.compile(
    r"^DataFusion error: (?:(?:Optimizer rule '\w+' failed|\w+)\ncaused by\n)+(?:Arrow error: )?"
)
#: What Python says where DataFusion combines a NULL with a condition for a dataset; see `unpushed`.
NULL_OPERAND = re.compile(r"unsupported operand type\(s\) for [&|]: .*\bBooleanScalar\b", re.DOTALL)
#: DuckDB's message for a result that is read too late.
_CLOSED = re.compile(r"Connection (?:has )?already (?:been )?closed")
#: DuckDB's message for an error in itself, after which it runs no more statements: it quotes the first one.
_FAILED = re.compile(r"^(?:INTERNAL|FATAL) Error: (?:.*\nOriginal error: )?(?P<error>[^\n]*)", re.DOTALL)

_COLUMN = re.compile(
    r"Referenced (?:table )?column .+? (?:was )?not found|No field named |does not have a column named"
)
_NAMED_COLUMN = re.compile(r'column named "(.+?)"')
_TABLE = re.compile(r"Table with name (?P<duckdb>.+?) does not exist|table '(?P<datafusion>.+?)' not found")

#: What DuckDB appends to a message: the line of the statement, with a marker below the position.
_POINTER = re.compile(r"\s*^(?=LINE \d+: )", re.MULTILINE)
#: The beginning of DuckDB's list of all overloads of a function.
_CANDIDATES = "\tCandidate functions:"
#: How DataFusion wraps parser messages, and how these give the position.
_PARSER_ERROR = re.compile(r'^ParserError\("(.*)"\)$', re.DOTALL)
#: How they report the end of the text.
_AT_THE_END = "found: EOF"
_CREDENTIALS = re.compile(r"\bcreate\b[\w\s]*\bsecret\b", re.IGNORECASE)
_STRING = re.compile(r"'((?:[^']|'')+)'?")
_PLACE = re.compile(r" at Line: (\d+), Column: (\d+)")


def translated(
    error: Exception,
    engine: Capabilities,
    failure: LanceError | None = None,
    tables: Iterable[EngineTable] = (),
) -> LanceError:
    """Our error for an engine error; `failure` is the error of a scan in the same run."""
    if isinstance(error, LanceError):
        return error
    if failure is not None:
        return failure
    text = _STEPS.sub("", _message(error).strip())
    if NULL_OPERAND.search(text):
        return SqlError(
            "This version of DataFusion cannot combine a comparison with NULL, which is never true, with "
            "other conditions",
            remedy="Leave out the comparison, or write IS NULL",
            engine=engine.name,
        )
    if _CLOSED.search(text):
        return LanceError(
            "The connection was closed before the rows were read",
            remedy="Read them first, for example with result.arrow()",
        )
    failed = _FAILED.search(text)
    if failed is not None:
        return SqlError(
            "DuckDB failed because of an error in itself, and runs no more statements: "
            + failed["error"].strip('"'),
            remedy="Close the session and connect again: datasets are as their last commit left them",
            engine=engine.name,
        )
    head, *pointer = _POINTER.split(_PREFIX.sub("", text), maxsplit=1)
    message = " ".join(_PARSER_ERROR.sub(r"\1", head).partition(_CANDIDATES)[0].rstrip().split("\n"))
    if _COLUMN.search(message):
        remedy = _near_column(message, tables) or engine.unknown_column_remedy
        return ColumnNotFoundError(message, remedy=remedy, engine=engine.name)
    name = missing_table(message)
    if name is not None:
        if name.endswith(".lance"):
            remedy = "Write paths in single quotes, as in FROM 'path/to/sales.lance'"
            return TableNotFoundError(name, remedy=remedy, engine=engine.name)
        return TableNotFoundError(
            name,
            remedy="Name a dataset by its path, FROM 'path/to/sales.lance', or register it",
            engine=engine.name,
        )
    refused = SqlError(message, engine=engine.name)
    refused.pointer = "".join(pointer)
    return refused


def _message(error: Exception) -> str:
    """The engine's message. Python cannot decode one that quotes a value that is not UTF-8, or drops it."""
    if isinstance(error, UnicodeDecodeError):
        return bytes(error.object).decode(errors="replace")
    lost = f"{type(error).__name__} without a message, which perhaps quotes text that is not UTF-8"
    return str(error) or lost


def missing_table(message: str) -> str | None:
    """The name of the table that an engine did not find, according to its message; None for other errors."""
    missing = _TABLE.search(message)
    if missing is None:
        return None
    name = missing["duckdb"] or missing["datafusion"].removeprefix("datafusion.").removeprefix("public.")
    return str(name).strip('"')


def _near_column(message: str, tables: Iterable[EngineTable]) -> str | None:
    """The column most similar to the unknown one in `message`, if the engine suggests none."""
    named = _NAMED_COLUMN.search(message)
    if named is None or "Candidate bindings" in message or "Did you mean" in message:
        return None
    known = sorted({name for table in tables for name in table.schema.names})
    near = nearest_name(named[1], known)
    return f"Did you mean {near!r}?" if near else None


def point(error: SqlError, statement: str) -> None:
    """Add the position in `statement` from the message of `error`, as in DataFusion's errors.

    Positions in generated statements are left out, because the author did not write them, and those in
    statements with credentials.
    """
    if _CREDENTIALS.search(statement):
        error.pointer = ""
        for text in filter(None, _STRING.findall(statement)):
            error.message = re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", "...", error.message)
        return
    if error.pointer:
        shown = error.pointer.split("\n")[0].partition(": ")[2].strip()
        if shown.removeprefix("...").removesuffix("...") not in statement:
            error.pointer = ""
        return
    if error.message.endswith(_AT_THE_END) and statement.strip():
        lines = statement.rstrip().splitlines()
        head = f"LINE {len(lines)}: "
        error.pointer = f"{head}{lines[-1]}\n{' ' * (len(head) + len(lines[-1]))}^"
        return
    place = _PLACE.search(error.message)
    if place is None:
        return
    line, column = int(place[1]), int(place[2])
    lines = statement.splitlines()
    if 0 < line <= len(lines):
        head = f"LINE {line}: "
        error.pointer = f"{head}{lines[line - 1]}\n{' ' * (len(head) + column - 1)}^"
        error.message = _PLACE.sub("", error.message)
