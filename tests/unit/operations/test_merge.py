"""Merging by key."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from lance_engine.constraints.keys import Keys
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import (
    AmbiguousMergeError,
    ColumnNotFoundError,
    CommitConflictError,
    InvalidFilterError,
    SchemaMismatchError,
    UnsupportedTypeError,
)
from lance_engine.write.dataset import write_dataset
from memory_tables import in_memory, nothing_left_behind
from memory_tables import rows_by_id as rows


def create(rows: int = 20, *, stable: bool = False) -> DatasetVersion:
    data = pa.table(
        {
            "id": [None if i == 7 else i for i in range(rows)],
            "g": [f"g{i % 3}" for i in range(rows)],
            "v": np.arange(rows) * 1.0,
        }
    )
    return in_memory(data, rows_per_file=6, stable=stable)


SOURCE = pa.table({"id": [3, 25, 11, None], "v": [-3.0, -25.0, -11.0, -1.0], "g": ["n", "n", "n", None]})


@pytest.mark.parametrize("stable", [False, True])
def test_upsert(stable: bool) -> None:
    dataset = create(stable=stable)
    row_ids = rows(dataset, "_rowid")
    after = (
        dataset.merge(SOURCE.slice(0, 3), on="id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    assert after.version == 2
    expected = rows(dataset, "g", "v") | {3: ("n", -3.0), 25: ("n", -25.0), 11: ("n", -11.0)}
    assert rows(after, "g", "v") == expected
    if stable:
        assert rows(after, "_rowid") == row_ids | {25: (20,)}
        last = after.snapshot.fragments[-1]
        assert after.snapshot.created_at_versions(last).tolist() == [1, 1, 2]


def test_only_inserting_and_only_updating() -> None:
    dataset = create()
    inserted = dataset.merge(SOURCE, on=["id"]).when_not_matched_insert_all().execute()
    assert inserted.count_rows() == 22
    assert inserted.count_rows("v = -1") == inserted.count_rows("v = -25") == 1
    updated = inserted.merge(SOURCE, on=["id"]).when_matched_update_all().execute()
    assert updated.count_rows() == 22
    assert updated.scan(["v"], "id IN (3, 11, 25)").to_table()["v"].to_pylist() == [-3, -11, -25]


def test_columns_that_the_source_lacks() -> None:
    source = pa.table({"id": [3, 25], "v": [-3.0, -25.0]})
    after = create().merge(source, on="id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert after.scan(filter="id IN (3, 25)").to_table().to_pylist() == [
        {"id": 3, "g": "g0", "v": -3.0},
        {"id": 25, "g": None, "v": -25.0},
    ]


def test_a_condition_over_both_rows() -> None:
    source = pa.table({"id": [1, 2, 3, 30], "v": [0.0, 99.0, None, 5.0]})
    after = (
        create()
        .merge(source, on="id")
        .when_matched_update_all("source.v > target.v AND target.g <> 'x'")
        .when_not_matched_insert_all()
        .execute()
    )
    assert {key: rows(after, "v")[key] for key in (1, 2, 3, 30)} == {
        1: (1.0,),
        2: (99.0,),
        3: (3.0,),
        30: (5.0,),
    }


def test_deleting() -> None:
    dataset = create()
    assert set(rows(dataset)) - set(rows(dataset.merge(SOURCE, on="id").when_matched_delete().execute())) == {
        3,
        11,
    }
    dataset = dataset.restore()
    kept = dataset.merge(SOURCE, on="id").when_not_matched_by_source_delete("v >= 5").execute()
    assert set(rows(kept)) == {0, 1, 2, 3, 4, 11}
    replaced = (
        kept.merge(SOURCE.slice(0, 3), on="id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .when_not_matched_by_source_delete()
        .execute()
    )
    assert rows(replaced, "v") == {3: (-3.0,), 11: (-11.0,), 25: (-25.0,)}


def test_several_key_columns() -> None:
    source = pa.table({"g": ["g0", "g1", "g1"], "id": [3, 3, 4], "v": [-1.0, -2.0, -3.0]})
    after = (
        create()
        .merge(source, on=["g", "id"])
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    found = after.scan(["g", "v"], "id IN (3, 4)").to_table().to_pylist()
    assert sorted((row["g"], row["v"]) for row in found) == [("g0", -1.0), ("g1", -3.0), ("g1", -2.0)]


def test_an_empty_source() -> None:
    dataset = create()
    empty = SOURCE.slice(0, 0)
    same = dataset.merge(empty, on="id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert rows(same, "v") == rows(dataset, "v")
    gone = dataset.merge(empty, on="id").when_not_matched_by_source_delete().execute()
    assert gone.count_rows() == 0
    filled = gone.merge(SOURCE, on="id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert filled.count_rows() == 4


def test_merges_that_are_refused() -> None:
    dataset = create()
    before = dataset.snapshot.store.list("")
    twice = pa.table({"id": [3, 3, 50, 50], "v": [1.0, 2.0, 3.0, 4.0]})

    def upsert(source: Any, on: Any = "id") -> DatasetVersion:
        return dataset.merge(source, on=on).when_matched_update_all().when_not_matched_insert_all().execute()

    with pytest.raises(AmbiguousMergeError, match="id = 3"):
        upsert(twice)
    with pytest.raises(SchemaMismatchError, match=r"[Cc]olumn 'w' not found"):
        upsert(SOURCE.append_column("w", SOURCE["v"]))
    with pytest.raises(SchemaMismatchError, match=r"[Kk]ey column"):
        upsert(SOURCE.drop_columns("g"), on=["id", "g"])
    with pytest.raises(ColumnNotFoundError):
        upsert(SOURCE, on="nope")
    with pytest.raises(SchemaMismatchError, match="type"):
        upsert(pa.table({"id": ["a"]}))
    with pytest.raises(ColumnNotFoundError):
        dataset.merge(SOURCE, on="id").when_matched_update_all("source.nope = 1").execute()
    with pytest.raises(InvalidFilterError):
        dataset.merge(SOURCE, on="id").when_matched_update_all("source.v + 1").execute()
    with pytest.raises(ValueError, match="No action given"):
        dataset.merge(SOURCE, on="id").execute()
    with pytest.raises(ValueError, match="never reached"):
        dataset.merge(SOURCE, on="id").when_matched_update_all().when_matched_delete()
    with pytest.raises(ValueError, match="at least one column"):
        dataset.merge(SOURCE, on="id").when_matched_update({})
    with pytest.raises(ValueError, match=r"[Kk]ey column"):
        dataset.merge(SOURCE, on=[])
    assert dataset.snapshot.store.list("") == before
    assert dataset.merge(twice, on="id").when_not_matched_insert_all().execute().count_rows() == 22


def test_the_same_key_is_not_inserted_twice() -> None:
    old = create()
    write_dataset(pa.table({"id": [25], "v": [1.0]}), old.snapshot.store, "append")
    after = old.merge(SOURCE, on="id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert after.scan(["v"], "id = 25").to_table()["v"].to_pylist() == [-25]


def test_a_merge_that_loses_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = create()
    merge = dataset.merge(SOURCE, on="id").when_matched_update_all().when_not_matched_insert_all()
    with nothing_left_behind(dataset, monkeypatch), pytest.raises(CommitConflictError):
        merge.execute()


# ---- keys ------------------------------------------------------------------------------------------------

KEY = st.tuples(st.one_of(st.none(), st.integers(-3, 3)), st.one_of(st.none(), st.sampled_from("abc")))
KEYS = st.lists(KEY, max_size=12)


def _columns(keys: list[tuple[Any, Any]]) -> list[pa.Array]:
    return [pa.array([key[0] for key in keys], pa.int32()), pa.array([key[1] for key in keys], pa.string())]


@settings(max_examples=examples(15), deadline=None)
@given(KEYS, KEYS)
def test_keys_equal_tuples(ours: list[tuple[Any, Any]], others: list[tuple[Any, Any]]) -> None:
    keys = Keys(["a", "b"], _columns(ours))
    numbers = dict(zip(ours, keys.numbers.tolist(), strict=True))
    complete = {key for key in ours if None not in key}
    assert sorted(number for key, number in numbers.items() if key in complete) == list(range(keys.count))
    assert all(numbers[key] == -1 for key in set(ours) - complete)
    expected = [numbers[key] if key in complete else -1 for key in others]
    assert keys.find(_columns(others)).tolist() == expected


def test_keys_of_other_types() -> None:
    words = pa.array(["a", "b", "a"]).dictionary_encode()
    assert Keys(["w"], [words]).find([pa.array(["b", "c"]).dictionary_encode()]).tolist() == [1, -1]
    with pytest.raises(UnsupportedTypeError, match="column: l"):
        Keys(["l"], [pa.array([[1], [2]])])
