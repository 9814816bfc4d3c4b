"""Creates new versions: optimistic, atomic, and rebased over concurrent commits."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from lance_engine.errors import (
    CommitConflictError,
    DatasetExistsError,
    DatasetNotFoundError,
    IncompatibleChangeError,
    LanceError,
    StorageError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from lance_engine.events import emit
from lance_engine.format.manifest import Manifest, serialize_manifest_file
from lance_engine.format.operations import Delete, Operation, Overwrite, Restore, Update
from lance_engine.format.transaction import Transaction, parse_transaction, serialize_transaction
from lance_engine.io.manifest_names import NamingScheme
from lance_engine.io.resolve import open_store
from lance_engine.io.store import Store, delete_quietly
from lance_engine.table.auto_cleanup import clean_up_if_due
from lance_engine.table.build import CreateOptions, VersionContent, build_version
from lance_engine.table.conflicts import Verdict, check
from lance_engine.table.constraints import constraints_of
from lance_engine.table.features import NO_TRANSACTION_FILES, check_writable
from lance_engine.table.hint import write_hint
from lance_engine.table.rebase import TakenRows, rebase
from lance_engine.table.replaced import check_not_replaced
from lance_engine.table.row_counts import check_ids, with_row_counts
from lance_engine.table.snapshot import TRANSACTIONS, Snapshot
from lance_engine.table.versions import (
    StoredVersion,
    find_latest,
    read_version,
)

#: Concurrent commits: versions and transactions, ascending.
Others: TypeAlias = Sequence[tuple[int, Transaction]]
#: Checks a version before it is written: that version, the latest one, the one that was read, the operation.
Check: TypeAlias = Callable[[Snapshot, Snapshot | None, Snapshot | None, Operation], None]

MAX_ATTEMPTS: Final = 20
# Limits in seconds; and in slots, for slow storage such as object stores.
_LONGEST_PAUSE, _LONGEST_SLOTS = 5.0, 16


def commit(
    target: str | os.PathLike[str] | Store,
    operation: Operation,
    *,
    read_version: int,
    read: Snapshot | None = None,
    options: CreateOptions | None = None,
    properties: Mapping[str, str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    taken: TakenRows | None = None,
    files: Sequence[str] = (),
    max_attempts: int = MAX_ATTEMPTS,
    transaction_id: str | None = None,
    validate: Callable[[Snapshot, Others], None] | None = None,
    checks: Callable[[], Check] | None = None,
) -> Snapshot:
    """Commit an operation and return the new version.

    `read_version` is the version on which the operation is based; 0 creates the dataset (Overwrite only).
    `read` is that version, if available, so that it is not read again. If others committed since, the
    operation is checked against theirs and applied on top. `taken` are the rows that a Delete or Update
    removes: with it, others may have deleted other rows of the same fragments concurrently. `files` were
    written for the operation; they are removed if the commit fails and certainly did not take place. If an
    error of storage while writing the manifest, such as a lost connection, leaves that unknown, they are
    kept. Among commits with the same `transaction_id` (a UUID, random by default) and the same
    `read_version`, only one takes place; the others return its version. `validate` is called before each
    attempt with the latest version and the commits of others since `read_version`, if any, and raises an
    error if the operation must not be committed after them. `checks` makes the check of the constraints of
    the table (`lance_engine.constraints.commit`); without it, rows cannot be written to a table that has any.

    CommitConflictError: the operation has to be repeated on the latest version. IncompatibleChangeError: it
    no longer applies. Both name the conflicting version and operation. DatasetExistsError: `read_version` is
    0 and the dataset exists.
    """
    begin = time.monotonic()
    store = open_store(target, storage_options)
    identifier = transaction_id or str(uuid.uuid4())
    transaction = Transaction(read_version, identifier, _with_keys(operation, read), dict(properties or {}))
    attempt = _Attempt(
        store, transaction, operation, options or CreateOptions(), storage_options, taken, read
    )
    attempt.validate = validate
    attempt.check = None if checks is None else checks()
    try:
        slot = 0.0
        for number in range(max_attempts):
            started = time.monotonic()
            snapshot = attempt.run()
            if snapshot is not None:
                break
            slot = slot or 1.1 * (time.monotonic() - started)
            # Other writers are active: wait for a random number of slots, doubling the maximum each time.
            time.sleep(min(max(_LONGEST_PAUSE, _LONGEST_SLOTS * slot), slot * random.uniform(0, 4 << number)))
        else:
            raise CommitConflictError(
                f"Gave up after losing to concurrent commits {max_attempts} times in a row",
                path=store.uri,
                version=attempt.checked,
                remedy="Retry with fewer concurrent writers",
            )
    except BaseException:
        # Every manifest contains a copy of its transaction: the file can be removed even if the version
        # exists.
        attempt.remove_transaction_file()
        if not attempt.outcome_unknown:
            attempt.remove_deletion_files()
            delete_quietly(store, files)
        raise
    emit(
        "commit", time.monotonic() - begin, path=store.uri, version=snapshot.version,
        operation=type(operation).__name__, attempts=number + 1,
    )  # fmt: skip
    clean_up_if_due(snapshot)
    return snapshot


def _with_keys(operation: Operation, read: Snapshot | None) -> Operation:
    """The operation, marked for other writers if it inserts or changes keys of the table.

    Ours check the keys themselves, so that the mark does not make this operation conflict with theirs.
    """
    if not isinstance(operation, Update) or read is None or operation.inserts_keys:
        return operation
    fields = {field for key in constraints_of(read.schema).keys for field in key.fields}
    changes_keys = not fields.isdisjoint(operation.fields_modified)
    if not changes_keys and not (operation.inserts_rows and fields):
        return operation
    return dataclasses.replace(operation, inserts_keys=True)


class _Attempt:
    """The state of one commit over its attempts."""

    def __init__(
        self,
        store: Store,
        transaction: Transaction,
        operation: Operation,
        options: CreateOptions,
        storage_options: Mapping[str, Any] | None,
        taken: TakenRows | None,
        read: Snapshot | None,
    ) -> None:
        self._read = read
        self._store = store
        self.validate: Callable[[Snapshot, Others], None] | None = None
        self.check: Check | None = None
        self._others: list[tuple[int, Transaction]] = []
        self._transaction = transaction
        self._options = options
        self._storage_options = storage_options
        # The operation as requested; that of the transaction is adapted to concurrent commits and to keys.
        self._operation = operation
        # The rows that it removes, if they are known: others may have removed different ones.
        self._removal: tuple[Delete | Update, TakenRows] | None = None
        if taken is not None and taken.offsets and isinstance(transaction.operation, Delete | Update):
            self._removal = (transaction.operation, taken)
        self._deletion_files: tuple[str, ...] = ()
        self.outcome_unknown = False
        # The last commit of another writer that may have changed the same fragments.
        self._overlapping: tuple[int, Operation] | None = None
        self._content = serialize_transaction(transaction)
        self._wrote_file = False
        # The last version whose transaction is known not to conflict with ours.
        self.checked = transaction.read_version

    def run(self) -> Snapshot | None:
        """Try once; None if another writer created the version."""
        latest = find_latest(self._store)
        if latest is None:
            return self._create()
        version, scheme = latest
        try:
            stored = self._latest(version, scheme)
        except FileNotFoundError:
            return None  # newer versions came since the listing, and a cleanup has removed this one
        created = self._created(stored, scheme) if not self._transaction.read_version else None
        if created is not None:
            return self._snapshot(created.manifest, created.index_section)
        self._check_base(stored.manifest)
        if self._read is not None:
            check_not_replaced(self._read, self._store, scheme)
        own = self._check_conflicts(stored, scheme)
        if own is not None:
            return self._snapshot(own.manifest, own.index_section)
        if self.validate is not None and self._others:
            self.validate(self._snapshot(stored.manifest, stored.index_section), self._others)
        if self._removal is not None and self._overlapping is not None:
            latest_snapshot = self._snapshot(stored.manifest, stored.index_section)
            self._rebase(latest_snapshot, *self._removal, *self._overlapping)
        content = VersionContent(stored.manifest, stored.index_section)
        return self._write(content, scheme, self._restored(scheme))

    def _latest(self, version: int, scheme: NamingScheme) -> StoredVersion:
        read = self._read
        if read is not None and read.version == version == self._transaction.read_version:
            check_ids(read.recorded_fragments, version)
            return StoredVersion(read.manifest, read.index_section, None)
        stored = read_version(self._store, scheme.path(version), version)
        check_ids(stored.manifest.fragments, version)
        # Wrong row counts from early writers would be trusted once we are the writer.
        counted = with_row_counts(self._snapshot(stored.manifest, stored.index_section))
        return stored._replace(manifest=counted.manifest)

    def remove_deletion_files(self) -> None:
        """Remove the files written for adapting the operation, if no version uses them."""
        delete_quietly(self._store, self._deletion_files)
        self._deletion_files = ()

    def remove_transaction_file(self) -> None:
        """Clean up after a commit that failed permanently."""
        if self._wrote_file:
            with contextlib.suppress(OSError, LanceError):
                self._store.delete(f"{TRANSACTIONS}/{self._transaction.file_name}")

    def _create(self) -> Snapshot | None:
        if self._transaction.read_version or not isinstance(self._transaction.operation, Overwrite):
            raise DatasetNotFoundError("No Lance dataset to commit to", path=self._store.uri)
        return self._write(None, NamingScheme.V2)

    def _restored(self, scheme: NamingScheme) -> VersionContent | None:
        """The version for a Restore."""
        operation = self._transaction.operation
        if not isinstance(operation, Restore):
            return None
        try:
            stored = read_version(self._store, scheme.path(operation.version), operation.version)
        except FileNotFoundError:
            raise VersionNotFoundError(
                f"No version {operation.version} to restore", path=self._store.uri
            ) from None
        check_writable(stored.manifest)
        return VersionContent(stored.manifest, stored.index_section)

    def _rebase(
        self, latest: Snapshot, operation: Delete | Update, taken: TakenRows, version: int, theirs: Operation
    ) -> None:
        """Adapt the operation to fragments that others have changed as well."""
        self.remove_deletion_files()
        try:
            rebased = rebase(operation, taken, latest)
        except CommitConflictError as error:
            raise self._conflict(theirs, version, f": {error.message}") from None
        self._deletion_files = rebased.written
        if rebased.operation == self._transaction.operation:
            return
        self.remove_transaction_file()
        self._wrote_file = False
        self._transaction = dataclasses.replace(
            self._transaction, operation=rebased.operation, read_version=latest.version
        )
        self._content = serialize_transaction(self._transaction)

    def _check_base(self, latest: Manifest) -> None:
        if not self._transaction.read_version:
            raise DatasetExistsError(
                "A dataset already exists at this path",
                path=self._store.uri,
                version=latest.version,
                remedy="Append to it, overwrite it or choose another path",
            )
        if latest.version < self._transaction.read_version:
            read = self._transaction.read_version
            raise VersionNotFoundError(
                f"The change is based on version {read}, but the latest version is {latest.version}",
                path=self._store.uri,
            )
        try:
            check_writable(latest)
        except UnsupportedFeatureError as error:
            raise error.at(path=self._store.uri) from None

    def _check_conflicts(self, latest: StoredVersion, scheme: NamingScheme) -> StoredVersion | None:
        """Check the commits since the last call; returns the version that is our own commit, if any.

        That happens if storage reports a conflict for a request that it had already carried out, and that was
        repeated after a lost response.
        """
        for version in range(self.checked + 1, latest.manifest.version + 1):
            stored = latest
            if version != latest.manifest.version:
                try:
                    stored = read_version(self._store, scheme.path(version), version)
                except FileNotFoundError:
                    raise self._unknown(version, "was cleaned up") from None
            theirs = self._load_transaction(stored)
            if theirs.uuid == self._transaction.uuid:
                return stored
            self._check_conflict(theirs.operation, version)
            self._others.append((version, theirs))
            self.checked = version
        return None

    def _created(self, latest: StoredVersion, scheme: NamingScheme) -> StoredVersion | None:
        """The first version if it is our own commit, as `_check_conflicts` returns later ones."""
        if not self._wrote_file:
            return None
        try:
            first = latest if latest.manifest.version == 1 else read_version(self._store, scheme.path(1), 1)
        except FileNotFoundError:
            return None
        is_own = (
            first.transaction is not None and self._load_transaction(first).uuid == self._transaction.uuid
        )
        return first if is_own else None

    def _load_transaction(self, stored: StoredVersion) -> Transaction:
        version = stored.manifest.version
        try:
            if stored.transaction is not None:
                return parse_transaction(stored.transaction)
            if not stored.manifest.transaction_file:
                raise self._unknown(version, "has no transaction")
            return parse_transaction(self._store.read(f"{TRANSACTIONS}/{stored.manifest.transaction_file}"))
        except FileNotFoundError:
            raise self._unknown(version, "is missing its transaction file") from None
        except LanceError as error:
            raise error.at(path=self._store.uri, version=version) from None

    def _unknown(self, version: int, why: str) -> CommitConflictError:
        read = self._transaction.read_version
        return CommitConflictError(
            f"Cannot determine what changed since version {read}: version {version} {why}",
            path=self._store.uri,
            version=version,
            remedy="Open the latest version and retry the change",
        )

    def _check_conflict(self, theirs: Operation, version: int) -> None:
        verdict = check(self._operation, theirs)
        if verdict > (Verdict.COMPATIBLE if self._removal is None else Verdict.REBASE):
            raise self._conflict(theirs, version, incompatible=verdict is Verdict.INCOMPATIBLE)
        # Even if compatible: dropping a column changes the files in the fragment.
        self._overlapping = (version, theirs)

    def _conflict(
        self, theirs: Operation, version: int, detail: str = "", *, incompatible: bool = False
    ) -> CommitConflictError | IncompatibleChangeError:
        message = (
            f"'{self._operation.kind.value}' based on version {self._transaction.read_version} conflicts "
            f"with '{theirs.kind.value}', which another writer committed as version {version}{detail}"
        )
        place = {"path": self._store.uri, "version": version, "operation": theirs.kind.value}
        if incompatible:
            remedy = "Check whether you still want this change"
            return IncompatibleChangeError(message, remedy=remedy, **place)
        return CommitConflictError(message, remedy="Open the latest version and retry the change", **place)

    def _write(
        self, latest: VersionContent | None, scheme: NamingScheme, restored: VersionContent | None = None
    ) -> Snapshot | None:
        unwanted = latest is not None and latest.manifest.writer_feature_flags & NO_TRANSACTION_FILES
        transaction_file = "" if unwanted else self._transaction.file_name
        version = build_version(
            latest, self._transaction.operation, self._options, transaction_file, restored
        )
        manifest, index_section = version.manifest, version.index_section
        self._check_constraints(latest, version)
        if transaction_file and not self._wrote_file:
            self._wrote_file = True
            self._store.put(f"{TRANSACTIONS}/{transaction_file}", self._content)
        data = serialize_manifest_file(manifest, index_section=index_section, transaction=self._content)
        # From here on, an interruption may come after the version was created.
        self.outcome_unknown = True
        try:
            self._store.put_if_absent(scheme.path(manifest.version), data)
        except FileExistsError:
            self.outcome_unknown = False
            return None
        except StorageError:
            raise
        except LanceError:
            self.outcome_unknown = False
            raise
        write_hint(self._store, manifest.version)
        return self._snapshot(manifest, index_section)

    def _check_constraints(self, latest: VersionContent | None, version: VersionContent) -> None:
        if self.check is None:
            constraints = constraints_of(version.manifest.schema)
            if constraints.enforced or constraints.checks:
                raise UnsupportedFeatureError(
                    "The constraints of the table need a check", path=self._store.uri
                )
            return
        before = None if latest is None else self._snapshot(latest.manifest, latest.index_section)
        after = self._snapshot(version.manifest, version.index_section)
        self.check(after, before, self._read, self._transaction.operation)

    def _snapshot(self, manifest: Manifest, index_section: bytes | None) -> Snapshot:
        return Snapshot(
            self._store, manifest, index_section=index_section, storage_options=self._storage_options
        )
