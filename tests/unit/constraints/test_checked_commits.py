"""Every way to write checks the constraints of the version that it makes, and leaves nothing if they fail."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import (
    CommitConflictError,
    ConstraintError,
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from lance_engine.format.operations import Append
from lance_engine.operations import RowChanges, StagedChanges, apply_changes
from lance_engine.operations.add_columns import add_columns
from lance_engine.table.commit import commit
from lance_engine.table.constraints import CHECKS, ENFORCED, UNIQUE, constraints_of

import lance_sql

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "v": [10, 20, 30]})
Change = Callable[[lance_sql.Dataset], Any]


def rows(**columns: list[Any]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


#: Changes with a duplicate of `id`, or a `v` that is not positive.
WRONG: dict[str, Change] = {
    "append": lambda t: lance_sql.write(rows(id=[3], v=[1]), t.uri, mode="append"),
    "append, twice in itself": lambda t: lance_sql.write(rows(id=[7, 7], v=[1, 1]), t.uri, mode="append"),
    "append, condition": lambda t: lance_sql.write(rows(id=[7], v=[0]), t.uri, mode="append"),
    "update": lambda t: t.update({"id": "1"}),
    "update of one": lambda t: t.update({"id": "3"}, where="id = 1"),
    "update, condition": lambda t: t.update({"v": "v - 20"}),
    "merge": lambda t: t.merge(rows(id=[8, 8], v=[1, 1]), "id").when_not_matched_insert_all().execute(),
    "merge on another column": lambda t: (
        t.merge(rows(id=[1], v=[99]), "v").when_not_matched_insert_all().execute()
    ),
    "merge that changes keys": lambda t: (
        t.merge(rows(id=[1], v=[1]), "id").when_matched_update({"id": "target.id + 1"}).execute()
    ),
    "replaced column": lambda t: t.replace_columns({"id": "1"}),
    "replaced column, condition": lambda t: t.replace_columns({"v": "0"}),
    "other type": lambda t: t.replace_columns({"id": "id % 2"}),
    "changed rows": lambda t: apply_changes(
        t.snapshot, RowChanges(deleted=np.array([0], np.uint64), added=rows(id=[3], v=[1]).to_batches())
    ),
    "overwrite": lambda t: lance_sql.write(
        pa.Table.from_pydict({"id": [4, 4], "v": [1, 1]}, t.schema), t.uri, mode="overwrite"
    ),
}


@pytest.fixture(params=[False, True], ids=["addresses", "stable row ids"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> lance_sql.Dataset:
    made = lance_sql.write(ROWS, tmp_path / "t.lance", stable_row_ids=request.param)
    return made.add_key(["id"], primary=True).add_check("v > 0")


def files(table: lance_sql.Dataset) -> set[str]:
    return {
        os.path.join(folder, name)
        for folder, _, names in os.walk(table.uri)
        for name in names
        if "data" in folder or "_versions" in folder
    }


@pytest.mark.parametrize("change", WRONG)
def test_wrong_rows_are_refused(table: lance_sql.Dataset, change: str) -> None:
    before = files(table)
    with pytest.raises(ConstraintError, match=r"Duplicate key|CHECK constraint failed"):
        WRONG[change](table)
    assert files(table) == before
    assert lance_sql.open(table.uri).version == table.version


def test_right_rows_are_written(table: lance_sql.Dataset) -> None:
    changed = lance_sql.write(rows(id=[4], v=[1]), table.uri, mode="append")
    changed = changed.update({"id": "id + 1"}).delete("id = 5")  # the keys overlap with the old ones
    changed = lance_sql.write(rows(id=[5, 1], v=[1, 1]), table.uri, mode="append")
    source = rows(id=[1, 6], v=[7, 7])
    changed = changed.merge(source, "id").when_matched_update_all().when_not_matched_insert_all().execute()
    changed = changed.compact().restore(changed.version)
    assert sorted(changed.to_table()["id"].to_pylist()) == [1, 2, 3, 4, 5, 6]


def test_a_check_that_is_null_passes(tmp_path: Path) -> None:
    lance_sql.write(ROWS, tmp_path / "t.lance").add_check("v > 0")
    lance_sql.write({"id": [4], "v": [None]}, tmp_path / "t.lance", mode="append")


@pytest.mark.parametrize("wrong", [rows(id=[1, 1], v=[1, 1]), rows(id=[1], v=[-1])])
def test_declared_for_rows_that_violate_it(tmp_path: Path, wrong: pa.Table) -> None:
    made = lance_sql.write(wrong, tmp_path / "t.lance")
    with pytest.raises(ConstraintError, match=r'"id: 1"|CHECK'):
        made.add_key(["id"]).add_check("v > 0")


def test_a_primary_key_has_no_nulls(tmp_path: Path) -> None:
    made = lance_sql.write({"id": [1, None]}, tmp_path / "t.lance")
    made.add_key(["id"])
    with pytest.raises(SchemaMismatchError, match=r"1 rows are null"):
        made.add_key(["id"], primary=True)
    keyed = lance_sql.open(made.uri).delete("id IS NULL").add_key(["id"], primary=True)
    with pytest.raises(SchemaMismatchError, match=r"cannot be nullable"):
        keyed.alter_column("id", nullable=True)
    with pytest.raises(InvalidArgumentError, match=r"has a primary key already: id"):
        keyed.add_columns({"n": "1"}).add_key(["n"], primary=True)


def test_a_key_declared_after_the_rows_were_read(table: lance_sql.Dataset, tmp_path: Path) -> None:
    made = lance_sql.write(ROWS, tmp_path / "u.lance")
    made.add_key(["id"])
    with pytest.raises(ConstraintError, match=r'"id: 3"'):
        apply_changes(made.snapshot, RowChanges(added=rows(id=[3], v=[1]).to_batches()))


def test_rows_that_others_inserted_meanwhile(table: lance_sql.Dataset) -> None:
    lance_sql.write(rows(id=[9], v=[1]), table.uri, mode="append")
    new = rows(id=[9], v=[2]).to_batches()
    with pytest.raises(ConstraintError, match=r'"id: 9"'):  # an INSERT: trying again does not help
        apply_changes(table.snapshot, RowChanges(added=new))
    with pytest.raises(CommitConflictError, match=r"another writer inserted such a row"):
        apply_changes(table.snapshot, RowChanges(deleted=np.array([0], np.uint64), added=new))
    source = rows(id=[9, 10], v=[3, 3])  # a merge is computed again
    done = table.merge(source, "id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert sorted(done.to_table()["id"].to_pylist()) == [1, 2, 3, 9, 10]
    assert done.count_rows("v = 3") == 2


def test_merges_of_other_keys_do_not_conflict(table: lance_sql.Dataset) -> None:
    def merged(snapshot: Any, key: int) -> Any:
        changes = RowChanges(added=rows(id=[key], v=[1]).to_batches(), inserts_keys=True, matched_by=["id"])
        return apply_changes(snapshot, changes)

    merged(table.snapshot, 11)
    assert merged(table.snapshot, 12).num_rows == 5


def test_staged_changes_are_checked_again_when_they_are_committed(table: lance_sql.Dataset) -> None:
    staged = StagedChanges(table.snapshot)
    staged.advance(apply_changes(staged.snapshot, RowChanges(added=rows(id=[9], v=[2]).to_batches())))
    staged.advance(add_columns(staged.snapshot, {"n": "1"}))
    with pytest.raises(ConstraintError):
        apply_changes(staged.snapshot, RowChanges(added=rows(id=[9], v=[2]).to_batches()))
    lance_sql.write(rows(id=[9], v=[1]), table.uri, mode="append")
    with pytest.raises((ConstraintError, CommitConflictError)):
        staged.commit()
    assert lance_sql.open(table.uri).count_rows() == 4


def test_a_commit_without_the_check_is_refused(table: lance_sql.Dataset) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"need a check"):
        commit(table.uri, Append(()), read_version=table.version)


def test_pylance_sees_the_primary_key_and_keeps_it(table: lance_sql.Dataset) -> None:
    theirs = lance.dataset(table.uri)
    assert "unenforced_primary_key_position: Some(1)" in str(theirs.lance_schema.fields()[0])
    merge = theirs.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(pa.table({"id": [3, 4], "v": [5, 5]}, theirs.schema))
    ours = lance_sql.open(table.uri)
    assert ours.primary_key == ["id"]
    assert ours.count_rows() == 4
    dropped = ours.drop_constraint("id_pkey")
    assert dropped.primary_key == []
    assert "unenforced_primary_key_position: None" in str(lance.dataset(table.uri).lance_schema.fields()[0])


def test_a_primary_key_of_pylance_is_not_enforced(tmp_path: Path) -> None:
    mark = {"lance-schema:unenforced-primary-key": "true"}
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False, metadata=mark)])
    lance.write_dataset(pa.table({"id": [1, 1]}, schema), str(tmp_path / "t.lance"))
    ours = lance_sql.open(tmp_path / "t.lance")
    assert ours.primary_key == ["id"]
    assert ours.inspect.constraints().to_pylist()[0]["enforced"] is False
    lance_sql.write(ours.to_table(), ours.uri, mode="append")
    with pytest.raises(ConstraintError, match=r'"id: 1"'):
        lance_sql.open(ours.uri).add_key(["id"], primary=True)


@pytest.mark.parametrize("text", ["{", "[]", '{"k": 1}', '{"k": ["1", 1]}', '{"k": [1, 2]}', "[" * 10_000])
def test_damaged_descriptions_describe_nothing(tmp_path: Path, text: str) -> None:
    made = lance_sql.write(ROWS, tmp_path / "t.lance")
    made = made.update_schema_metadata({UNIQUE: text, ENFORCED: text}, column="id")
    made = made.update_schema_metadata({CHECKS: text if "k" not in text else "1"})
    assert constraints_of(made.snapshot.schema).names == []
    assert lance_sql.write(ROWS, made.uri, mode="append").count_rows() == 6


def test_a_column_that_a_constraint_needs(table: lance_sql.Dataset) -> None:
    for change in (
        lambda: table.drop_columns(["id"]),
        lambda: table.drop_columns(["v"]),
        lambda: table.rename_column("v", "w"),
    ):
        with pytest.raises(SchemaMismatchError, match=r"The constraint '(id_pkey|v_check)' depends on"):
            change()
    renamed = table.rename_column("id", "key")  # a key knows its columns by their numbers
    assert renamed.primary_key == ["key"]
    with pytest.raises(ConstraintError, match=r'"key: 3"'):
        lance_sql.write(rows(key=[3], v=[1]), table.uri, mode="append")
    free = renamed.drop_constraint("v_check").drop_columns(["v"])
    with pytest.raises(InvalidArgumentError, match=r"has no constraint 'v_check'"):
        free.drop_constraint("v_check")
