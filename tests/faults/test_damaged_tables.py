"""Broken manifests, missing files, partly written files: clear errors with the place, never wrong answers."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import (
    CorruptFileError,
    DatasetNotFoundError,
    LanceError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
)
from lance_engine.format.deletion import encode_deletions
from lance_engine.format.manifest import (
    DataFile,
    DeletionFile,
    DeletionKind,
    Fragment,
    Manifest,
    parse_manifest_file,
    serialize_manifest_file,
)
from lance_engine.format.row_ids import encode_row_id_range
from lance_engine.format.schema import schema_from_messages, schema_to_messages
from lance_engine.format.transaction import Append, Overwrite
from lance_engine.io import LocalStore, MemoryStore
from lance_engine.io.manifest_names import NamingScheme
from lance_engine.schema_tree import Schema
from lance_engine.table.build import CreateOptions, VersionContent, build_version
from lance_engine.table.commit import commit
from lance_engine.table.versions import open_snapshot

import lance_sql

SCHEMA = Schema.from_arrow(pa.schema([("a", pa.int64()), ("s", pa.struct([("x", pa.string())]))]))
FILE = DataFile("x.lance", (0,), (0,), 2, 1, 100)
DELETION = DeletionFile(DeletionKind.ARROW, 1, 7, 2)
PATH = NamingScheme.V2.path(1)


def _manifest(**fragment: object) -> bytes:
    base = Fragment(3, (FILE,), 10, DELETION, encode_row_id_range(0, 10))
    changed = dataclasses.replace(base, **fragment)  # type: ignore[arg-type]
    manifest = Manifest(1, SCHEMA, (changed,), timestamp=1, reader_feature_flags=3, writer_feature_flags=3)
    return serialize_manifest_file(manifest)


def _store(manifest: bytes) -> MemoryStore:
    store = MemoryStore("broken")
    store.put(PATH, manifest)
    return store


def test_truncated_manifests_name_path_and_version() -> None:
    data = _manifest()
    for length in (0, 3, 15, 16, 40, len(data) - 1):
        with pytest.raises(CorruptFileError, match=rf"memory://broken/{PATH}, version: 1"):
            open_snapshot(_store(data[:length]))


def test_flipped_bytes_never_crash() -> None:
    data = _manifest()
    random = np.random.default_rng(11)
    for _ in range(1500):
        damaged = bytearray(data)
        for position in random.integers(0, len(data), int(random.integers(1, 4))):
            damaged[position] = random.integers(0, 256)
        try:
            snapshot = open_snapshot(_store(bytes(damaged)))
            snapshot.schema.to_arrow()
            assert snapshot.num_rows >= 0
            for fragment in snapshot.fragments:
                if fragment.physical_rows < 1000:
                    snapshot.row_ids(fragment)
                    snapshot.resolve_row_ids([])
        except LanceError:
            continue


def test_a_manifest_under_a_wrong_name_is_corrupt() -> None:
    store = MemoryStore()
    store.put(NamingScheme.V2.path(2), _manifest())
    with pytest.raises(CorruptFileError, match="records version 1"):
        open_snapshot(store)


def test_missing_deletion_files_are_not_ignored() -> None:
    snapshot = open_snapshot(_store(_manifest()))
    assert snapshot.num_rows == 8
    with pytest.raises(CorruptFileError, match=r"does not exist.*_deletions/3-1-7\.arrow, fragment: 3"):
        snapshot.deleted_rows(snapshot.fragments[0])
    with pytest.raises(CorruptFileError, match="does not exist"):
        snapshot.resolve_row_ids([1])


def test_deletion_files_must_name_rows_of_the_fragment() -> None:
    store = _store(_manifest())
    offsets = np.array([1, 10], dtype=np.uint32)
    store.put("_deletions/3-1-7.arrow", encode_deletions(offsets, DeletionKind.ARROW))
    snapshot = open_snapshot(store)
    with pytest.raises(CorruptFileError, match="row 10, but the fragment has 10 rows"):
        snapshot.deleted_rows(snapshot.fragments[0])


def test_unknown_counts_are_read_from_the_deletion_file() -> None:
    store = _store(_manifest(deletion_file=dataclasses.replace(DELETION, num_deleted_rows=None)))
    store.put(
        "_deletions/3-1-7.arrow", encode_deletions(np.array([1, 4, 5], dtype=np.uint32), DeletionKind.ARROW)
    )
    assert open_snapshot(store).num_rows == 7


def test_more_deleted_rows_than_rows_are_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="11 of 10"):
        _ = open_snapshot(
            _store(_manifest(deletion_file=dataclasses.replace(DELETION, num_deleted_rows=11)))
        ).num_rows


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "a/../../b"])
def test_files_outside_the_dataset_are_refused(tmp_path: Path, path: str) -> None:
    LocalStore(tmp_path).put(PATH, _manifest(files=(dataclasses.replace(FILE, path=path),)))
    snapshot = open_snapshot(tmp_path)
    store, name = snapshot.data_file_location(snapshot.fragments[0].files[0])
    with pytest.raises(CorruptFileError, match="inside the dataset"):
        store.read(name)


def test_unknown_features_name_the_bits_and_the_path() -> None:
    manifest = Manifest(1, SCHEMA, (), reader_feature_flags=1 << 20)
    with pytest.raises(UnsupportedFeatureError, match=r"1048576.*memory://broken.*newer release"):
        open_snapshot(_store(serialize_manifest_file(manifest)))


def test_folders_without_a_dataset_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match=str(tmp_path)):
        open_snapshot(tmp_path)
    with pytest.raises(DatasetNotFoundError):
        open_snapshot(tmp_path / "nothing")
    (tmp_path / "_versions").mkdir()
    (tmp_path / "_versions" / ".tmp123").write_bytes(b"half")
    (tmp_path / "_versions" / "18446744073709551614.manifest#1").write_bytes(b"half")
    with pytest.raises(DatasetNotFoundError):
        open_snapshot(tmp_path)
    assert not (tmp_path / "nothing").exists()


def test_junk_beside_the_manifests_is_ignored(tmp_path: Path) -> None:
    commit(tmp_path, Overwrite((), SCHEMA), read_version=0)
    for name in (".tmpabc", "18446744073709551613.manifest#1", "x.manifest", "latest_version_hint.json"):
        (tmp_path / "_versions" / name).write_bytes(b"junk")
    assert open_snapshot(tmp_path).version == 1
    assert commit(tmp_path, Append(()), read_version=1).version == 2


class FailingStore(MemoryStore):
    """Fails when a manifest would be written."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        raise OSError("disk full")


