"""Optimizations of small commits to large tables do not change their content."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CorruptFileError
from lance_engine.format.fragment import DeletionFile, DeletionKind, Fragment, fragment_from_message
from lance_engine.format.fragment_list import FragmentList, stored_fragments
from lance_engine.format.manifest import parse_manifest_file, serialize_manifest_file
from lance_engine.format.pb import table_pb2
from lance_engine.io import MemoryStore
from lance_engine.io.manifest_names import NamingScheme
from lance_engine.table.versions import list_versions, open_snapshot
from lance_engine.write.dataset import write_dataset

TABLE = pa.table({"id": range(10)})


@pytest.fixture
def fragments() -> FragmentList:
    store = MemoryStore()
    write_dataset(TABLE, store, max_rows_per_file=2)
    manifest = parse_manifest_file(store.read(NamingScheme.V2.path(1)))[0]
    assert isinstance(manifest.fragments, FragmentList)
    return manifest.fragments


def test_a_changed_list_is_that_of_the_changed_fragments(fragments: FragmentList) -> None:
    plain = list(fragments)
    deletion = DeletionFile(DeletionKind.ARROW, 1, 7, 1)
    second = dataclasses.replace(plain[1], deletion_file=deletion)
    new = Fragment(9, plain[0].files, 2)
    missing = dataclasses.replace(new, id=8)
    changed = fragments.changed({1: second, 8: missing}, {0, 77}, [new])
    assert list(changed) == [second, *plain[2:], new]
    assert changed.ids.tolist() == [1, 2, 3, 4, 9]
    assert changed.any_deletions()
    assert not fragments.any_deletions()
    assert changed.live_rows() == 9
    assert changed.added == (second, new)
    assert list(fragments) == plain
    again = changed.changed({}, (), ())
    assert again == changed
    assert again.added == changed.added


def test_fragments_are_found_in_what_is_stored(fragments: FragmentList) -> None:
    deletion = DeletionFile(DeletionKind.BITMAP, 3, 2**63, 40, base_id=2)
    plain = (
        Fragment(0, (), 0),
        Fragment(3, fragments[0].files, 2**32 - 1, deletion, b"ids", b"updated", b"created"),
        Fragment(
            2**32 - 1, fragments[0].files * 3, 300, dataclasses.replace(deletion, num_deleted_rows=None)
        ),
    )
    # Among fields that are not known: a number, eight bytes, a group with a text in it, and four bytes.
    unknown = b"\xa0\x3f\xac\x02\xa9\x3f12345678\xab\x3f\xb2\x3f\x03abc\xac\x3f\xbd\x3f1234"
    stored = stored_fragments(plain) + b"\x12" + bytes([2 + len(unknown)]) + unknown + b"\x08\x07"
    found = FragmentList(stored)
    assert found.ids.tolist() == [0, 3, 2**32 - 1, 7]
    assert found.any_deletions()
    assert not found.any_spilled()
    assert found.all_rows_known() is True
    assert found.live_rows() is None
    assert tuple(found)[:3] == plain
    assert (found[-1].id, found[1:3], len(found)) == (7, plain[1:], 4)
    assert FragmentList(stored_fragments(plain[:2])).live_rows() == 2**32 - 41
    with pytest.raises(IndexError):
        found[4]


def test_damaged_fragments_are_found_at_once(fragments: FragmentList) -> None:
    stored = fragments.stored
    length = len(stored_fragments(fragments[:1]))
    whole = {len(stored_fragments(fragments[:count])) for count in range(len(fragments) + 1)}
    for end in range(len(stored)):
        if end not in whole:
            with pytest.raises(CorruptFileError):
                FragmentList(stored[:end])
    for place in range(length):
        for value in range(256):
            damaged = stored[:place] + bytes([value]) + stored[place + 1 :]
            try:
                parsed = FragmentList(damaged)
            except CorruptFileError:
                continue
            # What is accepted is what protobuf understands, or refuses later on.
            try:
                messages = table_pb2.Manifest.FromString(damaged).fragments
            except DecodeError:
                with pytest.raises(CorruptFileError):
                    list(parsed)
                continue
            assert parsed.ids.tolist() == [message.id for message in messages]
            assert parsed.any_deletions() == any(message.HasField("deletion_file") for message in messages)


def test_what_only_other_writers_know_stays_in_fragments_that_stay(fragments: FragmentList) -> None:
    store = MemoryStore()
    write_dataset(TABLE, store, max_rows_per_file=5)
    path = NamingScheme.V2.path(1)
    manifest, _, transaction = parse_manifest_file(store.read(path))
    assert isinstance(manifest.fragments, FragmentList)
    # A field of a data file, and one of a fragment, that no release of today has.
    message = table_pb2.Manifest.FromString(manifest.fragments.stored)
    message.fragments[0].files[0].MergeFromString(b"\xa2\x3f\x03abc")
    message.fragments[0].MergeFromString(b"\xa2\x3f\x03xyz")
    manifest = dataclasses.replace(manifest, fragments=FragmentList(message.SerializeToString()))
    store.put(path, serialize_manifest_file(manifest, transaction=transaction))
    write_dataset(TABLE, store, "append")
    DatasetVersion.open(store).delete("id = 9")  # type: ignore[arg-type]
    for version in (2, 3):
        data = store.read(NamingScheme.V2.path(version))
        assert b"\xa2\x3f\x03abc" in data
        assert b"\xa2\x3f\x03xyz" in data


def test_names_that_are_no_manifests_of_the_history() -> None:
    store = MemoryStore()
    write_dataset(TABLE, store)
    data = store.read(NamingScheme.V2.path(1))
    for name in (
        "d18446744073709551613.manifest",
        "d9223372036854775809.manifest",
        "18446744073709551613.manifest-0f8c5a2e",
        "18446744073709551613.manifest#1",
        ".18446744073709551613.manifest.ab.tmp",
        "99999999999999999999.manifest",
        "x.manifest",
        "٣.manifest",
        "latest_version_hint.json",
        "18446744073709551613.manifest/inside",
    ):
        store.put(f"_versions/{name}", data)
    versions = list_versions(store)
    assert versions is not None
    assert (versions.latest, versions.versions, versions.scheme) == (1, (1,), NamingScheme.V2)
    assert list_versions(MemoryStore()) is None


def test_what_only_other_writers_know_stays_in_what_changes(fragments: FragmentList) -> None:
    store = MemoryStore()
    write_dataset(TABLE, store)
    path = NamingScheme.V2.path(1)
    manifest, _, transaction = parse_manifest_file(store.read(path))
    assert isinstance(manifest.fragments, FragmentList)
    # One of each wire type: a number, eight bytes, a text and four bytes.
    unknown = b"\xa0\x3f\xac\x02\xa9\x3f12345678\xb2\x3f\x03abc\xbd\x3f1234"
    message = table_pb2.Manifest.FromString(manifest.fragments.stored)
    message.fragments[0].MergeFromString(unknown)
    known = dataclasses.replace(
        manifest,
        fragments=FragmentList(message.SerializeToString()),
        uninterpreted=manifest.uninterpreted + unknown,
    )
    store.put(path, serialize_manifest_file(known, transaction=transaction))
    DatasetVersion.open(store).delete("id = 9").update_config({"a": "b"})  # type: ignore[arg-type]
    changed = parse_manifest_file(store.read(NamingScheme.V2.path(3)))[0]
    assert changed.fragments[0].deletion_file is not None
    assert changed.fragments[0].uninterpreted == unknown
    assert changed.uninterpreted == unknown


def test_a_commit_converts_only_the_fragments_that_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    write_dataset(TABLE, store, max_rows_per_file=1)
    converted: list[int] = []

    def counted(message: table_pb2.DataFragment) -> Fragment:
        converted.append(message.id)
        return fragment_from_message(message)

    monkeypatch.setattr("lance_engine.format.fragment_list.fragment_from_message", counted)
    write_dataset(TABLE, store, "append")
    assert converted == []
    snapshot = open_snapshot(store)
    assert (snapshot.num_rows, len(snapshot.fragments)) == (20, 11)
    assert converted == []
    DatasetVersion(snapshot).delete(row_ids=[3 << 32, 10 << 32])
    assert sorted(set(converted)) == [3, 10]
