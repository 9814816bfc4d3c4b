"""Several clauses with conditions and values; sources beyond the memory bound; the same merges by DuckDB."""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.constraints.keys import Keys
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import (
    AmbiguousMergeError,
    ColumnNotFoundError,
    InvalidFilterError,
    SchemaMismatchError,
)
from lance_engine.operations.source_rows import SourceRows
from lance_engine.progress import ProgressEvent
from memory_tables import in_memory
from memory_tables import rows_by_id as rows

ROWS = 20


def create(*, stable: bool = False, rows: int = ROWS) -> DatasetVersion:
    data = pa.table({"id": range(rows), "g": [f"g{i % 3}" for i in range(rows)], "v": np.arange(rows) * 1.0})
    return in_memory(data, rows_per_file=6, stable=stable)


SOURCE = pa.table(
    {"id": [1, 2, 3, 4, 30, 31, 32], "delta": [1.5, 2.5, 3.5, None, 5.0, 6.0, 7.0], "kind": list("udukiix")}
)


@pytest.mark.parametrize("stable", [False, True])
def test_the_first_clause_that_holds_counts(stable: bool) -> None:
    dataset = create(stable=stable)
    row_ids = rows(dataset, "_rowid")
    after = (
        dataset.merge(SOURCE, on="id")
        .when_matched_delete("source.kind = 'd'")
        .when_matched_update({"v": "target.v * 10 + source.delta"}, "source.delta IS NOT NULL")
        .when_matched_update({"g": "'unknown'"})
        .when_not_matched_insert({"id": "source.id", "v": "source.delta + 1"}, "source.kind = 'i'")
        .when_not_matched_insert({"id": "source.id", "g": "'other'"}, "source.kind = 'x'")
        .when_not_matched_by_source_delete("id >= 15")
        .when_not_matched_by_source_update({"v": "v - 100", "g": "upper(g)"}, "id >= 13")
        .execute()
    )
    expected = rows(dataset, "g", "v")
    del expected[2]
    for number in range(15, ROWS):
        del expected[number]
    expected |= {
        1: ("g1", 11.5),
        3: ("g0", 33.5),
        4: ("unknown", 4.0),
        13: ("G1", -87.0),
        14: ("G2", -86.0),
        30: (None, 6.0),
        31: (None, 7.0),
        32: ("other", None),
    }
    assert rows(after, "g", "v") == expected
    assert after.verify(values=True).num_rows == 0
    if stable:
        kept = rows(after, "_rowid")
        assert {number: kept[number] for number in (1, 3, 4, 13, 14)} == {
            number: row_ids[number] for number in (1, 3, 4, 13, 14)
        }
        assert len(set(kept.values())) == len(kept)


def test_values_and_conditions_that_are_refused() -> None:
    dataset = create()
    before = dataset.snapshot.store.list("")
    merge = dataset.merge
    for builder, error in (
        (merge(SOURCE, "id").when_matched_update({"w": "1"}), ColumnNotFoundError),
        (merge(SOURCE, "id").when_matched_update({"v": "source.nope"}), ColumnNotFoundError),
        (merge(SOURCE, "id").when_matched_update({"v": "'text'"}), InvalidFilterError),
        (merge(SOURCE, "id").when_matched_delete("source.delta + 1"), InvalidFilterError),
        (merge(SOURCE, "id").when_not_matched_insert({"id": "target.id"}), ColumnNotFoundError),
        (merge(SOURCE, "id").when_matched_update_all(), SchemaMismatchError),
    ):
        with pytest.raises(error):
            builder.execute()
    assert dataset.snapshot.store.list("") == before


def test_functions_get_both_rows() -> None:
    def larger(pairs: pa.RecordBatch) -> pa.Array:
        source, target = (pairs[side].to_pylist() for side in ("source", "target"))
        return pa.array([max(s["delta"], t["v"]) for s, t in zip(source, target, strict=True)])

    after = create().merge(SOURCE.slice(0, 3), "id").when_matched_update({"v": larger}).execute()
    assert {key: rows(after, "v")[key] for key in (1, 2, 3)} == {1: (1.5,), 2: (2.5,), 3: (3.5,)}


