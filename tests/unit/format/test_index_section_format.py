"""The index section of a manifest file."""

from __future__ import annotations

import uuid

import pytest
from lance_engine.errors import CorruptFileError
from lance_engine.format.index_section import IndexSegment, parse_index_section
from lance_engine.format.pb import table_pb2
from pyroaring import BitMap

UUID = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")


def _section(**index: object) -> bytes:
    message = table_pb2.IndexSection()
    message.indices.add(**{"uuid": {"uuid": UUID.bytes}, "name": "i", **index})
    data: bytes = message.SerializeToString()
    return data


@pytest.mark.parametrize("prefix", ["/lance.table.", "type.googleapis.com/lance.table.", "/lance.index.pb."])
def test_segments_are_read(prefix: str) -> None:
    data = _section(
        fields=[3],
        dataset_version=7,
        fragment_bitmap=BitMap([1, 70000]).serialize(),
        index_details={"type_url": f"{prefix}ZoneMapIndexDetails", "value": b"x"},
        index_version=1,
        created_at=5,
        base_id=0,
        files=[{"path": "zonemap.lance", "size_bytes": 9}],
    )
    assert parse_index_section(data) == (
        IndexSegment(
            UUID, "i", (3,), 7, "ZoneMap", b"x", BitMap([1, 70000]), 1, 5, 0, (("zonemap.lance", 9),)
        ),
    )


def test_what_is_absent_is_none() -> None:
    (segment,) = parse_index_section(_section())
    assert (segment.fragment_ids, segment.created_at, segment.base_id) == (None, None, None)
    assert (segment.kind, segment.files) == ("", ())
    assert parse_index_section(b"") == ()


@pytest.mark.parametrize("data", [b"\xff", _section(uuid={"uuid": b"x"}), _section(fragment_bitmap=b"xyz")])
def test_damaged_sections_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        parse_index_section(data)
