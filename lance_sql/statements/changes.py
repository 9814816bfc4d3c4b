"""DELETE and UPDATE."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from lance_engine.arrow_compute import pc
from lance_engine.errors import InvalidFilterError, UnsupportedFeatureError
from lance_engine.expr.value_types import has_zone
from lance_engine.operations.change_rows import RowChanges, change_rows
from lance_engine.operations.retry import redo_on_conflict
from lance_engine.scan.system import ROW_ADDRESS, SYSTEM_FIELDS

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.display.amounts import counted as amount
from lance_sql.engines.base import Parameters
from lance_sql.errors import SqlError
from lance_sql.statements.clauses import refuse_unsupported_clauses
from lance_sql.statements.defaults import default_of
from lance_sql.statements.fitting import column_name, conformed
from lance_sql.statements.outcome import check_returning, counted, returned
from lance_sql.statements.session import LENT, Session
from lance_sql.statements.targets import call_by_name, find, name_of
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import quote
from lance_sql.types.duckdb_names import duckdb_types

if TYPE_CHECKING:
    from lance_engine.expr.tree import Node
    from sqlglot import exp


def delete(session: Session, statement: exp.Delete, params: Parameters) -> pa.Table | None:
    """``DELETE FROM t [USING ...] [WHERE ...] [RETURNING ...]``."""
    table = statement.this
    if not table:  # DELETE t WHERE ..., which the parser supports for other databases
        raise SqlError("DELETE needs FROM before the table name", remedy="Write DELETE FROM t WHERE ...")
    dataset = find(session.catalog, table)
    if dataset is None:
        return None
    refuse_unsupported_clauses(statement)
    call_by_name(statement, table)
    where, using = statement.args.get("where"), statement.args.get("using")
    returning = statement.args.get("returning")
    check_returning(session, returning, dataset.storage_schema.empty_table(), name_of(table))
    if where is None and not using:
        rows = dataset.scan().to_table() if returning is not None else None
        count = dataset.count_rows()
        session.catalog.looked_for(dataset, _any_row)
        session.catalog.renew(dataset.truncate())
        return counted(count) if rows is None else returned(session, returning, rows, name_of(table))
    if not using and returning is None and is_simple(where.this, dataset.storage_schema):
        before = dataset.count_rows()
        try:
            condition = own_filter(dataset, own_text(where.this, name_of(table)))
            changed = dataset.delete(condition)
        except InvalidFilterError:  # not supported by filters: DuckDB finds the rows
            pass
        else:
            session.catalog.looked_for(dataset, lambda part: part.count_rows(condition) > 0)
            session.catalog.renew(changed)
            return counted(before - changed.count_rows())
    columns = list(dataset.schema.names) if returning is not None else []
    found: dict[str, pa.Table] = {}

    def rows_of(target: SqlDataset) -> RowChanges:
        text = _select(statement, [quote(name_of(table)) + "." + quote(name) for name in columns], using)
        rows = _distinct(computed(session, target, text, params))
        found["rows"] = rows.drop_columns([ROW_ADDRESS])
        return RowChanges(addresses(rows), _NONE, ())

    session.catalog.renew(commit(session, dataset, rows_of))
    if returning is not None:
        return returned(session, returning, found["rows"], name_of(table))
    return counted(found["rows"].num_rows)


def update(session: Session, statement: exp.Update, params: Parameters) -> pa.Table | None:
    """``UPDATE t SET column = expression, ... [FROM ...] [WHERE ...] [RETURNING ...]``."""
    table = statement.this
    dataset = find(session.catalog, table)
    if dataset is None:
        return None
    refuse_unsupported_clauses(statement)
    call_by_name(statement, table)
    schema = dataset.storage_schema
    values = assignments(schema, statement.expressions, name_of(table))
    if not values:
        raise SqlError(
            "UPDATE SET needs at least one column", remedy="Write UPDATE t SET column = expression"
        )
    where, others = statement.args.get("where"), statement.args.get("from_")
    returning = statement.args.get("returning")
    check_returning(session, returning, schema.empty_table(), name_of(table))
    types = dict(zip(schema.names, duckdb_types(schema), strict=True))
    computed_by_row = [*values.values()] if where is None else [*values.values(), where.this]
    simple = all(is_simple(expression, schema) for expression in computed_by_row)
    # Filters interpret UUIDs as bytes, and times without a zone as UTC.
    odd = any(types[name] == "UUID" or has_zone(schema.field(name).type) for name in values)
    if others is None and returning is None and simple and not odd:
        try:
            return _update_in_place(session, dataset, values, where, name_of(table))
        except InvalidFilterError:  # not supported by filters: DuckDB computes the rows
            pass
    owner = quote(name_of(table))
    columns = [
        f"CAST({values[name].sql(dialect='duckdb')} AS {types[name]}) AS {quote(name)}"
        if name in values
        else f"{owner}.{quote(name)}"
        for name in schema.names
    ]
    found: dict[str, pa.Table] = {}

    def rows_of(target: SqlDataset) -> RowChanges:
        sources = [others.this] if others is not None else None
        rows = _distinct(computed(session, target, _select(statement, columns, sources), params))
        batches = list(conformed(rows.drop_columns([ROW_ADDRESS]).to_batches(), schema))
        found["rows"] = pa.Table.from_batches(batches, schema=schema)
        return RowChanges(_NONE, addresses(rows), batches, list(values))

    session.catalog.renew(commit(session, dataset, rows_of))
    if returning is not None:
        return returned(session, returning, found["rows"], name_of(table))
    return counted(found["rows"].num_rows)


def _update_in_place(
    session: Session,
    dataset: SqlDataset,
    values: dict[str, exp.Expression],
    where: exp.Where | None,
    name: str,
) -> pa.Table:
    counts: list[int] = []
    condition = None if where is None else own_filter(dataset, own_text(where.this, name))
    new_values = {column: own_text(value, name) for column, value in values.items()}

    def told(event: Any) -> None:
        counts.append(event.rows)

    changed = dataset.update(new_values, condition, progress=told)
    session.catalog.looked_for(dataset, lambda part: part.count_rows(condition) > 0)
    session.catalog.renew(changed)
    return counted(counts[-1] if counts else 0)


def assignments(
    schema: pa.Schema, expressions: list[exp.Expression], owner: str
) -> dict[str, exp.Expression]:
    """``SET a = 1, (b, c) = (2, DEFAULT)`` as column -> expression."""
    from sqlglot import exp, parse_one

    values: dict[str, exp.Expression] = {}
    for equation in expressions:
        left, right = equation.this, equation.expression
        pairs = [(left, right)]
        if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple):
            if len(left.expressions) != len(right.expressions):
                raise SqlError(
                    f"Got {amount(len(right.expressions), 'value')} "
                    f"for {amount(len(left.expressions), 'column')}"
                )
            pairs = list(zip(left.expressions, right.expressions, strict=True))
        for column, value in pairs:
            column = column.unnest()
            if not isinstance(column, exp.Column) or column.table.lower() not in ("", owner.lower()):
                raise UnsupportedFeatureError(
                    f"{column.sql(dialect='duckdb')} cannot be updated on its own",
                    remedy="Set the whole struct column, as in SET b = {'c': 1, 'd': b.d}",
                )
            name = column_name(schema, column.name)
            if name in values:
                raise SqlError(f"The column {name} is set twice")
            _refuse_aggregates(value)
            if isinstance(value, exp.Column | exp.Var) and value.sql().upper() == "DEFAULT":
                value = parse_one(default_of(schema.field(name)) or "NULL", dialect="duckdb")
            values[name] = value
    return values


def _refuse_aggregates(value: exp.Expression) -> None:
    from sqlglot import exp

    for call in value.find_all(exp.AggFunc):
        if call.find_ancestor(exp.Query, exp.Window) is None:
            raise SqlError(
                f"A new value cannot use an aggregate of the rows: {call.sql(dialect='duckdb')}",
                remedy="Write a subquery: (SELECT max(price) FROM t)",
            )


# Expressions that filters compute as DuckDB does, by the parser's names.
_SHARED_FUNCTIONS = frozenset(
    [
        *("Abs", "And", "Cast", "Ceil", "Coalesce", "Day", "Floor", "Hour", "IsNan", "Length", "Lower"),
        *("Minute", "Month", "Or", "TryCast", "Upper", "Year"),
    ]
)


def is_simple(expression: exp.Expression, schema: pa.Schema) -> bool:
    """Whether the dataset may evaluate it: it only needs the row, and means the same in filters."""
    from sqlglot import exp

    others = (exp.Query, exp.Placeholder, exp.Parameter, exp.IntDiv)  # DuckDB's // keeps fractions of floats
    if any(expression.find(kind) for kind in others):
        return False
    names = {name.name.lower() for name in expression.find_all(exp.Identifier)}
    if not names.isdisjoint(SYSTEM_FIELDS) or _uses_zones(expression, names, schema):
        return False
    # Dividing by zero is an error in DuckDB.
    divisors = (division.expression.unnest() for division in expression.find_all(exp.Div, exp.Mod))
    if not all(divisor.is_number and float(divisor.name) for divisor in divisors):
        return False
    # DuckDB formats numbers and times differently, and rounds where filters truncate.
    if any(not isinstance(cast.this, exp.Literal) for cast in expression.find_all(exp.Cast)):
        return False
    calls = expression.find_all(exp.Func, exp.DPipe, exp.Bracket, exp.Array)
    return all(type(call).__name__ in _SHARED_FUNCTIONS for call in calls)


#: The end of a time with an offset, which DuckDB ignores where the column has no time zone.
_OFFSET = re.compile(r":\d\d(\.\d+)?\s*([+-]\d|[A-Za-z])")


def _uses_zones(expression: exp.Expression, names: set[str], schema: pa.Schema) -> bool:
    """Whether time zones matter: DuckDB uses that of the session, filters use UTC or that of the column."""
    from sqlglot import exp

    return (
        any(field.name.lower() in names and has_zone(field.type) for field in schema)
        or any(kind.is_type("timestamptz", "timestampltz") for kind in expression.find_all(exp.DataType))
        or any(text.is_string and _OFFSET.search(text.name) for text in expression.find_all(exp.Literal))
    )


def own_text(expression: exp.Expression, name: str) -> str:
    """The expression with unqualified column names."""
    from sqlglot import exp

    def bare(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Column) and node.table.lower() == name.lower():
            node.set("table", None)
        if isinstance(node, exp.Div):
            # Filters use integer division for integers.
            return exp.Div(this=exp.cast(node.this, "DOUBLE"), expression=node.expression)
        return node

    return str(expression.copy().transform(bare).sql(dialect="duckdb"))


def own_filter(dataset: SqlDataset, condition: str) -> Node:
    """A condition for DuckDB, which orders NaN differently than filter texts."""
    from lance_engine.expr.from_sql import parse_sql

    return parse_sql(condition, dataset.storage_schema)


_NONE = np.empty(0, dtype=np.uint64)


def _select(statement: exp.Expression, columns: list[str], sources: list[exp.Expression] | None) -> str:
    """The query for the rows that a statement affects, starting with their addresses."""
    owner = quote(name_of(statement.this))
    where, before = statement.args.get("where"), statement.args.get("with_")
    tables = [f"{LENT} AS {owner}", *(source.sql(dialect="duckdb") for source in sources or ())]
    return " ".join(
        part
        for part in (
            before.sql(dialect="duckdb") if before is not None else "",
            f"SELECT {', '.join([f'{owner}.{ROW_ADDRESS}', *columns])} FROM {', '.join(tables)}",
            where.sql(dialect="duckdb") if where is not None else "",
        )
        if part
    )


def computed(session: Session, target: SqlDataset, text: str, params: Parameters) -> pa.Table:
    """The rows of a query over `target`, which is temporarily registered with row addresses."""
    computing = session.computing()
    with computing.lend(target, Statement(text).system_columns) as lent:
        return computing.select(text.replace(LENT, lent), params).arrow()


def _any_row(part: SqlDataset) -> bool:
    return part.count_rows() > 0


def _distinct(rows: pa.Table) -> pa.Table:
    """The rows by address, without duplicates."""
    rows = rows.take(pc.sort_indices(rows, [(ROW_ADDRESS, "ascending")]))
    found = rows.column(ROW_ADDRESS).to_numpy()
    first = np.ones(len(found), dtype=bool)
    first[1:] = found[1:] != found[:-1]
    return rows if first.all() else rows.filter(pa.array(first))


def addresses(rows: pa.Table) -> Any:
    """The row addresses among the columns of a computed table."""
    return rows.column(ROW_ADDRESS).to_numpy().astype(np.uint64)


def commit(session: Session, dataset: SqlDataset, rows_of: Callable[[SqlDataset], RowChanges]) -> SqlDataset:
    """Commit the result of `rows_of` for the newest version; retried if others changed the same rows."""
    kind = type(dataset)

    def once(snapshot: Any) -> Any:
        changes = rows_of(kind(snapshot))
        nothing = not len(changes.deleted) and not len(changes.replaced) and not list(changes.rows)
        return snapshot if nothing else change_rows(snapshot, changes)

    def matches(part: SqlDataset) -> bool:
        changes = rows_of(part)
        return bool(len(changes.deleted) or len(changes.replaced))

    changed = kind(redo_on_conflict(dataset.snapshot, once))
    session.catalog.looked_for(dataset, matches)
    return changed
