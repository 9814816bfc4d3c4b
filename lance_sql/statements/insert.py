"""INSERT INTO: insert the rows of a query into a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from itertools import zip_longest
from typing import TYPE_CHECKING

import pyarrow as pa
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.write import write_dataset

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.catalog.defaults import default_of
from lance_sql.engines.base import Parameters
from lance_sql.statements.clauses import refuse_unsupported_clauses
from lance_sql.statements.fitting import default_row, fitted_query
from lance_sql.statements.outcome import Counter, check_returning, counted, returned
from lance_sql.statements.session import Rows, Session
from lance_sql.statements.targets import call_by_name, find, name_of
from lance_sql.statements.upsert import conflict_of, insert_or, replaces, used_parameters
from lance_sql.statements.writing import with_columns_of
from lance_sql.syntax.source import as_written
from lance_sql.types.casts import stored_value
from lance_sql.types.declared import has_wide_decimals
from lance_sql.types.duckdb_names import duckdb_types

if TYPE_CHECKING:
    from sqlglot import exp


def insert(
    session: Session, statement: exp.Insert, params: Parameters, *, prepares: bool = False
) -> pa.Table | Rows | None:
    """``INSERT INTO t [(columns)] [BY NAME] VALUES ... | query [RETURNING ...]``.

    With `prepares`, the statement is only checked.
    """
    from sqlglot import exp

    table = statement.this.this if isinstance(statement.this, exp.Schema) else statement.this
    dataset = find(session.catalog, table)
    if dataset is None:
        return None
    refuse_unsupported_clauses(statement)
    if statement.args.get("overwrite"):
        raise UnsupportedFeatureError(
            "INSERT OVERWRITE is not supported", remedy="Use CREATE OR REPLACE TABLE t AS, or TRUNCATE t"
        )
    returning = statement.args.get("returning")
    check_returning(session, returning, dataset.storage_schema.empty_table(), name_of(table))
    columns = [part.name for part in statement.this.expressions] if table is not statement.this else None
    schema = dataset.storage_schema
    call_by_name(statement, table)
    query = "" if statement.args.get("default") else _query(statement, schema, columns)
    inserted = columns
    if replaces(statement) and statement.args.get("by_name"):
        inserted = session.computing().select(f"SELECT * FROM ({query}) AS q LIMIT 0", params).columns
    conflict = conflict_of(statement, table, dataset, inserted)

    def answer(batches: list[pa.RecordBatch]) -> Rows:
        assert returning is not None
        return returned(session, returning, pa.Table.from_batches(batches, schema=schema), name_of(table))

    counter = Counter(None if returning is None else answer)
    with ExitStack() as computing:
        if statement.args.get("default"):
            rows = default_row(session, schema)
        else:
            values = statement.expression if isinstance(statement.expression, exp.Values) else None
            with session.catalog.without_reads() if _is_constant(session, values) else nullcontext():
                fitted = fitted_query(
                    session if values is None else session.computing(),
                    query,
                    schema,
                    columns,
                    by_name=bool(statement.args.get("by_name")),
                    params=params if conflict is None else used_parameters(params, query),
                    width=None if values is None else len(values.expressions[0].expressions),
                )
                rows = computing.enter_context(fitted)
        if prepares:
            return None
        if conflict is not None:
            new = rows.read_all()
            return insert_or(session, dataset, name_of(table), new, conflict, returning, params)
        append(session, dataset, counter.through(rows))
    return counted(counter.rows) if counter.returned is None else counter.returned


def _is_constant(session: Session, values: exp.Values | None) -> bool:
    """Whether an open transaction can ignore what VALUES read: no table, and no view or macro of any name."""
    from sqlglot import exp

    if values is None or session.catalog.transaction is None:
        return False
    constants = {
        exp.Boolean, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Literal, exp.Neg, exp.Null, exp.Parameter,
        exp.Paren, exp.Placeholder, exp.Tuple, exp.Values,
    }  # fmt: skip
    return all(type(node) in constants for node in values.walk())


def append(session: Session, dataset: SqlDataset, rows: pa.RecordBatchReader) -> None:
    """Append rows as one version."""
    snapshot = dataset.snapshot
    with with_columns_of(dataset):
        written = write_dataset(rows, snapshot.store, "append", storage_options=snapshot.storage_options)
    session.catalog.renew(type(dataset)(written))


def _query(statement: exp.Insert, schema: pa.Schema, columns: list[str] | None) -> str:
    """The text of the rows to insert, including a WITH clause before INSERT."""
    from sqlglot import exp

    query = statement.expression
    if query is None:
        raise UnsupportedFeatureError(
            "Unsupported form of INSERT", remedy="Write INSERT INTO t SELECT ..., or VALUES"
        )
    before = statement.args.get("with_")
    if isinstance(query, exp.Values):
        written = _values(query, schema, columns or schema.names)
    else:
        written = as_written(query)
    return written if before is None else f"{as_written(before)} {written}"


def _values(values: exp.Values, schema: pa.Schema, names: Sequence[str]) -> str:
    """VALUES with default values, and with each value cast separately: a row may contain it as text."""
    from sqlglot import exp

    known = {name.lower(): field for name, field in zip(schema.names, schema, strict=True)}
    fields = [known.get(name.lower()) for name in names]
    kinds = dict(zip(schema.names, duckdb_types(schema), strict=True))

    def text(value: exp.Expression, field: pa.Field | None) -> str:
        if field is not None and isinstance(value, exp.Var) and value.name.upper() == "DEFAULT":
            written = default_of(field) or "NULL"
        else:
            written = as_written(value)
        if field is not None and has_wide_decimals(field.type):
            return stored_value(written, field)
        return written if field is None else f"CAST({written} AS {kinds[field.name]})"

    rows = [
        ", ".join(
            text(value, field)
            for value, field in zip_longest(row.expressions, fields[: len(row.expressions)])
        )
        for row in values.expressions
    ]
    return f"VALUES {', '.join(f'({row})' for row in rows)}"
