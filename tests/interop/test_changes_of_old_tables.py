"""Changes of tables that old releases of pylance wrote, whose manifests record less than those of today."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
import table_changes
from changed_tables import RefusedError, apply
from lance_engine.format.fragment import Fragment
from lance_engine.format.manifest import parse_manifest_file, serialize_manifest_file
from table_changes import Change

import lance_sql

KEPT = Path(__file__).parent / "old_releases" / "changed"
QUICK = [
    *(table_changes.append, table_changes.delete, table_changes.truncate_and_append, table_changes.update),
    *(table_changes.merge, table_changes.delete_compact_optimize, table_changes.add_column),
    *(table_changes.drop_column, table_changes.create_indices, table_changes.restore),
    *(table_changes.overwrite, table_changes.set_config, table_changes.branch_and_delete),
]
#: What version 0.1 refuses: it is not written.
NEW_FILES = {"append", "truncate_and_append", "update", "merge", "delete_compact_optimize", "add_column"}


def kept(name: str, folder: Path) -> Path:
    shutil.unpack_archive(KEPT / f"{name}.zip", folder / name)
    return folder / name


@pytest.mark.sampled(12)
@pytest.mark.parametrize("change", QUICK, ids=lambda change: change.__name__)
@pytest.mark.parametrize(
    "name", ["no-highest-id-0.30.0", "first-fragment-gone-0.27.0", "no-file-version-0.15.0"]
)
def test_every_change(tmp_path: Path, name: str, change: Change) -> None:
    """The manifests have no highest fragment id, where it is 0, or no version of the data files."""
    _, found = apply(change, kept(name, tmp_path), tmp_path / "changed.lance")
    assert found == []


@pytest.mark.parametrize("change", QUICK, ids=lambda change: change.__name__)
def test_every_change_of_version_0_1(tmp_path: Path, change: Change) -> None:
    source = kept("no-file-version-0.1-0.10.18", tmp_path)
    if change.__name__ in NEW_FILES:
        with pytest.raises(
            RefusedError, match=r"files of version 0\.1|of version 0\.1 cannot get new columns"
        ):
            apply(change, source, tmp_path / "changed.lance")
    else:
        assert apply(change, source, tmp_path / "changed.lance")[1] == []


@pytest.mark.parametrize("change", QUICK, ids=lambda change: change.__name__)
def test_files_of_several_versions(tmp_path: Path, change: Change) -> None:
    """Release 0.15 appended files of 0.1 to a table with deletions; pylance 14 refuses to open it."""
    source = kept("mixed-file-versions-0.15.0", tmp_path)
    with pytest.raises(Exception, match="must have the same version"):
        lance.dataset(str(source))
    ids = lance_sql.open(str(source)).scan(["id"]).to_table()["id"].to_pylist()
    assert ids == [0, 1, 2, 3, *range(5, 12)]
    with pytest.raises(RefusedError, match="data files of several versions"):
        apply(change, source, tmp_path / "changed.lance")


def edit(uri: str, **manifest: Any) -> None:
    """Change the newest manifest."""
    path = min((Path(uri) / "_versions").glob("*.manifest"))  # names count down
    parsed, section, transaction = parse_manifest_file(path.read_bytes())
    changed = dataclasses.replace(parsed, **manifest)
    path.write_bytes(serialize_manifest_file(changed, index_section=section, transaction=transaction))


def without(**fields: Any) -> Callable[[Fragment], Fragment]:
    return lambda fragment: dataclasses.replace(fragment, **fields)


def sizeless(fragment: Fragment) -> Fragment:
    files = tuple(dataclasses.replace(file, file_size=None) for file in fragment.files)
    return dataclasses.replace(fragment, files=files)


def uncounted(fragment: Fragment) -> Fragment:
    if fragment.deletion_file is None:
        return fragment
    return dataclasses.replace(
        fragment, deletion_file=dataclasses.replace(fragment.deletion_file, num_deleted_rows=None)
    )


ABSENT: dict[str, tuple[dict[str, Any], Callable[[Fragment], Fragment] | None]] = {
    "highest fragment id": ({"max_fragment_id": None}, None),
    "highest fragment id too low": ({"max_fragment_id": 0}, None),
    "storage version": ({"storage_version": None}, None),
    "next row id": ({"next_row_id": 0}, None),
    "writer": ({"writer_version": None}, None),
    "transaction": ({"transaction_file": ""}, None),
    "flags": ({"reader_feature_flags": 0, "writer_feature_flags": 0}, None),
    "reader flags": ({"reader_feature_flags": 0}, None),
    "rows": ({}, without(physical_rows=0)),
    "row versions": ({}, without(created_at_versions=None, last_updated_at_versions=None)),
    "file sizes": ({}, sizeless),
    "deleted rows": ({}, uncounted),
    "rows and deleted rows": ({}, lambda fragment: dataclasses.replace(uncounted(fragment), physical_rows=0)),
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("absent", ABSENT)
def test_absent_fields_of_manifests(tmp_path: Path, absent: str, stable: bool) -> None:
    """A change gives them the values that they have where other writers record them."""
    if absent in ("flags", "rows", "rows and deleted rows") and stable:
        pytest.skip("pylance requires them with stable row ids")
    uri = str(tmp_path / "t.lance")
    table = pa.table({"id": range(12), "t": [f"v{number % 5}" for number in range(12)], "l": [[1]] * 12})
    options: dict[str, Any] = {"data_storage_version": "2.1", "enable_stable_row_ids": stable}
    lance.write_dataset(table, uri, max_rows_per_file=5, **options)
    lance.dataset(uri).delete("id = 4")
    manifest, change = ABSENT[absent]
    if change is not None:
        manifest = {"fragments": tuple(map(change, lance_sql.open(uri).snapshot.fragments))}
    edit(uri, **manifest)
    for number, made in enumerate((table_changes.append, table_changes.update, table_changes.merge)):
        target = tmp_path / f"{number}.lance"
        assert apply(made, Path(uri), target)[1] == []
        assert lance.dataset(str(target)).data_storage_version == "2.1"
        theirs = lance.dataset(str(target)).to_table(columns=["id"], with_row_id=True).to_pylist()
        assert lance_sql.open(str(target)).scan(["id", "_rowid"]).to_table().to_pylist() == theirs


def _merged(dataset: lance_sql.Dataset, rows: pa.Table) -> object:
    return dataset.merge(rows, on="id").when_not_matched_insert_all().execute()


NEW_FRAGMENTS: dict[str, Callable[[lance_sql.Dataset, pa.Table], object]] = {
    "append": lambda dataset, rows: lance_sql.write(rows, dataset.uri, "append"),
    "merge": _merged,
    "update": lambda dataset, rows: dataset.update({"x": "NULL"}, "id = 1"),
    "compact": lambda dataset, rows: dataset.delete("id = 0").compact(),
    "transaction": lambda dataset, rows: lance_sql.sql(
        f"BEGIN; INSERT INTO '{dataset.uri}' VALUES (8, NULL); "
        f"DELETE FROM '{dataset.uri}' WHERE id = 1; COMMIT"
    ).fetchall(),
}


@pytest.mark.parametrize("kind", ["ZONEMAP", "BTREE", "BITMAP"])
@pytest.mark.parametrize("change", NEW_FRAGMENTS)
def test_no_new_fragment_has_a_number_that_an_index_covers(tmp_path: Path, change: str, kind: str) -> None:
    """pylance lowers the highest fragment id when it deletes the last fragment of a table without one."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"id": range(6), "x": [3, 4, 5, 6, 7, None]}), uri, max_rows_per_file=2)
    lance.dataset(uri).create_scalar_index("x", kind)
    edit(uri, max_fragment_id=None)
    lance.dataset(uri).delete("id >= 4")
    (recorded, _, _) = parse_manifest_file(min((Path(uri) / "_versions").glob("*.manifest")).read_bytes())
    assert recorded.max_fragment_id == 1  # one less than the index covers
    NEW_FRAGMENTS[change](lance_sql.open(uri), pa.table({"id": [8], "x": pa.array([None], pa.int64())}))
    ours, theirs = lance_sql.open(uri), lance.dataset(uri)
    assert 2 not in [fragment.id for fragment in ours.snapshot.fragments]
    rows = ours.scan(["id", "x"]).to_table().to_pylist()
    assert rows == theirs.to_table().to_pylist()
    for where, passes in (("x IS NULL", lambda x: x is None), ("x > 3", lambda x: x is not None and x > 3)):
        wanted = sorted(row["id"] for row in rows if passes(row["x"]))
        assert sorted(ours.scan(["id"], where).to_table()["id"].to_pylist()) == wanted
        assert sorted(theirs.to_table(["id"], filter=where)["id"].to_pylist()) == wanted
