"""Declaring and removing the constraints of a table: keys, and CHECK conditions."""

from __future__ import annotations

from collections.abc import Sequence

from lance_engine.constraints.check import parsed_condition
from lance_engine.constraints.declared import declared_key
from lance_engine.errors import InvalidArgumentError, SchemaMismatchError
from lance_engine.expr.tree import columns_of
from lance_engine.format.operations import MapUpdate, Project, UpdateConfig
from lance_engine.operations.changes import commit_change
from lance_engine.operations.nulls import require_no_nulls
from lance_engine.operations.retry import redo_on_conflict
from lance_engine.progress import Reporter
from lance_engine.table.constraints import (
    CHECKS,
    Check,
    constraints_of,
    with_checks,
    with_key,
    without_key,
)
from lance_engine.table.snapshot import Snapshot


def add_key(
    snapshot: Snapshot,
    columns: Sequence[str],
    *,
    is_primary: bool = False,
    is_enforced: bool = True,
    name: str | None = None,
) -> Snapshot:
    """Declare a key. ConstraintError, with some of the keys, if rows violate it.

    The columns of a primary key become NOT NULL. A primary key that is not enforced is a mark for other
    tools, and for merges, of which no two insert the same key.
    """

    def once(snapshot: Snapshot) -> Snapshot:
        schema = snapshot.schema
        key = declared_key(schema, columns, is_primary=is_primary, is_enforced=is_enforced, name=name)
        for known in constraints_of(schema).keys:
            if is_primary and known.is_primary:
                if known == key:
                    return snapshot
                if known.columns != key.columns:
                    raise InvalidArgumentError(
                        f"The table has a primary key already: {', '.join(known.columns)}",
                        path=snapshot.uri,
                        remedy="Drop it first: ALTER TABLE t DROP PRIMARY KEY",
                    )
                schema = without_key(schema, known)
            elif known.name == key.name:
                raise InvalidArgumentError(f"The constraint '{key.name}' already exists", path=snapshot.uri)
        tightened = [name for name in columns if is_primary and schema.field(name).nullable]
        for column in tightened:
            require_no_nulls(snapshot, column, Reporter(None))
        operation = Project(with_key(schema, key), preserves_nullability=not tightened)
        return commit_change(snapshot, operation)

    return redo_on_conflict(snapshot, once)


def add_check(snapshot: Snapshot, condition: str, name: str | None = None) -> Snapshot:
    """Add a CHECK condition; ConstraintError if it is false for a row."""

    def once(snapshot: Snapshot) -> Snapshot:
        node = parsed_condition(Check(name or "new", condition), snapshot)
        used = [column for column in snapshot.schema.names if column in columns_of(node)]
        check = Check(name or "_".join([*used, "check"]), condition)
        known = constraints_of(snapshot.schema)
        if check.name in known.names:
            raise InvalidArgumentError(f"The constraint '{check.name}' already exists", path=snapshot.uri)
        return _with_checks(snapshot, [*known.checks, check])

    return redo_on_conflict(snapshot, once)


def drop_constraint(snapshot: Snapshot, name: str | None) -> Snapshot:
    """Remove the key or CHECK condition with this name, or with None the primary key."""

    def once(snapshot: Snapshot) -> Snapshot:
        constraints = constraints_of(snapshot.schema)
        for key in constraints.keys:
            if key.is_primary if name is None else key.name == name:
                return commit_change(
                    snapshot, Project(without_key(snapshot.schema, key), preserves_nullability=True)
                )
        left = [check for check in constraints.checks if check.name != name]
        if name is None or len(left) == len(constraints.checks):
            known = constraints.names
            what = "primary key" if name is None else f"constraint '{name}'"
            raise InvalidArgumentError(
                f"The table has no {what}",
                path=snapshot.uri,
                remedy=f"Its constraints: {', '.join(known)}" if known else "It has no constraints",
            )
        return _with_checks(snapshot, left)

    return redo_on_conflict(snapshot, once)


def _with_checks(snapshot: Snapshot, checks: Sequence[Check]) -> Snapshot:
    text = with_checks(snapshot.schema, checks).metadata.get(CHECKS)
    return commit_change(snapshot, UpdateConfig(schema_metadata=MapUpdate({CHECKS: text})))


def refuse_constrained(snapshot: Snapshot, column: str, *, keys: bool = True) -> None:
    """SchemaMismatchError if a constraint needs a column as it is; of keys only if `keys`."""
    constraints = constraints_of(snapshot.schema)
    names = [key.name for key in constraints.keys if keys and column in key.columns]
    names += [
        check.name for check in constraints.checks if column in columns_of(parsed_condition(check, snapshot))
    ]
    if names:
        raise SchemaMismatchError(
            f"The constraint '{names[0]}' depends on the column",
            column=column,
            remedy=f'Drop it first: ALTER TABLE t DROP CONSTRAINT "{names[0]}"',
        )
