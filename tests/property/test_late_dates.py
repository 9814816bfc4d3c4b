"""Filters and indices of times that Python's own types do not have: years beyond 9999, and nanoseconds."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_sql


@pytest.mark.sampled(6)
@pytest.mark.parametrize("index", ["", "btree", "zonemap", "bitmap"])
@pytest.mark.parametrize(
    ("kind", "first"),
    [
        (pa.timestamp("s"), 10**12),
        (pa.timestamp("ns"), 1001),
        (pa.time64("ns"), 1001),
        (pa.date32(), 5_000_001),
    ],
    ids=str,
)
def test_every_row_is_found(tmp_path: Path, kind: pa.DataType, first: int, index: str) -> None:
    whole = pa.int32() if kind == pa.date32() else pa.int64()
    values = pa.array(range(first, first + 400), whole).cast(kind)
    dataset = lance_sql.write(pa.table({"k": values.take(pa.array(range(0, 400, 2)))}), tmp_path / "t.lance")
    if index:
        dataset = dataset.create_index("k", index)
    dataset = lance_sql.write(
        pa.table({"k": values.take(pa.array(range(1, 400, 2)))}), tmp_path / "t.lance", "append"
    )
    if index:
        dataset = dataset.optimize_indices()
    for place in (0, 1, 177, 398, 399):
        found = dataset.scan(filter=pc.field("k") == values[place]).to_table()["k"].combine_chunks()
        assert found.equals(values[place : place + 1])
        below = dataset.scan(filter=pc.field("k") < values[place]).to_table()
        assert below.num_rows == place


@pytest.mark.parametrize(
    "kind", [pa.time64("ns"), pa.timestamp("s"), pa.timestamp("ns"), pa.date32(), pa.duration("ns")], ids=str
)
def test_lists_compare_by_every_digit(tmp_path: Path, kind: pa.DataType) -> None:
    whole = pa.int32() if kind == pa.date32() else pa.int64()
    first = 5_000_001 if kind == pa.date32() else 10**12 if kind == pa.timestamp("s") else 1001
    held, others = (pa.array(range(first + more, first + more + 20), whole).cast(kind) for more in (0, 1))
    rows = range(21)
    lists, shifted = (
        pa.ListArray.from_arrays(pa.array(rows, pa.int32()), values) for values in (held, others)
    )
    table = pa.table(
        {"id": range(20), "l": lists, "m": lists.take(pa.array([*range(19, -1, -1)])), "s": shifted}
    )
    dataset = lance_sql.write(table, tmp_path / "t.lance")

    def ids(condition: str | pc.Expression) -> list[int]:
        return dataset.scan(["id"], condition).to_table()["id"].to_pylist()

    for function in ("array_has_any", "array_has_all"):
        assert ids(f"{function}(l, s)") == ids(f"{function}(l, m)") == []
        assert ids(f"{function}(l, l)") == list(range(20))
    assert ids(pc.field("l") == lists[7]) == [7]
    constant = pa.scalar([others[7]], pa.list_(kind)) if kind == pa.duration("ns") else shifted[7]
    assert ids(pc.field("l") == constant) == [8]
