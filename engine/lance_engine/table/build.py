"""The next manifest: the latest one with an operation applied."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Sequence
from typing import Final

from lance_engine import __version__
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.format.manifest import Fragment, Manifest, WriterVersion
from lance_engine.format.row_ids import encode_row_id_range, encode_uniform_version
from lance_engine.format.transaction import Append, Operation, Overwrite
from lance_engine.table.features import STABLE_ROW_IDS, derived_flags
from lance_engine.types import Schema

DEFAULT_STORAGE_VERSION: Final = "2.1"
_LEGACY: Final = "0.1"
_MAX_FRAGMENT_ID: Final = 2**32 - 1


@dataclasses.dataclass(frozen=True, slots=True)
class CreateOptions:
    """What can be chosen when a dataset is created, and not afterwards.

    `storage_version` None: that of the data files. It is also honoured when everything is overwritten.
    """

    storage_version: str | None = None
    stable_row_ids: bool = False


def build_manifest(
    latest: Manifest | None, operation: Operation, options: CreateOptions, transaction_file: str
) -> Manifest:
    """Apply an operation to the latest manifest, None if there is no dataset yet.

    Fragment ids, stable row ids, row versions, flags and the time of commit are assigned here, so this has
    to be done again whenever the latest version turns out to be another one.
    """
    base = latest or Manifest(
        version=0,
        schema=Schema(()),
        fragments=(),
        reader_feature_flags=STABLE_ROW_IDS if options.stable_row_ids else 0,
    )
    match operation:
        case Append():
            changed = _append(base, operation)
        case Overwrite():
            changed = _overwrite(base, operation, options)
        case _:
            raise UnsupportedFeatureError(f"Committing '{operation.kind.value}' is not supported")
    changed = dataclasses.replace(
        changed,
        version=base.version + 1,
        timestamp=time.time_ns(),
        transaction_file=transaction_file,
        writer_version=WriterVersion("lance-sql", __version__),
    )
    reader, writer = derived_flags(changed, stable_row_ids=_has_stable_row_ids(base))
    return dataclasses.replace(changed, reader_feature_flags=reader, writer_feature_flags=writer)


def _append(base: Manifest, operation: Append) -> Manifest:
    for version in _file_versions(operation.fragments):
        if (version == _LEGACY) != (base.storage_version == _LEGACY):
            raise UnsupportedFeatureError(
                f"Files of version {version} cannot be added to a dataset of version {base.storage_version}",
                remedy="Write the files in the version of the dataset",
            )
    return _with_fragments(base, base.fragments, operation.fragments)


def _overwrite(base: Manifest, operation: Overwrite, options: CreateOptions) -> Manifest:
    versions = _file_versions(operation.fragments)
    storage_version = options.storage_version
    if storage_version is None and len(versions) == 1:
        storage_version = next(iter(versions))
    emptied = dataclasses.replace(
        base,
        schema=operation.schema,
        config={**base.config, **operation.config_upserts},
        base_paths=(*base.base_paths, *operation.initial_bases),
        storage_version=storage_version or base.storage_version or DEFAULT_STORAGE_VERSION,
    )
    return _with_fragments(emptied, (), operation.fragments)


def _with_fragments(base: Manifest, kept: Sequence[Fragment], added: Iterable[Fragment]) -> Manifest:
    """`base` with the fragments `kept` followed by `added`, which get their ids here."""
    max_id = -1 if base.max_fragment_id is None else base.max_fragment_id
    next_row_id = base.next_row_id
    fragments = list(kept)
    for fragment in added:
        max_id += 1
        numbered = dataclasses.replace(fragment, id=max_id)
        if _has_stable_row_ids(base):
            versions = encode_uniform_version(base.version + 1, fragment.physical_rows)
            numbered = dataclasses.replace(
                numbered,
                row_ids=encode_row_id_range(next_row_id, fragment.physical_rows),
                created_at_versions=versions,
                last_updated_at_versions=versions,
            )
            next_row_id += fragment.physical_rows
        fragments.append(numbered)
    if max_id > _MAX_FRAGMENT_ID:
        raise UnsupportedFeatureError(
            "The dataset has used up its fragment ids", remedy="Copy it to a new dataset"
        )
    return dataclasses.replace(
        base,
        fragments=tuple(fragments),
        max_fragment_id=max_id if max_id >= 0 else None,
        next_row_id=next_row_id,
    )


def _file_versions(fragments: Iterable[Fragment]) -> set[str]:
    return {file.storage_version for fragment in fragments for file in fragment.files}


def _has_stable_row_ids(manifest: Manifest) -> bool:
    return bool((manifest.reader_feature_flags | manifest.writer_feature_flags) & STABLE_ROW_IDS)
