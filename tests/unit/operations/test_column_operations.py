"""Adding, dropping, renaming and converting columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import (
    ColumnNotFoundError,
    InvalidFilterError,
    SchemaMismatchError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
)
from lance_engine.io import MemoryStore
from lance_engine.write.dataset import write_dataset

ROWS = 40


def table() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "x": pa.array([None if i % 9 == 4 else i / 2 for i in range(ROWS)], pa.float64()),
            "s": [f"s{i % 5}" for i in range(ROWS)],
            "p": [{"l": i, "r": str(i)} for i in range(ROWS)],
        }
    )


@pytest.fixture(params=["all rows", "rows deleted"])
def dataset(request: pytest.FixtureRequest) -> DatasetVersion:
    """Three fragments; perhaps with deleted rows at the beginning, in the middle and at the end of one."""
    created = DatasetVersion(write_dataset(table(), MemoryStore(), max_rows_per_file=15))
    return created if request.param == "all rows" else created.delete("id IN (0, 1, 7, 13, 14, 15, 39)")


def column(dataset: DatasetVersion, name: str) -> list[Any]:
    found: list[Any] = dataset.scan([name]).to_table()[name].to_pylist()
    return found


def files(dataset: DatasetVersion) -> list[int]:
    return [len(fragment.files) for fragment in dataset.snapshot.fragments]


def test_adding_computed_columns(dataset: DatasetVersion) -> None:
    after = dataset.add_columns(
        {"y": "x * 2 + id", "up": lambda batch: pc.utf8_upper(batch["s"]), "c": "1", "n": pa.int16()}
    )
    assert after.schema.names == ["id", "x", "s", "p", "y", "up", "c", "n"]
    rows = after.scan().to_table().to_pylist()
    assert [row["id"] for row in rows] == column(dataset, "id")
    for row in rows:
        assert row["y"] == (None if row["x"] is None else row["x"] * 2 + row["id"])
        assert (row["up"], row["c"], row["n"]) == (row["s"].upper(), 1, None)
    assert after.schema.field("n").type == pa.int16()
    assert files(after) == [2, 2, 2]
    assert dataset.schema.names == ["id", "x", "s", "p"]
    # Rows can still be deleted and changed.
    assert 0 in column(after.update({"y": "0"}, "id = 5").delete("id > 5"), "y")


def test_a_copy_of_a_column_has_its_type() -> None:
    kind = pa.binary(3)
    rows = pa.table(
        {"b": pa.array([b"abc", None], kind), "s": pa.array([{"b": b"abc"}, None], pa.struct([("b", kind)]))}
    )
    after = DatasetVersion(write_dataset(rows, MemoryStore())).add_columns({"c": "b", "d": "s.b", "e": "s"})
    assert after.schema.types == [kind, pa.struct([("b", kind)]), kind, kind, pa.struct([("b", kind)])]
    assert column(after, "c") == column(after, "d") == [b"abc", None]


def test_columns_that_are_not_needed_are_not_read() -> None:
    wide = pa.table({"a": range(3000), "wide": ["y" * 1000] * 3000})
    dataset = DatasetVersion(write_dataset(wide, MemoryStore()))
    store: Any = dataset.snapshot.store
    store.reset_counters()
    dataset.add_columns({"b": "a + 1"})
    assert store.bytes_read < 100_000


def test_adding_columns_of_nulls_writes_no_files(dataset: DatasetVersion) -> None:
    after = dataset.add_columns(pa.schema([("n", pa.list_(pa.string())), ("m", pa.int8())]))
    after = after.add_columns(pa.field("o", pa.struct([("a", pa.int8())])))
    assert files(after) == [1, 1, 1]
    assert set(column(after, "n")) == set(column(after, "m")) == {None}
    filled = after.update({"m": "id"}, "id = 5")
    assert [m for m in column(filled, "m") if m is not None] == [5]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_columns_of_nulls_are_of_types_that_later_changes_can_write(version: str) -> None:
    dataset = DatasetVersion(write_dataset(table(), MemoryStore(), data_storage_version=version))
    added = pa.schema([pa.field("m", pa.map_(pa.string(), pa.int32()))])
    if version == "2.2":
        assert dataset.add_columns(added).update({"x": "1.0"}, "id < 3").count_rows() == ROWS
    else:
        with pytest.raises(UnsupportedTypeError, match=f"Maps are not supported in file version {version}"):
            dataset.add_columns(added)


def test_field_ids_are_not_used_twice(dataset: DatasetVersion) -> None:
    after = dataset.add_columns({"y": "1"})
    again = after.drop_columns(["x"]).add_columns({"z": "2"})
    ids = [field.id for field in again.snapshot.schema.walk()]
    assert len(set(ids)) == len(ids)
    assert again.snapshot.schema.field("z").id == after.snapshot.schema.field("y").id + 1


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ({"x": "1"}, SchemaMismatchError, "'x' already exists"),
        ({"_rowid": "1"}, SchemaMismatchError, "'_rowid' already exists"),
        ({"y": "nope + 1"}, ColumnNotFoundError, "nope"),
        ({"y": "CASE WHEN id = 1 THEN 1 END"}, InvalidFilterError, "column: y"),
        ({"y": "CAST(id * 100 AS TINYINT)"}, InvalidFilterError, "Cannot compute"),
        ({"y": lambda _: pa.array([1])}, SchemaMismatchError, "one value per row"),
        (pa.field("y", pa.int8(), nullable=False), SchemaMismatchError, "must be declared nullable"),
        (pa.schema([("a.b", pa.int8())]), SchemaMismatchError, "dot"),
    ],
)
def test_refused_additions_leave_nothing_behind(
    dataset: DatasetVersion, columns: Any, error: type[Exception], message: str
) -> None:
    before = dataset.snapshot.store.list("")
    with pytest.raises(error, match=message):
        dataset.add_columns(columns)
    assert dataset.snapshot.store.list("") == before


def test_dropping(dataset: DatasetVersion) -> None:
    after = dataset.add_columns({"y": "1"}).drop_columns(["y", "p.r", "s"])
    assert after.schema.names == ["id", "x", "p"]
    assert after.scan().to_table()["p"].to_pylist() == [{"l": i} for i in column(dataset, "id")]
    assert files(after) == [1, 1, 1]
    with pytest.raises(ColumnNotFoundError):
        after.drop_columns(["y"])
    with pytest.raises(SchemaMismatchError, match="at least one column"):
        after.drop_columns(["id", "x", "p"])
    with pytest.raises(SchemaMismatchError, match="Drop the whole column 'p'"):
        after.drop_columns(["p.l"])
    with pytest.raises(ValueError, match="list"):
        after.drop_columns("id")


def test_dropping_all_that_is_stored_keeps_the_rows(dataset: DatasetVersion) -> None:
    after = dataset.add_columns(pa.field("n", pa.int8())).drop_columns(["id", "x", "s", "p"])
    assert column(after, "n") == [None] * dataset.count_rows()
    assert column(after.add_columns({"m": "1"}), "m") == [1] * dataset.count_rows()


def test_renaming(dataset: DatasetVersion) -> None:
    after = dataset.rename_column("x", "renamed").rename_column("p.l", "left")
    assert column(after, "renamed") == column(dataset, "x")
    assert list(column(after, "p")[0]) == ["left", "r"]
    assert files(after) == [1, 1, 1]
    for name in ("id", "a.b", "_rowid", ""):
        with pytest.raises(SchemaMismatchError):
            after.rename_column("s", name)


def test_changing_types(dataset: DatasetVersion) -> None:
    after = dataset.alter_column("id", type=pa.int8()).alter_column("s", type=pa.large_string())
    assert after.schema.names == dataset.schema.names
    assert (after.schema.field("id").type, after.schema.field("s").type) == (pa.int8(), pa.large_string())
    assert after.scan().to_table().to_pylist() == dataset.scan().to_table().to_pylist()
    assert after.alter_column("id", type=pa.int8()).snapshot.schema.field("id").id == (
        after.snapshot.schema.field("id").id
    )
    before = after.snapshot.store.list("")
    with pytest.raises(InvalidFilterError, match="column: s"):
        after.alter_column("s", type=pa.int8())
    assert after.snapshot.store.list("") == before
    with pytest.raises(UnsupportedFeatureError, match="struct field"):
        after.alter_column("p.l", type=pa.int8())
    with pytest.raises(ValueError, match="alter_column needs"):
        after.alter_column("id")


def test_forbidding_and_allowing_nulls(dataset: DatasetVersion) -> None:
    nulls = column(dataset, "x").count(None)
    with pytest.raises(SchemaMismatchError, match=f"{nulls - 2} rows are null"):
        dataset.delete("id IN (4, 22)").alter_column("x", nullable=False)
    dataset = dataset.restore()
    after = dataset.alter_column("id", nullable=False)
    assert not after.schema.field("id").nullable
    assert column(after, "id") == column(dataset, "id")
    typed = after.alter_column("id", type=pa.int16())
    assert typed.schema.field("id") == pa.field("id", pa.int16(), nullable=False)
    assert column(typed, "id") == column(dataset, "id")
    with pytest.raises(SchemaMismatchError):
        typed.update({"id": "NULL"})
    assert typed.alter_column("id", nullable=True).update({"id": "NULL"}).count_rows("id IS NULL") > 30
    with pytest.raises(UnsupportedFeatureError, match="struct field"):
        dataset.alter_column("p.l", nullable=False)


def test_columns_are_added_anew_after_an_append(dataset: DatasetVersion) -> None:
    write_dataset(table().slice(0, 3), dataset.snapshot.store, "append")
    after = dataset.add_columns({"y": "id + 1"})
    assert column(after, "y") == [i + 1 for i in column(after, "id")]
    assert after.count_rows() == dataset.count_rows() + 3
