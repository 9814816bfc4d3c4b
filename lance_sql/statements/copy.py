"""COPY: copies files into datasets, and datasets and queries to files."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

import pyarrow as pa
from lance_engine.errors import LanceError

from lance_sql.engines.base import Parameters
from lance_sql.statements.clauses import refuse_unsupported_clauses
from lance_sql.statements.fitting import column_name, fitted_query
from lance_sql.statements.insert import append
from lance_sql.statements.outcome import Counter, counted
from lance_sql.statements.session import Session
from lance_sql.statements.targets import find
from lance_sql.statements.writing import remedy_if_exists, write_options, write_query
from lance_sql.syntax.source import as_written
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import quote
from lance_sql.types.duckdb_names import duckdb_types

if TYPE_CHECKING:
    from sqlglot import exp

#: Numbers the names of temporary tables: several threads may use them at once.
_copied = itertools.count()


def copy(session: Session, statement: exp.Copy, written: Statement, params: Parameters) -> pa.Table | None:
    """``COPY query | t TO 'x.lance' (FORMAT lance, MODE ...)`` and ``COPY t FROM 'file' (...)``.

    `written` is the statement as the user wrote it.
    """
    from sqlglot import exp

    options = {
        parameter.this.name.lower(): parameter.expression for parameter in statement.args.get("params") or ()
    }
    path = statement.args["files"][0].name
    source = statement.this
    if statement.args.get("kind"):
        return _copy_from(session, statement, written, params)
    options.pop("format", None)
    if _format(statement, path) != "lance":
        if session.capabilities.computes_statements:
            return None
        return session.computing().select(written.original, params).arrow()
    refuse_unsupported_clauses(statement)
    mode = options.pop("mode", None)
    if source.find(exp.Placeholder, exp.Parameter) is None:
        params = None
    is_query = isinstance(source, exp.Subquery)
    query = as_written(source.this) if is_query else f"SELECT * FROM {as_written(source)}"
    with remedy_if_exists("Write MODE append or MODE overwrite"):
        return write_query(
            session,
            query,
            path,
            mode.name.lower() if mode is not None else "create",
            params,
            write_options(options),
        )


def _copy_from(
    session: Session, statement: exp.Copy, written: Statement, params: Parameters
) -> pa.Table | None:
    from sqlglot import exp

    target = statement.this
    table = target.this if isinstance(target, exp.Schema) else target
    dataset = find(session.catalog, table)
    if dataset is None:
        return None
    refuse_unsupported_clauses(statement)
    schema = dataset.storage_schema
    columns = [column_name(schema, part.name) for part in target.expressions] if table is not target else None
    computing = session.computing()
    counter = Counter()
    path = statement.args["files"][0].name
    if _format(statement, path) == "lance":
        query = "SELECT * FROM '{}'".format(path.replace("'", "''"))
        source: AbstractContextManager[str] = nullcontext(query)
    else:
        source = _copied_rows(computing, written, schema, columns, params)
    with source as query, fitted_query(computing, query, schema, columns) as rows:
        append(session, dataset, counter.through(rows))
    return counted(counter.rows)


@contextmanager
def _copied_rows(
    computing: Session,
    written: Statement,
    schema: pa.Schema,
    columns: Sequence[str] | None,
    params: Parameters,
) -> Iterator[str]:
    """A query for the rows that DuckDB copies into a table with these columns.

    Only its own COPY detects headers and types as users know it. Its table is temporary, and larger ones are
    in a temporary file.
    """
    wanted = pa.schema([schema.field(name) for name in columns]) if columns is not None else schema
    name = f"lance_sql_copied_{next(_copied)}"
    declared = zip(wanted.names, duckdb_types(wanted), strict=True)
    definitions = ", ".join(f"{quote(column)} {kind}" for column, kind in declared)
    start = next(token.start for token in written.tokens if token.text == "(" or token.upper == "FROM")
    computing.select(f"CREATE TEMPORARY TABLE {name} ({definitions})").arrow()
    try:
        computing.select(f"COPY {name} {written.original[start:]}", params).arrow()
        yield f"SELECT * FROM {name}"
    finally:
        # An error may have ended the transaction, and the table with it.
        with suppress(LanceError):
            computing.select(f"DROP TABLE IF EXISTS {name}").arrow()


def _format(statement: exp.Copy, path: str) -> str:
    """The format that COPY names, or else the end of the path."""
    for parameter in statement.args.get("params") or ():
        if parameter.this.name.lower() == "format":
            return str(parameter.expression.name).lower()
    return path.rpartition(".")[2].lower()
