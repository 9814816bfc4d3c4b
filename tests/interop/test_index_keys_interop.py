"""Rewritten indices of pylance have each key once, in order, whatever the order of pylance's keys was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_engine.index.bitmap import FILE
from lance_engine.index.files import SegmentFiles
from lance_engine.index.listing import all_segments
from lance_engine.index.order import sort_key

import lance_sql

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "integers": (pa.int64(), [5, -2, 7, 0, 3]),
    "floats": (pa.float64(), [1.5, float("nan"), -0.0, 0.0, -3.0]),
    "texts": (pa.string(), ["b", "", "é", "a", "ba"]),
    "flags": (pa.bool_(), [True, False]),
    "days": (pa.date32(), [3, 1, 2]),
    "items": (pa.list_(pa.int64()), [[5, 2], [2], [], [7, None], [9]]),
}


def rows(first: int, nulls: bool) -> pa.Table:
    columns: dict[str, Any] = {"id": pa.array(range(first, first + 20), pa.int64())}
    for name, (kind, values) in COLUMNS.items():
        filled = [None if nulls and number % 3 == 1 else values[number % len(values)] for number in range(20)]
        columns[name] = pa.array(filled, kind)
    return pa.table(columns)


def keys(uri: str) -> dict[str, list[pa.Array]]:
    """The keys of the segments of each index."""
    snapshot, found = lance_sql.open(uri).snapshot, dict[str, list[pa.Array]]()
    for segment in all_segments(snapshot):
        table = SegmentFiles(snapshot, segment).open(FILE, ["keys"])
        found.setdefault(segment.name, []).append(table.read(["keys"]).column(0))
    return found


def check(uri: str) -> None:
    for name, segments in keys(uri).items():
        for stored in segments:
            assert len(stored) == len(pc.unique(sort_key(stored))), name
            order = pc.array_sort_indices(sort_key(stored), null_placement="at_start").to_pylist()
            assert order == list(range(len(stored))), name
    ours, theirs = lance_sql.open(uri), lance.dataset(uri)
    conditions = [f"{name} IS NULL" for name in COLUMNS] + [f"{name} IS NOT NULL" for name in COLUMNS]
    conditions += ["integers = 7", "integers < 3", "floats = 1.5", "texts = 'é'", "NOT flags"]
    conditions += ["array_has(items, 2)", "array_has_any(items, [5, 9])", "days = date '1970-01-02'"]
    for where in conditions:
        expected = ours.scan(["id"], filter=where, indices=False).to_table()["id"].to_pylist()
        assert sorted(ours.scan(["id"], filter=where).to_table()["id"].to_pylist()) == sorted(expected), where
        assert sorted(theirs.to_table(["id"], where)["id"].to_pylist()) == sorted(expected), where


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("nulls_first", [False, True], ids=["nulls last", "nulls first"])
def test_keys_of_rewritten_indices(tmp_path: Path, nulls_first: bool, stable: bool) -> None:
    """Where the first segment has nulls, pylance 14 leaves null at the end of the keys."""
    uri = str(tmp_path / "t.lance")
    options: dict[str, Any] = {"data_storage_version": "2.1", "enable_stable_row_ids": stable}
    lance.write_dataset(rows(0, nulls_first), uri, **options)
    for name in COLUMNS:
        lance.dataset(uri).create_scalar_index(name, "LABEL_LIST" if name == "items" else "BITMAP", name=name)
    lance.write_dataset(rows(20, not nulls_first), uri, mode="append")
    lance.dataset(uri).optimize.optimize_indices()
    stored = [part for parts in keys(uri).values() for part in parts]
    assert any(not part[-1].is_valid for part in stored) is nulls_first
    lance_sql.write(rows(40, True), uri, mode="append").optimize_indices()
    check(uri)
    lance_sql.open(uri).delete("id % 5 = 0").compact()
    check(uri)
    lance.write_dataset(rows(60, True), uri, mode="append")
    lance.dataset(uri).optimize.optimize_indices()
    lance_sql.open(uri).delete("integers IS NULL").compact().optimize_indices()
    check(uri)
