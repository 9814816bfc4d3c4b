"""A dataset that several operations create, and that appears as a whole, when they are committed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from lance_engine.constraints.commit import commit
from lance_engine.errors import CommitConflictError, DatasetExistsError, UnsupportedFeatureError
from lance_engine.format.manifest import Manifest
from lance_engine.format.operations import Operation, Overwrite
from lance_engine.io.local import LocalStore, removing_new_folders
from lance_engine.io.local_files import LocalErrors
from lance_engine.io.staged_store import StagedStore
from lance_engine.io.store import Store, delete_quietly
from lance_engine.operations.staged import StagedChanges
from lance_engine.schema_tree import Schema
from lance_engine.table.build import CreateOptions
from lance_engine.table.commit import Others
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import find_latest
from lance_engine.write.fragments import data_paths

_COPIED_BYTES: Final = 8 << 20


class StagedCreation(StagedChanges):
    """Operations that create the dataset at `target`, or the next version of `replaced` with other contents.

    Until `commit`, its files are in a hidden folder of their own: next to a local target, otherwise in the
    folder for temporary files.
    """

    def __init__(
        self,
        target: Store,
        storage_options: Mapping[str, Any] | None = None,
        replaced: Snapshot | None = None,
    ) -> None:
        self.target = target
        self.replaced = replaced
        self._folder = _staging_folder(target)
        store = StagedStore(LocalStore(self._folder), uri=target.uri)
        nothing = Manifest(version=0, schema=Schema(()), fragments=())
        super().__init__(Snapshot(store, nothing, storage_options=storage_options), store)

    def move(self, target: Store, replaced: Snapshot | None) -> None:
        """Create the dataset at another place, where it replaces another one."""
        self.target, self.replaced = target, replaced
        self._store.uri = target.uri

    def discard(self) -> None:
        """Discard everything."""
        super().discard()
        shutil.rmtree(self._folder, ignore_errors=True)

    def check(self) -> None:
        if self.replaced is None and find_latest(self.target) is not None:
            raise self._conflict()

    def commit(
        self,
        validate: Callable[[Snapshot, Others], None] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Snapshot:
        """Commit the dataset as one version, and return it.

        Errors are those of `StagedChanges.commit`; CommitConflictError also if another writer has created a
        dataset at this place.
        """
        replaced = self.replaced
        try:
            operation = self._overwrite()
            files = data_paths(operation.fragments)
            with removing_new_folders(self.target):
                self._publish(files)
                return commit(
                    self.target,
                    operation,
                    read_version=0 if replaced is None else replaced.version,
                    read=replaced,
                    options=CreateOptions(storage_version=self.snapshot.manifest.storage_version),
                    files=files,
                    storage_options=self.base.storage_options,
                    properties=properties,
                    validate=validate,
                )
        except DatasetExistsError as error:
            raise self._conflict() from error
        finally:
            self.discard()

    def _overwrite(self) -> Overwrite:
        """All operations as one."""
        manifest = self.snapshot.manifest
        if manifest.table_metadata:
            raise UnsupportedFeatureError(
                "Metadata of a table cannot be set in the transaction that creates it",
                path=self.target.uri,
                remedy="Set it after COMMIT",
            )
        operations: list[Operation] = self._operations()
        if len(operations) == 1 and isinstance(operations[0], Overwrite):
            return operations[0]
        return Overwrite(tuple(self._added()), self.snapshot.schema, dict(manifest.config))

    def _publish(self, paths: Iterable[str]) -> None:
        """Move files to the dataset, whose versions do not refer to them yet."""
        moved: list[str] = []
        try:
            for path in paths:
                moved.append(path)
                _move(self._store, self.target, path)
        except BaseException:
            delete_quietly(self.target, moved)
            raise

    def _conflict(self) -> CommitConflictError:
        return CommitConflictError(
            "Another writer has created a dataset at this path",
            path=self.target.uri,
            remedy="Run the transaction again",
        )


def _staging_folder(target: Store) -> str:
    """A new folder on the disk of a local target, or else for temporary files."""
    inside = target.local_path("data")
    parent = None if inside is None else os.path.dirname(os.path.dirname(inside))
    while parent is not None and not os.path.isdir(parent):
        parent = os.path.dirname(parent)
    with LocalErrors(parent or tempfile.gettempdir(), writing=True):
        return tempfile.mkdtemp(prefix=".", suffix=".staged", dir=parent)


def _move(source: Store, target: Store, path: str) -> None:
    held, wanted = source.local_path(path), target.local_path(path)
    if held is not None and wanted is not None:
        with LocalErrors(wanted, writing=True):
            os.makedirs(os.path.dirname(wanted), exist_ok=True)
            shutil.move(held, wanted)
        return
    size = source.size(path)
    with target.create(path) as sink:
        for start in range(0, size, _COPIED_BYTES):
            sink.write(source.read(path, start, min(_COPIED_BYTES, size - start)))
