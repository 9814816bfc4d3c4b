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
    message = _PREFIX.sub("", str(error).strip())
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
    return SqlError(message, engine=engine)
