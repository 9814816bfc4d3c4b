"""What makes small commits to large tables cheap does not change what they say."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.dataset import Dataset
from lance_engine.format.fragment import DeletionFile, DeletionKind, Fragment, FragmentList
from lance_engine.format.manifest import parse_manifest_file, serialize_manifest_file
from lance_engine.io import LocalStore, MemoryStore
from lance_engine.io.manifest_names import NamingScheme
from lance_engine.table.hint import HINT_PATH, read_hint
from lance_engine.table.versions import list_versions, open_recent
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
    assert changed.ids() == [1, 2, 3, 4, 9]
    assert changed.any_deletions()
    assert not fragments.any_deletions()
    assert changed.live_rows() == 9
    assert changed.added == (second, new)
    assert list(fragments) == plain
    again = changed.changed({}, (), ())
    assert again == changed
    assert again.added == changed.added


def test_what_only_other_writers_know_stays_in_fragments_that_stay(fragments: FragmentList) -> None:
    store = MemoryStore()
    write_dataset(TABLE, store, max_rows_per_file=5)
    path = NamingScheme.V2.path(1)
    manifest, _, transaction = parse_manifest_file(store.read(path))
    assert isinstance(manifest.fragments, FragmentList)
    # A field of a data file, and one of a fragment, that no release of today has.
    message = manifest.fragments.messages()[0]
    message.files[0].MergeFromString(b"\xa2\x3f\x03abc")
    message.MergeFromString(b"\xa2\x3f\x03xyz")
    store.put(path, serialize_manifest_file(manifest, transaction=transaction))
    write_dataset(TABLE, store, "append")
    Dataset.open(store).delete("id = 9")  # type: ignore[arg-type]
    for version in (2, 3):
        data = store.read(NamingScheme.V2.path(version))
        assert b"\xa2\x3f\x03abc" in data
        assert b"\xa2\x3f\x03xyz" in data


def test_the_hint_is_only_a_hint(tmp_path: Path) -> None:
    write_dataset(TABLE, tmp_path)
    write_dataset(TABLE, tmp_path, "append")
    store = LocalStore(tmp_path)
    hint = tmp_path / HINT_PATH
    assert (read_hint(store), hint.read_text()) == (2, '{"version":2}')
    for content in ('{"version":1}', '{"version":99}', '{"version":-1}', '{"version":"2"}', "[]", "", "junk"):
        hint.write_text(content)
        assert open_recent(store).version == 2
    hint.unlink()
    assert read_hint(store) is None
    assert open_recent(store).version == 2
    hint.write_text('{"version":123456}' + " " * 100)
    assert write_dataset(TABLE, tmp_path, "append").version == 3
    assert hint.read_text() == '{"version":3}'
    assert read_hint(MemoryStore()) is None


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
    manifest.fragments.messages()[0].MergeFromString(unknown)
    known = dataclasses.replace(manifest, uninterpreted=manifest.uninterpreted + unknown)
    store.put(path, serialize_manifest_file(known, transaction=transaction))
    Dataset.open(store).delete("id = 9").update_config({"a": "b"})  # type: ignore[arg-type]
    changed = parse_manifest_file(store.read(NamingScheme.V2.path(3)))[0]
    assert changed.fragments[0].deletion_file is not None
    assert changed.fragments[0].uninterpreted == unknown
    assert changed.uninterpreted == unknown
