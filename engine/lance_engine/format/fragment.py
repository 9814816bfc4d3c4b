"""Fragments and the files they consist of, as stored in manifests and transactions.

A fragment is a set of rows. Its data files contain the columns of these rows, its deletion file the offsets
of deleted rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from google.protobuf.message import DecodeError

from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.format.pb import table_pb2
from lance_engine.format.unknown import unknown_fields

# A column that is no longer used by any field.
TOMBSTONE = -2
# The version of files from before the 2.x container.
LEGACY = "0.1"
# Columns for row lineage that is too large for the manifest.
SPILLED_ROW_IDS = -3
SPILLED_CREATED_AT = -4
SPILLED_LAST_UPDATED_AT = -5


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file of a fragment.

    `fields` and `column_indices` are parallel: field id and number of its first column in the file (-1:
    none). `path` is relative to the data folder of the base path `base_id`; None is the root of the dataset.
    `file_size` is None if the writer did not record it.
    """

    path: str
    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    major_version: int
    minor_version: int
    file_size: int | None = None
    base_id: int | None = None

    @property
    def storage_version(self) -> str:
        """The format version as users write it: "2.1", or "0.1" for all versions before the 2.x container."""
        if (self.major_version, self.minor_version) == (0, 3):
            return "2.0"
        return f"{self.major_version}.{self.minor_version}" if self.major_version else LEGACY


class DeletionKind(IntEnum):
    """How a deletion file stores its offsets."""

    ARROW = 0
    BITMAP = 1


@dataclass(frozen=True, slots=True)
class DeletionFile:
    """The deleted rows of a fragment: a newer file replaces the older one.

    `num_deleted_rows` is None if the writer did not record it.
    """

    kind: DeletionKind
    read_version: int
    id: int
    num_deleted_rows: int | None = None
    base_id: int | None = None

    def file_name(self, fragment_id: int) -> str:
        """The name inside the folder of deletion files."""
        ending = "arrow" if self.kind is DeletionKind.ARROW else "bin"
        return f"{fragment_id}-{self.read_version}-{self.id}.{ending}"


@dataclass(frozen=True, slots=True)
class Fragment:
    """Rows that share their data files.

    `physical_rows` includes deleted rows; 0 means that the writer did not record it. The three sequences are
    serialized messages, None if absent; with `has_spilled_lineage`, some are stored in a data file instead.
    `uninterpreted` keeps the serialized fields that are not used here.
    """

    id: int
    files: tuple[DataFile, ...]
    physical_rows: int
    deletion_file: DeletionFile | None = None
    row_ids: bytes | None = None
    last_updated_at_versions: bytes | None = None
    created_at_versions: bytes | None = None
    has_spilled_lineage: bool = False
    uninterpreted: bytes = field(default=b"", repr=False)

    @property
    def num_deleted_rows(self) -> int | None:
        """None if the number is only in the deletion file itself."""
        return 0 if self.deletion_file is None else self.deletion_file.num_deleted_rows


_SPILLED = ("spilled_row_ids", "spilled_last_updated_at_versions", "spilled_created_at_versions")
# Numbers of the message fields with a Fragment attribute.
_INTERPRETED = frozenset({1, 2, 3, 4, 5, 7, 9})


def fragment_from_message(message: Any) -> Fragment:
    """A Fragment from a `DataFragment` message; UnsupportedFeatureError if it has data overlays."""
    if message.id >= 2**32:
        raise CorruptFileError(f"The fragment id {message.id} does not fit in 32 bits")
    if message.physical_rows > 2**32:
        raise CorruptFileError(
            f"{message.physical_rows} rows do not fit in 32-bit row offsets", fragment=message.id
        )
    spilled = False
    if any(descriptor.number not in _INTERPRETED for descriptor, _ in message.ListFields()):
        if message.overlays:
            raise UnsupportedFeatureError("Data overlay files are not supported", fragment=message.id)
        spilled = any(message.HasField(name) for name in _SPILLED)
        rest = table_pb2.DataFragment()
        rest.CopyFrom(message)
        for descriptor, _ in message.ListFields():
            if descriptor.number in _INTERPRETED:
                rest.ClearField(descriptor.name)
        uninterpreted = rest.SerializeToString()
    else:
        uninterpreted = unknown_fields(message)
    return Fragment(
        message.id,
        tuple([data_file_from_message(file) for file in message.files]),
        message.physical_rows,
        _deletion_file_from_message(message.deletion_file) if message.HasField("deletion_file") else None,
        message.inline_row_ids if message.HasField("inline_row_ids") else None,
        message.inline_last_updated_at_versions
        if message.HasField("inline_last_updated_at_versions")
        else None,
        message.inline_created_at_versions if message.HasField("inline_created_at_versions") else None,
        spilled,
        uninterpreted,
    )


def fragment_to_message(fragment: Fragment) -> Any:
    """The `DataFragment` message of a Fragment."""
    message = table_pb2.DataFragment.FromString(fragment.uninterpreted)
    message.id = fragment.id
    message.physical_rows = fragment.physical_rows
    message.files.extend([data_file_to_message(file) for file in fragment.files])
    deletion = fragment.deletion_file
    if deletion is not None:
        message.deletion_file.CopyFrom(
            table_pb2.DeletionFile(
                file_type=table_pb2.DeletionFile.DeletionFileType.Name(deletion.kind),
                read_version=deletion.read_version,
                id=deletion.id,
                num_deleted_rows=deletion.num_deleted_rows or 0,
                base_id=deletion.base_id,
            )
        )
    for name, sequence in (
        ("row_ids", fragment.row_ids),
        ("last_updated_at_versions", fragment.last_updated_at_versions),
        ("created_at_versions", fragment.created_at_versions),
    ):
        if sequence is not None:
            setattr(message, f"inline_{name}", sequence)
            # A column of a data file that is no longer used.
            message.ClearField(f"spilled_{name}")
    return message


def fragment_from_bytes(data: bytes) -> Fragment:
    """A Fragment from a serialised `DataFragment`; CorruptFileError if it is invalid."""
    try:
        message = table_pb2.DataFragment.FromString(data)
    except DecodeError as error:
        raise CorruptFileError("A fragment description cannot be parsed") from error
    return fragment_from_message(message)


def fragment_to_bytes(fragment: Fragment) -> bytes:
    """The serialized `DataFragment` of a Fragment, in which tasks send their output to the committer."""
    data: bytes = fragment_to_message(fragment).SerializeToString()
    return data


def data_file_to_message(file: DataFile) -> Any:
    """The `DataFile` message of a DataFile."""
    return table_pb2.DataFile(
        path=file.path,
        fields=file.fields,
        column_indices=file.column_indices,
        file_major_version=file.major_version,
        file_minor_version=file.minor_version,
        file_size_bytes=file.file_size or 0,
        base_id=file.base_id,
    )


def data_file_from_message(message: Any) -> DataFile:
    """A DataFile from its message."""
    return DataFile(
        message.path,
        tuple(message.fields),
        tuple(message.column_indices),
        message.file_major_version,
        message.file_minor_version,
        message.file_size_bytes or None,
        message.base_id if message.HasField("base_id") else None,
    )


def _deletion_file_from_message(message: Any) -> DeletionFile:
    try:
        kind = DeletionKind(message.file_type)
    except ValueError:
        raise UnsupportedFeatureError(f"Unknown kind of deletion file: {message.file_type}") from None
    return DeletionFile(
        kind,
        message.read_version,
        message.id,
        message.num_deleted_rows or None,
        message.base_id if message.HasField("base_id") else None,
    )
