"""Manifests that say something wrong about rows and fragments: read as pylance reads them, and told of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import CorruptFileError
from lance_engine.format.fragment import DeletionKind, Fragment
from lance_engine.format.manifest import parse_manifest_file, serialize_manifest_file
from lance_engine.io import open_store
from lance_engine.table.deletions import write_deletions

import lance_sql

Change = Callable[[list[Fragment]], list[Fragment]]
VERSIONS = ["legacy", "2.0", "2.1", "2.2"]
WHERE = "id % 5 = 4"


def written(path: Path, version: str, deleted: str = "", *, stable: bool = False) -> str:
    """Three fragments of ten rows."""
    uri = str(path / "t.lance")
    table = pa.table({"id": range(30), "s": [f"v{number}" for number in range(30)]})
    options: dict[str, Any] = {"enable_stable_row_ids": stable}
    lance.write_dataset(table, uri, max_rows_per_file=10, data_storage_version=version, **options)
    if deleted:
        lance.dataset(uri).delete(deleted)
    return uri


def edit(uri: str, change: Change, **manifest: Any) -> None:
    """Change the fragments, and maybe more, in the newest manifest."""
    path = min((Path(uri) / "_versions").glob("*.manifest"))  # names count down
    parsed, section, transaction = parse_manifest_file(path.read_bytes())
    changed = dataclasses.replace(parsed, fragments=tuple(change(list(parsed.fragments))), **manifest)
    path.write_bytes(serialize_manifest_file(changed, index_section=section, transaction=transaction))


def with_rows(rows: int, fragment: int = 0) -> Change:
    def change(fragments: list[Fragment]) -> list[Fragment]:
        fragments[fragment] = dataclasses.replace(fragments[fragment], physical_rows=rows)
        return fragments

    return change


def with_deleted(count: int) -> Change:
    def change(fragments: list[Fragment]) -> list[Fragment]:
        assert fragments[0].deletion_file is not None
        deletion = dataclasses.replace(fragments[0].deletion_file, num_deleted_rows=count)
        return [dataclasses.replace(fragments[0], deletion_file=deletion), *fragments[1:]]

    return change


def same_rows(uri: str) -> pa.Table:
    """The rows, which are those that pylance reads, in its order."""
    ours, theirs = lance_sql.open(uri), lance.dataset(uri)
    expected = theirs.to_table()
    assert ours.scan().to_table().equals(expected)
    assert ours.scan(columns=["id"], filter=WHERE).to_table().equals(theirs.to_table(["id"], WHERE))
    assert ours.count_rows(WHERE) == theirs.count_rows(WHERE)
    found = lance_sql.sql(f"SELECT id FROM '{uri}' ORDER BY id").arrow()["id"].to_pylist()
    assert found == sorted(expected["id"].to_pylist())
    return expected


def problems(uri: str) -> list[str]:
    return [str(row) for row in lance_sql.open(uri).verify()["problem"].to_pylist()]


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_fewer_rows_than_the_files_have(tmp_path: Path, version: str) -> None:
    uri = written(tmp_path, version)
    edit(uri, with_rows(5))
    assert same_rows(uri)["id"].to_pylist() == [*range(5), *range(10, 30)]
    assert lance_sql.open(uri).count_rows() == lance.dataset(uri).count_rows() == 25
    assert lance_sql.open(uri).take([3, 1 << 32])["id"].to_pylist() == [3, 10]
    assert problems(uri) == ["The files of the fragment have 10 rows, the manifest says 5"]


@pytest.mark.parametrize(
    ("rows", "fragment", "deleted"),
    [
        (5, 0, ""),
        (5, 0, "id = 4 OR id = 9 OR id = 12"),
        (1, 1, "id = 3 OR id = 28"),
        (9, 2, "id = 28"),
        (11, 0, ""),
        (2_000, 1, "id = 4 OR id = 9 OR id = 12"),
    ],
)
def test_rows_of_files_of_0_1(tmp_path: Path, rows: int, fragment: int, deleted: str) -> None:
    """The files are believed, as pylance does in scans; it counts and finds single rows by the manifest."""
    uri = written(tmp_path, "legacy", deleted)
    edit(uri, with_rows(rows, fragment))
    left = [row for row in range(30) if f"id = {row}" not in deleted.split(" OR ")]
    assert same_rows(uri)["id"].to_pylist() == left
    ours, theirs = lance_sql.open(uri), lance.dataset(uri)
    assert ours.scan(limit=5, offset=7).to_table()["id"].to_pylist() == left[7:12]
    row_ids = theirs.to_table(["s"], with_row_id=True)["_rowid"]
    for columns in (["s"], []):
        assert ours.scan([*columns, "_rowid"]).to_table()["_rowid"].equals(row_ids)
    assert ours.count_rows() == len(left)
    assert ours.take(row_ids.to_pylist()[::-2])["id"].to_pylist() == left[::-2]
    assert ours.take_positions(range(len(left)))["id"].to_pylist() == left
    assert ours.scan(["id"], "_rowid IN (3, 7, 15, 27)").to_table()["id"].to_pylist() == [
        row for row in left if row in (3, 7)
    ]
    for engine in ("duckdb", "datafusion"):
        connection = lance_sql.connect(engine=engine)
        found = connection.sql(
            f"SELECT count(*), count(s), min(id), max(id), sum(id) FROM '{uri}'"
        ).fetchall()
        assert found == [(len(left), len(left), 0, max(left), sum(left))]
    assert problems(uri) == [f"The files of the fragment have 10 rows, the manifest says {rows}"]
    changed = ours.delete(f"id = {10 * fragment + 6}")
    assert changed.count_rows() == lance.dataset(uri).count_rows() == len(left) - 1
    assert problems(uri) == []
    assert same_rows(uri).num_rows == len(left) - 1


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_more_rows_than_the_files_have(tmp_path: Path, version: str) -> None:
    uri = written(tmp_path, version)
    edit(uri, with_rows(12))
    with pytest.raises(Exception, match=r"10|ended|range"):
        lance.dataset(uri).to_table()
    with pytest.raises(CorruptFileError, match="The column has 10 rows, but its fragment has 12"):
        lance_sql.open(uri).scan().to_table()
    assert set(problems(uri)) == {"The column has 10 rows, but its fragment has 12"}


@pytest.mark.parametrize("version", VERSIONS[1:])
@pytest.mark.parametrize("fragments", [3, 60])
def test_single_rows_where_the_manifest_says_more(tmp_path: Path, version: str, fragments: int) -> None:
    uri = str(tmp_path / "t.lance")
    table = pa.table(
        {
            "id": range(10 * fragments),
            "s": [f"v{number}" for number in range(10 * fragments)],
            "l": [[number] * (number % 3) for number in range(10 * fragments)],
            "v": pa.FixedSizeListArray.from_arrays(pa.array(range(20 * fragments), pa.int32()), 2),
        }
    )
    lance.write_dataset(table, uri, max_rows_per_file=10, data_storage_version=version)
    edit(uri, with_rows(12))
    ours, theirs = lance_sql.open(uri), lance.dataset(uri)
    for positions in ([2], [9, 3], [5, 14], [0, 1, 2, 4, 5, 6, 7, 8, 9], [31, 8], [9, *range(12, 32)]):
        assert ours.take_positions(positions).equals(theirs.take(positions)), positions
    for row in (0, 9, 1 << 32):
        assert ours.take([row]).equals(theirs._take_rows([row]))
    for positions in ([10], [3, 11]):
        with pytest.raises(CorruptFileError, match="The column has 10 rows, but its fragment has 12"):
            ours.take_positions(positions)
    assert ours.scan(filter="_rowid IN (3, 4)").to_table()["id"].to_pylist() == [3, 4]


@pytest.mark.parametrize("rows", [5, 8, 12])
@pytest.mark.parametrize("version", VERSIONS)
def test_numbers_of_writers_that_do_not_say_who_they_are(tmp_path: Path, version: str, rows: int) -> None:
    """Early releases recorded the rows that are left, or other numbers: the files are believed."""
    uri = written(tmp_path, version, "id = 3 OR id = 8")
    edit(uri, with_rows(rows), writer_version=None)
    assert same_rows(uri)["id"].to_pylist() == [row for row in range(30) if row not in (3, 8)]
    assert lance_sql.open(uri).count_rows() == lance.dataset(uri).count_rows() == 28
    assert problems(uri) == [f"The files of the fragment have 10 rows, the manifest says {rows}"]
    changed = lance_sql.open(uri).delete("id = 4")
    assert changed.count_rows() == 27
    assert problems(uri) == []
    assert same_rows(uri).num_rows == 27


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
def test_fragments_in_another_order(tmp_path: Path, stable: bool) -> None:
    uri = written(tmp_path, "2.1", "id = 12", stable=stable)
    edit(uri, lambda fragments: [fragments[2], fragments[0], fragments[1]])
    ids = [*range(20, 30), *range(12), *range(13, 20)]
    assert same_rows(uri)["id"].to_pylist() == ids
    ours, theirs = lance_sql.open(uri), lance.dataset(uri)
    row_ids = theirs.to_table(columns=["id"], with_row_id=True)["_rowid"].to_pylist()
    assert ours.scan(columns=["_rowid"]).to_table()["_rowid"].to_pylist() == row_ids
    assert ours.take(row_ids[::-3])["id"].to_pylist() == ids[::-3]
    assert ours.count_rows() == 29
    assert problems(uri) == ["The fragments are not in ascending order of their ids"]
    changed = ours.delete("id = 25")
    assert changed.scan().to_table()["id"].to_pylist() == [row for row in ids if row != 25]
    assert lance.dataset(uri).to_table()["id"].to_pylist() == [row for row in ids if row != 25]


def test_fragments_with_the_same_id(tmp_path: Path) -> None:
    uri = written(tmp_path, "2.1", "id = 3 OR id = 15")

    def change(fragments: list[Fragment]) -> list[Fragment]:
        for path in (Path(uri) / "_deletions").glob("1-*"):
            path.rename(path.with_name(f"0{path.name[1:]}"))
        return [fragments[0], dataclasses.replace(fragments[1], id=0), fragments[2]]

    edit(uri, change)
    # pylance takes the fifth row of the second fragment out of the first as well.
    assert lance.dataset(uri).to_table().num_rows == 27
    ids = [row for row in range(30) if row not in (3, 15)]
    dataset = lance_sql.open(uri)
    assert dataset.scan().to_table()["id"].to_pylist() == ids
    assert dataset.count_rows() == 28
    row_ids = dataset.scan(columns=["_rowid"]).to_table()["_rowid"].to_pylist()
    assert dataset.take(row_ids)["id"].to_pylist() == ids
    assert problems(uri) == ["2 fragments have the id 0"]
    with pytest.raises(CorruptFileError, match="Several fragments have the same id") as caught:
        dataset.delete("id = 1")
    assert "write the rows to a new dataset" in str(caught.value)
    assert lance_sql.open(uri).count_rows() == 28


@pytest.mark.parametrize("deleted", ["", "id = 3"])
def test_the_same_fragment_twice(tmp_path: Path, deleted: str) -> None:
    uri = written(tmp_path, "2.2", deleted)
    edit(uri, lambda fragments: [fragments[0], fragments[0], fragments[2]])
    once = [row for row in range(10) if not deleted or row != 3]
    assert same_rows(uri)["id"].to_pylist() == [*once, *once, *range(20, 30)]


@pytest.mark.parametrize("kind", list(DeletionKind))
def test_deletions_beyond_the_fragment(tmp_path: Path, kind: DeletionKind) -> None:
    """Scans fail in both, single rows are found in both."""
    uri = written(tmp_path, "2.1", "id = 3")

    def change(fragments: list[Fragment]) -> list[Fragment]:
        offsets = np.array([3, 12], np.uint32)
        deletion = write_deletions(open_store(uri), 0, offsets, 1, kind=kind)
        return [dataclasses.replace(fragments[0], deletion_file=deletion), *fragments[1:]]

    edit(uri, change)
    with pytest.raises(Exception, match="Invalid read of range"):
        lance.dataset(uri).to_table()
    dataset = lance_sql.open(uri)
    with pytest.raises(CorruptFileError, match="contains row 12, but the fragment has 10 rows"):
        dataset.scan().to_table()
    wanted = [0, 8, (1 << 32) + 3]
    assert lance.dataset(uri)._take_rows(wanted)["id"].to_pylist() == [0, 8, 13]
    assert dataset.take(wanted)["id"].to_pylist() == [0, 8, 13]
    assert problems(uri) == ["The deletion file contains row 12, but the fragment has 10 rows"]


def test_deletions_of_a_fragment_that_is_larger_than_recorded(tmp_path: Path) -> None:
    uri = written(tmp_path, "2.1", "id = 8")
    edit(uri, with_rows(5))
    with pytest.raises(Exception, match="Invalid read of range"):
        lance.dataset(uri).to_table()
    with pytest.raises(CorruptFileError, match="contains row 8, but the fragment has 5 rows"):
        lance_sql.open(uri).count_rows("id > 3")
    edit(uri, with_rows(5), writer_version=None)
    assert same_rows(uri).num_rows == 29


@pytest.mark.parametrize("count", [5, 10])
def test_another_number_of_deleted_rows(tmp_path: Path, count: int) -> None:
    uri = written(tmp_path, "2.1", "id = 3")
    edit(uri, with_deleted(count))
    assert same_rows(uri).num_rows == 29
    assert lance_sql.open(uri).count_rows() == lance.dataset(uri).count_rows() == 30 - count
    assert problems(uri) == [f"The deletion file has 1 rows, but the manifest records {count}"]
    edit(uri, with_deleted(count), writer_version=None)
    assert lance_sql.open(uri).count_rows() == 29
