"""Python variables as tables of a statement, if no table has the name."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from lance_engine.errors import UnsupportedFeatureError

from lance_sql.engines.base import Parameters
from lance_sql.errors import TableNotFoundError
from lance_sql.session import session_cache
from lance_sql.session.lost_tables import refuse_lost
from lance_sql.session.result import QueryResult
from lance_sql.session.sql_session import SqlSession
from lance_sql.text.kinds import Does, changed_name, contains_change
from lance_sql.text.script import statements
from lance_sql.text.statement import Statement

if TYPE_CHECKING:
    from lance_engine.base import ProgressOption

#: The value of a variable, None without one.
Lookup: TypeAlias = Callable[[str], Any]

#: How to keep a table.
_KEPT = "Use lance_sql.connect(), or write the path of a dataset: CREATE TABLE 'name.lance' AS ..."


def in_scope(frame: FrameType) -> Lookup:
    """Looks variables up as `frame` would."""
    return lambda name: frame.f_locals.get(name, frame.f_globals.get(name))


def run(
    session: SqlSession, text: str, params: Parameters, variable: Lookup, progress: ProgressOption = None
) -> QueryResult:
    """Run the statements of `text` as `execute` does, and return the result of the last."""
    if not session.catalog.restrictions().enable_external_access:  # for statements of somebody else
        return session.sql(text, params, progress=progress)
    *before, last = statements(text)
    for statement in before:
        for _ in execute(session, statement, None, variable, progress):
            pass  # a query may fail, or call a function that changes something
    return execute(session, last, params, variable, progress)


def execute(
    session: SqlSession,
    statement: Statement,
    params: Parameters,
    variable: Lookup,
    progress: ProgressOption = None,
) -> QueryResult:
    """Run `statement`; a table that is not found may be a variable, for this statement.

    Datasets in variables are read-only: statements that change datasets refer to them by path.
    """
    session.forget_variables()
    registered: set[str] = set()
    while True:
        try:
            return session.execute(statement, params, progress=progress)
        except TableNotFoundError as error:
            name = error.name
            value = None if name in registered else _table(variable(name))
            if value is None:
                raise
            if name == _changed_name(statement):
                raise UnsupportedFeatureError(
                    f"{name} is a Python variable, which statements cannot change",
                    remedy="Name the dataset by its path, as in INSERT INTO 'sales.lance'",
                ) from None
            registered.add(name)
            session.register_variable(name, value if _only_reads(statement) else _read_only(value, name))


def _changed_name(statement: Statement) -> str | None:
    """The name of the table that a statement changes, alters or drops."""
    tokens = statement.tokens
    words = [token.upper for token in tokens]
    if words[:1] != ["CREATE"]:
        place = changed_name(tokens)
    else:  # of an index; a new table may have the name of a variable
        place = words.index("ON") + 1 if "INDEX" in words[:3] and "ON" in words else len(tokens)
    return tokens[place].value if statement.does & Does.CHANGES and place < len(tokens) else None


def execute_last(
    session: SqlSession, statement: Statement, params: Parameters, variable: Lookup
) -> QueryResult:
    """As `execute`, in a session that ends with `statement`."""
    result = execute(session, statement, params, variable)
    refuse_lost(session, statement, _KEPT)
    return result


def execute_apart(statement: Statement, params: Parameters, frame: FrameType) -> QueryResult:
    """Run `statement` in DuckDB, in a session that no other call uses at the same time."""
    if not session_cache.leaves_nothing(statement):
        return execute_last(SqlSession(), statement, params, in_scope(frame))
    session = session_cache.take()
    try:
        result = session.execute(statement, params)
    except TableNotFoundError:  # sessions with variables are not cached
        return execute(SqlSession(), statement, params, in_scope(frame))
    session_cache.keep(session)
    return result


def _only_reads(statement: Statement) -> bool:
    return bool(statement.does & Does.READS) and not contains_change(statement.tokens)


def _read_only(value: Any, name: str) -> Any:
    from lance_sql.catalog.dataset import SqlDataset
    from lance_sql.engines.plain_dataset import PlainDataset
    from lance_sql.engines.table import EngineTable

    return PlainDataset(EngineTable(value, name)) if isinstance(value, SqlDataset) else value


def _table(value: Any) -> Any:
    """The value of a variable if it can be used as a table, otherwise None."""
    if value is None:
        return None
    import pyarrow.dataset as pads  # imports pandas, which is not needed if all tables are found

    from lance_sql.catalog.dataset import SqlDataset

    if isinstance(value, SqlDataset | pads.Dataset | pa.Table):
        return value
    kind: type = type(value)
    library = kind.__module__.partition(".")[0]
    if (library, kind.__name__) == ("pandas", "DataFrame"):
        return pa.Table.from_pandas(value, preserve_index=False)
    if (library, kind.__name__) == ("polars", "LazyFrame"):
        value = value.collect()
    if isinstance(value, pa.RecordBatch):
        return pa.Table.from_batches([value])
    exports = hasattr(value, "__arrow_c_stream__") and not isinstance(value, type)
    return pa.table(value) if exports else None
