"""Datasets that old releases of pylance wrote: kept ones, and in slow runs random ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from changed_tables import RefusedError, apply, as_read_by_others
from compared_versions import differences
from table_changes import CHANGES, by_id

import lance_sql

KEPT = Path(__file__).parent / "old_releases"
BUILD = Path(__file__).parents[2] / "build"
RELEASES = ["0.20.0", "1.0.1", "7.0.0"]
CHANGED = ["0.10.18", "0.12.3", "0.15.0", "0.16.0", "0.20.0", "0.23.0", "0.27.0", "0.30.0", "0.38.0"]
CHANGED += ["1.0.1", "2.0.1", "4.0.0", "7.0.0", "10.0.0", "14.0.2"]
SUPPORT = Path(__file__).parents[1] / "support"
SEQUENCES = 500
#: Changes after which all data files are those of the release.
UNCHANGED_FILES = {
    *(
        "delete",
        "drop_column",
        "rename_column",
        "create_indices",
        "create_vector_index",
        "optimize",
        "restore",
    ),
    *("set_config", "tag_delete_clean_up", "branch_and_delete"),
}
CONDITIONS = ["id = 40", "id < 5", "t = 'v3'", "t = 'new'", "t IN ('v1', 'merged')", "t LIKE 'v%'"]


def kept(name: str, folder: Path) -> str:
    shutil.unpack_archive(KEPT / f"{name}.zip", folder / name)
    return str(folder / name)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", sorted(path.stem for path in KEPT.glob("*.zip")))
def test_kept_datasets(tmp_path: Path, name: str) -> None:
    uri = kept(name, tmp_path)
    for version in range(1, lance.dataset(uri).version + 1):
        ours, theirs = lance_sql.open(uri, version=version), lance.dataset(uri, version=version)
        for where in (
            None,
            "id = 40",
            "id < 5",
            "t = 'v3'",
            "t = 'new'",
            "t IN ('v1', 'merged')",
            "t LIKE 'v%'",
        ):
            found = ours.scan(filter=where).to_table().to_pylist()
            expected = theirs.to_table(filter=where, use_scalar_index=False).to_pylist()
            assert found == expected
            assert ours.scan(filter=where).count() == len(expected)
        ids = ours.scan(columns=["_rowid"]).to_table()["_rowid"].to_pylist()[::-7]
        assert ours.take(ids).equals(theirs._take_rows(ids))
        ours.inspect.health()


def test_sizes_recorded_wrong_in_0_1(tmp_path: Path) -> None:
    dataset = lance_sql.open(kept("legacy-1.0.1", tmp_path))
    (file, *_) = dataset.snapshot.fragments[0].files
    assert file.storage_version == "0.1"
    assert file.file_size != (Path(dataset.uri) / "data" / file.path).stat().st_size
    assert dataset.verify(values=True).num_rows == 0


def test_indices_of_old_layouts_are_scanned(tmp_path: Path) -> None:
    dataset = lance_sql.open(kept("btree-0.20.0", tmp_path))
    scan = dataset.scan(filter="id = 40")
    assert scan.to_table()["id"].to_pylist() == [40]
    assert scan.metrics is not None
    assert scan.metrics.indices == []
    told = dataset.verify().to_pylist()
    assert told
    assert all("index" in row["check"] and "0.2 is not supported" in row["problem"] for row in told)
    dataset = dataset.delete("id < 50").compact()
    assert dataset.scan(filter="id = 55").count() == 1
    scan = dataset.optimize_indices().scan(filter="id = 55")
    assert scan.count() == 1
    assert scan.metrics is not None
    assert scan.metrics.indices[0].name == "id_idx"


@pytest.mark.parametrize("release", ["1.0.1", "7.0.0"])
def test_stale_entries_of_bitmaps_are_tested(tmp_path: Path, release: str) -> None:
    """Updated rows keep their ids: the index lists them for their old values as well."""
    dataset = lance_sql.open(kept(f"bitmap-{release}", tmp_path))
    assert dataset.snapshot.has_stable_row_ids
    for where, ids in (("t = 'v3'", {3, 7, 11}), ("t = 'v0'", {40})):
        found = dataset.scan(filter=where).to_table()["id"].to_pylist()
        assert not ids.intersection(found)
        assert dataset.scan(filter=where).count() == len(found)
    assert dataset.scan(filter="t IN ('new', 'merged', 'late')").count() == 4


@pytest.mark.sampled(2)
@pytest.mark.parametrize("release", ["1.0.1", "2.0.1", "4.0.0"])
def test_indices_that_know_of_too_many_rows(tmp_path: Path, release: str) -> None:
    """Updates, merges, a compaction and an optimisation left entries for values that rows no longer have."""
    uri = kept(f"stale-{release}", tmp_path)
    contradicted = 0
    for version in range(1, lance.dataset(uri).version + 1):
        ours, theirs = lance_sql.open(uri, version=version), lance.dataset(uri, version=version)
        for where in (
            *(f"t = 'v{number}'" for number in range(5)),
            "t <> 'v0'",
            "NOT (t = 'v1')",
            "t >= 'v3'",
        ):
            expected = theirs.to_table(["id"], where, use_scalar_index=False)["id"].to_pylist()
            contradicted += theirs.to_table(["id"], where)["id"].to_pylist() != expected
            assert ours.scan(["id"], filter=where).to_table()["id"].to_pylist() == expected, where
            assert ours.count_rows(where) == len(expected)
    assert contradicted > 4  # pylance believes them


def test_texts_among_binary_json(tmp_path: Path) -> None:
    """Releases before 7.0 stored the text itself where rows were merged with some of the columns."""
    uri = kept("values/json-1.0.1", tmp_path)
    for version in range(1, lance.dataset(uri).version + 1):
        ours, theirs = lance_sql.open(uri, version=version), lance.dataset(uri, version=version)
        expected = theirs.to_table(["id", "j"])
        assert ours.scan(["id", "j"]).to_table().to_pylist() == expected.to_pylist()
        for text in ("7", "null", '{"a":1}'):
            ids = [row["id"] for row in expected.to_pylist() if row["j"] == text]
            assert ours.scan(["id"], filter=f"j = '{text}'").to_table()["id"].to_pylist() == ids
        # pylance reads them, but fails in filters.
        ids = [row["id"] for row in expected.to_pylist() if row["j"] and '"b":' in row["j"]]
        assert ours.scan(["id"], filter="json_exists(j, '$.b')").to_table()["id"].to_pylist() == ids


def test_vectors_of_nothing_but_nulls(tmp_path: Path) -> None:
    uri = f"{kept('values/null-vectors-1.0.1', tmp_path)}/some.lance"
    expected = [
        {
            "id": i,
            "null": None,
            "bits": None,
            "items": [None, None] if i % 2 else None,
            "inner": [None] * 3 if i % 2 else None,
            "innermost": [None, [None, None], None] if i % 2 else None,
            "struct": {"v": None} if i % 3 else None,
            "list": [[None, None], None] * (i % 3) if i % 4 else None,
            "structs": [{"v": None}] * (i % 3) if i % 4 else None,
        }
        for i in range(12)
    ]
    dataset = lance_sql.open(uri)
    assert lance.dataset(uri).to_table().to_pylist() == expected
    assert dataset.scan().to_table().to_pylist() == expected
    assert dataset.take([11, 3, 8]).to_pylist() == [expected[11], expected[3], expected[8]]
    assert dataset.scan(["items", "list"], filter="id > 8").to_table().to_pylist() == [
        {"items": row["items"], "list": row["list"]} for row in expected[9:]
    ]
    assert dataset.verify(values=True).num_rows == 0


def test_vectors_whose_items_are_null(tmp_path: Path) -> None:
    """pylance 14 takes the lists for null, or fails."""
    uri = f"{kept('values/null-vectors-1.0.1', tmp_path)}/all.lance"
    row = {"items": [None] * 2, "inner": [None] * 3, "innermost": [[None, None]] * 3}
    dataset = lance_sql.open(uri)
    assert dataset.scan().to_table().to_pylist() == [row] * 12
    assert dataset.take([7]).to_pylist() == [row]
    assert lance.dataset(uri).to_table(["items", "inner"])["items"].null_count == 12


def test_2_2_before_it_was_stable(tmp_path: Path) -> None:
    """pylance 14 refuses what pylance 1.0 wrote."""
    uri = kept("values/early-2.2-1.0.1", tmp_path)
    with pytest.raises(Exception, match="u32 chunk grammar"):
        lance.dataset(uri).to_table()
    expected = [
        {
            "id": i,
            "t": None if i % 4 == 0 else f"v{i}" * (i % 3),
            "f": None if i % 5 == 0 else i / 4,
            "x": None if i % 7 == 0 else i % 2 == 0,
            "s": None if i % 6 == 0 else {"a": i, "b": None if i % 4 == 1 else "b"},
            "l": None if i % 6 == 1 else [None if j == 1 else j for j in range(i % 4)],
            "v": [i, i + 1],
        }
        for i in range(40)
    ]
    dataset = lance_sql.open(uri)
    assert dataset.scan().to_table().to_pylist() == expected
    assert dataset.take([39, 7])["s"].to_pylist() == [expected[39]["s"], expected[7]["s"]]
    assert dataset.count_rows("s.a > 20 AND t IS NOT NULL") == sum(
        row["t"] is not None and row["s"] is not None and row["s"]["a"] > 20 for row in expected
    )


def test_filters_on_0_1_test_what_is_read(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    kind = pa.struct([("n", pa.int64()), ("t", pa.string())])
    for ids, values in (
        ([1, 2], [{"n": 1, "t": "a"}, {"n": None, "t": None}]),
        ([3], [{"n": None, "t": None}]),
    ):
        table = pa.table({"id": ids, "s": pa.array(values, kind)})
        lance.write_dataset(table, uri, mode="append", data_storage_version="legacy")
    ours, theirs = lance_sql.open(uri), lance.dataset(uri)
    rows = [{"n": 1, "t": "a"}, {"n": 0, "t": None}, {"n": 0, "t": None}]
    assert theirs.to_table()["s"].to_pylist() == ours.scan().to_table()["s"].to_pylist() == rows
    assert theirs.to_table(["id"], "s.n IS NULL")["id"].to_pylist() == [3]  # whose row says 0
    expected = {
        "s.n IS NULL": [],
        "s.n = 0": [2, 3],
        "s.t IS NULL": [2, 3],
        "s.t = ''": [],
        "s.t <> 'b'": [1],
    }
    for where, ids in expected.items():
        assert ours.scan(["id"], filter=where).to_table()["id"].to_pylist() == ids
        assert ours.count_rows(where) == len(ids)


def installed(release: str) -> Path:
    folder = BUILD / f"pylance-{release}"
    if not folder.exists():
        needs = [f"pylance=={release}"]
        major, minor = (int(part) for part in release.split(".")[:2])
        if major == 0:
            needs += ["numpy<2", "pyarrow==16.1.0" if minor >= 13 else "pyarrow==14.0.2"]
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", f"{folder}-unfinished"]
        subprocess.run([*install, *needs], check=True, capture_output=True)
        Path(f"{folder}-unfinished").rename(folder)
    return folder


def by_release(release: str, *arguments: str) -> str:
    """What the script for old releases prints."""
    environment = {**os.environ, "PYTHONPATH": str(installed(release)), "LANCE_LOG": "error"}
    command = [sys.executable, str(SUPPORT / "old_release_tables.py"), *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("release", RELEASES)
def test_random_sequences_by_old_releases(tmp_path: Path, pytestconfig: pytest.Config, release: str) -> None:
    first = int(pytestconfig.getoption("--first-seed"))
    command = [
        sys.executable,
        str(SUPPORT / "random_sequences.py"),
        str(tmp_path),
        str(first),
        str(SEQUENCES),
    ]
    environment = {**os.environ, "PYTHONPATH": str(installed(release))}
    subprocess.run(command, env=environment, check=True, capture_output=True)
    written = [path for path in tmp_path.glob("*.lance") if (path / "_versions").exists()]
    assert len(written) > SEQUENCES // 3
    found = {path.name: differences(str(path), first) for path in written}
    assert {name: different for name, different in found.items() if different} == {}


def can_read(release: str, table: str, change: str) -> bool:
    """Whether a release reads what newer ones write, pylance 14 as well as lance-sql."""
    number = tuple(int(part) for part in release.split(".")[:2])
    new_files = table.endswith("-2.0.lance") and change not in UNCHANGED_FILES
    if change == "overwrite":
        return number >= (0, 38)  # files of version 2.1
    if change == "add_column_of_nulls":
        return number >= (0, 27)
    return number >= (0, 16) or not new_files  # 0.15 does not read strings of later files of 2.0


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("release", CHANGED)
def test_changes_of_tables_by_old_releases(tmp_path: Path, release: str) -> None:
    """Each change of each table: pylance 14, lance-sql and the release itself read the same rows after it."""
    written, changed = tmp_path / "written", tmp_path / "changed"
    written.mkdir()
    changed.mkdir()
    by_release(release, "write", str(written))
    expected: dict[str, Any] = {}
    found: dict[str, Any] = {}
    refused: Counter[str] = Counter()
    tables = sorted(written.glob("*.lance"))
    assert len(tables) >= 6
    for table in tables:
        for change in CHANGES:
            name = f"{change.__name__}-{table.name}"
            try:
                expected[name], problems = apply(change, table, changed / name)
            except RefusedError as error:
                refused[str(error)] += 1
                if lance_sql.open(str(table)).snapshot.manifest.storage_version not in ("0.1", None):
                    found[name] = str(error)
                shutil.rmtree(changed / name)
                continue
            if problems:
                found[name] = problems
    rows = json.loads(by_release(release, "read", str(changed)))
    unreadable = 0
    for name in expected.keys() - found.keys():
        change_name, _, table_name = name.partition("-")
        if isinstance(rows[name], str):
            unreadable += 1
            if can_read(release, table_name, change_name):
                found[name] = rows[name]
        elif by_id(rows[name]) != as_read_by_others(expected[name]):
            found[name] = "the release reads other rows"
    print(release, len(tables), len(expected) - unreadable, unreadable, dict(refused))
    assert found == {}
