"""Commits a change whose files are already written, and removes them if that fails."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from lance_engine.constraints.commit import commit
from lance_engine.format.fragment import Fragment
from lance_engine.format.operations import Operation
from lance_engine.io.store import Store, delete_quietly
from lance_engine.progress import Reporter
from lance_engine.schema_tree import Schema
from lance_engine.table.rebase import TakenRows
from lance_engine.table.snapshot import Snapshot
from lance_engine.write.dataset import storage_version_for
from lance_engine.write.fragments import write_fragments
from lance_engine.write.options import WriteOptions


@contextmanager
def removed_on_failure(store: Store) -> Iterator[list[str]]:
    """A list for the paths of written files; they are removed if the block fails."""
    paths: list[str] = []
    try:
        yield paths
    except BaseException:
        delete_quietly(store, paths)
        raise


def commit_change(
    snapshot: Snapshot,
    operation: Operation,
    paths: Sequence[str] = (),
    *,
    taken: TakenRows | None = None,
) -> Snapshot:
    """Commit an operation based on `snapshot`, for which the files `paths` were written."""
    return commit(
        snapshot.store,
        operation,
        read_version=snapshot.version,
        read=snapshot,
        taken=taken,
        files=paths,
        storage_options=snapshot.storage_options,
    )


def write_options(snapshot: Snapshot, max_rows_per_file: int = 1 << 20) -> WriteOptions:
    """Settings for writing more files to a dataset."""
    version = storage_version_for(None, snapshot)
    return WriteOptions(data_storage_version=version, max_rows_per_file=max_rows_per_file)


def write_reported(
    store: Store,
    schema: Schema,
    batches: Iterable[pa.RecordBatch],
    options: WriteOptions,
    reporter: Reporter,
) -> list[Fragment]:
    """`write_fragments` that reports progress."""
    told = 0

    def progress(rows: int, _: int) -> None:
        nonlocal told
        reporter.advance(rows - told)
        told = rows

    fragments = write_fragments(store, schema, batches, dataclasses.replace(options, progress=progress))
    for fragment in fragments:
        for file in fragment.files:
            reporter.wrote(file.file_size or 0)
    return fragments
