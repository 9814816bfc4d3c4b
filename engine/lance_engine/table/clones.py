"""Branches and shallow clones: datasets that start from a version of another one, without copies."""

from __future__ import annotations

import dataclasses
import time
import uuid

from lance_engine import __version__
from lance_engine.format.fragment import Fragment
from lance_engine.format.index_section import with_base
from lance_engine.format.manifest import BasePath, Manifest, WriterVersion, serialize_manifest_file
from lance_engine.format.operations import Clone
from lance_engine.format.transaction import Transaction, serialize_transaction
from lance_engine.io.manifest_names import NamingScheme
from lance_engine.io.store import Store
from lance_engine.io.substore import files_uri
from lance_engine.table.features import check_writable, derived_flags
from lance_engine.table.hint import write_hint
from lance_engine.table.refs import put_new
from lance_engine.table.snapshot import TRANSACTIONS, Snapshot


def write_clone(source: Snapshot, target: Store, branch: str | None = None) -> int:
    """Create the first version of `target` from `source`, with its number; returns the manifest size.

    `branch` is the name of the branch. FileExistsError if the version exists there.
    """
    check_writable(source.manifest)
    transaction = Transaction(
        source.version,
        str(uuid.uuid4()),
        Clone(files_uri(source.store), source.version, source.manifest.branch, branch),
    )
    content = serialize_transaction(transaction)
    manifest, base = _with_new_base(source)
    manifest = dataclasses.replace(
        manifest,
        branch=branch,
        timestamp=time.time_ns(),
        transaction_file=transaction.file_name,
        writer_version=WriterVersion("lance-sql", __version__),
    )
    reader, writer = derived_flags(manifest, stable_row_ids=source.has_stable_row_ids)
    manifest = dataclasses.replace(manifest, reader_feature_flags=reader, writer_feature_flags=writer)
    section = None if source.index_section is None else with_base(source.index_section, base)
    data = serialize_manifest_file(manifest, index_section=section, transaction=content)
    target.put(f"{TRANSACTIONS}/{transaction.file_name}", content)
    try:
        put_new(target, NamingScheme.V2.path(source.version), data)
    except FileExistsError:
        target.delete(f"{TRANSACTIONS}/{transaction.file_name}")
        raise
    write_hint(target, source.version)
    return len(data)


def _with_new_base(source: Snapshot) -> tuple[Manifest, int]:
    """The manifest with a base path for the files of the dataset itself, and its id."""
    manifest = source.manifest
    base = max((known.id for known in manifest.base_paths), default=-1) + 1
    path = BasePath(base, files_uri(source.store), True, manifest.branch)
    fragments = tuple(_in_base(fragment, base) for fragment in source.fragments)
    return dataclasses.replace(manifest, fragments=fragments, base_paths=(*manifest.base_paths, path)), base


def _in_base(fragment: Fragment, base: int) -> Fragment:
    files = tuple(
        dataclasses.replace(file, base_id=base) if file.base_id is None else file for file in fragment.files
    )
    deletion = fragment.deletion_file
    if deletion is not None and deletion.base_id is None:
        deletion = dataclasses.replace(deletion, base_id=base)
    return dataclasses.replace(fragment, files=files, deletion_file=deletion)
