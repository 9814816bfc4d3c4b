"""Functions of DuckDB, called with arrays of strings.

They run in a database of their own: the threads of a scan call them while the session runs the statement.
"""

from __future__ import annotations

from functools import lru_cache

import duckdb
import pyarrow as pa
from lance_engine.errors import LanceError

from lance_sql.catalog.row_numbers import by_number, number_name, numbers
from lance_sql.engines.base import EntryFunction
from lance_sql.text.entry_calls import STRING

#: Connections that no thread uses; a thread of a scan may be another one for Python each time.
_idle: list[duckdb.DuckDBPyConnection] = []
_ROW = number_name([STRING[1:-1]])
#: What a function is tried with before it is used.
_SAMPLES = ["", "a", "A longer text, \u00e4", "1"]


@lru_cache(maxsize=256)
def entry_function(call: str) -> EntryFunction | None:
    """A call of a function, with `STRING` for its argument; None if it is not a function of one string."""

    def run(strings: pa.Array) -> pa.Array:
        return _values(call, strings)

    try:
        found = run(pa.array([*_SAMPLES, None], pa.string()))
    except (duckdb.Error, LanceError):
        return None
    if found.null_count != 1 or found[-1].is_valid:
        return None
    return EntryFunction(run, found.type)


def _values(call: str, strings: pa.Array) -> pa.Array:
    try:
        connection = _idle.pop()
    except IndexError:
        connection = _database().cursor()
    try:
        table = pa.table({STRING[1:-1]: strings, _ROW: numbers(len(strings))})
        found = connection.from_arrow(table).project(f"{call}, {_ROW}").to_arrow_table()
    finally:
        _idle.append(connection)
    values = by_number(found.column(0), found.column(1), len(strings))
    if values is None:
        raise LanceError(f"{call} does not return one value per string")
    return values


@lru_cache(maxsize=1)
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})
