"""INSERT INTO and COPY: insert the rows of a query into a dataset, and copy datasets to files."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.write.dataset import write_dataset

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.engines.base import Parameters
from lance_sql.statements.clauses import refuse_unsupported_clauses
from lance_sql.statements.defaults import default_of
from lance_sql.statements.fitting import default_row, fitted_query
from lance_sql.statements.outcome import Counter, check_returning, counted, returned
from lance_sql.statements.session import Session
from lance_sql.statements.targets import find, name_of
from lance_sql.statements.transactions import refuse_in_transaction
from lance_sql.statements.writing import remedy_if_exists, write_options, write_query
from lance_sql.types.duckdb_names import duckdb_types

if TYPE_CHECKING:
    from sqlglot import exp


def insert(session: Session, statement: exp.Insert, params: Parameters) -> pa.Table | None:
    """``INSERT INTO t [(columns)] [BY NAME] VALUES ... | query [RETURNING ...]``."""
    from sqlglot import exp

    table = statement.this.this if isinstance(statement.this, exp.Schema) else statement.this
    dataset = find(session.catalog, table)
    if dataset is None:
        return None
    refuse_unsupported_clauses(statement)
    for clause in ("conflict", "alternative", "overwrite"):
        if statement.args.get(clause):
            raise UnsupportedFeatureError(
                "Datasets have no unique keys, so ON CONFLICT is not supported",
                remedy="Use MERGE INTO or CREATE OR REPLACE TABLE",
            )
    returning = statement.args.get("returning")
    check_returning(session, returning, dataset.storage_schema.empty_table(), name_of(table))
    columns = [part.name for part in statement.this.expressions] if table is not statement.this else None
    schema = dataset.storage_schema
    if statement.args.get("default"):
        rows = default_row(session, schema)
    else:
        values = statement.expression if isinstance(statement.expression, exp.Values) else None
        query = _query(statement, schema, columns)
        with session.catalog.without_reads() if _is_constant(session, values) else nullcontext():
            rows = fitted_query(
                session if values is None else session.computing(),
                query,
                schema,
                columns,
                by_name=bool(statement.args.get("by_name")),
                params=params,
                width=None if values is None else len(values.expressions[0].expressions),
            )
    counter = Counter(keep=returning is not None)
    append(session, dataset, counter.through(rows))
    if returning is None:
        return counted(counter.rows)
    table_rows = pa.Table.from_batches(counter.batches, schema=schema)
    return returned(session, returning, table_rows, name_of(table))


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
    if isinstance(query, exp.Values):
        _fit_values(query, schema, columns or schema.names)
    before = statement.args.get("with_")
    if before is not None:
        query = query.copy()
        query.set("with_", before.copy())
    return str(query.sql(dialect="duckdb", normalize_functions="lower", copy=False))


def _fit_values(values: exp.Values, schema: pa.Schema, names: Sequence[str]) -> None:
    """Replace DEFAULT by default values, and cast each value separately: a row may contain it as text."""
    from sqlglot import exp, parse_one

    known = {name.lower(): field for name, field in zip(schema.names, schema, strict=True)}
    fields = [known.get(name.lower()) for name in names]
    kinds = dict(zip(schema.names, map(_data_type, duckdb_types(schema)), strict=True))
    for row in values.expressions:
        for field, value in zip(fields, row.expressions, strict=False):
            if field is None:
                continue
            cast = exp.Cast(to=kinds[field.name].copy())
            value.replace(cast)
            if isinstance(value, exp.Var) and value.name.upper() == "DEFAULT":
                value = parse_one(default_of(field) or "NULL", dialect="duckdb")
            cast.set("this", value)


@functools.lru_cache(maxsize=1024)
def _data_type(kind: str) -> exp.DataType:
    from sqlglot import exp

    return exp.DataType.build(kind, dialect="duckdb")


def copy(session: Session, statement: exp.Copy, params: Parameters) -> pa.Table | None:
    """``COPY query | t TO 'x.lance' (FORMAT lance, MODE ...)`` and ``COPY t FROM 'file' (...)``."""
    from sqlglot import exp

    options = {
        parameter.this.name.lower(): parameter.expression for parameter in statement.args.get("params") or ()
    }
    path = statement.args["files"][0].name
    source = statement.this
    if statement.args.get("kind"):
        return _copy_from(session, statement, path, options)
    kind = options.pop("format", None)
    if (kind.name.lower() if kind is not None else path.rpartition(".")[2]) != "lance":
        if session.capabilities.computes_statements:
            return None
        return session.computing().select(statement.sql(dialect="duckdb"), params).arrow()
    refuse_in_transaction(session, "COPY TO a dataset")
    refuse_unsupported_clauses(statement)
    mode = options.pop("mode", None)
    query = source.this if isinstance(source, exp.Subquery) else exp.select("*").from_(source)
    if query.find(exp.Placeholder) is None:
        params = None
    with remedy_if_exists("Write MODE append or MODE overwrite"):
        return write_query(
            session,
            query.sql(dialect="duckdb", normalize_functions="lower"),
            path,
            mode.name.lower() if mode is not None else "create",
            params,
            write_options(options),
        )


def _copy_from(
    session: Session, statement: exp.Copy, path: str, options: dict[str, exp.Expression]
) -> pa.Table | None:
    from sqlglot import exp

    target = statement.this
    table = target.this if isinstance(target, exp.Schema) else target
    dataset = find(session.catalog, table)
    if dataset is None:
        return None
    refuse_unsupported_clauses(statement)
    columns = [part.name for part in target.expressions] if table is not target else None
    query = _file_query(path, options)
    counter = Counter()
    rows = fitted_query(session.computing(), query, dataset.storage_schema, columns)
    append(session, dataset, counter.through(rows))
    return counted(counter.rows)


def _file_query(path: str, options: dict[str, Any]) -> str:
    kind = options.pop("format", None)
    name = kind.name.lower() if kind is not None else path.rpartition(".")[2].lower()
    readers = {"parquet": "read_parquet", "json": "read_json", "ndjson": "read_json", "csv": "read_csv"}
    # An option without a value, such as HEADER, is enabled.
    arguments = "".join(
        f", {option} = {'true' if value is None else value.sql(dialect='duckdb')}"
        for option, value in options.items()
    )
    quoted = "'" + path.replace("'", "''") + "'"
    if name == "lance":
        return f"SELECT * FROM {quoted}"
    return f"SELECT * FROM {readers.get(name, 'read_csv')}({quoted}{arguments})"
