"""Converts engine errors to ours: the same classes and remedies for all engines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lance_engine.base import nearest_name
from lance_engine.errors import ColumnNotFoundError, LanceError

from lance_sql.engines.capabilities import Capabilities
from lance_sql.engines.messages import Messages
from lance_sql.errors import THE_END, SqlError, TableNotFoundError

if TYPE_CHECKING:
    from lance_sql.engines.table import EngineTable

_ROWID = re.compile(r"[\"' .]rowid\b", re.IGNORECASE)
_ROW_ID_REMEDY = "Datasets have _rowid (the id of a row, which take() accepts) and _rowaddr (its place)"
_CREDENTIALS = re.compile(r"\bcreate\b[\w\s]*\bsecret\b", re.IGNORECASE)
_EXTENSION = re.compile(r"exists in the (\w+) extension")
_STRING = re.compile(r"'((?:[^']|'')+)'?")


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
    said, text = engine.messages, _message(error).strip()
    if said.null_operand.search(text):
        return SqlError(
            "This version of DataFusion cannot combine a comparison with NULL, which is never true, with "
            "other conditions",
            remedy="Leave out the comparison, or write IS NULL",
            engine=engine.name,
        )
    if said.closed.search(text):
        return LanceError(
            "The connection was closed before the rows were read",
            remedy="Read them first, for example with result.arrow()",
        )
    failed = said.failed.search(text)
    if failed is not None:
        return SqlError(
            "DuckDB failed because of an error in itself, and runs no more statements: "
            + failed["error"].strip('"'),
            remedy="Close the session and connect again: datasets are as their last commit left them",
            engine=engine.name,
        )
    head, *pointer = said.pointer.split(said.before.sub("", text), maxsplit=1)
    message = " ".join(said.after.split(said.wrapped.sub(r"\1", head), maxsplit=1)[0].rstrip().split("\n"))
    if said.unknown_column.search(message):
        remedy = _ROW_ID_REMEDY if _ROWID.search(message) else _near_column(message, said, tables)
        remedy = remedy or engine.unknown_column_remedy
        return ColumnNotFoundError(message, remedy=remedy, engine=engine.name)
    name = said.missing_table(message)
    if name is not None:
        if name.endswith(".lance"):
            remedy = "Write paths in single quotes, as in FROM 'path/to/sales.lance'"
            return TableNotFoundError(name, remedy=remedy, engine=engine.name)
        return TableNotFoundError(
            name,
            remedy="Name a dataset by its path, FROM 'path/to/sales.lance', or register it",
            engine=engine.name,
        )
    missing = _EXTENSION.search(message)
    remedy = f"INSTALL {missing[1]}; LOAD {missing[1]};" if missing else ""
    refused = SqlError(message, remedy=remedy, engine=engine.name)
    refused.pointer = "".join(pointer)
    place = said.place.search(message)
    if place is not None:
        refused.position = int(place[1]), int(place[2])
        refused.message = said.place.sub("", message)
    elif said.at_the_end.search(message):
        refused.position = THE_END
    unexpected = said.unexpected.search(refused.message)
    refused.unexpected = unexpected[1] if unexpected else ""
    return refused


def _message(error: Exception) -> str:
    """The engine's message. Python cannot decode one that quotes a value that is not UTF-8, or drops it."""
    if isinstance(error, UnicodeDecodeError):
        return bytes(error.object).decode(errors="replace")
    lost = f"{type(error).__name__} without a message, which perhaps quotes text that is not UTF-8"
    return str(error) or lost


def _near_column(message: str, said: Messages, tables: Iterable[EngineTable]) -> str | None:
    """The column most similar to the unknown one in `message`, if the engine suggests none."""
    named = said.named_column.search(message)
    if named is None or any(words in message for words in said.suggests):
        return None
    known = sorted({name for table in tables for name in table.schema.names})
    near = nearest_name(named[1], known)
    return f"Did you mean {near!r}?" if near else None


def point(error: SqlError, statement: str) -> None:
    """Add the position of `error` in `statement`, for engines that report it as a line and a column.

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
    lines = statement.splitlines()
    line, column = error.position or (0, 0)
    if error.position == THE_END and statement.strip():
        lines = statement.rstrip().splitlines()
        line, column = len(lines), len(lines[-1]) + 1
    if 0 < line <= len(lines):
        head = f"LINE {line}: "
        error.pointer = f"{head}{lines[line - 1]}\n{' ' * (len(head) + column - 1)}^"
