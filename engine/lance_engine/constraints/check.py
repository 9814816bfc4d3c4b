"""Checks the constraints of a version before it is written, whoever writes it.

Keys and conditions are those of the version, even if another writer added them after the rows were read. A
row is checked if its fragment is new, or if the values of the constraint's columns are in other files than
before.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import pyarrow as pa

from lance_engine.constraints.hashes import check_key_type
from lance_engine.constraints.uniqueness import Duplicates, NewKeys
from lance_engine.errors import CommitConflictError, ConstraintError, LanceError, UnsupportedFeatureError
from lance_engine.expr import build
from lance_engine.expr.tree import Node, columns_of
from lance_engine.format.fragment import Fragment
from lance_engine.format.operations import (
    Append,
    DataReplacement,
    Merge,
    Operation,
    Overwrite,
    Project,
    Update,
    UpdateConfig,
)
from lance_engine.legible import legible_line
from lance_engine.scan.filters import parse_filter
from lance_engine.scan.partial import scan, shared_readers
from lance_engine.table.constraints import NOTHING, Check, Key, constraints_of
from lance_engine.table.snapshot import Snapshot

# Other operations keep all rows and values.
_CHANGING: Final = (Append, DataReplacement, Merge, Overwrite, Project, Update, UpdateConfig)
_LONGEST_VALUE: Final = 80


class RowChecks:
    """The checks of one commit; attempts after the first look only at what others committed meanwhile."""

    def __init__(self) -> None:
        self._keys: dict[tuple[Key, frozenset[str]], tuple[NewKeys, set[object]]] = {}
        self._passed: set[tuple[Check, frozenset[str]]] = set()

    def __call__(
        self, version: Snapshot, latest: Snapshot | None, read: Snapshot | None, operation: Operation
    ) -> None:
        """Check `version`, made of `latest` by `operation`, which is based on `read`.

        ConstraintError for rows that violate a constraint; CommitConflictError if that is only because of
        rows which others committed after `read`, so that an operation on rows may be computed again.
        """
        constraints = constraints_of(version.schema)
        if constraints == NOTHING or not isinstance(operation, _CHANGING):
            return
        before = latest if latest is not None and not isinstance(operation, Overwrite) else None
        known = NOTHING if before is None else constraints_of(before.schema)
        for key in constraints.enforced:
            self._check_key(key, version, before if key in known.enforced else None, read, operation)
        for check in constraints.checks:
            self._check_condition(check, version, before if check in known.checks else None, operation)

    def _check_key(
        self,
        key: Key,
        version: Snapshot,
        before: Snapshot | None,
        read: Snapshot | None,
        operation: Operation,
    ) -> None:
        changed, kept = _changed(version, before, key.fields, operation)
        if not changed:
            return
        for name in key.columns:  # whose type may have changed
            check_key_type(name, version.schema.field(name).arrow_type)
        files = frozenset(file.path for fragment in changed for file in fragment.files)
        reader_for = shared_readers(version)
        ids = [fragment.id for fragment in changed]
        new, passed = self._keys.get((key, files)) or (NewKeys(key, version, ids, reader_for), set())
        new.renumbered(version, ids, reader_for)
        unseen = [fragment for fragment in kept if _stored(fragment, key.fields) not in passed]
        newer = {fragment.id for fragment in unseen if read is not None and fragment.id > _last_id(read)}
        duplicates = new.duplicates({fragment.id for fragment in unseen} - newer, newer)
        if duplicates is not None:
            _refuse_duplicates(key, duplicates, version, before, operation)
        passed.update(_stored(fragment, key.fields) for fragment in kept)
        self._keys[key, files] = new, passed

    def _check_condition(
        self, check: Check, version: Snapshot, before: Snapshot | None, operation: Operation
    ) -> None:
        condition = parsed_condition(check, version)
        fields = [version.schema.field(name).id for name in columns_of(condition)]
        changed, _ = _changed(version, before, fields, operation)
        passed = check, frozenset(file.path for fragment in changed for file in fragment.files)
        if not changed or passed in self._passed:
            return
        failing = scan(version, [], build.negate(condition), fragments=changed)
        if next(failing.addresses(), None) is not None:
            raise ConstraintError(
                f"CHECK constraint failed: CHECK({legible_line(check.condition)})",
                path=version.uri,
                remedy=f"Correct the rows, or remove the constraint '{check.name}'",
            )
        self._passed.add(passed)


def parsed_condition(check: Check, version: Snapshot) -> Node:
    """The condition as a filter: only the engine's own language is understood, and nothing is executed."""
    try:
        condition = parse_filter(check.condition, version)
        assert condition is not None
        for name in columns_of(condition):
            version.schema.field(name)
        return condition
    except LanceError as error:
        raise UnsupportedFeatureError(
            f"The condition of the constraint '{check.name}' cannot be checked: {error.message}",
            path=version.uri,
            remedy=f"Write conditions that filters support, or remove it: ALTER TABLE t DROP CONSTRAINT "
            f'"{check.name}"',
        ) from None


