"""Manifest files: bytes to dataclasses and back."""

from __future__ import annotations

import dataclasses
import datetime
import pickle
import struct

import pyarrow as pa
import pytest
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.format.fragment import fragment_from_bytes, fragment_to_bytes
from lance_engine.format.manifest import (
    BasePath,
    DataFile,
    DeletionFile,
    DeletionKind,
    Fragment,
    Manifest,
    WriterVersion,
    parse_manifest_file,
    serialize_manifest_file,
)
from lance_engine.format.pb import table_pb2
from lance_engine.schema_tree import Field, Schema

FILE = DataFile("a.lance", (0, 2, -2), (0, 1, 2), 2, 1, 1234, None)
FULL = Manifest(
    version=7,
    schema=Schema.from_arrow(
        pa.schema(
            [
                pa.field("a", pa.int64(), metadata={"k": b"\xff"}),
                ("s", pa.struct([("x", pa.list_(pa.int8()))])),
            ],
            metadata={"owner": "me"},
        )
    ),
    fragments=(
        Fragment(0, (FILE,), 10),
        Fragment(
            5,
            (FILE, dataclasses.replace(FILE, path="b.lance", file_size=None, base_id=0)),
            100,
            DeletionFile(DeletionKind.BITMAP, 6, 2**64 - 1, 40, 3),
            b"\x0a\x00",
            b"\x0a\x01",
            b"",
        ),
    ),
    timestamp=1_795_201_370_967_832_660,
    reader_feature_flags=3,
    writer_feature_flags=11,
    max_fragment_id=9,
    transaction_file="6-x.txn",
    writer_version=WriterVersion("lance-sql", "1.2.3", "rc1", "b7"),
    next_row_id=2**63,
    storage_version="2.1",
    config={"lance.x": "y"},
    table_metadata={"t": "u"},
    base_paths=(BasePath(0, "/else/where", True, "main"), BasePath(3, "s3://b/files", False)),
    branch="dev",
)


def test_every_attribute_survives() -> None:
    data = serialize_manifest_file(FULL, index_section=b"index", transaction=b"txn")
    manifest, index_section, transaction = parse_manifest_file(data)
    assert dataclasses.replace(manifest, fragments=tuple(manifest.fragments)) == FULL
    assert (index_section, transaction) == (b"index", b"txn")
    assert serialize_manifest_file(manifest, index_section=index_section, transaction=transaction) == data


def test_absent_is_not_zero() -> None:
    manifest, index_section, transaction = parse_manifest_file(
        serialize_manifest_file(Manifest(1, Schema(()), ()), index_section=b"")
    )
    assert (index_section, transaction) == (b"", None)
    assert manifest.max_fragment_id is None
    assert manifest.branch is None
    assert manifest.writer_version is None
    assert manifest.storage_version is None
    zero = dataclasses.replace(FULL, max_fragment_id=0, branch="")
    manifest, _, _ = parse_manifest_file(serialize_manifest_file(zero))
    assert (manifest.max_fragment_id, manifest.branch) == (0, "")


def _golden() -> bytes:
    """Field x (id 0, int32), one fragment of 3 rows in one 2.1 file, an inline append transaction."""
    transaction = bytes.fromhex("12027575" + "a20604" + "0a022003")
    field = bytes.fromhex("120178" + "20ffffffffffffffffff01" + "2a05696e743332" + "3001")
    data_file = bytes.fromhex("0a0761" + "2e6c616e6365" + "120100" + "1a0100" + "2002" + "2801" + "30c801")
    fragment = b"\x12" + bytes([len(data_file)]) + data_file + b"\x20\x03"
    manifest = (
        b"\x0a" + bytes([len(field)]) + field
        + b"\x12" + bytes([len(fragment)]) + fragment
        + b"\x18\x02"  # version 2
        + b"\x3a\x00"  # timestamp 0
        + b"\x58\x00"  # max_fragment_id 0
        + b"\xb8\x01\x00"  # transaction section at 0
    )  # fmt: skip
    first = struct.pack("<I", len(transaction)) + transaction
    second = struct.pack("<I", len(manifest)) + manifest
    return first + second + struct.pack("<qHH4s", len(first), 0, 2, b"LANC")


