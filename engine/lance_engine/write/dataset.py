"""Creates, extends and replaces datasets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from lance_engine.constraints.commit import commit
from lance_engine.constraints.declared import declared_key
from lance_engine.encodings.profile import ProfileName
from lance_engine.errors import (
    DatasetExistsError,
    DatasetNotFoundError,
    InvalidArgumentError,
    UnsupportedFeatureError,
)
from lance_engine.format.fragment import Fragment
from lance_engine.format.transaction import Append, Overwrite
from lance_engine.io.local import removing_new_folders
from lance_engine.io.resolve import open_store
from lance_engine.io.store import Store
from lance_engine.progress import ProgressOption, Reporter
from lance_engine.schema_tree import Schema
from lance_engine.table.branches import read_branch
from lance_engine.table.build import CreateOptions
from lance_engine.table.constraints import constraints_of, with_key
from lance_engine.table.features import check_writable
from lance_engine.table.refs import branch_store
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import find_snapshot
from lance_engine.write.blob_schema import with_blobs_v2
from lance_engine.write.check import version_for
from lance_engine.write.fragments import data_paths, write_fragments
from lance_engine.write.inputs import open_source
from lance_engine.write.options import DEFAULT_VERSION, VERSIONS, WriteOptions, ZoneMapForm
from lance_engine.write.source import Converter, check_compatible, conform

#: Extensions of files in other formats, which are not names for a dataset.
_OTHER_EXTENSIONS = (
    *(".parquet", ".pq", ".orc", ".avro", ".arrow", ".arrows", ".feather", ".ipc"),
    *(".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".xlsx", ".duckdb"),
)

WriteMode = Literal["create", "append", "overwrite"]


def write_dataset(
    data: Any,
    uri: Any,
    mode: WriteMode = "create",
    *,
    data_storage_version: str | None = None,
    max_rows_per_file: int = 1 << 20,
    max_bytes_per_file: int = 90 << 30,
    zone_maps: bool = True,
    zone_rows: int = 8192,
    zone_index: ZoneMapForm = "compatible",
    profile: ProfileName = "balanced",
    branch: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    stable_row_ids: bool = False,
    progress: ProgressOption = None,
    convert: Converter | None = None,
    primary_key: Sequence[str] | None = None,
) -> Snapshot:
    """Write `data` as one new version of the dataset at `uri` and return that version.

    `data` is anything that `open_source` accepts. ``create`` refuses an existing dataset
    (DatasetExistsError); ``append`` needs one (DatasetNotFoundError) and converts the data to its schema
    (SchemaMismatchError); ``overwrite`` replaces schema and rows, or creates the dataset. New data files have
    `data_storage_version`, by default that of the dataset for ``append``, otherwise 2.1, or 2.2 if a column
    needs it (maps). `zone_maps`, `zone_rows`, `zone_index` and `profile` are those of `WriteOptions`.
    `branch` is an existing branch to write to instead of the main branch. A dataset created with
    `stable_row_ids` keeps the ids of its rows when they are updated or compacted; the option does not change
    existing datasets. `progress` is the same as in operations (see `lance_engine.progress`).
    `primary_key` are columns whose values, together, occur once and are never null; appending keeps the key
    that the dataset has.
    `convert` converts appended values to types that Arrow does not have.

    If anything fails, nothing is committed and no data file remains.
    """
    if mode not in ("create", "append", "overwrite"):
        raise InvalidArgumentError(f'mode must be "create", "append" or "overwrite", not {mode!r}')
    store = open_store(uri, storage_options)
    if branch is not None:
        read_branch(store, branch)
        store = branch_store(store, branch)
    current = find_snapshot(store, storage_options)
    reporter = Reporter(progress)

    def told(rows: int, size: int) -> None:
        reporter.bytes = size
        reporter.update(rows, total_rows)

    if mode == "create" and current is not None:
        raise DatasetExistsError(
            "A dataset already exists", path=store.uri, remedy='Use mode="append" or mode="overwrite"'
        )
    if mode == "append" and current is None:
        raise DatasetNotFoundError("No dataset to append to", path=store.uri, remedy='Use mode="create"')
    if current is None:
        check_extension(store.uri)
    else:
        check_writable(current.manifest)
    extended = current if mode == "append" else None
    arrow_schema, batches = open_source(data, None if extended is None else extended.schema.to_arrow())
    total_rows = data.num_rows if isinstance(data, pa.Table | pa.RecordBatch) else None
    options = WriteOptions(
        data_storage_version=storage_version_for(data_storage_version, extended, arrow_schema),
        max_rows_per_file=max_rows_per_file,
        max_bytes_per_file=max_bytes_per_file,
        zone_maps=zone_maps,
        zone_rows=zone_rows,
        zone_index=zone_index,
        profile=profile,
        progress=None if reporter.is_silent else told,
    )
    reporter.begin("writing rows", total_rows)
    if extended is not None:
        if primary_key is not None:
            _check_primary_key(extended, primary_key)
        return _append(store, extended, arrow_schema, conform(batches, extended.schema, convert), options)
    if options.version >= (2, 2):
        arrow_schema = with_blobs_v2(arrow_schema)
    schema = Schema.from_arrow(arrow_schema)
    if primary_key is not None:
        schema = with_key(schema, declared_key(schema, primary_key, is_primary=True))
    created = CreateOptions(storage_version=options.data_storage_version, stable_row_ids=stable_row_ids)
    with removing_new_folders(store):
        fragments = write_fragments(store, schema, batches, options)
        operation = Overwrite(tuple(fragments), schema)
        return _commit(store, operation, fragments, current, storage_options, created)


def _check_primary_key(current: Snapshot, wanted: Sequence[str]) -> None:
    known = next((key.columns for key in constraints_of(current.schema).keys if key.is_primary), ())
    if known != tuple(wanted):
        raise InvalidArgumentError(
            f"The primary key of the dataset is {', '.join(known)}" if known else "It has no primary key",
            path=current.uri,
            remedy="Omit primary_key, or declare the key with Dataset.add_key",
        )


def check_extension(uri: str) -> None:
    """InvalidArgumentError if a dataset of this name would look like a file of another format."""
    extension = os.path.splitext(uri)[1].lower()
    if extension in _OTHER_EXTENSIONS:
        raise InvalidArgumentError(
            f"A Lance dataset cannot be named *{extension}",
            path=uri,
            remedy="End the path with .lance. To write a file, use COPY ... TO in SQL, or lance-sql convert",
        )


def _append(
    store: Store,
    current: Snapshot,
    arrow_schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    options: WriteOptions,
) -> Snapshot:
    check_compatible(arrow_schema, current.schema.to_arrow())
    fragments = write_fragments(store, current.schema, batches, options)
    operation = Append(tuple(fragments))
    return _commit(store, operation, fragments, current, current.storage_options)


def storage_version_for(
    wanted: str | None, extended: Snapshot | None, schema: pa.Schema | None = None
) -> str:
    """The version of new files: `wanted`, that of `extended` (a dataset), or what `schema` needs.

    Files of one dataset share a version. UnsupportedFeatureError if this release cannot add files to
    `extended`; nothing is written before.
    """
    known = None
    if extended is not None:
        check_writable(extended.manifest)
        known = extended.manifest.storage_version
        if known not in VERSIONS:
            raise UnsupportedFeatureError(
                f"The dataset has files of version {known}: this release cannot add files to it",
                path=extended.uri,
                remedy="Rows can be read and deleted. For other changes, write the rows to a new dataset, or "
                "overwrite this one",
            )
    if wanted is not None and known is not None and wanted != known:
        raise UnsupportedFeatureError(
            f"The dataset has files of version {known}, but version {wanted} was requested",
            remedy="Omit data_storage_version, or overwrite the dataset",
        )
    return wanted or known or (DEFAULT_VERSION if schema is None else version_for(schema))


def _commit(
    store: Store,
    operation: Append | Overwrite,
    fragments: list[Fragment],
    current: Snapshot | None,
    storage_options: Mapping[str, Any] | None,
    options: CreateOptions | None = None,
) -> Snapshot:
    files = data_paths(fragments)
    return commit(
        store,
        operation,
        read_version=0 if current is None else current.version,
        read=current,
        options=options,
        files=files,
        storage_options=storage_options,
    )
