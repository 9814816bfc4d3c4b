"""A write job: the files of its tasks, and how the driver commits or removes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import pyarrow as pa
from lance_engine.base import Schema
from lance_engine.errors import (
    CommitConflictError,
    DatasetExistsError,
    InvalidFilterError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from lance_engine.operations import (
    add_column_values,
    commit_moved,
    commit_transaction,
    delete_rows,
    matching_addresses,
    with_columns,
)
from lance_engine.table import (
    Append,
    CreateOptions,
    Fragment,
    Overwrite,
    Snapshot,
    fragment_from_bytes,
    fragment_to_bytes,
    open_snapshot,
)
from lance_engine.write import (
    ProfileName,
    WriteOptions,
    ZoneMapForm,
    check_extension,
    check_writable,
    data_paths,
    storage_version_for,
    with_blobs_v2,
    write_fragments,
)
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from lance_sql.spark.job_files import JobFiles
from lance_sql.spark.options import Options
from lance_sql.spark.pushed import row_filter
from lance_sql.spark.table_properties import declared_in
from lance_sql.spark.types import (
    check_fits,
    check_storable,
    stored_schema,
    with_compression,
    with_fixed_sizes,
)
from lance_sql.spark.versions import arrow_schema


@dataclasses.dataclass
class WrittenFragments(WriterCommitMessage):
    """Output of one task: serialized fragments without ids, which the commit assigns."""

    fragments: list[bytes]


class WriteJob:
    """Planned on the driver, sent to every task, then used by the driver to commit or to abort.

    Unsupported data is rejected when the job is created, before any task runs.
    """

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        declared = declared_in(options)
        if declared is not None:
            options = dataclasses.replace(
                options,
                data_storage_version=options.data_storage_version or declared.data_storage_version,
                stable_row_ids=(
                    declared.stable_row_ids if options.stable_row_ids is None else options.stable_row_ids
                ),
            )
        existing = _read(options)
        if existing is not None and overwrite and options.keeps_schema and declared is None:
            version = options.data_storage_version or existing.manifest.storage_version
            # Files of version 0.1 can only be read.
            options = dataclasses.replace(options, data_storage_version=None if version == "0.1" else version)
        self.options = options
        if existing is not None and options.create:
            raise _exists(existing.uri)
        if existing is None:
            check_extension(options.path)
        else:
            check_stable_row_ids(existing, options.stable_row_ids)
        extended = None if overwrite else existing
        self.read_version = existing.version if existing else 0
        self._files = JobFiles(options, self.read_version)
        self.replaces = extended is None
        check_storable(schema)
        offered = arrow_schema(schema)
        self._added: pa.Schema | None = None
        #: the columns and constraints that stay when rows are replaced
        self._kept: pa.Schema | None = None
        if extended is None:
            created = self._created(existing, schema)
            created = with_fixed_sizes(created, options.fixed_size_lists or {})
            created = with_compression(created, options.compression)
            if WriteOptions(storage_version_for(options.data_storage_version, None, created)).version >= (
                2,
                2,
            ):
                created = with_blobs_v2(created)
            self._schema = Schema.from_arrow(created)
        else:
            created = None
            self._schema = self._extended(extended, offered)
            if self._added is not None and options.replaced_rows is not None:
                raise UnsupportedFeatureError(
                    "Rows cannot be replaced by rows with more columns",
                    path=extended.uri,
                    remedy="Add the columns first: ALTER TABLE t ADD COLUMNS (...)",
                )
        self._storage_version = storage_version_for(options.data_storage_version, extended, created)
        check_fits(offered, self._schema)
        check_writable(self._schema, self._write_options().version)

    def _created(self, existing: Snapshot | None, schema: StructType) -> pa.Schema:
        """The columns of a new table; those of a catalog stay, with constraints, when rows are replaced."""
        declared = declared_in(self.options)
        if declared is not None:
            return declared.schema
        if existing is None or not self.options.keeps_schema or self.options.merge_schema:
            return stored_schema(schema)
        self._kept = existing.schema.to_arrow()
        return self._kept

    def write(self, batches: Iterable[pa.RecordBatch]) -> WrittenFragments:
        """In a task: write the batches to data files. A failing task leaves no file behind."""
        fragments = write_fragments(self.options.store(), self._schema, batches, self._write_options())
        return WrittenFragments([fragment_to_bytes(fragment) for fragment in fragments])

    def publish(
        self,
        messages: Iterable[WriterCommitMessage | None],
        *,
        replaces: bool | None = None,
        read_version: int | None = None,
        transaction_id: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Snapshot | None:
        """Commit the fragments of all tasks as one version; None if there was nothing to append.

        By default, the dataset may have new versions since the job was planned.
        """
        fragments = fragments_of(messages)
        if self.options.replaced_rows is not None:
            return self._replace_rows(self.options.replaced_rows, fragments)
        store, paths = self.options.store(), data_paths(fragments)
        version = self.read_version if read_version is None else read_version
        replaces = self.replaces if replaces is None else replaces
        if not replaces and not fragments and self._added is None and transaction_id is None:
            return None
        operation: Append | Overwrite = Append(fragments)
        created = None
        if replaces:
            operation = Overwrite(fragments, self._schema)
            created = CreateOptions(
                storage_version=self._storage_version, stable_row_ids=bool(self.options.stable_row_ids)
            )
        elif self._added is not None:
            version = self._add_columns()
        committed = commit_transaction(
            store,
            operation,
            read_version=version,
            options=created,
            files=paths,
            transaction_id=transaction_id,
            properties=properties,
            storage_options=self.options.storage_options,
            validate=(lambda latest, _: self.require_kept_schema(latest)) if replaces else None,
        )
        self._files.remove_duplicates(set(paths))
        return committed

    def _replace_rows(self, told: Mapping[str, Any], fragments: Sequence[Fragment]) -> Snapshot:
        """Commit the fragments in the place of the rows that passed filters in the version that was read."""
        read = dataclasses.replace(self.options, version=self.read_version)
        snapshot = read.open().snapshot
        condition = row_filter(dataclasses.replace(read, pushed_filters=told["filters"]), snapshot)
        if condition is None:
            raise InvalidFilterError(f"Unsupported filters: {told['filters']}", path=snapshot.uri)
        gone = matching_addresses(snapshot, condition)
        committed = snapshot
        if fragments:
            committed = commit_moved(
                snapshot, (), [], fragments, deleted=gone, inserts_keys=True, inserts_rows=True
            )
        elif len(gone):
            committed = delete_rows(snapshot, gone, str(condition))
        self._files.remove_duplicates(set(data_paths(fragments)))
        return committed

    def discard(self) -> None:
        """Remove whatever the tasks of this job wrote; see `JobFiles.discard`."""
        self._files.discard()

    def require_same_schema(self, current: Snapshot) -> None:
        """SchemaMismatchError if the fragments of this job no longer match the dataset."""
        now = {field.name: (field.id, field.logical_type) for field in current.schema.fields}
        for field in self._schema.fields:
            if now.get(field.name) != (field.id, field.logical_type):
                raise SchemaMismatchError(
                    "The columns of the dataset changed during this write",
                    path=current.uri,
                    version=current.version,
                    column=field.name,
                    remedy="Retry the write",
                )

    def require_kept_schema(self, current: Snapshot) -> None:
        """CommitConflictError if the dataset has other columns or constraints than those that stay.

        The format lets rows be replaced after such a change, with the schema of the new rows.
        """
        now = current.schema.to_arrow()
        if self._kept is None or now.equals(self._kept, check_metadata=True):
            return
        if not now.equals(self._schema.to_arrow(), check_metadata=True):  # of an earlier batch of a stream
            raise CommitConflictError(
                "Another writer changed the columns or constraints at the same time",
                path=current.uri,
                version=current.version,
                remedy="Write again",
            )

    def _extended(self, existing: Snapshot, offered: pa.Schema) -> Schema:
        """The schema of the dataset, including the columns that it will get."""
        if not self.options.merge_schema:
            return existing.schema
        known = set(existing.schema.names)
        new = [field.with_nullable(True) for field in offered if field.name not in known]
        if not new:
            return existing.schema
        names = {field.name for field in new}
        sizes = {name: size for name, size in (self.options.fixed_size_lists or {}).items() if name in names}
        self._added = with_fixed_sizes(pa.schema(new), sizes)
        return with_columns(existing, self._added)[1]

    def _add_columns(self) -> int:
        """Add the columns that the data has and the dataset lacks, filled with nulls; returns the version.

        Done after all tasks: a failed job adds no columns.
        """
        assert self._added is not None
        latest = open_snapshot(self.options.store(), storage_options=self.options.storage_options)
        if latest.schema != self._schema:
            latest = add_column_values(latest, self._added)
            if [field.id for field in latest.schema.fields] != [field.id for field in self._schema.fields]:
                raise CommitConflictError(
                    "Another writer changed the columns at the same time",
                    path=latest.uri,
                    version=latest.version,
                    remedy="Write again",
                )
        return latest.version

    def _write_options(self) -> WriteOptions:
        return WriteOptions(
            data_storage_version=self._storage_version,
            max_rows_per_file=self.options.max_rows_per_file,
            max_bytes_per_file=self.options.max_bytes_per_file,
            profile=cast(ProfileName, self.options.profile),
            zone_maps=self.options.zone_maps,
            zone_rows=self.options.zone_rows,
            zone_index=cast(ZoneMapForm, self.options.zone_index),
            file_tag=self._files.tag,
        )


def _read(options: Options) -> Snapshot | None:
    """The version that a write is based on; None if there is no dataset."""
    version = None if options.replaced_rows is None else options.replaced_rows.get("version")
    return (
        options.latest() if version is None else dataclasses.replace(options, version=version).open().snapshot
    )


def check_stable_row_ids(existing: Snapshot, wanted: bool | None) -> None:
    """UnsupportedFeatureError if a write asks for another kind of row ids than the dataset has."""
    if wanted is not None and wanted != existing.has_stable_row_ids:
        raise UnsupportedFeatureError(
            "Whether row ids are stable is decided when a dataset is created",
            path=existing.uri,
            remedy="Leave out stable_row_ids, or write to a new dataset",
        )


def fragments_of(messages: Iterable[WriterCommitMessage | None]) -> tuple[Fragment, ...]:
    """The fragments that finished tasks wrote."""
    written = (message.fragments for message in messages if isinstance(message, WrittenFragments))
    return tuple(fragment_from_bytes(data) for task in written for data in task)


def _exists(path: str) -> DatasetExistsError:
    return DatasetExistsError(
        "A dataset already exists", path=path, remedy='Use the mode "append" or "overwrite"'
    )