@pytest.mark.parametrize("seed", range(12))
def test_as_duckdb_merges(seed: int) -> None:
    random_ = random.Random(seed)
    dataset = create()
    numbers = random_.sample(range(30), 12)
    source = pa.table({"id": numbers, "v": [random_.choice([None, 1.0, 9.0, 15.0]) for _ in numbers]})
    conditions = ["source.v > 5", "source.v < target.v", "target.id % 2 = 0", "source.v IS NULL", None]
    statement = "MERGE INTO target USING source ON source.id = target.id"
    merge = dataset.merge(source, "id")
    for number in range(random_.randrange(1, 3)):
        where = random_.choice(conditions[: 5 if number else 4])
        also = f" AND {where}" if where else ""
        if random_.random() < 0.4:
            merge = merge.when_matched_delete(where)
            statement += f" WHEN MATCHED{also} THEN DELETE"
        else:
            merge = merge.when_matched_update({"v": "source.v + target.v", "g": "'m'"}, where)
            statement += f" WHEN MATCHED{also} THEN UPDATE SET v = source.v + target.v, g = 'm'"
        if where is None:
            break
    if random_.random() < 0.7:
        merge = merge.when_not_matched_insert({"id": "source.id", "v": "source.v * 2"}, "source.v > 5")
        statement += " WHEN NOT MATCHED AND source.v > 5 THEN INSERT (id, v) VALUES (source.id, source.v * 2)"
    if random_.random() < 0.5:
        merge = merge.when_not_matched_by_source_update({"v": "v + id"}, "id > 12")
        statement += " WHEN NOT MATCHED BY SOURCE AND target.id > 12 THEN UPDATE SET v = target.v + target.id"
        merge = merge.when_not_matched_by_source_delete("id > 3")
        statement += " WHEN NOT MATCHED BY SOURCE AND target.id > 3 THEN DELETE"
    after = merge.execute()
    with duckdb.connect() as connection:
        connection.register("before", dataset.scan().to_table())
        connection.register("source", source)
        connection.execute("CREATE TABLE target AS SELECT * FROM before")
        connection.execute(statement)
        expected = connection.execute("SELECT id, g, v FROM target").fetchall()
    assert rows(after, "g", "v") == {number: (g, v) for number, g, v in expected}


# ---- sources that do not fit in memory -------------------------------------------------------------------


