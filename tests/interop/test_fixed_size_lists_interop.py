"""Fixed-size lists of structs (2.2): nulls at every level, written by each side and read by the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from corpus import difference
from lance_engine.errors import UnsupportedTypeError

import lance_sql

ITEM = pa.struct(
    [
        ("x", pa.int32()),
        ("s", pa.string()),
        ("v", pa.list_(pa.int8(), 2)),
        ("t", pa.struct([("y", pa.dictionary(pa.int8(), pa.string()))])),
    ]
)


def item(row: int, place: int) -> Any:
    if (row + place) % 4 == 0:
        return None
    return {
        "x": row * place if row % 3 else None,
        "s": f"t{row % 7}",
        "v": [1, None] if place else None,
        "t": {"y": f"a{row % 3}"} if row % 6 else None,
    }


ROWS = {
    "mixed": [None if row % 5 == 1 else [item(row, place) for place in range(3)] for row in range(5000)],
    "all null": [None] * 50,
    "all items null": [[None] * 3] * 50,
    "equal": [[{"x": 1, "s": "a", "v": [1, 2], "t": {"y": "b"}}] * 3] * 500,
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("writer", [lance.write_dataset, lance_sql.write])
def test_both_directions(tmp_path: Path, name: str, writer: Any) -> None:
    uri = str(tmp_path / "t.lance")
    table = pa.table({"n": range(len(ROWS[name])), "l": pa.array(ROWS[name], pa.list_(ITEM, 3))})
    writer(table, uri, data_storage_version="2.2", max_rows_per_file=2000)
    ours, theirs = lance_sql.open(uri), lance.dataset(uri)
    assert difference(ours.scan().to_table(), table) == ""
    rows = [0, 3, 49, 4]
    assert ours.take(rows).to_pylist() == table.take(rows).to_pylist()
    # pylance reads such a column only by itself, whoever wrote it.
    column = table.select(["l"]).to_pylist()
    assert theirs.to_table(columns=["l"]).to_pylist() == column
    assert theirs.take(rows, columns=["l"]).to_pylist() == [column[row] for row in rows]
    assert theirs.to_table(columns=["l"], offset=20, limit=13).to_pylist() == column[20:33]
    assert ours.scan(offset=20, limit=13).to_table().to_pylist() == table.slice(20, 13).to_pylist()
    assert ours.scan(filter="n >= 45").to_table().num_rows == table.num_rows - 45
    assert ours.verify().num_rows == 0


@pytest.mark.parametrize(
    "kind",
    [
        pa.struct([("l", pa.list_(ITEM, 3)), ("n", pa.int8())]),
        pa.list_(pa.list_(ITEM, 3)),
        pa.list_(pa.struct([("l", pa.list_(pa.int8()))]), 3),
        pa.list_(pa.list_(ITEM, 2), 3),
        pa.list_(ITEM, 0),
    ],
    ids=str,
)
def test_what_pylance_cannot_read_is_refused(tmp_path: Path, kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedTypeError, match=r"column: c.*(Cast|Drop)"):
        lance_sql.write(pa.table({"c": pa.nulls(1, kind)}), str(tmp_path / "t"), data_storage_version="2.2")
