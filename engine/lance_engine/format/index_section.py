"""The index section of a manifest file: which indices a version has and what they cover."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError
from pyroaring import BitMap

from lance_engine.errors import CorruptFileError
from lance_engine.format.pb import table_pb2


@dataclass(frozen=True, slots=True)
class IndexSegment:
    """One segment of an index; segments of the same name belong together.

    `kind` is the name of the message in `details`, without package and without ``IndexDetails`` (empty when
    absent). `fragment_ids` is None when the segment does not tell which fragments it covers: then it must
    not be used. `files` holds (name, size in bytes), `created_at` milliseconds since 1970.
    """

    uuid: uuid.UUID
    name: str
    fields: tuple[int, ...]
    dataset_version: int
    kind: str
    details: bytes
    fragment_ids: BitMap | None
    index_version: int
    created_at: int | None
    base_id: int | None
    files: tuple[tuple[str, int], ...]


def parse_index_section(data: bytes) -> tuple[IndexSegment, ...]:
    """The segments of a serialised IndexSection; CorruptFileError if it is none."""
    try:
        message = table_pb2.IndexSection.FromString(data)
    except DecodeError as error:
        raise CorruptFileError("The index section cannot be parsed") from error
    return tuple(_segment(index) for index in message.indices)


def retain_indices(data: bytes, field_ids: Collection[int]) -> bytes | None:
    """The section without the indices of fields that are not in `field_ids`; None if none is left."""
    try:
        message = table_pb2.IndexSection.FromString(data)
    except DecodeError as error:
        raise CorruptFileError("The index section cannot be parsed") from error
    kept = [index for index in message.indices if all(field in field_ids for field in index.fields)]
    retained: bytes = table_pb2.IndexSection(indices=kept).SerializeToString()
    return retained if kept else None


def _segment(message: Any) -> IndexSegment:
    if len(message.uuid.uuid) != 16:
        raise CorruptFileError(
            f"The index '{message.name}' has an identifier of {len(message.uuid.uuid)} bytes"
        )
    return IndexSegment(
        uuid=uuid.UUID(bytes=message.uuid.uuid),
        name=message.name,
        fields=tuple(message.fields),
        dataset_version=message.dataset_version,
        kind=_kind(message.index_details.type_url),
        details=message.index_details.value,
        fragment_ids=_fragment_ids(message),
        index_version=message.index_version,
        created_at=message.created_at if message.HasField("created_at") else None,
        base_id=message.base_id if message.HasField("base_id") else None,
        files=tuple((file.path, file.size_bytes) for file in message.files),
    )


def _kind(type_url: str) -> str:
    # "/lance.table.ZoneMapIndexDetails" or "type.googleapis.com/lance.table.ZoneMapIndexDetails"
    return type_url.rpartition("/")[2].rpartition(".")[2].removesuffix("IndexDetails")


def _fragment_ids(message: Any) -> BitMap | None:
    if not message.fragment_bitmap:
        return None
    try:
        return BitMap.deserialize(message.fragment_bitmap)
    except (ValueError, IndexError) as error:
        raise CorruptFileError(
            f"The fragments of the index '{message.name}' are no Roaring bitmap"
        ) from error
