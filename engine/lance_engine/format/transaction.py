"""Transactions: the changes of a commit, independent of the version they are applied to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lance_engine.format.fragment import (
    Fragment,
    data_file_from_message,
    data_file_to_message,
    fragment_from_message,
    fragment_to_message,
)
from lance_engine.format.index_section import segment_from_message, segment_to_message, type_url
from lance_engine.format.manifest import base_path_from_message, base_path_to_message
from lance_engine.format.operations import (
    Append,
    Clone,
    CreateIndex,
    DataReplacement,
    Delete,
    MapUpdate,
    Merge,
    Operation,
    OperationKind,
    OtherOperation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    Update,
    UpdateBases,
    UpdateConfig,
)
from lance_engine.format.pb import table_pb2
from lance_engine.format.schema import bytes_metadata, schema_from_messages, schema_to_messages
from lance_engine.format.transaction_summary import transaction_message

__all__ = [
    "Append",
    "Clone",
    "CreateIndex",
    "DataReplacement",
    "Delete",
    "MapUpdate",
    "Merge",
    "Operation",
    "OperationKind",
    "OtherOperation",
    "Overwrite",
    "Project",
    "ReserveFragments",
    "Restore",
    "Rewrite",
    "RewriteGroup",
    "Transaction",
    "Update",
    "UpdateBases",
    "UpdateConfig",
    "parse_transaction",
    "serialize_transaction",
]


@dataclass(frozen=True, slots=True)
class Transaction:
    """A commit: the version that its author read, and the operation."""

    read_version: int
    uuid: str
    operation: Operation
    properties: Mapping[str, str] = field(default_factory=dict)
    tag: str = ""

    @property
    def file_name(self) -> str:
        """The name inside the folder of transaction files."""
        return f"{self.read_version}-{self.uuid}.txn"


def parse_transaction(data: bytes) -> Transaction:
    """A Transaction from its serialized message; CorruptFileError if it is invalid or of unknown kind."""
    message, name = transaction_message(data)
    kind = OperationKind(name)
    content = getattr(message, name)
    parse = _PARSERS.get(kind)
    operation: Operation
    operation = parse(content) if parse else OtherOperation(kind, content.SerializeToString())
    return Transaction(
        message.read_version, message.uuid, operation, dict(message.transaction_properties), message.tag
    )


def serialize_transaction(transaction: Transaction) -> bytes:
    """The bytes of a transaction file, and of the transaction section of a manifest file."""
    operation = transaction.operation
    message = table_pb2.Transaction(
        read_version=transaction.read_version, uuid=transaction.uuid, tag=transaction.tag
    )
    message.transaction_properties.update(transaction.properties)
    content = getattr(message, operation.kind.value)
    # An operation without any content must still be visible.
    content.SetInParent()
    _write_operation(content, operation)
    data: bytes = message.SerializeToString()
    return data


def _write_operation(content: Any, operation: Operation) -> None:
    match operation:
        case Append():
            content.fragments.extend(_messages(operation.fragments))
        case Delete():
            content.updated_fragments.extend(_messages(operation.updated_fragments))
            content.deleted_fragment_ids.extend(operation.removed_fragment_ids)
            content.predicate = operation.predicate
        case Update():
            content.removed_fragment_ids.extend(operation.removed_fragment_ids)
            content.updated_fragments.extend(_messages(operation.updated_fragments))
            content.new_fragments.extend(_messages(operation.new_fragments))
            # Moved rows are removed from the coverage of indices automatically; this field lists the indices
            # that are not affected. The other one is for values replaced in place.
            fields = (
                content.fields_modified if operation.in_place else content.fields_for_preserving_frag_bitmap
            )
            fields.extend(operation.fields_modified)
            content.update_mode = int(operation.in_place)
            if operation.inserts_keys:
                _write_any_keys(content.inserted_rows.bloom)
        case Merge():
            content.fragments.extend(_messages(operation.fragments))
            content.schema.extend(schema_to_messages(operation.schema))
            content.schema_metadata.update(bytes_metadata(operation.schema.metadata))
            content.preserves_nullability = operation.preserves_nullability
        case Project():
            content.schema.extend(schema_to_messages(operation.schema))
            content.preserves_nullability = operation.preserves_nullability
        case Overwrite():
            content.fragments.extend(_messages(operation.fragments))
            content.schema.extend(schema_to_messages(operation.schema))
            content.schema_metadata.update(bytes_metadata(operation.schema.metadata))
            content.config_upsert_values.update(operation.config_upserts)
            content.initial_bases.extend([base_path_to_message(base) for base in operation.initial_bases])
        case Restore():
            content.version = operation.version
        case Clone():
            content.is_shallow = operation.is_shallow
            content.ref_path = operation.path
            content.ref_version = operation.version
            if operation.branch is not None:
                content.ref_name = operation.branch
            if operation.new_branch is not None:
                content.branch_name = operation.new_branch
        case ReserveFragments():
            content.num_fragments = operation.count
        case Rewrite():
            for group in operation.groups:
                content.groups.add(
                    old_fragments=_messages(group.old_fragments), new_fragments=_messages(group.new_fragments)
                )
            for index in operation.indices:
                new = index.new
                content.rewritten_indices.add(
                    old_id={"uuid": index.old.bytes},
                    new_id={"uuid": new.uuid.bytes},
                    new_index_details={"type_url": type_url(new.kind), "value": new.details},
                    new_index_version=new.index_version,
                    new_index_files=[{"path": path, "size_bytes": size} for path, size in new.files],
                )
        case CreateIndex():
            content.new_indices.extend([segment_to_message(segment) for segment in operation.added])
            content.removed_indices.extend([segment_to_message(segment) for segment in operation.removed])
        case UpdateConfig():
            _write_map(content.config_updates, operation.config)
            _write_map(content.table_metadata_updates, operation.table_metadata)
            _write_map(content.schema_metadata_updates, operation.schema_metadata)
            for field_id, update in operation.fields.items():
                _write_map(content.field_metadata_updates[field_id], update)
        case DataReplacement():
            for fragment_id, file in operation.files:
                content.replacements.add(fragment_id=fragment_id, new_file=data_file_to_message(file))
        case UpdateBases():
            content.new_bases.extend([base_path_to_message(base) for base in operation.added])
        case OtherOperation():
            content.MergeFromString(operation.message)


def _messages(fragments: Iterable[Fragment]) -> list[Any]:
    return [fragment_to_message(fragment) for fragment in fragments]


def _fragments(messages: Any) -> tuple[Fragment, ...]:
    return tuple(fragment_from_message(message) for message in messages)


def _parse_append(content: Any) -> Append:
    return Append(_fragments(content.fragments))


def _parse_delete(content: Any) -> Delete:
    return Delete(
        _fragments(content.updated_fragments), tuple(content.deleted_fragment_ids), content.predicate
    )


def _parse_update(content: Any) -> Update:
    in_place = bool(content.update_mode)
    fields = content.fields_modified if in_place else content.fields_for_preserving_frag_bitmap
    return Update(
        tuple(content.removed_fragment_ids),
        _fragments(content.updated_fragments),
        _fragments(content.new_fragments),
        tuple(fields),
        in_place,
        content.HasField("inserted_rows"),
    )


def _parse_merge(content: Any) -> Merge:
    return Merge(
        _fragments(content.fragments),
        schema_from_messages(content.schema, content.schema_metadata),
        content.preserves_nullability,
    )


def _parse_rewrite(content: Any) -> Rewrite:
    groups = [
        RewriteGroup(_fragments(group.old_fragments), _fragments(group.new_fragments))
        for group in content.groups
    ]
    if content.old_fragments:
        groups.append(RewriteGroup(_fragments(content.old_fragments), _fragments(content.new_fragments)))
    return Rewrite(tuple(groups))


def _parse_create_index(content: Any) -> CreateIndex:
    return CreateIndex(
        tuple(segment_from_message(message) for message in content.new_indices),
        tuple(segment_from_message(message) for message in content.removed_indices),
    )


def _parse_overwrite(content: Any) -> Overwrite:
    return Overwrite(
        _fragments(content.fragments),
        schema_from_messages(content.schema, content.schema_metadata),
        dict(content.config_upsert_values),
        tuple(base_path_from_message(base) for base in content.initial_bases),
    )


def _parse_project(content: Any) -> Project:
    return Project(schema_from_messages(content.schema, {}), content.preserves_nullability)


def _parse_data_replacement(content: Any) -> DataReplacement:
    return DataReplacement(
        tuple((group.fragment_id, data_file_from_message(group.new_file)) for group in content.replacements)
    )


def _parse_update_config(content: Any) -> UpdateConfig:
    def parse(name: str) -> MapUpdate | None:
        return _read_map(getattr(content, name)) if content.HasField(name) else None

    return UpdateConfig(
        parse("config_updates"),
        parse("table_metadata_updates"),
        parse("schema_metadata_updates"),
        {field_id: _read_map(update) for field_id, update in content.field_metadata_updates.items()},
    )


def _parse_clone(content: Any) -> Clone:
    return Clone(
        content.ref_path,
        content.ref_version,
        content.ref_name if content.HasField("ref_name") else None,
        content.branch_name if content.HasField("branch_name") else None,
        content.is_shallow,
    )


def _read_map(message: Any) -> MapUpdate:
    return MapUpdate(
        {entry.key: entry.value if entry.HasField("value") else None for entry in message.update_entries},
        message.replace,
    )


def _write_any_keys(bloom: Any) -> None:
    """The keys of inserted rows, as a filter with every bit set: it contains every key."""
    bloom.bitmap = b"\xff" * 32
    bloom.num_bits = 256
    bloom.number_of_items = 1
    bloom.probability = 1.0


def _write_map(message: Any, update: MapUpdate | None) -> None:
    if update is None:
        return
    message.SetInParent()
    message.replace = update.replace
    for key, value in update.entries.items():
        message.update_entries.add(key=key, value=value)


def _parse_update_bases(content: Any) -> UpdateBases:
    return UpdateBases(tuple(base_path_from_message(base) for base in content.new_bases))


_PARSERS: Mapping[OperationKind, Callable[[Any], Operation]] = {
    OperationKind.APPEND: _parse_append,
    OperationKind.DELETE: _parse_delete,
    OperationKind.UPDATE: _parse_update,
    OperationKind.MERGE: _parse_merge,
    OperationKind.PROJECT: _parse_project,
    OperationKind.OVERWRITE: _parse_overwrite,
    OperationKind.RESTORE: lambda content: Restore(content.version),
    OperationKind.CLONE: _parse_clone,
    OperationKind.RESERVE_FRAGMENTS: lambda content: ReserveFragments(content.num_fragments),
    OperationKind.REWRITE: _parse_rewrite,
    OperationKind.CREATE_INDEX: _parse_create_index,
    OperationKind.DATA_REPLACEMENT: _parse_data_replacement,
    OperationKind.UPDATE_CONFIG: _parse_update_config,
    OperationKind.UPDATE_BASES: _parse_update_bases,
}
