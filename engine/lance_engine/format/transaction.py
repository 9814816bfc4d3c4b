"""Transactions: what one commit changes, independent of the version it is applied to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from google.protobuf.message import DecodeError

from lance_engine.errors import CorruptFileError
from lance_engine.format.fragment import Fragment, fragment_from_message, fragment_to_message
from lance_engine.format.manifest import BasePath, base_path_from_message, base_path_to_message
from lance_engine.format.pb import table_pb2
from lance_engine.format.schema import bytes_metadata, schema_from_messages, schema_to_messages
from lance_engine.types import Schema


class OperationKind(Enum):
    """The operations of the format; each value is the name of the field of the Transaction message."""

    APPEND = "append"
    DELETE = "delete"
    OVERWRITE = "overwrite"
    CREATE_INDEX = "create_index"
    REWRITE = "rewrite"
    MERGE = "merge"
    RESTORE = "restore"
    RESERVE_FRAGMENTS = "reserve_fragments"
    UPDATE = "update"
    PROJECT = "project"
    UPDATE_CONFIG = "update_config"
    DATA_REPLACEMENT = "data_replacement"
    UPDATE_MEM_WAL_STATE = "update_mem_wal_state"
    CLONE = "clone"
    UPDATE_BASES = "update_bases"
    DATA_OVERLAY = "data_overlay"


@dataclass(frozen=True, slots=True)
class Append:
    """New fragments after those that exist. Their ids, and stable row ids, are given at commit."""

    fragments: tuple[Fragment, ...]

    kind = OperationKind.APPEND


@dataclass(frozen=True, slots=True)
class Overwrite:
    """New fragments and a new schema in place of everything; creates the dataset when there is none."""

    fragments: tuple[Fragment, ...]
    schema: Schema
    config_upserts: Mapping[str, str] = field(default_factory=dict)
    initial_bases: tuple[BasePath, ...] = ()

    kind = OperationKind.OVERWRITE


@dataclass(frozen=True, slots=True)
class Project:
    """A schema with columns renamed, reordered or dropped; the data files stay."""

    schema: Schema
    preserves_nullability: bool

    kind = OperationKind.PROJECT


@dataclass(frozen=True, slots=True)
class MapUpdate:
    """Changes of a map from text to text: a value None removes the key; `replace` drops all other keys."""

    entries: Mapping[str, str | None]
    replace: bool = False


@dataclass(frozen=True, slots=True)
class UpdateConfig:
    """Changes of the metadata maps. None: this map is not touched; `fields` is keyed by field id."""

    config: MapUpdate | None = None
    table_metadata: MapUpdate | None = None
    schema_metadata: MapUpdate | None = None
    fields: Mapping[int, MapUpdate] = field(default_factory=dict)

    kind = OperationKind.UPDATE_CONFIG


@dataclass(frozen=True, slots=True)
class OtherOperation:
    """An operation that can be recognised but not executed yet, with its serialised message."""

    kind: OperationKind
    message: bytes = field(repr=False)


Operation = Append | Overwrite | Project | UpdateConfig | OtherOperation


@dataclass(frozen=True, slots=True)
class Transaction:
    """One commit: which version its author had read, and the operation."""

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
    """A Transaction from its serialised message; CorruptFileError if it is none or has no known operation."""
    try:
        message = table_pb2.Transaction.FromString(data)
    except DecodeError as error:
        raise CorruptFileError("A transaction cannot be parsed") from error
    name = message.WhichOneof("operation")
    if name is None:
        raise CorruptFileError(
            "A transaction has no operation, or one that is not known", remedy="Use a newer release"
        )
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
    match operation:
        case Append():
            content.fragments.extend([fragment_to_message(fragment) for fragment in operation.fragments])
        case Overwrite():
            content.fragments.extend([fragment_to_message(fragment) for fragment in operation.fragments])
            content.schema.extend(schema_to_messages(operation.schema))
            content.schema_metadata.update(bytes_metadata(operation.schema.metadata))
            content.config_upsert_values.update(operation.config_upserts)
            content.initial_bases.extend([base_path_to_message(base) for base in operation.initial_bases])
        case Project():
            content.schema.extend(schema_to_messages(operation.schema))
            content.preserves_nullability = operation.preserves_nullability
        case UpdateConfig():
            _write_map(content.config_updates, operation.config)
            _write_map(content.table_metadata_updates, operation.table_metadata)
            _write_map(content.schema_metadata_updates, operation.schema_metadata)
            for field_id, update in operation.fields.items():
                _write_map(content.field_metadata_updates[field_id], update)
        case OtherOperation():
            content.MergeFromString(operation.message)
    data: bytes = message.SerializeToString()
    return data


def _fragments(messages: Any) -> tuple[Fragment, ...]:
    return tuple(fragment_from_message(message) for message in messages)


def _parse_append(content: Any) -> Append:
    return Append(_fragments(content.fragments))


def _parse_overwrite(content: Any) -> Overwrite:
    return Overwrite(
        _fragments(content.fragments),
        schema_from_messages(content.schema, content.schema_metadata),
        dict(content.config_upsert_values),
        tuple(base_path_from_message(base) for base in content.initial_bases),
    )


def _parse_project(content: Any) -> Project:
    return Project(schema_from_messages(content.schema, {}), content.preserves_nullability)


def _parse_update_config(content: Any) -> UpdateConfig:
    def parse(name: str) -> MapUpdate | None:
        return _read_map(getattr(content, name)) if content.HasField(name) else None

    return UpdateConfig(
        parse("config_updates"),
        parse("table_metadata_updates"),
        parse("schema_metadata_updates"),
        {field_id: _read_map(update) for field_id, update in content.field_metadata_updates.items()},
    )


def _read_map(message: Any) -> MapUpdate:
    return MapUpdate(
        {entry.key: entry.value if entry.HasField("value") else None for entry in message.update_entries},
        message.replace,
    )


def _write_map(message: Any, update: MapUpdate | None) -> None:
    if update is None:
        return
    message.SetInParent()
    message.replace = update.replace
    for key, value in update.entries.items():
        message.update_entries.add(key=key, value=value)


_PARSERS: Mapping[OperationKind, Callable[[Any], Operation]] = {
    OperationKind.APPEND: _parse_append,
    OperationKind.OVERWRITE: _parse_overwrite,
    OperationKind.PROJECT: _parse_project,
    OperationKind.UPDATE_CONFIG: _parse_update_config,
}
