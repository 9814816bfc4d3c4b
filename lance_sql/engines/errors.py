"""Engine errors as ours: the same classes and remedies whichever engine ran the statement."""

from __future__ import annotations

import re
from collections.abc import Iterable

from lance_engine.errors import ColumnNotFoundError, DatasetNotFoundError, LanceError

from lance_sql.engines.table import EngineTable
from lance_sql.errors import SqlError

#: The engines' own class names in front of their messages.
_PREFIX = re.compile(r"^(?:(?:Binder|Catalog|Parser|Schema|SQL) [Ee]rror|Error during planning): ")

_COLUMN = re.compile(
    r"Referenced (?:table )?column .+? (?:was )?not found|No field named |does not have a column named"
)
_TABLE = re.compile(r"Table with name (?P<duckdb>.+?) does not exist|table '(?P<datafusion>.+?)' not found")

#: What DuckDB puts behind a message: the line of the statement, and a mark below the place.
_POINTER = re.compile(r"\s*^(?=LINE \d+: )", re.MULTILINE)
#: DataFusion's wrapping of messages of its parser, and how these tell the place.
_PARSER_ERROR = re.compile(r'^ParserError\("(.*)"\)$', re.DOTALL)
_PLACE = re.compile(r" at Line: (\d+), Column: (\d+)")

_COLUMN_REMEDY = {
    "duckdb": "Column names: DESCRIBE the_table, or lance-sql inspect PATH",
    "datafusion": 'Unquoted names are read in lower case: quote others, as in "Name"',
}


def translated(error: Exception, engine: str, tables: Iterable[EngineTable] = ()) -> LanceError:
    """Our error for one that `engine` raised, which may have begun as ours in a scan of one of `tables`."""
    if isinstance(error, LanceError):
        return error
    for table in tables:
        if table.failure is not None:
            failure, table.failure = table.failure, None
            return failure
    head, *pointer = _POINTER.split(_PREFIX.sub("", str(error).strip()), maxsplit=1)
    message = " ".join(_PARSER_ERROR.sub(r"\1", head).split("\n"))
    if _COLUMN.search(message):
        return ColumnNotFoundError(message, remedy=_COLUMN_REMEDY[engine], engine=engine)
    missing = _TABLE.search(message)
    if missing is not None:
        name = missing["duckdb"] or missing["datafusion"].removeprefix("datafusion.public.")
        return DatasetNotFoundError(
            f"there is no table {name!r}",
            remedy="Name a dataset by its path, FROM 'path/to/sales.lance', or register it",
            engine=engine,
        )
    failure = SqlError(message, engine=engine)
    failure.pointer = "".join(pointer)
    return failure


def point(error: SqlError, statement: str) -> None:
    """Let `error` show the place in `statement` that its message tells, as DataFusion's do."""
    place = _PLACE.search(error.message)
    if place is None or error.pointer:
        return
    line, column = int(place[1]), int(place[2])
    lines = statement.splitlines()
    if 0 < line <= len(lines):
        head = f"LINE {line}: "
        error.pointer = f"{head}{lines[line - 1]}\n{' ' * (len(head) + column - 1)}^"
        error.message = _PLACE.sub("", error.message)