def test_golden_bytes() -> None:
    manifest, index_section, transaction = parse_manifest_file(_golden())
    assert manifest == Manifest(
        version=2,
        schema=Schema((Field("x", 0, -1, "int32", True),)),
        fragments=manifest.fragments,
        max_fragment_id=0,
    )
    assert list(manifest.fragments) == [Fragment(0, (DataFile("a.lance", (0,), (0,), 2, 1, 200),), 3)]
    assert index_section is None
    assert transaction is not None
    assert serialize_manifest_file(manifest, transaction=transaction) == _golden()


def test_every_truncation_is_corrupt() -> None:
    data = serialize_manifest_file(FULL, index_section=b"index", transaction=b"txn")
    for length in range(len(data)):
        with pytest.raises(CorruptFileError):
            parse_manifest_file(data[:length])


@pytest.mark.parametrize("position", [-1, 2**62, -(2**63)])
def test_positions_outside_the_file_are_corrupt(position: int) -> None:
    data = serialize_manifest_file(FULL)
    with pytest.raises(CorruptFileError, match="starts at byte"):
        parse_manifest_file(data[:-16] + struct.pack("<qHH4s", position, 0, 2, b"LANC"))


def test_wrong_lengths_and_sections_are_corrupt() -> None:
    data = bytearray(serialize_manifest_file(FULL))
    for wrong in (0, len(data) - 21, len(data) - 19, 2**32 - 1):
        data[:4] = struct.pack("<I", wrong)
        with pytest.raises(CorruptFileError):
            parse_manifest_file(bytes(data))
    message = table_pb2.Manifest(version=1, index_section=10**9)
    with pytest.raises(CorruptFileError, match="index section"):
        parse_manifest_file(_file(message))
    with pytest.raises(CorruptFileError, match="transaction"):
        parse_manifest_file(_file(table_pb2.Manifest(version=1, transaction_section=2)))


def _file(message: table_pb2.Manifest) -> bytes:
    content: bytes = message.SerializeToString()
    return struct.pack("<I", len(content)) + content + struct.pack("<qHH4s", 0, 0, 2, b"LANC")


def test_the_older_position_of_the_transaction_is_read() -> None:
    content = table_pb2.Manifest(version=1, transaction_section_deprecated=0).SerializeToString()
    data = struct.pack("<I", 3) + b"abc" + struct.pack("<I", len(content)) + content
    assert parse_manifest_file(data + struct.pack("<qHH4s", 7, 0, 2, b"LANC"))[2] == b"abc"


def test_newer_footers_and_unknown_fields_are_ignored() -> None:
    content = table_pb2.Manifest(version=1).SerializeToString() + bytes.fromhex("f2060161")
    data = struct.pack("<I", len(content)) + content + struct.pack("<qHH4s", 0, 9, 9, b"LANC")
    assert parse_manifest_file(data)[0].version == 1


def test_uninterpreted_fields_are_written_back() -> None:
    message = table_pb2.Manifest(
        version=1, version_aux_data=4, tag="t", max_allocated_field_id=7, max_clustering_id=2
    )
    message.clustering.add(id=1, columns=["a"])
    fragment = message.fragments.add(id=3, physical_rows=1, clustering_id=1)
    fragment.metadata["k"] = "v"
    fragment.spilled_row_ids.SetInParent()
    field = message.fields.add(
        name="a", id=0, parent_id=-1, logical_type="dict:string:int8:false", encoding=3
    )
    field.dictionary.SetInParent()
    manifest, _, _ = parse_manifest_file(_file(message))
    assert manifest.fragments[0].has_spilled_lineage
    again = serialize_manifest_file(manifest)
    (length,) = struct.unpack("<I", again[:4])
    back = table_pb2.Manifest.FromString(again[4 : 4 + length])
    # Written in any case; the rest must be equal.
    back.ClearField("timestamp")
    assert back == message


