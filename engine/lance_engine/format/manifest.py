"""Parsing and serializing manifest files.

Layout: up to three sections (index section, transaction, manifest), each a u32 length and a message, then
the position of the manifest section (i64), a format version (2 x u16) and the magic ``LANC``. The positions
of the first two sections are in the manifest message.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from lance_engine import kernels
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.format.fragment import (
    DataFile,
    DeletionFile,
    DeletionKind,
    Fragment,
    fragment_from_bytes,
    fragment_to_bytes,
)
from lance_engine.format.fragment_list import FragmentList, stored_fragments
from lance_engine.format.pb import table_pb2
from lance_engine.format.schema import bytes_metadata, schema_from_messages, schema_to_messages
from lance_engine.format.unknown import unknown_fields
from lance_engine.schema_tree import Schema
from lance_engine.weak_identity import WeakIdentityDict

__all__ = [
    "BasePath",
    "DataFile",
    "DeletionFile",
    "DeletionKind",
    "Fragment",
    "FragmentList",
    "Manifest",
    "WriterVersion",
    "fragment_from_bytes",
    "fragment_to_bytes",
    "parse_manifest_file",
    "serialize_manifest_file",
]

_LENGTH = struct.Struct("<I")
_FOOTER = struct.Struct("<qHH4s")
_MAGIC = b"LANC"
# The version of manifest files, which has never changed, whatever the version of the data files.
_FOOTER_VERSION = (0, 2)
_NANOSECONDS = 1_000_000_000
# Maximum number of cached schemas of manifests.
_CACHED_SCHEMAS = 8
_FIELDS = table_pb2.Manifest.DESCRIPTOR.fields_by_name["fields"].number
_FRAGMENTS = table_pb2.Manifest.DESCRIPTOR.fields_by_name["fragments"].number
_CLUSTERING = table_pb2.Manifest.DESCRIPTOR.fields_by_name["clustering"].number


class WriterVersion(NamedTuple):
    """The program that wrote a manifest."""

    library: str
    version: str
    prerelease: str | None = None
    build_metadata: str | None = None


class BasePath(NamedTuple):
    """An additional location for files: a dataset root with its usual folders, or the folder of the files."""

    id: int
    path: str
    is_dataset_root: bool
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version of a dataset.

    `timestamp` is in nanoseconds since 1970 (UTC). `max_fragment_id` is None if there was never a fragment,
    `storage_version` if the manifest does not contain it. `uninterpreted` keeps the serialized fields that
    are not used here.
    """

    version: int
    schema: Schema
    fragments: Sequence[Fragment]
    timestamp: int = 0
    reader_feature_flags: int = 0
    writer_feature_flags: int = 0
    max_fragment_id: int | None = None
    transaction_file: str = ""
    writer_version: WriterVersion | None = None
    next_row_id: int = 0
    storage_version: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    table_metadata: Mapping[str, str] = field(default_factory=dict)
    base_paths: tuple[BasePath, ...] = ()
    branch: str | None = None
    uninterpreted: bytes = field(default=b"", repr=False)

    @property
    def committed_at(self) -> datetime.datetime:
        """When the version was committed, in UTC, with microseconds."""
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        try:
            return epoch + datetime.timedelta(microseconds=self.timestamp // 1000)
        except OverflowError:
            raise CorruptFileError(f"The time of commit is out of range: {self.timestamp} ns") from None


def parse_manifest_file(data: bytes) -> tuple[Manifest, bytes | None, bytes | None]:
    """Read a manifest file: the manifest, and, if present, the serialised IndexSection and Transaction.

    CorruptFileError if the file is truncated or inconsistent, UnsupportedFeatureError if the list of
    fragments is stored in an unknown form.
    """
    if len(data) < _FOOTER.size:
        raise CorruptFileError(f"A manifest file of {len(data)} bytes is too short")
    position, _, _, magic = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
    if magic != _MAGIC:
        raise CorruptFileError("The manifest file does not end with the magic bytes 'LANC'")
    content = _section(data, position, "manifest")
    if position + _LENGTH.size + len(content) + _FOOTER.size != len(data):
        raise CorruptFileError("The manifest section does not end where the footer begins")
    try:
        fragments, rest = kernels.split_message(content, _FRAGMENTS)
        fields, rest = kernels.split_message(rest, _FIELDS)
        message = table_pb2.Manifest.FromString(rest)
    except (DecodeError, kernels.CorruptDataError) as error:
        raise CorruptFileError("The manifest message cannot be parsed") from error
    index_section = transaction = None
    if message.HasField("index_section"):
        index_section = _section(data, message.index_section, "index section")
    if message.HasField("transaction_section"):
        transaction = _section(data, message.transaction_section, "transaction")
    elif message.HasField("transaction_section_deprecated"):
        transaction = _section(data, message.transaction_section_deprecated, "transaction")
    return _manifest_from_message(message, fields, fragments), index_section, transaction


def serialize_manifest_file(
    manifest: Manifest, *, index_section: bytes | None = None, transaction: bytes | None = None
) -> bytes:
    """The bytes of a manifest file with these sections."""
    parts: list[bytes] = []
    length = 0

    def add(section: bytes) -> int:
        nonlocal length
        position = length
        parts.extend((_LENGTH.pack(len(section)), section))
        length += _LENGTH.size + len(section)
        return position

    message = _manifest_to_message(manifest)
    if index_section is not None:
        message.index_section = add(index_section)
    if transaction is not None:
        message.transaction_section = add(transaction)
    fragments = manifest.fragments
    stored = fragments.stored if isinstance(fragments, FragmentList) else stored_fragments(fragments)
    position = add(_stored_fields(manifest.schema) + stored + message.SerializeToString())
    parts.append(_FOOTER.pack(position, *_FOOTER_VERSION, _MAGIC))
    return b"".join(parts)


def _section(data: bytes, position: int, what: str) -> bytes:
    end = len(data) - _FOOTER.size
    if not 0 <= position <= end - _LENGTH.size:
        raise CorruptFileError(f"The {what} starts at byte {position}, but the file has {len(data)} bytes")
    start = position + _LENGTH.size
    (length,) = _LENGTH.unpack_from(data, position)
    if length > end - start:
        raise CorruptFileError(f"The {what} claims {length} bytes, but only {end - start} are left")
    return data[start : start + length]


# Message fields with a Manifest attribute, and the positions, which belong to the file and not to the table.
_INTERPRETED = frozenset((*range(1, 4), *range(5, 8), *range(9, 17), *range(18, 22), 23))


def _manifest_from_message(message: Any, fields: bytes, stored: bytes) -> Manifest:
    if message.HasField("fragment_tree"):
        raise UnsupportedFeatureError(
            "The fragments are stored as a tree of buffers",
            version=message.version,
            remedy="Rewrite the dataset without this feature, or use a newer release",
        )
    uninterpreted = table_pb2.Manifest()
    for descriptor, value in message.ListFields():
        if descriptor.number in _INTERPRETED:
            continue
        if descriptor.number == _CLUSTERING:
            uninterpreted.clustering.extend(value)
        else:
            setattr(uninterpreted, descriptor.name, value)
    writer = message.writer_version
    return Manifest(
        version=message.version,
        schema=_schema(fields, tuple(message.schema_metadata.items())),
        fragments=FragmentList(stored),
        timestamp=message.timestamp.seconds * _NANOSECONDS + message.timestamp.nanos,
        reader_feature_flags=message.reader_feature_flags,
        writer_feature_flags=message.writer_feature_flags,
        max_fragment_id=message.max_fragment_id if message.HasField("max_fragment_id") else None,
        transaction_file=message.transaction_file,
        writer_version=WriterVersion(
            writer.library,
            writer.version,
            writer.prerelease if writer.HasField("prerelease") else None,
            writer.build_metadata if writer.HasField("build_metadata") else None,
        )
        if message.HasField("writer_version")
        else None,
        next_row_id=message.next_row_id,
        storage_version=message.data_format.version if message.HasField("data_format") else None,
        config=dict(message.config),
        table_metadata=dict(message.table_metadata),
        base_paths=tuple(base_path_from_message(base) for base in message.base_paths),
        branch=message.branch if message.HasField("branch") else None,
        uninterpreted=uninterpreted.SerializeToString() + unknown_fields(message),
    )


@lru_cache(maxsize=_CACHED_SCHEMAS)
def _schema(stored: bytes, metadata: tuple[tuple[str, bytes], ...]) -> Schema:
    """The schema for these stored fields; usually that of the previous version."""
    try:
        message = table_pb2.Manifest.FromString(stored)
    except DecodeError as error:
        raise CorruptFileError("The schema of the manifest cannot be parsed") from error
    for stored_field in message.fields:
        if stored_field.id < 0:
            # Files list the ids of their columns: without an id, no file can contain the values.
            raise CorruptFileError(
                f"Field '{stored_field.name}' has the id {stored_field.id}; ids start at 0"
            )
    schema = schema_from_messages(message.fields, dict(metadata))
    columns: set[str] = set()
    for name in schema.names:
        if name in columns:
            raise CorruptFileError(f"Two columns of the manifest are named '{name}'")
        columns.add(name)
    return schema


_stored: WeakIdentityDict[Schema, bytes] = WeakIdentityDict()


def _stored_fields(schema: Schema) -> bytes:
    """The fields of a schema as fields of a serialized manifest; versions usually share a schema."""
    stored: bytes | None = _stored.get(schema)
    if stored is None:
        stored = table_pb2.Manifest(fields=schema_to_messages(schema)).SerializeToString()
        _stored[schema] = stored
    return stored


def _manifest_to_message(manifest: Manifest) -> Any:
    """The message without the schema's fields and without the fragments."""
    message = table_pb2.Manifest.FromString(manifest.uninterpreted)
    message.version = manifest.version
    message.schema_metadata.update(bytes_metadata(manifest.schema.metadata))
    message.timestamp.seconds, message.timestamp.nanos = divmod(manifest.timestamp, _NANOSECONDS)
    message.reader_feature_flags = manifest.reader_feature_flags
    message.writer_feature_flags = manifest.writer_feature_flags
    if manifest.max_fragment_id is not None:
        message.max_fragment_id = manifest.max_fragment_id
    message.transaction_file = manifest.transaction_file
    writer = manifest.writer_version
    if writer is not None:
        message.writer_version.library = writer.library
        message.writer_version.version = writer.version
        if writer.prerelease is not None:
            message.writer_version.prerelease = writer.prerelease
        if writer.build_metadata is not None:
            message.writer_version.build_metadata = writer.build_metadata
    message.next_row_id = manifest.next_row_id
    if manifest.storage_version is not None:
        message.data_format.file_format = "lance"
        message.data_format.version = manifest.storage_version
    message.config.update(manifest.config)
    message.table_metadata.update(manifest.table_metadata)
    message.base_paths.extend([base_path_to_message(base) for base in manifest.base_paths])
    if manifest.branch is not None:
        message.branch = manifest.branch
    return message


def base_path_from_message(message: Any) -> BasePath:
    """A BasePath from its message."""
    return BasePath(
        message.id, message.path, message.is_dataset_root, message.name if message.HasField("name") else None
    )


def base_path_to_message(base: BasePath) -> Any:
    """The message of a BasePath."""
    return table_pb2.BasePath(
        id=base.id, path=base.path, is_dataset_root=base.is_dataset_root, name=base.name
    )
