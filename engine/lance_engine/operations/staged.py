"""Several operations on a dataset that become one version: staged one by one, committed together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine.constraints.commit import commit
from lance_engine.errors import CommitConflictError, UnsupportedFeatureError
from lance_engine.format.fragment import Fragment
from lance_engine.format.operations import Append, Delete, Merge, Operation, Project, Update
from lance_engine.format.row_ids import encode_row_ids, encode_versions
from lance_engine.format.transaction import parse_transaction
from lance_engine.io.manifest_names import NamingScheme
from lance_engine.io.staged_store import StagedStore
from lance_engine.operations.changes import write_options
from lance_engine.operations.rows import (
    Removal,
    U32Array,
    drop_unused,
    live_offsets,
)
from lance_engine.scan.partial import scan
from lance_engine.scan.system import ROW_ADDRESS
from lance_engine.table.commit import Others
from lance_engine.table.deletions import deletion_path
from lance_engine.table.rebase import TakenRows
from lance_engine.table.replaced import check_not_replaced
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import read_version
from lance_engine.write.fragments import data_paths, write_fragments

Offsets: TypeAlias = "npt.NDArray[np.int64]"
_NO_ROWS: Final = TakenRows({}, {})


@dataclasses.dataclass(frozen=True)
class _Composed:
    """A single operation equivalent to several ones, and the rows that it removes."""

    operation: Operation
    taken: TakenRows
    updated: tuple[Fragment, ...] = ()


class StagedChanges:
    """Operations on `base` that are invisible to others until `commit`.

    Operations are applied to `snapshot`, which has private versions after that of `base`; `advance` is called
    with the result of each successful operation. `store` is one that has no versions yet.
    """

    def __init__(self, base: Snapshot, store: StagedStore | None = None) -> None:
        self.base = base
        self._scheme = NamingScheme.V2
        if store is None:
            if not base.store.exists(self._scheme.path(base.version)):
                self._scheme = NamingScheme.V1
            store = StagedStore(base.store, self._scheme.path(base.version))
        self._store = store
        #: the newest private version, for operations
        self.snapshot = self._seen_through(self._store, base)

    @staticmethod
    def _seen_through(store: StagedStore, base: Snapshot) -> Snapshot:
        seen = Snapshot(
            store, base.manifest, index_section=base.index_section, storage_options=base.storage_options
        )
        seen.recorded_fragments = base.recorded_fragments
        return seen

    @property
    def is_changed(self) -> bool:
        """Whether an operation created a private version."""
        return self.snapshot.version != self.base.version

    def check(self) -> None:
        """CommitConflictError if `commit` cannot succeed, as far as nothing has to be read for it."""

    def view(self) -> Snapshot:
        """The newest private version for readers, who need none of the private files."""
        return self.base.with_manifest(self.snapshot.manifest) if self.is_changed else self.base

    def advance(self, snapshot: Snapshot) -> None:
        """`snapshot` is the result of an operation on the newest private version."""
        self.snapshot = snapshot

    def discard(self) -> None:
        """Discard all staged changes."""
        self._store.discard()

    def commit(
        self,
        validate: Callable[[Snapshot, Others], None] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Snapshot:
        """Commit the staged changes as one version, and return it; returns `base` if nothing changed.

        `validate` is called with the latest version, and with the commits of others after `base`, before our
        changes are committed on top of theirs. Errors are those of `lance_engine.table.commit.commit`; the
        staged changes are then discarded, unless it is unknown whether the commit took place.
        """
        try:
            if self.is_changed:  # whoever dropped the dataset removed staged files as well
                check_not_replaced(self.base, self.base.store, self._scheme)
            composed = self._composed() if self.is_changed else None
        except BaseException:
            self.discard()
            raise
        if composed is None:
            self.discard()
            return self.base
        files = frozenset(_paths(composed.operation)) & self._store.written
        self._store.discard(files)
        self._store.written.clear()  # the commit removes them, unless it may have taken place
        committed = commit(
            self.base.store,
            composed.operation,
            read_version=self.base.version,
            read=self.base,
            taken=composed.taken if composed.taken.offsets else None,
            files=sorted(files),
            storage_options=self.base.storage_options,
            properties=properties,
            validate=self._checked(composed.operation, validate),
        )
        drop_unused(committed, Removal(composed.taken, composed.updated, ()))
        return committed

    def _checked(
        self, operation: Operation, validate: Callable[[Snapshot, Others], None] | None
    ) -> Callable[[Snapshot, Others], None]:
        def check(latest: Snapshot, others: Others) -> None:
            if (
                isinstance(operation, Merge)
                and latest.manifest.max_fragment_id != self.base.manifest.max_fragment_id
            ):
                version, transaction = others[-1]
                kind = transaction.operation.kind.value
                raise CommitConflictError(
                    f"'merge' based on version {self.base.version} conflicts with '{kind}', which another "
                    f"writer committed as version {version}: it took the ids of new fragments",
                    path=self.base.uri,
                    version=version,
                    operation=kind,
                    remedy="Open the latest version and retry the change",
                )
            if validate is not None:
                validate(latest, others)

        return check

    def _operations(self) -> list[Operation]:
        operations = []
        for version in range(self.base.version + 1, self.snapshot.version + 1):
            stored = read_version(self._store, self._scheme.path(version), version)
            assert stored.transaction is not None
            operations.append(parse_transaction(stored.transaction).operation)
        return operations

    def _composed(self) -> _Composed | None:
        operations = self._operations()
        rows_only = all(
            isinstance(operation, Append | Delete)
            or (isinstance(operation, Update) and not operation.in_place)
            for operation in operations
        )
        taken, updated = self._taken(operations) if rows_only else (_NO_ROWS, ())
        if len(operations) == 1:
            return _Composed(operations[0], taken, updated)
        if not rows_only:
            return _Composed(self._merged(operations), _NO_ROWS)
        added = tuple(self._added())
        updates = [operation for operation in operations if isinstance(operation, Update)]
        keys = any(update.inserts_keys for update in updates)
        removed = tuple(sorted(taken.offsets.keys() - {fragment.id for fragment in updated}))
        if not taken.offsets and not added:
            return None
        if not taken.offsets and not keys:
            return _Composed(Append(added), taken)
        if not added:
            return _Composed(Delete(updated, removed), taken, updated)
        modified = sorted({field for update in updates for field in update.fields_modified})
        operation = Update(removed, updated, added, tuple(modified), inserts_keys=keys, inserts_rows=True)
        return _Composed(operation, taken, updated)

    def _taken(self, operations: Sequence[Operation]) -> tuple[TakenRows, tuple[Fragment, ...]]:
        """The removed rows of `base`, and the new state of the fragments that keep some rows."""
        numbers: set[int] = set()
        for operation in operations:
            if isinstance(operation, Delete | Update):
                numbers.update(fragment.id for fragment in operation.updated_fragments)
                numbers.update(operation.removed_fragment_ids)
        fragments: dict[int, Fragment] = {}
        offsets: dict[int, U32Array] = {}
        updated = []
        for number in sorted(number for number in numbers if number <= self._last_id()):
            fragment = fragments[number] = self.base.fragment(number)
            live = live_offsets(self.base, fragment).astype(np.uint32)
            try:
                now = self.snapshot.fragment(number)
            except KeyError:
                offsets[number] = live
                continue
            deleted = self.snapshot.deleted_rows(now)
            offsets[number] = (
                live[:0] if deleted is None else np.intersect1d(live, deleted, assume_unique=True)
            )
            updated.append(now)
        return TakenRows(fragments, offsets), tuple(updated)

    def _last_id(self) -> int:
        last = self.base.manifest.max_fragment_id
        return -1 if last is None else last

    def _merged(self, operations: Sequence[Operation]) -> Merge:
        """All fragments and the schema, if columns changed too: this conflicts with every other change."""
        first, last = self.base.manifest, self.snapshot.manifest
        if first.config != last.config or first.table_metadata != last.table_metadata:
            raise UnsupportedFeatureError(
                "Changes of the configuration cannot be committed together with other changes",
                path=self.base.uri,
                remedy="Commit them on their own",
            )
        kept = [fragment for fragment in self.snapshot.fragments if fragment.id <= self._last_id()]
        numbers = range(self._last_id() + 1, 1 << 32)
        added = [
            dataclasses.replace(fragment, id=number)
            for number, fragment in zip(numbers, self._added(), strict=False)
        ]
        preserved = all(
            operation.preserves_nullability
            for operation in operations
            if isinstance(operation, Merge | Project)
        )
        return Merge((*kept, *added), self.snapshot.schema, preserves_nullability=preserved)

    def _added(self) -> Iterator[Fragment]:
        """The new fragments for a commit: without deleted rows, and with moved rows first.

        The commit assigns the ids of rows that are not in `base`.
        """
        for fragment in self.snapshot.fragments:
            if fragment.id <= self._last_id():
                continue
            offsets = live_offsets(self.snapshot, fragment)
            moved = np.zeros(len(offsets), dtype=np.bool_)
            if self.snapshot.has_stable_row_ids:
                moved = self.snapshot.row_ids(fragment, offsets) < np.uint64(self.base.manifest.next_row_id)
            whole = len(offsets) == fragment.physical_rows
            if whole and (moved[:-1] >= moved[1:]).all():
                plain = dataclasses.replace(fragment, id=0, deletion_file=None)
                yield self._with_lineage(plain, fragment, offsets[moved])
                continue
            for part, keeps_ids in ((offsets[moved], True), (offsets[~moved], False)):
                start = 0
                options = write_options(self.snapshot)
                rows = self._rows(fragment, part)
                for new in write_fragments(self._store, self.snapshot.schema, rows, options):
                    stop = start + new.physical_rows
                    yield self._with_lineage(new, fragment, part[start:stop] if keeps_ids else part[:0])
                    start = stop

    def _with_lineage(self, new: Fragment, old: Fragment, moved: Offsets) -> Fragment:
        """`new` with the ids of the rows that were at the offsets `moved` of `old`."""
        row_ids = created = None
        if len(moved) and self.snapshot.has_stable_row_ids:
            row_ids = encode_row_ids(self.snapshot.row_ids(old, moved))
            created = encode_versions(self.snapshot.created_at_versions(old)[moved])
        return dataclasses.replace(
            new, row_ids=row_ids, created_at_versions=created, last_updated_at_versions=None
        )

    def _rows(self, fragment: Fragment, offsets: Offsets) -> Iterator[pa.RecordBatch]:
        """The rows at ascending offsets of a fragment."""
        if not len(offsets):
            return
        names = self.snapshot.schema.names
        addresses = (np.uint64(fragment.id) << np.uint64(32)) + offsets.astype(np.uint64)
        for batch in scan(self.snapshot, [*names, ROW_ADDRESS], fragments=[fragment]).to_batches():
            wanted = np.isin(batch.column(batch.num_columns - 1).to_numpy(), addresses)
            yield batch.select(names).filter(pa.array(wanted))


def _paths(operation: Operation) -> list[str]:
    """The files that an operation refers to."""
    fragments: list[Fragment] = []
    for name in ("fragments", "new_fragments", "updated_fragments"):
        fragments += getattr(operation, name, ())
    deletions = [
        deletion_path(fragment.id, fragment.deletion_file)
        for fragment in fragments
        if fragment.deletion_file is not None
    ]
    return [*data_paths(fragments), *deletions]
