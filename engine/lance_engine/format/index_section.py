"""The index section of a manifest file: the indices of a version and their coverage."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from google.protobuf.message import DecodeError
from pyroaring import BitMap

from lance_engine.errors import CorruptFileError
from lance_engine.format.pb import table_pb2

# Kind of the entry that says which fragments got their rows from others while indices kept the old addresses.
_REUSE: Final = "FragmentReuse"
# Packages of the details messages outside of `lance.table`.
_PACKAGES: Final = {"BloomFilter": "lance.index.pb", "Vector": "lance.index.pb"}


@dataclass(frozen=True, slots=True)
class IndexSegment:
    """One segment of an index; segments of the same name belong together.

    `kind` is the name of the message in `details`, without package and without ``IndexDetails`` (empty if
    absent). `fragment_ids` is None if the segment does not record its coverage: then it must not be used.
    `files` contains (name, size in bytes), `created_at` milliseconds since 1970. With `is_behind`, it may
    hold addresses that rows had before they were moved, and covers nothing here.
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
    is_behind: bool = False


def parse_index_section(data: bytes) -> tuple[IndexSegment, ...]:
    """The segments of a serialised IndexSection; CorruptFileError if it is invalid.

    After a compaction with deferred updates of indices, a fragment reuse index has the new addresses of the
    rows, and other writers let older segments cover the new fragments. We do not translate their addresses,
    and pylance 14 loses some when it compacts these fragments again: such segments cover nothing.
    """
    segments = [_segment(index) for index in _parse(data).indices]
    moved = max((segment.dataset_version for segment in segments if segment.kind == _REUSE), default=-1)
    return tuple(_unless_behind(segment, moved) for segment in segments)


def _unless_behind(segment: IndexSegment, moved: int) -> IndexSegment:
    if segment.kind == _REUSE or not segment.fragment_ids or segment.dataset_version > moved:
        return segment
    return replace(segment, fragment_ids=BitMap(), is_behind=True)


def highest_covered(data: bytes) -> int | None:
    """The highest fragment id that a segment covers, also of a fragment that is gone; None without coverage.

    Bytes that are not a section cover nothing: whoever uses the indices gets the error.
    """
    try:
        covered = [_fragment_ids(index) for index in _parse(data).indices]
    except CorruptFileError:
        return None
    return max((ids.max() for ids in covered if ids), default=None)


def with_coverage(data: bytes, change: Callable[[IndexSegment], BitMap | None]) -> bytes:
    """The section with changed sets of covered fragments: `change` returns the new set, None to keep one.

    Segments without recorded coverage are not changed.
    """
    message = _parse(data)
    for index in message.indices:
        segment = _segment(index)
        covered = change(segment) if segment.fragment_ids is not None else None
        if covered is not None:
            index.fragment_bitmap = covered.serialize()
    changed: bytes = message.SerializeToString()
    return changed


def retain_indices(data: bytes, field_ids: Collection[int]) -> bytes | None:
    """The section without the indices of fields that are not in `field_ids`; None if it becomes empty."""
    message = _parse(data)
    kept = [index for index in message.indices if all(field in field_ids for field in index.fields)]
    return _serialize(kept)


def replace_indices(
    data: bytes | None, added: Iterable[IndexSegment], removed: Collection[uuid.UUID]
) -> bytes | None:
    """The section without the segments `removed` and with those `added`; None if it becomes empty."""
    kept = [index for index in _parse(data or b"").indices if uuid.UUID(bytes=index.uuid.uuid) not in removed]
    return _serialize([*kept, *map(segment_to_message, added)])


def substitute_indices(data: bytes, substitutes: Mapping[uuid.UUID, IndexSegment]) -> bytes:
    """The section with some segments, by identifier, replaced in place."""
    message = _parse(data)
    for index in message.indices:
        substitute = substitutes.get(uuid.UUID(bytes=index.uuid.uuid))
        if substitute is not None:
            index.CopyFrom(segment_to_message(substitute))
    substituted: bytes = message.SerializeToString()
    return substituted


def segment_to_message(segment: IndexSegment) -> Any:
    """The IndexMetadata message of a segment."""
    message = table_pb2.IndexMetadata(
        uuid={"uuid": segment.uuid.bytes},
        fields=segment.fields,
        name=segment.name,
        dataset_version=segment.dataset_version,
        index_version=segment.index_version,
        files=[{"path": path, "size_bytes": size} for path, size in segment.files],
    )
    if segment.kind:
        message.index_details.type_url = type_url(segment.kind)
        message.index_details.value = segment.details
    if segment.fragment_ids is not None:
        message.fragment_bitmap = segment.fragment_ids.serialize()
    if segment.created_at is not None:
        message.created_at = segment.created_at
    if segment.base_id is not None:
        message.base_id = segment.base_id
    return message


def segment_from_message(message: Any) -> IndexSegment:
    """A segment from its IndexMetadata message; CorruptFileError if that is invalid."""
    return _segment(message)


def type_url(kind: str) -> str:
    """The type of `index_details` for an index of this kind."""
    return f"/{_PACKAGES.get(kind, 'lance.table')}.{kind}IndexDetails"


def _parse(data: bytes) -> Any:
    try:
        return table_pb2.IndexSection.FromString(data)
    except DecodeError as error:
        raise CorruptFileError("The index section cannot be parsed") from error


def _serialize(messages: Iterable[Any]) -> bytes | None:
    section = table_pb2.IndexSection(indices=messages)
    data: bytes = section.SerializeToString()
    return data if section.indices else None


def with_base(data: bytes, base_id: int) -> bytes:
    """The section with the base path `base_id` for the indices that are in the dataset itself."""
    try:
        message = table_pb2.IndexSection.FromString(data)
    except DecodeError as error:
        raise CorruptFileError("The index section cannot be parsed") from error
    for index in message.indices:
        if not index.HasField("base_id"):
            index.base_id = base_id
    changed: bytes = message.SerializeToString()
    return changed


def _segment(message: Any) -> IndexSegment:
    if len(message.uuid.uuid) != 16:
        raise CorruptFileError(f"The UUID of the index '{message.name}' has {len(message.uuid.uuid)} bytes")
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
            f"The fragments of the index '{message.name}' are not a valid Roaring bitmap"
        ) from error
