"""What newer releases may write: feature flags, file versions and entries of the index section."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.format.index_section import parse_index_section
from lance_engine.format.manifest import Manifest, parse_manifest_file, serialize_manifest_file
from lance_engine.format.pb import table_pb2
from pyroaring import BitMap

import lance_sql

ROWS = 20
CONDITIONS = ["id = 7", "id < 4", "g = 2", "g IN (0, 1)", "id > 17 OR g = 0"]


def written(path: Path, **options: Any) -> str:
    uri = str(path / "t.lance")
    table = pa.table({"id": range(ROWS), "g": [number % 3 for number in range(ROWS)]})
    lance.write_dataset(table, uri, max_rows_per_file=5, **options)
    return uri


def edit(
    uri: str, change: Callable[[Manifest], Manifest], indices: Callable[[Any], None] | None = None
) -> None:
    """Change the newest manifest, and the index section if asked."""
    path = min((Path(uri) / "_versions").glob("*.manifest"))  # names count down
    manifest, section, transaction = parse_manifest_file(path.read_bytes())
    if indices is not None:
        message = table_pb2.IndexSection.FromString(section or b"")
        indices(message)
        section = message.SerializeToString()
    content = serialize_manifest_file(change(manifest), index_section=section, transaction=transaction)
    path.write_bytes(content)


def same_answers(uri: str) -> None:
    ours, theirs = lance_sql.open(uri), lance.dataset(uri)
    assert ours.scan().to_table().equals(theirs.to_table())
    for where in CONDITIONS:
        expected = theirs.to_table(filter=where, use_scalar_index=False)
        assert ours.scan(filter=where).to_table().equals(expected), where
        assert ours.count_rows(where) == expected.num_rows


def flagged(bit: int, *, reader: bool = True, writer: bool = True) -> Callable[[Manifest], Manifest]:
    return lambda manifest: dataclasses.replace(
        manifest,
        reader_feature_flags=manifest.reader_feature_flags | (bit if reader else 0),
        writer_feature_flags=manifest.writer_feature_flags | (bit if writer else 0),
    )


@pytest.mark.parametrize("bit", [128, 256, 1024, 2048, 16384])
def test_flags_that_both_read(tmp_path: Path, bit: int) -> None:
    uri = written(tmp_path)
    edit(uri, flagged(bit))
    same_answers(uri)


@pytest.mark.parametrize("bit", [64, 512, 4096, 8192, 65536])
def test_flags_that_both_refuse(tmp_path: Path, bit: int) -> None:
    uri = written(tmp_path)
    edit(uri, flagged(bit))
    with pytest.raises(Exception, match=rf"cannot be read by this version.*Flags: {bit}"):
        lance.dataset(uri)
    with pytest.raises(UnsupportedFeatureError, match=rf"uses features that this release cannot read.*{bit}"):
        lance_sql.open(uri)


@pytest.mark.parametrize("bit", [64, 512, 4096])
def test_flags_that_only_writers_must_know(tmp_path: Path, bit: int) -> None:
    uri = written(tmp_path)
    edit(uri, flagged(bit, reader=False))
    same_answers(uri)
    with pytest.raises(Exception, match="cannot be written by this version"):
        lance.write_dataset(pa.table({"id": [1], "g": [1]}), uri, mode="append")
    with pytest.raises(UnsupportedFeatureError, match=rf"cannot write.*{bit}"):
        lance_sql.open(uri).delete("id = 1")


def test_files_of_several_versions(tmp_path: Path) -> None:
    uri = written(tmp_path, data_storage_version="2.0")
    for version in ("2.1", "2.2"):
        more = pa.table({"id": [100], "g": [1]})
        lance.write_dataset(more, uri, mode="append", data_storage_version=version)
    versions = {
        file.storage_version for fragment in lance_sql.open(uri).snapshot.fragments for file in fragment.files
    }
    assert versions == {"2.0", "2.1", "2.2"}
    assert lance_sql.open(uri).snapshot.manifest.reader_feature_flags & 256
    same_answers(uri)


def test_the_unstable_version_is_refused(tmp_path: Path) -> None:
    uri = written(tmp_path, data_storage_version="2.3")
    dataset = lance_sql.open(uri)
    with pytest.raises(UnsupportedFeatureError, match=r"File version 2\.3 is not supported") as caught:
        dataset.scan().to_table()
    assert "Rewrite the dataset" in str(caught.value)
    assert "version 2.3 is not supported" in str(dataset.verify()["problem"].to_pylist())
    with pytest.raises(UnsupportedFeatureError, match=r"files of version 2\.3: this release cannot add"):
        lance_sql.write(pa.table({"id": [1], "g": [1]}), uri, mode="append")


def deferred_compaction(tmp_path: Path, rows: int) -> str:
    """A table with indices that pylance compacts to fragments of `rows`, without moving their entries."""
    uri = written(tmp_path)
    theirs: Any = lance.dataset(uri)
    theirs.create_scalar_index("id", "BTREE")
    theirs.create_scalar_index("g", "BITMAP")
    theirs.delete("id = 3 OR id = 11")
    theirs.optimize.compact_files(target_rows_per_fragment=rows, defer_index_remap=True)
    return uri


def test_rows_moved_by_a_fragment_reuse_index(tmp_path: Path) -> None:
    uri = deferred_compaction(tmp_path, 10)
    section = lance_sql.open(uri).snapshot.index_section or b""
    assert "__lance_frag_reuse" in {
        index.name for index in table_pb2.IndexSection.FromString(section).indices
    }
    same_answers(uri)
    assert lance_sql.open(uri).verify().num_rows == 0


def commits_after_a_deferred_compaction(tmp_path: Path) -> str:
    """Indices that claim fragment 4, but hold the addresses that its rows had in fragments 0 to 3."""
    uri = deferred_compaction(tmp_path, ROWS)
    lance.write_dataset(pa.table({"id": [100], "g": [2]}), uri, mode="append")
    section = table_pb2.IndexSection.FromString(lance_sql.open(uri).snapshot.index_section or b"")
    claimed = {
        index.name: list(BitMap.deserialize(index.fragment_bitmap))
        for index in section.indices
        if index.name in ("id_idx", "g_idx")
    }
    assert claimed == {"id_idx": [4], "g_idx": [4]}
    return uri


def test_rows_that_indices_do_not_follow_yet(tmp_path: Path) -> None:
    uri = commits_after_a_deferred_compaction(tmp_path)
    same_answers(uri)
    ours = lance_sql.open(uri)
    listed = {row["name"]: row["uncovered_fragments"] for row in ours.inspect.indices().to_pylist()}
    assert (listed["id_idx"], listed["g_idx"]) == (2, 2)
    ours.update({"g": "0"}, "id = 5")
    same_answers(uri)
    changed = lance_sql.open(uri).compact(target_rows=1000)
    assert len(changed.snapshot.fragments) == 1
    same_answers(uri)


def test_indices_that_follow_rows_again(tmp_path: Path) -> None:
    uri = commits_after_a_deferred_compaction(tmp_path)
    ours = lance_sql.open(uri).optimize_indices()
    same_answers(uri)
    scan = ours.scan(filter="id = 7")
    assert scan.to_table().num_rows == 1
    assert scan.metrics is not None
    assert [use.name for use in scan.metrics.indices] == ["id_idx"]
    # The old segment is replaced: two would claim the same rows.
    names = [segment.name for segment in parse_index_section(ours.snapshot.index_section or b"")]
    assert sorted(names) == ["__lance_frag_reuse", "g_idx", "id_idx"]
    assert lance.dataset(uri).to_table(filter="id = 7").num_rows == 1


def test_segments_of_indices_by_their_age(tmp_path: Path) -> None:
    """What was built before rows moved covers nothing, what was built later does."""
    snapshot = lance_sql.open(commits_after_a_deferred_compaction(tmp_path)).snapshot
    data = snapshot.index_section or b""

    def covered(change: Callable[[Any], None]) -> dict[str, tuple[list[int] | None, bool]]:
        message = table_pb2.IndexSection.FromString(data)
        for index in message.indices:
            change(index)
        return {
            segment.name: (
                None if segment.fragment_ids is None else list(segment.fragment_ids),
                segment.is_behind,
            )
            for segment in parse_index_section(message.SerializeToString())
        }

    def newer(index: Any) -> None:
        if index.name == "id_idx":
            index.dataset_version = 99

    def wider(index: Any) -> None:
        if index.name == "id_idx":
            index.fragment_bitmap = BitMap([4, 5]).serialize()
        elif index.name == "g_idx":
            index.fragment_bitmap = BitMap([5]).serialize()

    def unknown(index: Any) -> None:
        if index.name in ("id_idx", "__lance_frag_reuse"):
            index.ClearField("fragment_bitmap")

    def as_old(index: Any) -> None:
        if index.name != "__lance_frag_reuse":
            index.dataset_version = reused_at

    reuse = {"__lance_frag_reuse": ([4], False)}
    assert covered(newer) == {"id_idx": ([4], False), "g_idx": ([], True), **reuse}
    # pylance 14 loses addresses when it compacts moved fragments again.
    assert covered(wider) == {"id_idx": ([], True), "g_idx": ([], True), **reuse}
    (reused_at,) = (
        index.dataset_version
        for index in table_pb2.IndexSection.FromString(data).indices
        if index.name == "__lance_frag_reuse"
    )
    assert covered(as_old) == {"id_idx": ([], True), "g_idx": ([], True), **reuse}
    without = {"id_idx": (None, False), "g_idx": ([], True), "__lance_frag_reuse": (None, False)}
    assert covered(unknown) == without


@pytest.mark.parametrize("change", ["kind", "version", "fields", "MemWAL", "no details"])
def test_entries_that_are_not_known(tmp_path: Path, change: str) -> None:
    """Indices of unknown kinds and versions, on several columns, or none at all: rows are scanned."""
    uri = written(tmp_path)
    lance.dataset(uri).create_scalar_index("id", "BTREE")

    def indices(section: Any) -> None:
        (index,) = section.indices
        if change == "kind":
            index.index_details.type_url = "/lance.index.pb.TomorrowIndexDetails"
        elif change == "version":
            index.index_version = 77
        elif change == "fields":
            index.fields.append(1)
            index.covering_fields.append(1)
        elif change == "no details":
            index.ClearField("index_details")
        else:
            added = section.indices.add(name="__lance_mem_wal", dataset_version=index.dataset_version)
            added.uuid.uuid = bytes(range(16))
            added.index_details.type_url = "/lance.index.pb.MemWalIndexDetails"

    edit(uri, flagged(128) if change == "fields" else lambda manifest: manifest, indices)
    ours, expected = (
        lance_sql.open(uri),
        {"id = 7": [7], "id < 4": [0, 1, 2, 3], "g = 2 AND id > 10": [11, 14, 17]},
    )
    for where, ids in expected.items():
        assert ours.scan(["id"], filter=where).to_table()["id"].to_pylist() == ids
        assert ours.count_rows(where) == len(ids)
    scan = ours.scan(filter="id = 7")
    assert scan.to_table().num_rows == 1
    assert scan.metrics is not None
    assert bool(scan.metrics.indices) == (change == "MemWAL")
    if change == "fields":
        with pytest.raises(UnsupportedFeatureError, match=r"covered index metadata \(128\)"):
            ours.delete("id = 2")
        return
    changed = ours.update({"g": "9"}, "id = 7").delete("id = 2")
    assert changed.count_rows("id < 10") == 9
