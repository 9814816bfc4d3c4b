"""DELETE and UPDATE: a query of DuckDB finds the rows and computes their new values."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from lance_engine.base import distinct_numbers
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.operations import RowChanges, apply_changes, redo_on_conflict
from lance_engine.scan import ROW_ADDRESS

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.catalog.defaults import default_of
from lance_sql.display.amounts import counted as amount
from lance_sql.engines.base import Parameters
from lance_sql.errors import SqlError
from lance_sql.statements.clauses import refuse_unsupported_clauses
from lance_sql.statements.fitting import column_name
from lance_sql.statements.outcome import check_returning, counted, returned
from lance_sql.statements.session import LENT, Rows, Session
from lance_sql.statements.targets import call_by_name, find, name_of
from lance_sql.statements.writing import with_columns_of
from lance_sql.syntax.source import as_written
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import quote
from lance_sql.types.casts import stored_value, unchanged_value
from lance_sql.types.stored import stored_batches

if TYPE_CHECKING:
    from sqlglot import exp

Outcome = TypeVar("Outcome")
Answer = TypeVar("Answer")


def delete(
    session: Session, statement: exp.Delete, params: Parameters, *, prepares: bool = False
) -> pa.Table | Rows | None:
    """``DELETE FROM t [USING ...] [WHERE ...] [RETURNING ...]``; with `prepares`, it is only checked."""
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
        if prepares:
            return None
        if returning is None:
            deleted: pa.Table | Rows = counted(dataset.count_rows())
        else:
            deleted = returned(session, returning, dataset.scan().to_table(), name_of(table))
        session.catalog.looked_for(dataset, any_row)
        session.catalog.renew(dataset.truncate())
        return deleted
    columns = list(dataset.schema.names) if returning is not None else []
    text = _select(statement, [f"{quote(name_of(table))}.{quote(name)}" for name in columns], using)
    if prepares:
        bind(session, dataset, text, params)
        return None

    @contextmanager
    def rows_of(target: SqlDataset) -> Iterator[tuple[RowChanges, pa.Table]]:
        rows = computed(session, target, text, params).rename_columns([ROW_ADDRESS, *columns])
        yield RowChanges(distinct_numbers(addresses(rows))), rows

    def answer(rows: pa.Table) -> pa.Table | Rows:
        if returning is None:
            return counted(rows.num_rows)
        return returned(session, returning, rows.drop_columns([ROW_ADDRESS]), name_of(table))

    return commit(session, dataset, rows_of, answer)


def update(
    session: Session, statement: exp.Update, params: Parameters, *, prepares: bool = False
) -> pa.Table | Rows | None:
    """``UPDATE t SET column = expression, ... [FROM ...] [WHERE ...] [RETURNING ...]``.

    With `prepares`, it is only checked.
    """
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
    others, returning = statement.args.get("from_"), statement.args.get("returning")
    check_returning(session, returning, schema.empty_table(), name_of(table))
    columns = [stored_value(value, schema.field(name)) for name, value in values.items()]
    changed = pa.schema([schema.field(name) for name in values])
    whole = changed
    if returning is not None:  # the rows as they will be
        rest = [field for field in schema if field.name not in values]
        columns += [unchanged_value(f"{quote(name_of(table))}.{quote(field.name)}", field) for field in rest]
        whole = pa.schema([*changed, *rest])
    text = _select(statement, columns, [others.this] if others is not None else None)
    if prepares:
        bind(session, dataset, text, params)
        return None

    def answer(batches: list[pa.RecordBatch]) -> Rows:
        assert returning is not None
        rows = pa.Table.from_batches(batches, schema=whole).select(schema.names)
        return returned(session, returning, rows, name_of(table))

    @contextmanager
    def rows_of(target: SqlDataset) -> Iterator[tuple[RowChanges, _Updated]]:
        with closing(computed_batches(session, target, text, params)) as batches:
            updated = _Updated(batches, changed.names, whole, None if returning is None else answer)
            yield RowChanges(replaced=updated), updated

    updated = commit(session, dataset, rows_of, lambda updated: updated)
    return counted(updated.rows) if updated.returned is None else updated.returned


class _Updated:
    """The rows of an UPDATE, in stored types and with their addresses, as they are computed.

    `answer` computes RETURNING from all of them, as in `Counter`.
    """

    def __init__(
        self,
        batches: Iterator[pa.RecordBatch],
        columns: list[str],
        schema: pa.Schema,
        answer: Callable[[list[pa.RecordBatch]], Rows] | None,
    ) -> None:
        self.rows = 0
        self.returned: Rows | None = None
        self._batches = batches
        self._columns = columns
        self._schema = schema
        self._answer = answer

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        kept = []
        for batch in self._batches:
            self.rows += batch.num_rows
            [rows] = stored_batches([batch.select(range(1, batch.num_columns))], self._schema)
            if self._answer is not None:
                kept.append(rows)
            yield with_addresses(batch.column(ROW_ADDRESS), rows.select(self._columns))
        if self._answer is not None:
            self.returned = self._answer(kept)


def assignments(schema: pa.Schema, expressions: list[exp.Expression], owner: str) -> dict[str, str]:
    """``SET a = 1, (b, c) = (2, DEFAULT)`` as column -> text of the expression."""
    from sqlglot import exp

    values: dict[str, str] = {}
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
            if isinstance(column, exp.Tuple):
                raise UnsupportedFeatureError(
                    f"The columns {as_written(column)} cannot be set to the rows of a query",
                    remedy="Write a subquery for each column, or UPDATE ... FROM (SELECT ...)",
                )
            column = column.unnest()
            if not isinstance(column, exp.Column) or column.table.lower() not in ("", owner.lower()):
                raise UnsupportedFeatureError(
                    f"{as_written(column)} cannot be updated on its own",
                    remedy="Set the whole struct column, as in SET b = {'c': 1, 'd': b.d}",
                )
            name = column_name(schema, column.name)
            if name in values:
                raise SqlError(f"The column {name} is set twice")
            _refuse_aggregates(value)
            text = as_written(value)
            is_default = isinstance(value, exp.Column | exp.Var) and text.upper() == "DEFAULT"
            values[name] = default_of(schema.field(name)) or "NULL" if is_default else text
    return values


def _refuse_aggregates(value: exp.Expression) -> None:
    from sqlglot import exp

    for call in value.find_all(exp.AggFunc):
        if call.find_ancestor(exp.Query, exp.Window) is None:
            raise SqlError(
                f"A new value cannot use an aggregate of the rows: {as_written(call)}",
                remedy="Write a subquery: (SELECT max(price) FROM t)",
            )


def _select(
    statement: exp.Expression, columns: Sequence[str], sources: Sequence[exp.Expression] | None
) -> str:
    """The query for the rows that a statement affects, each once, starting with their addresses."""
    owner = quote(name_of(statement.this))
    address = f"{owner}.{ROW_ADDRESS}"
    where, before = statement.args.get("where"), statement.args.get("with_")
    tables = [f"{LENT} AS {owner}", *map(as_written, sources or ())]
    # Names that hide none of the columns.
    named = [f"{column} AS lance_sql_value_{number}" for number, column in enumerate(columns)]
    return " ".join(
        part
        for part in (
            as_written(before) if before is not None else "",
            f"SELECT {f'DISTINCT ON ({address}) ' if sources else ''}{', '.join([address, *named])}",
            f"FROM {', '.join(tables)}",
            as_written(where) if where is not None else "",
        )
        if part
    )


def computed_batches(
    session: Session, target: SqlDataset, text: str, params: Parameters
) -> Generator[pa.RecordBatch]:
    """The rows of a query over `target`, which is temporarily registered with row addresses."""
    computing = session.computing()
    with _lent(computing, target, text) as lent:
        yield from computing.select(text.replace(LENT, lent), params)


def bind(session: Session, target: SqlDataset, text: str, params: Parameters) -> None:
    """Raise what is wrong with a query for `computed`, which does not run."""
    computing = session.computing()
    with _lent(computing, target, text) as lent:
        computing.select(text.replace(LENT, lent), params)


def computed(
    session: Session,
    target: SqlDataset,
    text: str,
    params: Parameters,
    others: Mapping[str, pa.Table] | None = None,
) -> pa.Table:
    """As `computed_batches`, all at once; `others` are more tables, by their placeholders in the text."""
    computing = session.computing()
    with ExitStack() as lending:
        text = text.replace(LENT, lending.enter_context(_lent(computing, target, text)))
        for placeholder, table in (others or {}).items():
            text = text.replace(placeholder, lending.enter_context(computing.lend(table)))
        return computing.select(text, params).arrow()


def _lent(computing: Session, target: SqlDataset, text: str) -> AbstractContextManager[str]:
    return computing.lend(target, Statement(text).system_columns)


def any_row(part: SqlDataset) -> bool:
    """For statements that change all rows."""
    return part.count_rows() > 0


def with_addresses(addresses: pa.Array, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with their addresses, as the values of other rows are replaced."""
    return pa.RecordBatch.from_arrays([addresses, *rows.columns], [ROW_ADDRESS, *rows.schema.names])


