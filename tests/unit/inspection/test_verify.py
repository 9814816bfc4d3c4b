"""Finding problems of a dataset, and what makes it slow."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CorruptFileError
from lance_engine.format.deletion import encode_deletions
from lance_engine.format.manifest import (
    DeletionKind,
    Fragment,
    parse_manifest_file,
    serialize_manifest_file,
)
from lance_engine.format.operations import Overwrite
from lance_engine.format.row_ids import encode_row_id_range, encode_uniform_version
from lance_engine.inspection.health import health
from lance_engine.inspection.verify import verify
from lance_engine.io import MemoryStore
from lance_engine.io.store import Store
from lance_engine.scan.fragment import FragmentReader
from lance_engine.schema_tree import Schema
from lance_engine.table.build import CreateOptions
from lance_engine.table.commit import commit
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import NamingScheme, find_latest, open_snapshot
from lance_engine.write.dataset import write_dataset
from lance_engine.write.fragments import write_fragments
from lance_engine.write.options import WriteOptions

ROWS = 30


def create(store: Store, *, stable: bool = False) -> Snapshot:
    data = pa.table(
        {
            "a": np.arange(ROWS),
            "s": [f"text {i}" for i in range(ROWS)],
            "p": pa.array([{"x": i, "l": [i]} for i in range(ROWS)]),
        }
    )
    schema = Schema.from_arrow(data.schema)
    fragments = write_fragments(store, schema, data.to_batches(), WriteOptions(max_rows_per_file=10))
    created = CreateOptions(stable_row_ids=stable)
    snapshot = commit(store, Overwrite(tuple(fragments), schema), read_version=0, options=created)
    return DatasetVersion(snapshot).delete("a % 10 = 3").snapshot


def change(snapshot: Snapshot, number: int, **fragment: Any) -> Snapshot:
    """The dataset with a manifest in which one fragment is described otherwise."""
    manifest = snapshot.manifest
    fragments = list(manifest.fragments)
    fragments[number] = dataclasses.replace(fragments[number], **fragment)
    changed = dataclasses.replace(manifest, version=manifest.version + 1, fragments=tuple(fragments))
    data = serialize_manifest_file(changed, index_section=snapshot.index_section)
    snapshot.store.put(NamingScheme.V2.path(changed.version), data)
    return open_snapshot(snapshot.store)


def data_path(snapshot: Snapshot, number: int = 1) -> str:
    return f"data/{snapshot.fragments[number].files[0].path}"


@pytest.mark.parametrize("stable", [False, True])
def test_a_sound_dataset_has_no_findings(stable: bool) -> None:
    dataset = DatasetVersion(create(MemoryStore(), stable=stable))
    dataset = dataset.update({"a": "a + 1"}, "a > 20").add_columns({"b": "a * 2"}).drop_columns(["s"])
    assert dataset.verify(values=True).num_rows == 0
    assert dataset.compact().verify(values=True).num_rows == 0


def lose_data_file(snapshot: Snapshot) -> Snapshot:
    snapshot.store.delete(data_path(snapshot))
    return snapshot


def cut_data_file(snapshot: Snapshot) -> Snapshot:
    path = data_path(snapshot)
    snapshot.store.put(path, snapshot.store.read(path)[:-20])
    return snapshot


def damage_footer(snapshot: Snapshot) -> Snapshot:
    path = data_path(snapshot)
    snapshot.store.put(path, snapshot.store.read(path)[:-4] + b"PAR1")
    return snapshot


def claim_other_version(snapshot: Snapshot) -> Snapshot:
    (file,) = snapshot.fragments[1].files
    return change(snapshot, 1, files=(dataclasses.replace(file, minor_version=2),))


def claim_more_rows(snapshot: Snapshot) -> Snapshot:
    lineage = encode_row_id_range(100, 11), encode_uniform_version(1, 11)
    manifest = dataclasses.replace(snapshot.manifest, next_row_id=200)
    return change(
        snapshot.with_manifest(manifest),
        1,
        physical_rows=11,
        row_ids=lineage[0],
        created_at_versions=lineage[1],
        last_updated_at_versions=lineage[1],
    )


def claim_other_columns(snapshot: Snapshot) -> Snapshot:
    (file,) = snapshot.fragments[1].files
    return change(snapshot, 1, files=(dataclasses.replace(file, column_indices=(0, 1, 2, 40)),))


def lose_deletion_file(snapshot: Snapshot) -> Snapshot:
    deletion = snapshot.fragments[1].deletion_file
    assert deletion is not None
    snapshot.store.delete(f"_deletions/{deletion.file_name(1)}")
    return snapshot


def put_deletions(snapshot: Snapshot, offsets: list[int]) -> Snapshot:
    deletion = snapshot.fragments[1].deletion_file
    assert deletion is not None
    data = encode_deletions(np.array(offsets, dtype=np.uint32), DeletionKind.ARROW)
    snapshot.store.put(f"_deletions/{deletion.file_name(1)}", data)
    return change(snapshot, 1, deletion_file=dataclasses.replace(deletion, num_deleted_rows=len(offsets)))


def delete_beyond_the_end(snapshot: Snapshot) -> Snapshot:
    return put_deletions(snapshot, [10])


def delete_all(snapshot: Snapshot) -> Snapshot:
    return put_deletions(snapshot, list(range(10)))


def shorten_row_ids(snapshot: Snapshot) -> Snapshot:
    return change(snapshot, 1, row_ids=encode_row_id_range(10, 9))


def repeat_row_ids(snapshot: Snapshot) -> Snapshot:
    return change(snapshot, 1, row_ids=encode_row_id_range(0, 10))


def use_future_row_ids(snapshot: Snapshot) -> Snapshot:
    return change(snapshot, 1, row_ids=encode_row_id_range(100, 10))


def use_future_versions(snapshot: Snapshot) -> Snapshot:
    return change(snapshot, 1, created_at_versions=encode_uniform_version(70, 10))


def lose_row_ids(snapshot: Snapshot) -> Snapshot:
    return change(snapshot, 1, row_ids=None)


DAMAGES: list[tuple[Callable[[Snapshot], Snapshot], str, str]] = [
    (lose_data_file, "data file", "missing"),
    (cut_data_file, "data file", "bytes"),
    (damage_footer, "data file", ""),
    (claim_other_version, "data file", "has version 2.1, but the manifest records 2.2"),
    (claim_more_rows, "column", "rows"),
    (claim_other_columns, "column", "column number 40"),
    (lose_deletion_file, "deletion file", "does not exist"),
    (delete_beyond_the_end, "deletion file", "10"),
    (delete_all, "deletion file", "still listed"),
    (shorten_row_ids, "row ids", "9 ids, but there are 10"),
    (repeat_row_ids, "row ids", "Two live rows have the row id"),
    (use_future_row_ids, "row ids", "row id 109 is in use"),
    (use_future_versions, "row versions", "version 70"),
    (lose_row_ids, "row ids", "has no row ids"),
]


@pytest.mark.parametrize(("damage", "check", "problem"), DAMAGES, ids=[item[0].__name__ for item in DAMAGES])
def test_damage_is_found(damage: Callable[[Snapshot], Snapshot], check: str, problem: str) -> None:
    store = MemoryStore()
    create(store, stable=True)
    damage(open_snapshot(store))
    findings = verify(open_snapshot(store), values=True).to_pylist()
    assert findings
    assert {finding["check"] for finding in findings} == {check}
    assert all(problem in finding["problem"] for finding in findings)
    if damage is not repeat_row_ids:
        assert {finding["fragment_id"] for finding in findings} == {1}


def test_several_problems_are_all_told() -> None:
    snapshot = create(MemoryStore())
    snapshot = delete_beyond_the_end(snapshot)
    snapshot.store.delete(data_path(snapshot, 0))
    snapshot.store.delete(data_path(snapshot, 2))
    findings = verify(open_snapshot(snapshot.store)).to_pylist()
    assert [finding["fragment_id"] for finding in findings] == [0, 1, 2]
    assert data_path(snapshot, 0) in findings[0]["path"]
    assert "Restore the file" in findings[0]["remedy"]


def test_damaged_values_are_found_only_where_they_are_read() -> None:
    snapshot = create(MemoryStore())
    path = data_path(snapshot)
    content = bytearray(snapshot.store.read(path))
    content[:200] = b"\xff" * 200
    snapshot.store.put(path, bytes(content))
    assert verify(snapshot).num_rows == 0
    findings = verify(snapshot, values=True).to_pylist()
    assert {(finding["check"], finding["fragment_id"]) for finding in findings} <= {("values", 1)}


def test_fragments_out_of_order_are_found() -> None:
    snapshot = create(MemoryStore())
    fragments: tuple[Fragment, ...] = tuple(snapshot.fragments)
    manifest = dataclasses.replace(snapshot.manifest, fragments=fragments[::-1])
    findings = verify(snapshot.with_manifest(manifest))
    assert findings["check"].to_pylist() == ["manifest"]


def test_a_highest_fragment_id_below_a_fragment_is_found() -> None:
    """As the file has it: versions are opened with a number that is large enough."""
    snapshot = create(MemoryStore())
    store, version = snapshot.store, snapshot.version
    latest = find_latest(store)
    assert latest is not None
    path = latest[1].path(version)
    manifest, section, transaction = parse_manifest_file(store.read(path))
    assert manifest.max_fragment_id == 2
    for recorded, problems in ((None, 0), (1, 1), (2, 0)):
        damaged = dataclasses.replace(manifest, max_fragment_id=recorded)
        store.put(path, serialize_manifest_file(damaged, index_section=section, transaction=transaction))
        opened = open_snapshot(store, version)
        assert opened.manifest.max_fragment_id == 2
        findings = verify(opened).to_pylist()
        assert len(findings) == problems
        assert all("above the highest fragment id so far, 1" in found["problem"] for found in findings)


def measures(dataset: DatasetVersion) -> dict[str, tuple[int, str | None]]:
    return {row["measure"]: (row["amount"], row["command"]) for row in dataset.health().to_pylist()}


def test_texts_that_are_no_unicode_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*_: object) -> None:
        raise CorruptFileError("Not a name: \ud800", column="c\udfff")

    snapshot = create(MemoryStore())
    monkeypatch.setattr(FragmentReader, "__init__", damaged)
    found = verify(snapshot, values=True).to_pylist()
    assert ("Not a name: \\ud800", "c\\udfff") in {(row["problem"], row["column"]) for row in found}


def test_history_and_deletions(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    dataset = DatasetVersion(write_dataset(pa.table({"a": range(20)}), path))
    dataset.tags.create("first")
    stale = dataset
    dataset = dataset.delete("a < 2")
    dataset = stale.update({"a": "a + 100"}, "a = 9").compact()
    transactions = dataset.inspect.transactions().to_pylist()
    assert [row["operation"] for row in transactions] == [
        "overwrite",
        "delete",
        "update",
        "reserve_fragments",
        "rewrite",
    ]
    assert [row["read_version"] for row in transactions] == [0, 1, 2, 3, 3]
    assert transactions[1]["predicate"] == "a < 2"
    assert (transactions[2]["fragments_added"], transactions[2]["fragments_updated"]) == (1, 1)
    assert (transactions[4]["fragments_added"], transactions[4]["fragments_removed"]) == (1, 2)
    assert all((tmp_path / "t.lance" / "_transactions" / row["file"]).exists() for row in transactions)
    deletions = DatasetVersion.open(path, 3).inspect.deletions().to_pylist()
    assert [(row["fragment_id"], row["deleted_rows"], row["kind"]) for row in deletions] == [(0, 3, "bitmap")]
    assert dataset.inspect.deletions().num_rows == 0
    (tag,) = dataset.inspect.refs().to_pylist()
    assert (tag["kind"], tag["name"], tag["version"], tag["branch"]) == ("tag", "first", 1, None)


def test_health_names_the_command(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    dataset = DatasetVersion(write_dataset(pa.table({"a": range(20)}), path))
    assert not any(command for _, command in measures(dataset).values())
    write_dataset(pa.table({"a": range(10)}), path, mode="append")
    dataset = DatasetVersion.open(path).delete("a = 3 OR a < 2")
    found = measures(dataset)
    assert found["small fragments"] == (2, "ds.compact()")
    assert found["deleted rows"] == (6, "ds.compact()")
    assert found["versions"] == (3, None)
    mended = measures(dataset.compact())
    assert mended["small fragments"] == (1, None)
    assert mended["deleted rows"] == (0, None)
    assert mended["data files of other versions"] == (2, None)
    for number in range(100):
        dataset = dataset.update_config({"n": str(number)})
    assert measures(dataset)["versions"][1] == "ds.cleanup(older_than=datetime.timedelta(days=7))"


def test_health_of_a_single_small_fragment_with_other_targets() -> None:
    snapshot = create(MemoryStore())
    rows = health(snapshot, target_rows=9).to_pylist()
    assert rows[0]["amount"] == 0
    assert rows[0]["total"] == 3
    assert not rows[0]["attention"]
    assert health(snapshot, target_rows=20)["command"][0].as_py() == "ds.compact(target_rows=20)"
