"""INSERT ... ON CONFLICT, INSERT OR REPLACE and INSERT OR IGNORE: new rows meet rows with the same key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.operations import RowChanges
from lance_engine.table import Key, constraints_of

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.engines.base import Parameters
from lance_sql.errors import SqlError
from lance_sql.statements.changes import assignments, commit, computed
from lance_sql.statements.fitting import column_name
from lance_sql.statements.merge import PRESENT, Clause, changed_rows, chosen_changes, clause_query
from lance_sql.statements.outcome import counted, returned
from lance_sql.statements.session import LENT, Rows, Session
from lance_sql.statements.targets import name_of
from lance_sql.syntax.source import as_written
from lance_sql.text.tokens import quote

if TYPE_CHECKING:
    from sqlglot import exp

#: The name of a new row in expressions, and the name of the table that has it as a struct.
_EXCLUDED, _NEW = "excluded", "lance_sql_new"
_NUMBER, _COLUMN, _ROWS = "lance_sql_number", "lance_sql_column_", "lance_sql_new_rows"
_PARAMETER: Final = re.compile(r"\$(\w+)")


@dataclass(frozen=True)
class Conflict:
    """What happens to a new row whose values of one of `keys` exist.

    `values` are the new values of columns of the existing row, as texts of expressions, and `where` the text
    of the condition for that; `values` None: nothing.
    """

    keys: tuple[tuple[str, ...], ...]
    values: Mapping[str, str] | None = None
    where: str | None = None


def replaces(statement: exp.Insert) -> bool:
    """Whether this is INSERT OR REPLACE."""
    return str(statement.args.get("alternative") or "").upper() == "REPLACE"


def conflict_of(
    statement: exp.Insert, table: exp.Table, dataset: SqlDataset, columns: Sequence[str] | None
) -> Conflict | None:
    """What an INSERT does about rows with the same key; `columns` are those that it inserts, None: all."""
    clause, alternative = statement.args.get("conflict"), statement.args.get("alternative")
    if clause is None and alternative is None:
        return None
    schema = dataset.storage_schema
    keys = constraints_of(dataset.snapshot.schema).keys
    updates = replaces(statement) or (clause is not None and clause.args["action"].name == "DO UPDATE")
    targets = _targets(clause, keys, schema, updates=updates)
    if not updates:
        return Conflict(targets)
    if alternative is not None:
        given = [column_name(schema, name) for name in columns] if columns is not None else schema.names
        # Without other columns, the row is written as it is, and counts.
        changed = [name for name in given if name not in targets[0]] or targets[
            0
        ]  # the row counts as changed
        return Conflict(targets, _new_values(changed))
    where = clause.args.get("where")
    return Conflict(
        targets,
        assignments(schema, clause.expressions, name_of(table)),
        as_written(where.this) if where is not None else None,
    )


def _new_values(columns: Iterable[str]) -> dict[str, str]:
    return {name: f"{_NEW}.{_EXCLUDED}.{quote(name)}" for name in columns}


def _targets(
    clause: exp.OnConflict | None, keys: Sequence[Key], schema: pa.Schema, *, updates: bool
) -> tuple[tuple[str, ...], ...]:
    """The columns of the keys that a clause means."""
    from sqlglot import exp

    if clause is not None and clause.args.get("index_predicate"):
        raise UnsupportedFeatureError(
            "A condition after the columns of ON CONFLICT is for partial indices, which datasets do not have",
            remedy="Write DO UPDATE SET ... WHERE ...",
        )
    named = clause.args.get("constraint") if clause is not None else None
    columns = clause.args.get("conflict_keys") if clause is not None else None
    shown = ", ".join(f"({', '.join(key.columns)})" for key in keys) or "none"
    if named is not None:
        named_keys = [key.columns for key in keys if key.name.lower() == named.name.lower()]
        if not named_keys:
            raise SqlError(f"The table has no key named {named.name}", remedy=f"Its keys: {shown}")
        return (named_keys[0],)
    if columns:
        wanted = {column_name(schema, column.find(exp.Identifier).name) for column in columns}
        same_columns = [key.columns for key in keys if set(key.columns) == wanted]
        if not same_columns:
            raise SqlError(
                "The columns of ON CONFLICT are not those of a PRIMARY KEY or UNIQUE constraint",
                remedy=f"Declare it with ALTER TABLE t ADD UNIQUE (...). Known keys: {shown}",
            )
        return (same_columns[0],)
    enforced = tuple(key.columns for key in keys if key.is_enforced) or tuple(key.columns for key in keys)
    if not enforced:
        raise SqlError(
            "The table has no PRIMARY KEY or UNIQUE constraint, so no row conflicts",
            remedy="Declare one with ALTER TABLE t ADD PRIMARY KEY (...), or use MERGE INTO",
        )
    if updates and len(enforced) > 1:
        raise SqlError(
            "The table has several keys, so DO UPDATE and INSERT OR REPLACE need the columns of one",
            remedy=f"Write ON CONFLICT (...) DO UPDATE with one of {shown}",
        )
    return enforced


def insert_or(
    session: Session,
    dataset: SqlDataset,
    name: str,
    new: pa.Table,
    conflict: Conflict,
    returning: exp.Returning | None,
    params: Parameters,
) -> pa.Table | Rows:
    """Insert the rows `new` into the dataset called `name`, as `conflict` says; one commit."""
    new = _distinct(session, new, conflict.keys)
    if conflict.values is not None:
        return _update_or_insert(session, dataset, name, new, conflict, returning, params)

    @contextmanager
    def rows_of(target: SqlDataset) -> Iterator[tuple[RowChanges, pa.Table]]:
        added = new
        for key in conflict.keys:
            added = _without_known(session, target, added, key)
        changes = RowChanges(
            added=added.to_batches(), inserts_keys=added.num_rows > 0, matched_by=conflict.keys[0]
        )
        yield changes, added

    def answer(added: pa.Table) -> pa.Table | Rows:
        return counted(added.num_rows) if returning is None else returned(session, returning, added, name)

    return commit(session, dataset, rows_of, answer)


def _update_or_insert(
    session: Session,
    dataset: SqlDataset,
    name: str,
    new: pa.Table,
    conflict: Conflict,
    returning: exp.Returning | None,
    params: Parameters,
) -> pa.Table | Rows:
    schema = dataset.storage_schema
    assert conflict.values is not None
    [key] = conflict.keys
    clauses = [
        Clause("both", conflict.where, "update", dict(conflict.values)),
        Clause("both", None, "nothing", {}),
        Clause("source", None, "insert", _new_values(schema.names)),
    ]
    if not conflict.values:
        clauses.pop(0)
    members = ", ".join(f"{quote(name)} := {quote(name)}" for name in schema.names)
    columns = "".join(f", {quote(column)} AS {_COLUMN}{number}" for number, column in enumerate(key))
    target = quote(name)
    same = " AND ".join(f"{target}.{quote(one)} = {_NEW}.{_COLUMN}{place}" for place, one in enumerate(key))
    text = clause_query(
        target,
        f"(SELECT struct_pack({members}) AS {_EXCLUDED}{columns}, true AS {PRESENT} FROM {_ROWS}) AS {_NEW}",
        f"ON {same}",
        schema,
        clauses,
        shown=returning is not None,
    )
    used = used_parameters(params, text)

    @contextmanager
    def rows_of(dataset: SqlDataset) -> Iterator[tuple[RowChanges, dict[str, pa.Table]]]:
        rows = computed(session, dataset, text, used, {_ROWS: new})
        yield chosen_changes(rows, schema, clauses, key)

    def answer(by_action: dict[str, pa.Table]) -> pa.Table | Rows:
        if returning is None:
            return counted(sum(rows.num_rows for rows in by_action.values()))
        return returned(session, returning, changed_rows(by_action, schema), name)

    return commit(session, dataset, rows_of, answer)


def used_parameters(params: Parameters, text: str) -> Parameters:
    """The parameters that a part of a statement uses; others are not accepted."""
    if params is None:
        return None
    names = set(_PARAMETER.findall(text))
    if isinstance(params, Mapping):
        known = {str(name): value for name, value in params.items()}
    else:
        known = {str(number): value for number, value in enumerate(params, 1)}
    return {name: value for name, value in known.items() if name in names} or None


def _distinct(session: Session, new: pa.Table, keys: Sequence[Sequence[str]]) -> pa.Table:
    """The first of the rows with the same values of a key, as in DuckDB; nulls are never the same."""
    for key in keys:
        names = ", ".join(f"{_COLUMN}{number}" for number in range(len(key)))
        text = (
            f"SELECT {_NUMBER} FROM {_ROWS} WHERE "
            + " AND ".join(f"{_COLUMN}{number} IS NOT NULL" for number in range(len(key)))
            + f" QUALIFY row_number() OVER (PARTITION BY {names} ORDER BY {_NUMBER}) > 1"
        )
        new = _without(session, new, key, text)
    return new


def _without_known(session: Session, target: SqlDataset, new: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows whose values of a key do not exist."""
    same = " AND ".join(f"t.{quote(column)} = n.{_COLUMN}{number}" for number, column in enumerate(key))
    text = f"SELECT DISTINCT n.{_NUMBER} FROM {LENT} AS t JOIN {_ROWS} AS n ON {same}"
    return _without(session, new, key, text, target)


def _without(
    session: Session, new: pa.Table, key: Sequence[str], text: str, target: SqlDataset | None = None
) -> pa.Table:
    """The rows of `new` without those whose numbers the query `text` finds by the columns of a key."""
    numbers = pa.array(range(new.num_rows), pa.int64())
    names = [f"{_COLUMN}{number}" for number in range(len(key))]
    keys = new.select(list(key)).rename_columns(names).append_column(_NUMBER, numbers)
    if target is not None:
        unwanted = computed(session, target, text, None, {_ROWS: keys})
    else:
        computing = session.computing()
        with computing.lend(keys) as lent:
            unwanted = computing.select(text.replace(_ROWS, lent)).arrow()
    if not unwanted.num_rows:
        return new
    kept = pc.invert(pc.is_in(numbers, value_set=unwanted.column(0).combine_chunks()))
    return new.filter(kept)
