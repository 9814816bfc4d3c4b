"""Merges a source into a dataset by key: the actions for matching and other rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, Self, TypeVar

from lance_engine.errors import InvalidArgumentError
from lance_engine.operations.merge_rows import Clause, Clauses, merge
from lance_engine.operations.source_rows import MEMORY_BYTES
from lance_engine.operations.values import Compiler, Value
from lance_engine.progress import ProgressOption
from lance_engine.public import Public
from lance_engine.scan.partial import Filter
from lance_engine.table.snapshot import Snapshot

Result = TypeVar("Result")


class MergeBuilder(Public, Generic[Result]):
    """The actions for the rows of the source and of the dataset; nothing runs before `execute`.

    A row of the source matches the rows of the dataset with the same values in the key columns; a null
    matches nothing. Among clauses for the same rows, the first whose condition is true applies. Conditions
    and values are SQL expressions: over ``source.x`` and ``target.x`` for matching rows, over ``source.x``
    for inserted rows, and over the plain columns of the dataset for rows without a match in the source.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        source: Any,
        on: str | Sequence[str],
        finish: Callable[[Snapshot], Result],
        compiler: Compiler | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._source = source
        self._on = [on] if isinstance(on, str) else list(on)
        self._finish = finish
        self._compiler = compiler
        self._clauses = Clauses()
        if not self._on:
            raise InvalidArgumentError("merge needs at least one key column")

    def when_matched_update_all(self, where: str | None = None) -> Self:
        """Update matching rows with the values of the source, in all columns that it has.

        `where` is a condition over both rows, for example ``source.changed_at > target.changed_at``.
        """
        return self._with("matched", Clause("update", where))

    def when_matched_update(self, values: Mapping[str, Value], where: str | None = None) -> Self:
        """Update columns of matching rows: `values` maps them to SQL, as ``target.n + source.n``."""
        return self._with("matched", Clause("update", where, dict(values)))

    def when_matched_delete(self, where: str | None = None) -> Self:
        """Delete the matching rows of the dataset."""
        return self._with("matched", Clause("delete", where))

    def when_not_matched_insert_all(self, where: str | None = None) -> Self:
        """Insert the rows of the source without a match; missing columns are null."""
        return self._with("not_matched", Clause("insert", where))

    def when_not_matched_insert(self, values: Mapping[str, Value], where: str | None = None) -> Self:
        """Insert a row with these `values`, SQL by column, for each source row without a match.

        Other columns are null.
        """
        return self._with("not_matched", Clause("insert", where, dict(values)))

    def when_not_matched_by_source_delete(self, where: Filter = None) -> Self:
        """Delete the rows of the dataset without a match in the source that pass `where`."""
        return self._with("by_source", Clause("delete", where))

    def when_not_matched_by_source_update(self, values: Mapping[str, Value], where: Filter = None) -> Self:
        """Update columns of rows without a match in the source: `values` maps them to SQL over these."""
        return self._with("by_source", Clause("update", where, dict(values)))

    def execute(self, *, memory_bytes: int = MEMORY_BYTES, progress: ProgressOption = None) -> Result:
        """Commit the merge as one new version and return the dataset at that version.

        The source is read once. If it is larger than `memory_bytes`, it is stored in a temporary file; its
        key columns, and 8 bytes for each of its rows and for each match, are kept in memory.
        AmbiguousMergeError if several of its rows match a row to update; SchemaMismatchError if it does not
        match the dataset.
        """
        if self._clauses == Clauses():
            raise InvalidArgumentError(
                "No action given: call when_matched_update_all(), when_not_matched_insert_all() ..."
            )
        return self._finish(
            merge(
                self._snapshot,
                self._source,
                self._on,
                self._clauses,
                compiler=self._compiler,
                memory_bytes=memory_bytes,
                progress=progress,
            )
        )

    def _with(self, kind: Literal["matched", "not_matched", "by_source"], clause: Clause) -> Self:
        before: tuple[Clause, ...] = getattr(self._clauses, kind)
        if before and before[-1].where is None:
            raise InvalidArgumentError("A clause after an unconditional clause is never reached")
        if clause.values is not None and not clause.values:
            raise InvalidArgumentError("A clause needs a value for at least one column")
        self._clauses = dataclasses.replace(self._clauses, **{kind: (*before, clause)})
        return self