def addresses(rows: pa.Table) -> Any:
    """The row addresses among the columns of a computed table."""
    return rows.column(ROW_ADDRESS).to_numpy().astype(np.uint64)


def commit(
    session: Session,
    dataset: SqlDataset,
    rows_of: Callable[[SqlDataset], AbstractContextManager[tuple[RowChanges, Outcome]]],
    answer: Callable[[Outcome], Answer],
) -> Answer:
    """Commit the changes that `rows_of` finds in the newest version; again if others changed the same rows.

    Returns `answer` of the other result of `rows_of`, which is computed before the commit. Rows that were not
    read end with the block of `rows_of`, on this thread: no other may use the session.
    """
    kind = type(dataset)
    answers: list[Answer] = []

    def once(snapshot: Any) -> Any:
        with rows_of(kind(snapshot)) as (changes, outcome):
            answers[:] = [answer(outcome)]
            return apply_changes(snapshot, changes)

    def matches(part: SqlDataset) -> bool:
        with rows_of(part) as (changes, _):
            return len(changes.deleted) > 0 or any(batch.num_rows for batch in changes.replaced)

    with with_columns_of(dataset):
        changed = kind(redo_on_conflict(dataset.snapshot, once))
    session.catalog.looked_for(dataset, matches)
    session.catalog.renew(changed)
    return answers[0]