def _last_id(read: Snapshot) -> int:
    last = read.manifest.max_fragment_id
    return -1 if last is None else last


def _stored(fragment: Fragment, fields: Sequence[int]) -> object:
    """What decides the values of some fields in a fragment."""
    files = [
        (file.path, tuple(field for field in file.fields if field in fields))
        for file in fragment.files
        if not set(fields).isdisjoint(file.fields)
    ]
    return fragment.id, tuple(files)


def _changed(
    version: Snapshot, before: Snapshot | None, fields: Sequence[int], operation: Operation
) -> tuple[list[Fragment], list[Fragment]]:
    """The fragments of `version` with new rows, or new values of some fields; and all others."""
    if before is not None and isinstance(operation, Update):
        moves_only = not (operation.inserts_keys or operation.inserts_rows)
        if moves_only and set(fields).isdisjoint(operation.fields_modified):
            return [], list(version.fragments)
    known = set() if before is None else {_stored(fragment, fields) for fragment in before.fragments}
    changed: list[Fragment] = []
    kept: list[Fragment] = []
    for fragment in version.fragments:
        (kept if _stored(fragment, fields) in known else changed).append(fragment)
    return changed, kept


def _refuse_duplicates(
    key: Key, duplicates: Duplicates, version: Snapshot, before: Snapshot | None, operation: Operation
) -> NoReturn:
    texts = [_key_text(key, values, version) for values in duplicates.keys]
    kind = "primary key" if key.is_primary else "unique"
    what = f"key {texts[0]} violates" if len(texts) == 1 else f"keys {', '.join(texts)} violate"
    message = f"Duplicate {what} {kind} constraint"
    if duplicates.newer and isinstance(operation, Update):
        raise CommitConflictError(
            f"{message}: another writer inserted such a row",
            path=version.uri,
            remedy="Open the latest version and retry the change",
        )
    if before is None and isinstance(operation, Project):
        remedy = "Remove the duplicates first, for example with DELETE"
    else:
        remedy = "Use INSERT ... ON CONFLICT, MERGE, or Dataset.merge to update existing rows"
    raise ConstraintError(message, path=version.uri, remedy=remedy)


def _key_text(key: Key, values: tuple[Any, ...], version: Snapshot) -> str:
    schema = version.schema.to_arrow()
    fields = map(schema.field, key.columns)
    texts = (_value_text(value, field) for value, field in zip(values, fields, strict=True))
    return '"' + ", ".join(map("{}: {}".format, key.columns, texts)) + '"'


def _value_text(value: Any, field: pa.Field) -> str:
    if (field.metadata or {}).get(b"ARROW:extension:name") == b"arrow.uuid":
        value = uuid.UUID(bytes=value)
    text = legible_line(str(value))
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
