"""Builds the next manifest: the latest one with an operation applied."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Sequence
from typing import Final

from lance_engine import __version__
from lance_engine.errors import (
    ColumnNotFoundError,
    CorruptFileError,
    IncompatibleChangeError,
    UnsupportedFeatureError,
)
from lance_engine.format.fragment import LEGACY, TOMBSTONE, DataFile, Fragment
from lance_engine.format.fragment_list import FragmentList
from lance_engine.format.index_section import replace_indices, retain_indices
from lance_engine.format.manifest import Manifest, WriterVersion
from lance_engine.format.operations import (
    Append,
    CreateIndex,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    Update,
    UpdateConfig,
)
from lance_engine.format.pb import file_pb2
from lance_engine.format.row_ids import count_row_ids, encode_row_id_range, encode_uniform_version
from lance_engine.schema_tree import Field, Schema
from lance_engine.table.counters import check_counter
from lance_engine.table.features import STABLE_ROW_IDS, derived_flags
from lance_engine.table.index_coverage import after_replacement, after_rewrite, after_update

DEFAULT_STORAGE_VERSION: Final = "2.1"


@dataclasses.dataclass(frozen=True, slots=True)
class CreateOptions:
    """Options that can only be set when a dataset is created.

    `storage_version` None: that of the data files. It also applies when everything is overwritten.
    """

    storage_version: str | None = None
    stable_row_ids: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class VersionContent:
    """The contents of a version: the manifest and the serialized index section, None without indices."""

    manifest: Manifest
    index_section: bytes | None = None


def build_version(
    latest: VersionContent | None,
    operation: Operation,
    options: CreateOptions,
    transaction_file: str,
    restored: VersionContent | None = None,
) -> VersionContent:
    """Apply an operation to the latest version, None if there is no dataset yet.

    `restored` is the version for a Restore. Fragment ids, stable row ids, row versions, flags and the commit
    time are assigned here, so this has to be repeated whenever there is a new latest version.
    """
    base = latest.manifest if latest else _nothing(options)
    index_section = latest.index_section if latest else None
    match operation:
        case Append():
            changed = _append(base, operation)
        case Delete():
            changed = _with_fragments(base, base.fragments, (), operation)
        case Update() if not operation.in_place:
            changed = _with_fragments(base, base.fragments, operation.new_fragments, operation)
        case Rewrite():
            changed = _rewrite(base, operation)
        case Merge():
            changed = _merge(base, operation)
        case Project():
            schema = Schema(operation.schema.fields, base.schema.metadata)
            fragments = _without_unused_files(base.fragments, schema)
            changed = dataclasses.replace(base, schema=schema, fragments=fragments)
        case Overwrite():
            changed = _overwrite(base, operation, options)
            index_section = None
        case Restore() if restored is not None:
            changed = _restore(base, restored.manifest)
            index_section = restored.index_section
        case ReserveFragments():
            changed = _with_max_fragment_id(base, _max_fragment_id(base) + operation.count)
        case UpdateConfig():
            changed = _update_config(base, operation)
        case DataReplacement():
            changed = _replace_data(base, operation)
        case CreateIndex():
            changed = base
            index_section = _change_indices(base, index_section, operation)
        case _:
            raise UnsupportedFeatureError(f"Commits of '{operation.kind.value}' are not supported")
    _refuse_dictionaries(changed.schema)
    check_counter("versions", base.version + 1)
    if index_section is not None:
        index_section = _index_section(index_section, operation, changed)
    reader, writer = derived_flags(changed, stable_row_ids=_has_stable_row_ids(changed))
    changed = dataclasses.replace(
        changed,
        version=base.version + 1,
        timestamp=time.time_ns(),
        transaction_file=transaction_file,
        writer_version=WriterVersion("lance-sql", __version__),
        reader_feature_flags=reader,
        writer_feature_flags=writer,
    )
    return VersionContent(changed, index_section)


def _refuse_dictionaries(schema: Schema) -> None:
    """Tables of version 0.1 store the values of dictionary columns in the manifest file."""
    for field in schema.walk():
        if file_pb2.Field.FromString(field.uninterpreted).dictionary.length:
            raise UnsupportedFeatureError(
                "Datasets of version 0.1 with a dictionary column are read-only",
                column=field.name,
                remedy="Overwrite the dataset in a newer file version, or drop the column",
            )


def _nothing(options: CreateOptions) -> Manifest:
    return Manifest(
        version=0,
        schema=Schema(()),
        fragments=(),
        reader_feature_flags=STABLE_ROW_IDS if options.stable_row_ids else 0,
    )


def _index_section(section: bytes, operation: Operation, changed: Manifest) -> bytes | None:
    """The index section after an operation; `changed` has the fragments and the schema after it."""
    stable = _has_stable_row_ids(changed)
    match operation:
        case Merge() | Project():
            return retain_indices(section, {field.id for field in changed.schema.walk()})
        case Update() if operation.new_fragments:
            added = changed.fragments[-len(operation.new_fragments) :]
            return after_update(section, operation, [fragment.id for fragment in added], stable=stable)
        case Rewrite():
            return after_rewrite(section, operation, stable=stable)
        case DataReplacement():
            return after_replacement(section, operation, changed.schema)
    return section


def _change_indices(base: Manifest, section: bytes | None, operation: CreateIndex) -> bytes | None:
    known = {field.id for field in base.schema.walk()}
    for segment in operation.added:
        if not known.issuperset(segment.fields):
            raise IncompatibleChangeError(
                f"The column of the index '{segment.name}' was dropped by another writer",
                version=base.version,
            )
    return replace_indices(section, operation.added, {segment.uuid for segment in operation.removed})


def _append(base: Manifest, operation: Append) -> Manifest:
    for version in _file_versions(operation.fragments):
        if (version == LEGACY) != (base.storage_version == LEGACY):
            raise UnsupportedFeatureError(
                f"Cannot add files of version {version} to a dataset of version {base.storage_version}",
                remedy="Write files with the version of the dataset",
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


def _merge(base: Manifest, operation: Merge) -> Manifest:
    """Other columns; new fragments are already numbered, but their new rows are not."""
    max_id, next_row_id = _max_fragment_id(base), base.next_row_id
    fragments = []
    for fragment in _without_unused_files(operation.fragments, operation.schema):
        if fragment.id > _max_fragment_id(base):
            max_id = max(max_id, fragment.id)
            if _has_stable_row_ids(base):
                fragment, next_row_id = _with_row_ids(fragment, next_row_id, base.version + 1)
        fragments.append(fragment)
    changed = dataclasses.replace(
        base, schema=operation.schema, fragments=tuple(fragments), next_row_id=next_row_id
    )
    return _with_max_fragment_id(changed, max_id)


def _rewrite(base: Manifest, operation: Rewrite) -> Manifest:
    old = {fragment.id for group in operation.groups for fragment in group.old_fragments}
    new = [fragment for group in operation.groups for fragment in group.new_fragments]
    kept = [fragment for fragment in base.fragments if fragment.id not in old]
    fragments = sorted([*kept, *new], key=lambda fragment: fragment.id)
    return dataclasses.replace(base, fragments=tuple(fragments))


def _replace_data(base: Manifest, operation: DataReplacement) -> Manifest:
    """The fragments with their new data files; all their rows count as changed."""
    replaced: dict[int, list[DataFile]] = {}
    for number, file in operation.files:
        replaced.setdefault(number, []).append(file)
    fragments = []
    for fragment in base.fragments:
        for file in replaced.pop(fragment.id, ()):
            fragment = _with_file(fragment, file)
            if _has_stable_row_ids(base):
                versions = encode_uniform_version(base.version + 1, fragment.physical_rows)
                fragment = dataclasses.replace(fragment, last_updated_at_versions=versions)
        fragments.append(fragment)
    if replaced:
        raise CorruptFileError(f"No fragment {min(replaced)} to add data to")
    return dataclasses.replace(base, fragments=tuple(fragments))


def _with_file(fragment: Fragment, added: DataFile) -> Fragment:
    """The fragment with an additional file, whose fields are removed from its other files."""
    files = []
    for file in fragment.files:
        fields = tuple(TOMBSTONE if field in added.fields else field for field in file.fields)
        if any(field != TOMBSTONE for field in fields):
            files.append(dataclasses.replace(file, fields=fields))
    return dataclasses.replace(fragment, files=(*files, added))


def _restore(base: Manifest, restored: Manifest) -> Manifest:
    changed = dataclasses.replace(
        restored, branch=base.branch, next_row_id=max(base.next_row_id, restored.next_row_id)
    )
    return _with_max_fragment_id(changed, max(_max_fragment_id(base), _max_fragment_id(restored)))


def _without_unused_files(fragments: Iterable[Fragment], schema: Schema) -> tuple[Fragment, ...]:
    """The fragments without data files whose columns are all unused."""
    known = {field.id for field in schema.walk()}
    kept = []
    for fragment in fragments:
        # Numbers below that of unused columns are row lineage, which belongs to no field.
        files = tuple(
            file
            for file in fragment.files
            if any(field in known or field < TOMBSTONE for field in file.fields)
        )
        # Without any file, other readers could not determine the number of rows.
        files = files or fragment.files[:1]
        if len(files) != len(fragment.files):
            fragment = dataclasses.replace(fragment, files=files)
        kept.append(fragment)
    return tuple(kept)


def _update_config(base: Manifest, operation: UpdateConfig) -> Manifest:
    config, table_metadata, schema = base.config, base.table_metadata, base.schema
    if operation.config is not None:
        config = operation.config.apply(config)
    if operation.table_metadata is not None:
        table_metadata = operation.table_metadata.apply(table_metadata)
    if operation.schema_metadata is not None:
        schema = Schema(schema.fields, operation.schema_metadata.apply(schema.metadata))
    if operation.fields:
        missing = operation.fields.keys() - {field.id for field in schema.walk()}
        if missing:
            raise ColumnNotFoundError(f"No column has the field id {min(missing)}", version=base.version)
        schema = Schema(tuple(_with_metadata(field, operation) for field in schema.fields), schema.metadata)
    return dataclasses.replace(base, config=config, table_metadata=table_metadata, schema=schema)


def _with_metadata(field: Field, operation: UpdateConfig) -> Field:
    update = operation.fields.get(field.id)
    return dataclasses.replace(
        field,
        metadata=field.metadata if update is None else update.apply(field.metadata),
        children=tuple(_with_metadata(child, operation) for child in field.children),
    )


def _with_fragments(
    base: Manifest,
    kept: Sequence[Fragment],
    added: Iterable[Fragment],
    taken: Delete | Update | None = None,
) -> Manifest:
    """`base` with the fragments `kept` followed by `added`, which get their ids here.

    Kept fragments with rows in `taken` are in their new state, or removed.
    """
    max_id = _max_fragment_id(base)
    next_row_id = base.next_row_id
    new = []
    for fragment in added:
        max_id += 1
        numbered = dataclasses.replace(fragment, id=max_id)
        if _has_stable_row_ids(base):
            numbered, next_row_id = _with_row_ids(numbered, next_row_id, base.version + 1)
        new.append(numbered)
    updated = {fragment.id: fragment for fragment in taken.updated_fragments} if taken else {}
    removed = set(taken.removed_fragment_ids) if taken else set()
    fragments: Sequence[Fragment]
    if isinstance(kept, FragmentList):
        fragments = kept.changed(updated, removed, new)
    else:
        left = [updated.get(fragment.id, fragment) for fragment in kept if fragment.id not in removed]
        fragments = (*left, *new)
    changed = dataclasses.replace(base, fragments=fragments, next_row_id=next_row_id)
    return _with_max_fragment_id(changed, max_id)


def _with_row_ids(fragment: Fragment, next_row_id: int, version: int) -> tuple[Fragment, int]:
    """Assign row ids from `next_row_id` to the rows without one, which come last, and the row versions."""
    rows = fragment.physical_rows
    moved = 0 if fragment.row_ids is None else count_row_ids(fragment.row_ids, rows)
    row_ids, created = fragment.row_ids or b"", fragment.created_at_versions or b""
    # Serialised messages that only have a repeated field are continued by appending to them.
    if moved < rows or not rows:
        check_counter("row ids", next_row_id + rows - moved)
        row_ids += encode_row_id_range(next_row_id, rows - moved)
        created += encode_uniform_version(version, rows - moved)
    numbered = dataclasses.replace(
        fragment,
        row_ids=row_ids,
        created_at_versions=created,
        last_updated_at_versions=encode_uniform_version(version, rows),
    )
    return numbered, next_row_id + rows - moved


def _max_fragment_id(manifest: Manifest) -> int:
    return -1 if manifest.max_fragment_id is None else manifest.max_fragment_id


def _with_max_fragment_id(manifest: Manifest, max_id: int) -> Manifest:
    check_counter("fragment ids", max_id)
    return dataclasses.replace(manifest, max_fragment_id=max_id if max_id >= 0 else None)


def _file_versions(fragments: Iterable[Fragment]) -> set[str]:
    return {file.storage_version for fragment in fragments for file in fragment.files}


def _has_stable_row_ids(manifest: Manifest) -> bool:
    return bool((manifest.reader_feature_flags | manifest.writer_feature_flags) & STABLE_ROW_IDS)