def test_key_columns_are_mirrored_from_their_metadata() -> None:
    metadata = {
        "lance-schema:unenforced-primary-key": "true",
        "lance-schema:unenforced-primary-key:position": "2",
    }
    manifest = Manifest(1, Schema((Field("a", 0, -1, "int8", True, metadata=metadata),)), ())
    data = serialize_manifest_file(manifest)
    (length,) = struct.unpack("<I", data[:4])
    (field,) = table_pb2.Manifest.FromString(data[4 : 4 + length]).fields
    assert (field.unenforced_primary_key, field.unenforced_primary_key_position) == (True, 2)


def test_fragment_trees_and_overlays_are_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="tree"):
        parse_manifest_file(_file(table_pb2.Manifest(version=1, fragment_tree=b"")))
    with pytest.raises(UnsupportedFeatureError, match=r"overlay.*fragment: 4"):
        fragment_from_bytes(table_pb2.DataFragment(id=4, overlays=[b""]).SerializeToString())


@pytest.mark.parametrize(
    "message", [table_pb2.DataFragment(id=2**32), table_pb2.DataFragment(physical_rows=2**33)]
)
def test_fragments_beyond_the_address_space_are_corrupt(message: table_pb2.DataFragment) -> None:
    with pytest.raises(CorruptFileError, match=r"32.bit"):
        fragment_from_bytes(message.SerializeToString())


def test_damaged_schemas_are_corrupt() -> None:
    def parse(*fields: tuple[int, int]) -> Manifest:
        message = table_pb2.Manifest(version=1)
        for field_id, parent_id in fields:
            message.fields.add(name=f"f{field_id}", id=field_id, parent_id=parent_id, logical_type="struct")
        return parse_manifest_file(_file(message))[0]

    assert [node.name for node in parse((1, -1), (2, -1), (0, 1)).schema.walk()] == ["f1", "f0", "f2"]
    with pytest.raises(CorruptFileError, match="before its parent"):
        parse((1, 0), (0, -1))
    with pytest.raises(CorruptFileError, match="before its parent"):
        parse((0, 0))
    with pytest.raises(CorruptFileError, match="the id 1"):
        parse((1, -1), (1, -1))
    with pytest.raises(CorruptFileError, match="'f-1' has the id -1"):
        parse((0, -1), (-1, 0))
    with pytest.raises(CorruptFileError, match="deep"):
        parse(*((number, number - 1) for number in range(200)))


def test_fragments_travel_as_bytes() -> None:
    for fragment in FULL.fragments:
        assert fragment_from_bytes(fragment_to_bytes(fragment)) == fragment
    with pytest.raises(CorruptFileError, match="cannot be parsed"):
        fragment_from_bytes(b"\xff")


def test_fragments_are_a_sequence_of_values() -> None:
    fragments = parse_manifest_file(serialize_manifest_file(FULL))[0].fragments
    assert len(fragments) == 2
    assert fragments[-1] == FULL.fragments[1]
    assert fragments[:1] == FULL.fragments[:1]
    assert fragments == FULL.fragments
    assert pickle.loads(pickle.dumps(fragments)) == FULL.fragments
    with pytest.raises(IndexError):
        fragments[2]


def test_unknown_kinds_of_deletion_files_are_refused() -> None:
    # Field 3, the deletion file, with field 1, its kind, set to 7.
    with pytest.raises(UnsupportedFeatureError, match="kind of deletion file"):
        fragment_from_bytes(bytes.fromhex("1a020807"))


def test_names_and_versions_are_spelled_as_the_format_wants() -> None:
    assert DeletionFile(DeletionKind.ARROW, 6, 2**64 - 1).file_name(5) == "5-6-18446744073709551615.arrow"
    assert DeletionFile(DeletionKind.BITMAP, 6, 0).file_name(5) == "5-6-0.bin"
    versions = [DataFile("", (), (), *pair).storage_version for pair in [(2, 1), (2, 0), (0, 3), (0, 2)]]
    assert versions == ["2.1", "2.0", "2.0", "0.1"]


def test_the_time_of_commit_is_utc() -> None:
    assert FULL.committed_at == datetime.datetime(2026, 11, 20, 19, 2, 50, 967832, datetime.UTC)
    with pytest.raises(CorruptFileError):
        _ = dataclasses.replace(FULL, timestamp=2**63 * 10**9).committed_at