def test_failed_commits_leave_nothing_behind() -> None:
    store = FailingStore()
    with pytest.raises(OSError, match="disk full"):
        commit(store, Overwrite((), SCHEMA), read_version=0)
    assert store.list("") == []


@pytest.mark.parametrize("logical_type", ["int64", "string", "json", "fixed_size_list:float:2", "blob"])
def test_fields_inside_of_what_has_none(logical_type: str) -> None:
    messages = schema_to_messages(SCHEMA)
    assert [message.logical_type for message in messages] == ["int64", "struct", "string"]
    messages[1].logical_type = logical_type
    with pytest.raises(CorruptFileError, match=r"Field 's' of type .* has fields inside of it"):
        schema_from_messages(messages, {})


@pytest.mark.parametrize("place", [0, 1, 2])
def test_names_with_a_nul_character(place: int) -> None:
    """The interface between Arrow's implementations ends names there: one column would pass for another."""
    messages = schema_to_messages(SCHEMA)
    messages[place].name = "a\0b"
    with pytest.raises(CorruptFileError, match="has a NUL character"):
        schema_from_messages(messages, {})


@pytest.mark.parametrize("names", [("a\0b", "b"), ("a", "a\0")])
def test_names_with_a_nul_character_are_not_written(tmp_path: Path, names: tuple[str, str]) -> None:
    table = pa.table([[1], [2]], names=names)
    with pytest.raises(UnsupportedTypeError, match=r"has a NUL character.*Rename the column"):
        lance_sql.write(table, tmp_path / "t.lance")
    nested = pa.table({"s": pa.StructArray.from_arrays([pa.array([1])] * 2, names=names)})
    with pytest.raises(UnsupportedTypeError, match=r"has a NUL character.*Rename the column"):
        lance_sql.write(nested, tmp_path / "t.lance")
    assert not (tmp_path / "t.lance").exists()


def test_two_columns_of_one_name() -> None:
    twice = Schema((SCHEMA.fields[0], dataclasses.replace(SCHEMA.fields[1], name="a")))
    manifest = Manifest(1, twice, (), timestamp=1)
    with pytest.raises(CorruptFileError, match="Two columns of the manifest are named 'a'"):
        open_snapshot(_store(serialize_manifest_file(manifest)))


STABLE = {"reader_feature_flags": 2, "writer_feature_flags": 2}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_fragment_id": 2**32 - 1}, "used up its fragment ids"),
        (
            {"next_row_id": 2**64 - 1, "reader_feature_flags": 2, "writer_feature_flags": 2},
            "used up its row ids",
        ),
        ({"version": 2**63 - 1}, "used up its versions"),
    ],
)
def test_the_last_number_of_a_counter(changes: dict[str, object], message: str) -> None:
    last = dataclasses.replace(Manifest(1, SCHEMA, (), timestamp=1), **changes)  # type: ignore[arg-type]
    added = Append((Fragment(0, (FILE,), 10),))
    with pytest.raises(UnsupportedFeatureError, match=f"The dataset has {message}"):
        build_version(VersionContent(last), added, CreateOptions(), "x.txn")


def test_the_last_field_id(tmp_path: Path) -> None:
    place = tmp_path / "t.lance"
    dataset = lance_sql.write(pa.table({"a": [1, 2]}), place)
    (path,) = (place / "_versions").glob("*.manifest")
    manifest, _, _ = parse_manifest_file(path.read_bytes())
    (column,) = manifest.schema.fields
    schema = Schema((dataclasses.replace(column, id=2**31 - 1),))
    files = (dataclasses.replace(manifest.fragments[0].files[0], fields=(2**31 - 1,)),)
    fragments = (dataclasses.replace(manifest.fragments[0], files=files),)
    path.write_bytes(
        serialize_manifest_file(dataclasses.replace(manifest, schema=schema, fragments=fragments))
    )
    dataset = lance_sql.open(place)
    assert dataset.to_table()["a"].to_pylist() == [1, 2]
    for change in (
        lambda: dataset.add_columns({"b": "a + 1"}),
        lambda: dataset.alter_column("a", type=pa.int32()),
    ):
        with pytest.raises(UnsupportedFeatureError, match=r"has used up its field ids \[path: .*t.lance\]"):
            change()
    assert lance_sql.open(place).version == 1
