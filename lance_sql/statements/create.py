"""CREATE TABLE, DROP TABLE and TRUNCATE."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.operations import with_constraints

from lance_sql.catalog.transaction import Mode
from lance_sql.engines.base import Parameters
from lance_sql.errors import SqlError, TableNotFoundError
from lance_sql.statements.changes import any_row
from lance_sql.statements.clauses import refuse_unsupported_clauses
from lance_sql.statements.constraints import declared_constraints
from lance_sql.statements.outcome import counted, done
from lance_sql.statements.refusals import generated_columns, refuse_definitions, refuse_taken_name
from lance_sql.statements.session import Session
from lance_sql.statements.targets import dotted, find, kind_in_engine, location
from lance_sql.statements.types import declared_schema
from lance_sql.statements.writing import remedy_if_exists, write_options, write_query, write_rows
from lance_sql.syntax.source import as_written
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import quote

if TYPE_CHECKING:
    from sqlglot import exp


def create_table(session: Session, statement: exp.Create, params: Parameters) -> pa.Table | None:
    """``CREATE [OR REPLACE] TABLE [IF NOT EXISTS] t (columns) | AS query``, with ``WITH (options)``."""
    from sqlglot import exp

    declared = isinstance(statement.this, exp.Schema)
    table = statement.this.this if declared else statement.this
    properties = statement.args.get("properties")
    given = properties.expressions if properties is not None else []
    if any(isinstance(one, exp.TemporaryProperty) for one in given):
        refuse_taken_name(session, table, "temporary table")
        return None
    place = location(session.catalog, table)
    if place is None:
        if session.catalog.directory is not None and "/" in table.name:
            raise SqlError(
                f"{table.name!r} is a path, not the name of a table",
                remedy=f"Write the path of a dataset, CREATE TABLE '{table.name}.lance'",
            )
        return None
    refuse_unsupported_clauses(statement)
    refuse_definitions(statement)
    query = statement.expression
    kind = kind_in_engine(session, table)
    if kind is not None:
        # DuckDB would create the table in addition to a temporary one, which hides it.
        if statement.args.get("exists") and not kind.startswith("temporary"):
            return done()
        raise SqlError(
            f"{table.name} is a {kind} of the SQL engine, and a dataset with the same name would hide it",
            remedy=f"Choose another name, or drop that {kind} first",
        )
    if statement.args.get("exists") and find(session.catalog, table, must_exist=False) is not None:
        return done()
    without_data = any(isinstance(one, exp.WithDataProperty) and one.args.get("no") for one in given)
    given = [one for one in given if not isinstance(one, exp.WithDataProperty)]
    other = next((one for one in given if type(one) is not exp.Property), None)
    if other is not None:
        raise UnsupportedFeatureError(
            f"CREATE TABLE of a dataset does not support {other.sql(dialect='duckdb') or other.key.upper()}",
            remedy="Remove that part of the statement",
        )
    options = write_options({one.name: one.args.get("value") for one in given})
    mode: Mode = "overwrite" if statement.args.get("replace") else "create"
    with remedy_if_exists("Write CREATE OR REPLACE TABLE, CREATE TABLE IF NOT EXISTS or INSERT INTO"):
        if query is not None:
            text = as_written(query)
            if declared:
                text = _named(text, statement.this.expressions)
            if without_data:
                text = f"SELECT * FROM ({text}) AS q LIMIT 0"
            return write_query(session, text, place, mode, params, options)
        parts = statement.this.expressions
        columns = declared_schema(session, ", ".join(map(as_written, parts)))
        columns = with_constraints(columns, declared_constraints(parts, columns))
        write_rows(session, columns.empty_table(), place, mode, options)
    return done()


def refuse_unparsed(session: Session, statement: Statement) -> None:
    """Refuse statements that only the engine understands: it would create its own table, not a dataset.

    If the engine does not understand them either, its error message is better.
    """
    if session.catalog.directory is None:
        return
    import duckdb

    try:
        duckdb.extract_statements(statement.original)
    except duckdb.Error as error:
        if "generated column" in str(error):  # STORED, which its parser refuses
            raise generated_columns() from None
        return
    words = {token.upper for token in statement.tokens}
    if "VIRTUAL" in words and not words.isdisjoint(("GENERATED", "AS")):
        raise generated_columns()
    raise UnsupportedFeatureError(
        f"Unsupported CREATE TABLE: {statement.original.strip()}",
        remedy="Write CREATE TABLE t (column type, ...) or CREATE TABLE t AS SELECT ... FROM (query)",
    )


def _named(query: str, columns: list[exp.Expression]) -> str:
    """``CREATE TABLE t (a, b) AS query``: the query with names for its columns."""
    from sqlglot import exp

    if not all(isinstance(column, exp.Identifier) for column in columns):
        raise SqlError(
            "The columns of CREATE TABLE ... AS have no types of their own", remedy="Cast them in the query"
        )
    names = [column.name.lower() for column in columns]
    repeated = next((column.name for column in columns if names.count(column.name.lower()) > 1), None)
    if repeated is not None:
        raise SqlError(f"The column {repeated} is named twice", remedy="Choose another name for one of them")
    return f"SELECT * FROM ({query}) AS q({', '.join(quote(column.name) for column in columns)})"


def drop_table(session: Session, statement: exp.Drop) -> pa.Table | None:
    """``DROP TABLE [IF EXISTS] t, ...``: the datasets with all their versions."""
    must_exist = not statement.args.get("exists")
    datasets = [find(session.catalog, table, must_exist=must_exist) for table in statement.args["tables"]]
    dropped = [dataset for dataset in datasets if dataset is not None]
    if not dropped:
        return None  # a table of the engine, or an unknown one
    refuse_unsupported_clauses(statement)
    for table, dataset in zip(statement.args["tables"], datasets, strict=True):
        if dataset is None and (must_exist or kind_in_engine(session, table)):
            raise TableNotFoundError(
                table.name,
                remedy="Nothing was dropped. Use separate statements to drop tables of the SQL engine",
            )
    for table, dataset in zip(statement.args["tables"], datasets, strict=True):
        if dataset is not None:
            session.catalog.require_removable(dataset, dotted(table))
    for table, dataset in zip(statement.args["tables"], datasets, strict=True):
        if dataset is not None:
            session.catalog.drop(dataset, dotted(table))
    return done()


def truncate(session: Session, statement: exp.TruncateTable) -> pa.Table | None:
    """``TRUNCATE [TABLE] t``."""
    dataset = find(session.catalog, statement.expressions[0])
    if dataset is None:
        return None
    refuse_unsupported_clauses(statement)
    rows = dataset.count_rows()
    session.catalog.looked_for(dataset, any_row)
    session.catalog.renew(dataset.truncate())
    return counted(rows)