@pytest.mark.parametrize("memory_bytes", [0, 4000, 1 << 30])
def test_a_source_beyond_the_bound_is_spilled(
    memory_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dataset = create(rows=500)
    source = pa.table(
        {"id": range(400, 1000), "v": np.full(600, -1.0), "g": [f"new {i}" for i in range(600)]}
    )
    batches = [batch for start in range(0, 600, 50) for batch in source.slice(start, 50).to_batches()]
    events: list[ProgressEvent] = []
    merge = dataset.merge(batches, "id").when_matched_update_all().when_not_matched_insert_all()
    after = merge.execute(memory_bytes=memory_bytes, progress=events.append)
    assert after.count_rows() == 1000
    assert after.count_rows("v = -1") == 600
    assert rows(after, "g")[400] == ("new 0",)
    assert [event.stage for event in events if not event.rows][:1] == ["matching rows"]
    assert (events[-1].stage, events[-1].rows, events[-1].total_rows) == ("writing rows", 600, 600)
    assert list(tmp_path.iterdir()) == []


def test_rows_of_a_spilled_source() -> None:
    table = pa.table({"a": range(1000), "s": [str(i) for i in range(1000)]})
    batches = table.to_batches(max_chunksize=300)
    for memory_bytes in (0, 1 << 20):
        with SourceRows(table.schema, batches, memory_bytes) as held:
            assert held.is_spilled == (not memory_bytes)
            assert held.num_rows == 1000
            assert held.column("s").equals(table["s"].combine_chunks())
            for wanted in ([], [5], [3, 999, 300, 3, 299], range(1000), range(999, -1, -1)):
                found = held.take(np.array(wanted, dtype=np.int64))
                assert found["a"].to_pylist() == list(wanted)
                assert found["s"].to_pylist() == [str(i) for i in wanted]
    with SourceRows(table.schema, [], 0) as empty:
        assert (empty.num_rows, len(empty.column("s"))) == (0, 0)


def test_numbers_far_apart_are_keys_too() -> None:
    far = pa.array([2**62, -(2**62), None, 5], pa.int64())
    keys = Keys(["k"], [far])
    assert keys.count == 3
    assert (keys.find([far]) == keys.numbers).all()
    assert keys.find([pa.array([6, None, 2**62])]).tolist() == [-1, -1, keys.numbers[0]]
    near = Keys(["k"], [pa.array([7, 9, 7, None], pa.int16())])
    assert near.numbers.tolist() == [0, 1, 0, -1]
    assert near.find([pa.array([9, 8, None, 6, 10], pa.int64())]).tolist() == [1, -1, -1, -1, -1]
    unsigned = Keys(["k"], [pa.array([2**64 - 1, 0], pa.uint64())])
    assert sorted(unsigned.numbers.tolist()) == [0, 1]


#: Clauses, and the values of the rows 1 and 2 after them, or None where a row would change twice.
TWICE = [
    ([("delete", "source.kind = 'a'")], {2: "old"}),
    ([("delete", "source.kind = 'b'")], {2: "old"}),
    ([("update", "source.kind = 'a'")], {1: "a", 2: "old"}),
    ([("update", "source.kind = 'b'")], {1: "b", 2: "old"}),
    ([("update", "source.kind = 'c'")], {1: "old", 2: "c"}),
    ([("update", "target.v < 0")], {1: "old", 2: "old"}),
    ([("delete", "source.kind < 'c'"), ("update", None)], {2: "c"}),
    ([("update", "source.kind = 'c'"), ("delete", "source.kind = 'b'")], {2: "c"}),
    ([("delete", None)], {}),
    ([("update", None)], None),
    ([("update", "source.kind < 'c'")], None),
    ([("delete", "source.kind = 'a'"), ("update", None)], None),
]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0]])
@pytest.mark.parametrize(("clauses", "expected"), TWICE)
def test_each_source_row_of_a_key_counts(
    clauses: list[tuple[str, str | None]], expected: dict[int, str] | None, order: list[int]
) -> None:
    """A row changes if one of the source rows with its key passes, and never twice."""
    dataset = in_memory(pa.table({"id": range(9), "kind": ["old"] * 9, "v": range(9)}), rows_per_file=4)
    source = pa.table({"id": [1, 1, 2, 40], "kind": ["a", "b", "c", "c"]}).take(order)
    merge = dataset.merge(source, on="id")
    for action, where in clauses:
        merge = (
            merge.when_matched_delete(where) if action == "delete" else merge.when_matched_update_all(where)
        )
    if expected is None:
        with pytest.raises(AmbiguousMergeError, match="id = 1"):
            merge.execute()
        return
    after = rows(merge.execute(), "kind")
    assert {key: kind for key, (kind,) in after.items() if key in (1, 2)} == expected
    assert len(after) == 7 + len(expected)


def test_many_source_rows_of_many_keys() -> None:
    """More pairs than are tested at once."""
    numbers = [number % 600 for number in range(60_000)]
    source = pa.table({"id": numbers, "n": [place // 600 for place in range(60_000)]})
    after = (
        create(rows=1000)
        .merge(source, on="id")
        .when_matched_update({"v": "source.n"}, "source.n = target.id % 100")
    )
    found = rows(after.execute(), "v")
    assert found == {key: (float(key % 100 if key < 600 else key),) for key in range(1000)}
