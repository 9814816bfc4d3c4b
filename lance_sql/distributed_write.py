"""Distributed writes: tasks in several processes write files, and one commit publishes them as a version."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from lance_engine.base import Schema
from lance_engine.errors import DatasetExistsError, DatasetNotFoundError, InvalidArgumentError, LanceError
from lance_engine.io import delete_quietly, open_store
from lance_engine.operations import commit_transaction
from lance_engine.table import (
    Append,
    CreateOptions,
    Overwrite,
    find_snapshot,
    fragment_from_bytes,
    fragment_to_bytes,
)
from lance_engine.write import (
    DATA_FOLDER,
    WriteOptions,
    check_compatible,
    check_extension,
    data_paths,
    storage_version_for,
    write_fragments,
)


class DistributedWrite:
    """Created by the driver, sent to every task, then used by the driver to commit or to remove the files.

    `mode` is the same as in ``lance_sql.write``. Tasks that run twice add their rows once.
    """

    def __init__(
        self,
        uri: str,
        mode: str,
        schema: pa.Schema,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        if mode not in ("create", "append", "overwrite"):
            raise InvalidArgumentError(f'mode must be "create", "append" or "overwrite", not {mode!r}')
        self._uri, self._storage_options = uri, storage_options
        store = open_store(uri, storage_options)
        existing = find_snapshot(store, storage_options)
        if mode == "create" and existing is not None:
            raise DatasetExistsError(
                "A dataset already exists", path=store.uri, remedy='Use mode="append" or mode="overwrite"'
            )
        if mode == "append" and existing is None:
            raise DatasetNotFoundError("No dataset to append to", path=store.uri, remedy='Use mode="create"')
        if existing is None:
            check_extension(store.uri)
        self._read_version = 0 if existing is None else existing.version
        self._extends = mode == "append"
        extended = existing if self._extends else None
        version = storage_version_for(None, extended, schema)
        if extended is None:
            self._schema = Schema.from_arrow(schema)
        else:
            check_compatible(schema, extended.schema.to_arrow())
            self._schema = extended.schema
        self._tag = uuid.uuid4().hex
        self._options = WriteOptions(data_storage_version=version, file_tag=self._tag)

    def write(self, batches: Iterable[pa.RecordBatch]) -> list[bytes]:
        """In a task: write data files; returns the information that `commit` needs."""
        store = open_store(self._uri, self._storage_options)
        return [
            fragment_to_bytes(part) for part in write_fragments(store, self._schema, batches, self._options)
        ]

    def commit(self, parts: Iterable[bytes]) -> int:
        """Commit the files of the tasks as one version; its number. Other files of the tasks are removed."""
        fragments = tuple(fragment_from_bytes(part) for part in parts)
        paths = data_paths(fragments)
        created = None
        operation: Append | Overwrite = Append(fragments)
        if not self._extends:
            operation = Overwrite(fragments, self._schema)
            created = CreateOptions(storage_version=self._options.data_storage_version, stable_row_ids=False)
        committed = commit_transaction(
            open_store(self._uri, self._storage_options),
            operation,
            read_version=self._read_version,
            options=created,
            files=paths,
            storage_options=self._storage_options,
        )
        self.discard(set(paths))
        return committed.version

    def discard(self, kept: Iterable[str] = ()) -> None:
        """Remove the files that tasks wrote, except `kept`."""
        store = open_store(self._uri, self._storage_options)
        with contextlib.suppress(OSError, LanceError):
            written = [path for path in store.list(DATA_FOLDER) if self._tag in path]
            delete_quietly(store, [path for path in written if path not in set(kept)])
