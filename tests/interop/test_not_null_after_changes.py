"""Columns that become non-nullable once no row is null: files keep the nulls of deleted rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_engine.errors import CorruptFileError

import lance_sql

_VALUES: Mapping[str, tuple[list[Any], pa.DataType]] = {
    "integers": ([1, None, 3], pa.int64()),
    "strings": (["a", None, "c"], pa.string()),
    "lists": ([[1], None, []], pa.list_(pa.int64())),
    "structs": ([{"a": 1}, None, {"a": None}], pa.struct({"a": pa.int64()})),
    "vectors": ([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
}
_CASES = [
    (name, version) for name in _VALUES for version in ("2.0", "2.1") if (name, version) != ("structs", "2.0")
]


def _required(path: Path, name: str, version: str, rows: int = 3) -> pa.Table:
    """Write a table whose `c` is null where `id` is a multiple of 3, delete these rows, and forbid nulls."""
    values, kind = _VALUES[name]
    ids = list(range(2, 2 + rows))  # rows 1, 4, ... are null
    table = pa.table({"id": ids, "c": pa.array((values * (rows // 3 + 1))[:rows], kind)})
    lance_sql.write(table, path, data_storage_version=version)
    session = lance_sql.connect()
    session.sql(f"DELETE FROM '{path}' WHERE id % 3 = 0")
    session.sql(f"ALTER TABLE '{path}' ALTER c SET NOT NULL")
    return table.filter(pa.array([number % 3 != 0 for number in ids]))


@pytest.mark.parametrize(("name", "version"), _CASES)
def test_every_way_to_read(tmp_path: Path, name: str, version: str) -> None:
    path = tmp_path / "t.lance"
    expected = _required(path, name, version)
    dataset = lance_sql.open(path)
    rows = expected.to_pylist()
    assert not dataset.schema.field("c").nullable
    assert dataset.scan().to_table().to_pylist() == rows
    assert dataset.scan(["c"]).to_table().to_pylist() == expected.select(["c"]).to_pylist()
    assert dataset.scan(filter="id <> 2").to_table().to_pylist() == rows[1:]
    assert dataset.count_rows("c IS NOT NULL") == len(rows)
    assert dataset.take_positions([1, 0]).to_pylist() == rows[::-1]
    assert lance_sql.sql(f"SELECT * FROM '{path}'").arrow().to_pylist() == rows
    assert lance.dataset(path).to_table().to_pylist() == rows


@pytest.mark.parametrize(("name", "version"), _CASES)
def test_tables_of_pylance(tmp_path: Path, name: str, version: str) -> None:
    values, kind = _VALUES[name]
    table = pa.table({"id": [2, 3, 4], "c": pa.array(values, kind)})
    dataset = lance.write_dataset(table, tmp_path / "t.lance", data_storage_version=version)
    dataset.delete("id = 3")
    dataset.alter_columns({"path": "c", "nullable": False})
    assert (
        lance_sql.open(tmp_path / "t.lance").scan().to_table().to_pylist() == table.take([0, 2]).to_pylist()
    )


_CHANGES: Mapping[str, Callable[[Any], object]] = {
    "append": lambda dataset: lance_sql.write(dataset.scan().to_table(), dataset.uri, mode="append"),
    "update": lambda dataset: dataset.update({"id": "id + 1000"}, "id = 2"),
    "merge": lambda dataset: (
        dataset.merge(dataset.scan().to_table(), on="id").when_matched_update_all().execute()
    ),
    "compact": lambda dataset: dataset.compact(),
    "index": lambda dataset: dataset.create_index("c", "BTREE"),
    "type": lambda dataset: dataset.alter_column("c", type=pa.int32()),
    "add column": lambda dataset: dataset.add_columns({"e": "c + 1"}),
}


@pytest.mark.parametrize("change", _CHANGES)
@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_changes_afterwards(tmp_path: Path, change: str, version: str) -> None:
    path = tmp_path / "t.lance"
    _required(path, "integers", version, rows=3000)
    _CHANGES[change](lance_sql.open(path))
    found = lance_sql.open(path).scan().to_table()
    official = lance.dataset(path).to_table()
    assert found.sort_by("id").to_pylist() == official.sort_by("id").to_pylist()
    assert found.num_rows == (4000 if change == "append" else 2000)
    assert lance_sql.open(path).verify(values=True).num_rows == 0


def test_nulls_of_live_rows_are_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.lance"
    dataset = lance_sql.write(pa.table({"c": [1, None, 3]}), path)
    monkeypatch.setattr("lance_engine.operations.alter_columns.require_no_nulls", lambda *given: None)
    dataset = dataset.alter_column("c", nullable=False)
    for read in (lambda: dataset.scan().to_table(), lambda: dataset.take_positions([0, 1])):
        with pytest.raises(CorruptFileError, match="non-nullable column contains nulls"):
            read()
