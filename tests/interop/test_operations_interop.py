"""Our operations and those of pylance take turns on one dataset."""

from __future__ import annotations

import datetime
import os
import time
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import IncompatibleChangeError

import lance_sql

ROWS = 100
LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def table() -> pa.Table:
    return pa.table(
        {
            "id": np.arange(ROWS, dtype=np.int64),
            "x": np.arange(ROWS) / 2,
            "s": [None if i % 7 == 3 else f"s{i % 7}" for i in range(ROWS)],
        }
    )


@pytest.fixture(
    params=[("2.1", False), ("2.1", True), ("2.0", False), ("2.2", True)],
    ids=["2.1", "2.1 stable", "2.0", "2.2 stable"],
)
def path(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A dataset of four fragments, written by pylance, by default or with stable row ids."""
    uri = str(tmp_path / "t.lance")
    version, stable = request.param
    lance.write_dataset(
        table(), uri, data_storage_version=version, max_rows_per_file=30, enable_stable_row_ids=stable
    )
    return uri


def check(path: str) -> lance_sql.Dataset:
    """Check that both read the same rows, ids and counts from the latest version; returns ours."""
    ours, theirs = lance_sql.open(path), lance.dataset(path)
    assert ours.version == theirs.version
    columns = [*theirs.schema.names, "_rowid"]
    expected = theirs.scanner(columns=columns).to_table().to_pylist()
    assert ours.scan(columns).to_table().to_pylist() == expected
    assert ours.count_rows() == theirs.count_rows() == len(expected)
    theirs.validate()
    return ours


def test_deletes_and_updates(path: str) -> None:
    lance_sql.open(path).delete("id % 10 = 3")
    assert check(path).count_rows() == 90
    lance_sql.open(path).delete("id < 30")
    check(path)
    lance_sql.open(path).update({"x": "x * 2 + 1", "s": "upper(s)"}, "id BETWEEN 40 AND 49")
    assert check(path).scan(["x"], "id = 41").to_table()["x"].to_pylist() == [42.0]
    theirs = lance.dataset(path)
    theirs.delete("id = 50 OR id = 44")
    theirs.update({"x": "0"}, "id = 51 OR id = 41")
    check(path)
    lance_sql.open(path).delete("id >= 90").update({"x": "7"}, "id = 51")
    assert check(path).scan(["x"], "id = 51").to_table()["x"].to_pylist() == [7]


def test_row_lineage_after_updates_by_both(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    lance.write_dataset(table(), path, data_storage_version="2.1", enable_stable_row_ids=True)
    lance_sql.open(path).update({"x": "0"}, "id >= 98")
    lance.dataset(path).update({"x": "1"}, "id >= 97")
    lance_sql.open(path).update({"x": "2"}, "id = 98")
    found = lance.dataset(path).scanner(columns=["id", *LINEAGE], filter="id >= 97").to_table().to_pylist()
    rows = {row["id"]: [row[name] for name in LINEAGE] for row in found}
    assert rows == {97: [97, 1, 3], 98: [98, 1, 4], 99: [99, 1, 3]}
    check(path)


def test_stale_writers(path: str) -> None:
    ours, theirs = lance_sql.open(path), lance.dataset(path)
    lance.dataset(path).delete("id = 60")
    assert ours.delete("id = 61").count_rows() == ROWS - 2
    theirs.delete("id = 62")
    assert check(path).count_rows() == ROWS - 3
    ours, theirs = lance_sql.open(path), lance.dataset(path)
    lance.dataset(path).update({"x": "-1"}, "id = 63")
    ours.update({"x": "-2"}, "id = 64")
    theirs.update({"x": "-3"}, "id = 65")
    # Changed by them since it was read: done again on the latest version.
    ours.update({"x": "x - 10"}, "id = 63")
    theirs.update({"x": "x - 10"}, "id = 64")
    check(path)
    found = lance_sql.open(path).scan(["x"], "id BETWEEN 63 AND 65").to_table()["x"].to_pylist()
    assert sorted(found) == [-12, -11, -3]


def test_restoring(path: str) -> None:
    lance_sql.open(path).delete("id < 50")
    lance.dataset(path).delete("id < 60")
    lance_sql.open(path, 1).restore()
    assert check(path).count_rows() == ROWS
    lance.dataset(path, version=2).restore()
    assert check(path).count_rows() == 50
    lance.write_dataset(table(), path, mode="append")
    assert check(path).count_rows() == 50 + ROWS


def test_truncating(path: str) -> None:
    lance_sql.open(path).truncate()
    assert check(path).count_rows() == 0
    lance.write_dataset(table(), path, mode="append")
    check(path)


def test_metadata(path: str) -> None:
    ours = lance_sql.open(path).update_config({"a": "1", "b": "2"}).update_metadata({"m": "1"})
    ours.update_schema_metadata({"s": "1"}).update_schema_metadata({"c": "1"}, column="x")
    theirs = lance.dataset(path)
    assert theirs.config() == {"a": "1", "b": "2"}
    assert theirs.schema.metadata == {b"s": b"1"}
    assert theirs.schema.field("x").metadata == {b"c": b"1"}
    theirs.update_config({"b": "3"})
    assert check(path).snapshot.manifest.config == {"a": "1", "b": "3"}


def test_tags(path: str) -> None:
    ours = lance_sql.open(path).delete("id = 1")
    ours.tags.create("ours", 1)
    theirs = lance.dataset(path)
    assert theirs.tags.list()["ours"]["version"] == 1
    assert lance.dataset(path, version="ours").count_rows() == ROWS
    theirs.tags.create("theirs", 2)
    theirs.tags.update("ours", 2)
    assert {tag.name: tag.version for tag in ours.tags.list()} == {"ours": 2, "theirs": 2}
    assert lance_sql.open(path, tag="theirs").version == 2
    assert lance_sql.open(path, as_of=ours.snapshot.manifest.committed_at).version == 2
    ours.tags.delete("theirs")
    assert list(theirs.tags.list()) == ["ours"]


def test_columns(path: str) -> None:
    ours = lance_sql.open(path).delete("id % 10 = 3 OR id = 29 OR id = 30")
    ours = ours.add_columns({"y": "x * 2", "z": lambda batch: batch["s"], "n": pa.int32()})
    check(path)
    lance.dataset(path).add_columns({"w": "id + 1"})
    check(path)
    lance.write_dataset(pa.table({"id": [1000], "x": [1.0]}), path, mode="append")
    check(path)
    ours = lance_sql.open(path).rename_column("x", "renamed").drop_columns(["y"])
    check(path)
    ours = ours.alter_column("id", type=pa.int32()).alter_column("id", nullable=False)
    check(path)
    theirs = lance.dataset(path)
    theirs.drop_columns(["z"])
    theirs.alter_columns({"path": "renamed", "name": "x"})
    check(path)
    lance.dataset(path).alter_columns({"path": "x", "data_type": pa.float32()})
    lance_sql.open(path).update({"x": "id * 1.5"}, "id < 10")
    lance.dataset(path).update({"s": "'new'"}, "id = 9")
    ours = check(path)
    found = ours.scan(filter="id IN (8, 9)").to_table().sort_by("id").to_pylist()
    assert found == [
        {"id": 8, "x": 12.0, "s": "s1", "n": None, "w": 9},
        {"id": 9, "x": 13.5, "s": "new", "n": None, "w": 10},
    ]
    # Only the column of nulls is left: pylance 14 cannot read this where it drops the columns itself.
    ours = ours.drop_columns(["id", "x", "s", "w"])
    assert lance.dataset(path).to_table().to_pylist() == ours.to_table().to_pylist() == [{"n": None}] * 89


def test_compaction_and_indices(path: str) -> None:
    theirs = lance.dataset(path)
    theirs.create_scalar_index("x", "BTREE")
    theirs.create_scalar_index("s", "BITMAP")
    theirs.create_scalar_index("id", "ZONEMAP")
    filters = ["x = 3", "s = 's2'", "id > 50 AND id < 60"]

    def check_filters() -> lance_sql.Dataset:
        ours = check(path)
        for text in filters:
            found = lance.dataset(path).to_table(filter=text)["id"].to_pylist()
            assert sorted(found) == sorted(ours.scan(["id"], text).to_table()["id"].to_pylist())
        return ours

    check_filters().delete("id % 5 = 1").update({"x": "x + 1", "s": "'s2'"}, "id % 10 = 2")
    check_filters().compact(target_rows=35)
    assert len(check_filters().snapshot.fragments) == 3
    lance.dataset(path).optimize.optimize_indices()
    check_filters().update({"s": "'s3'"}, "id % 10 = 3")
    lance.dataset(path).delete("id = 4")
    lance.dataset(path).optimize.compact_files(target_rows_per_fragment=50)
    check_filters().rename_column("x", "y").rename_column("y", "x").delete("id = 5").compact(deleted_share=0)
    lance.dataset(path).optimize.optimize_indices()
    check_filters().alter_column("x", type=pa.float32())
    assert sorted(index.name for index in lance.dataset(path).describe_indices()) == ["id_idx", "s_idx"]
    check_filters()


def test_cleaning_up(path: str) -> None:
    ours = lance_sql.open(path).delete("id < 40").compact().update({"x": "0"}, "id = 50")
    ours.tags.create("kept", 1)
    assert ours.cleanup(datetime.timedelta(0)).versions == (2, 3, 4)
    check(path)
    assert lance.dataset(path, version="kept").to_table().num_rows == ROWS
    stats = lance.dataset(path).cleanup_old_versions(
        datetime.timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False
    )
    assert stats.bytes_removed == 0
    lance.dataset(path).delete("id = 60")
    lance_sql.open(path).cleanup(datetime.timedelta(0), delete_unverified=True)
    check(path)


@pytest.mark.parametrize("delete_unverified", [False, True])
def test_both_keep_and_remove_the_same_files_without_a_version(
    tmp_path: Path, delete_unverified: bool
) -> None:
    """After a week by default; files that neither side wrote are kept."""
    left = []
    for name in ("ours", "theirs"):
        folder = tmp_path / name
        dataset = lance_sql.write(pa.table({"id": range(9)}), str(folder)).delete("id = 1")
        for days in (6, 8):
            uuid = f"{days}f8c5a2e-2f9c-4b0b-9d3b-0d2e4c1a7b5e"
            for file in (
                f"data/{days}.lance",
                f"data/{days}.txt",
                f"_deletions/0-1-{days}.bin",
                f"_deletions/0-1-{days}.arrow",
                f"_transactions/1-{uuid}.txn",
                f"_indices/{uuid}/page_data.lance",
                f"_versions/18446744073709551608.manifest-{uuid}",
            ):
                junk = folder / file
                junk.parent.mkdir(parents=True, exist_ok=True)
                junk.write_bytes(b"1234567")
                written = time.time() - days * 24 * 60 * 60
                os.utime(junk, (written, written))
        before = [path for path in folder.rglob("*") if path.is_file()]
        if name == "ours":
            dataset.cleanup(datetime.timedelta(days=1), delete_unverified=delete_unverified)
        else:
            lance.dataset(str(folder)).cleanup_old_versions(
                datetime.timedelta(days=1), delete_unverified=delete_unverified
            )
        junk_left = {str(path.relative_to(folder)) for path in before if path.exists()}
        left.append({path for path in junk_left if (folder / path).stat().st_size == 7})
    assert left[0] == left[1]
    assert len(left[0]) == (4 if delete_unverified else 9)


def test_merging(path: str) -> None:
    source = pa.table({"id": [3, 200, 50], "x": [-1.0, -2.0, -3.0], "s": ["m", "m", None]})

    def ours(source: pa.Table) -> None:
        merge = lance_sql.open(path).merge(source, on="id")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def theirs(source: pa.Table) -> None:
        merge = lance.dataset(path).merge_insert("id")
        merge.when_matched_update_all().when_not_matched_insert_all().execute(source)

    ours(source)
    assert check(path).count_rows() == ROWS + 1
    theirs(pa.table({"id": [200, 201], "x": [5.0, 6.0], "s": ["t", "t"]}))
    assert check(path).count_rows() == ROWS + 2
    ours(pa.table({"id": [201, 3], "x": [7.0, 8.0]}))
    found = check(path).scan(filter="id >= 200 OR id = 3").to_table().sort_by("id").to_pylist()
    assert found == [
        {"id": 3, "x": 8.0, "s": "m"},
        {"id": 200, "x": 5.0, "s": "t"},
        {"id": 201, "x": 7.0, "s": "t"},
    ]
    merge = lance_sql.open(path).merge(source, on="id")
    merge.when_not_matched_by_source_delete("id < 190").when_matched_update_all().execute()
    assert sorted(check(path).to_table()["id"].to_pylist()) == [3, 50, 200, 201]


def test_shallow_clones_and_branches(path: str, tmp_path: Path) -> None:
    theirs = lance.dataset(path)
    theirs.tags.create("base", 1)
    clone = str(tmp_path / "clone.lance")
    theirs.shallow_clone(clone, "base")
    branch = theirs.create_branch("dev").uri
    for derived in (clone, branch):
        ours = lance_sql.open(derived).delete("id < 10").update({"x": "1"}, "id = 20")
        assert ours.add_columns({"z": "id"}).count_rows() == ROWS - 10
        check(derived)
        lance.dataset(derived).delete("id = 30")
        check(derived).delete("id = 31").compact(deleted_share=0)
        assert check(derived).cleanup(datetime.timedelta(0)).bytes_removed > 0
        assert check(derived).count_rows() == ROWS - 12
    lance_sql.open(path).delete("id = 0").cleanup(datetime.timedelta(0))
    assert check(path).count_rows() == ROWS - 1
    assert check(branch).snapshot.manifest.branch == "dev"


def test_stale_operations_are_redone(path: str) -> None:
    old = lance_sql.open(path)
    lance.dataset(path).optimize.compact_files()
    assert old.delete("id = 1").count_rows() == check(path).count_rows() == ROWS - 1
    old = lance_sql.open(path)
    lance.dataset(path).add_columns({"n": "id + 1"})
    after = old.update({"x": "9"}, "id = 2")
    assert after.scan(filter="id = 2").to_table().to_pylist() == [{"id": 2, "x": 9.0, "s": "s2", "n": 3}]
    lance.dataset(path).drop_columns(["n"])
    assert after.update({"x": "8"}, "id = 2").schema.names == check(path).schema.names == ["id", "x", "s"]
    theirs = lance.dataset(path)
    lance_sql.open(path).compact()
    theirs.delete("id = 4")
    check(path)
    theirs = lance.dataset(path)
    lance_sql.open(path).add_columns({"q": "1"})
    theirs.update({"x": "4"}, "id = 5")
    check(path)
    old = lance_sql.open(path)
    lance.write_dataset(table(), path, mode="overwrite")
    with pytest.raises(IncompatibleChangeError, match=r"'delete' .* 'overwrite'"):
        old.delete("id = 1")
    check(path)
