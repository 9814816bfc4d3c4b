"""Indices of columns of extension types, built, extended and rebuilt by both sides."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion

ROWS = 400


def table(first: int) -> pa.Table:
    keys = [uuid.UUID(int=number * 2**100 + number) for number in range(first, first + ROWS)]
    ids = pa.array([None if key.int % 2**100 % 50 == 9 else key.bytes for key in keys], pa.binary(16)).cast(
        pa.uuid()
    )
    opaque = pa.array([str(key.int % 500) for key in keys]).cast(pa.opaque(pa.string(), "label", "example"))
    nested = pa.StructArray.from_arrays([ids], ["u"])
    return pa.table({"id": range(first, first + ROWS), "u": ids, "label": opaque, "st": nested})


@pytest.mark.parametrize("kind", ["btree", pytest.param("bitmap", marks=pytest.mark.slow), "zonemap"])
def test_every_row_is_found(tmp_path: Path, kind: str) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(table(0), uri, max_rows_per_file=150)
    for column in ("u", "label", "st.u"):
        DatasetVersion.open(uri).create_index(column, kind)
    wanted = {
        text.format(column): rows
        for column in ("u", "st.u")
        for text, rows in {
            f"{{}} = '{uuid.UUID(int=7 * 2**100 + 7)}'": [7],
            f"{{}} IN ('{uuid.UUID(int=601 * 2**100 + 601)}', '{uuid.UUID(int=1)}')": [601],
            f"{{}} < X'{(5 * 2**100).to_bytes(16, 'big').hex()}'": [0, 1, 2, 3, 4],
        }.items()
    }

    def check() -> None:
        for text, rows in wanted.items():
            found = DatasetVersion.open(uri).scan(["id"], filter=text).to_table()["id"].to_pylist()
            exact = (
                DatasetVersion.open(uri).scan(["id"], filter=text, indices=False).to_table()["id"].to_pylist()
            )
            assert found == exact == [row for row in rows if row < DatasetVersion.open(uri).count_rows()], (
                text
            )

    check()
    lance.write_dataset(table(ROWS), uri, mode="append")
    check()
    DatasetVersion.open(uri).optimize_indices()
    check()
    lance.write_dataset(table(2 * ROWS), uri, mode="append")
    theirs: Any = lance.dataset(uri)
    theirs.optimize.optimize_indices()
    check()
    DatasetVersion.open(uri).compact()
    check()
    DatasetVersion.open(uri).create_index("u", kind, replace=True)
    check()
    known = lance.dataset(uri).to_table(["id"], f"u = X'{(7 * 2**100 + 7).to_bytes(16, 'big').hex()}'")
    assert known["id"].to_pylist() == [7]


@pytest.mark.parametrize("builder", ["ours", "pylance"])
def test_lists_of_them(tmp_path: Path, builder: str) -> None:
    """Neither side can ask for a UUID in a list: both have to keep such an index through changes."""
    uri = str(tmp_path / "t.lance")

    def lists(first: int) -> pa.Table:
        items = pa.array([uuid.UUID(int=n % 30).bytes for n in range(first, first + 40)], pa.binary(16))
        offsets = pa.array([*range(0, 40, 2), None, 40], pa.int32())
        return pa.table({"l": pa.ListArray.from_arrays(offsets, items.cast(pa.uuid()))})

    lance.write_dataset(lists(0), uri)
    if builder == "ours":
        DatasetVersion.open(uri).create_index("l", "label_list")
    else:
        lance.dataset(uri).create_scalar_index("l", "LABEL_LIST")
    for first, optimizer in ((20, "ours"), (60, "pylance"), (70, "ours")):
        lance.write_dataset(lists(first), uri, mode="append")
        if optimizer == "ours":
            DatasetVersion.open(uri).optimize_indices()
        else:
            theirs: Any = lance.dataset(uri)
            theirs.optimize.optimize_indices()
        extended: Any = lance.dataset(uri)
        statistics = extended.stats.index_stats("l_idx")
        assert statistics["num_unindexed_rows"] == 0, optimizer
    assert statistics["num_indexed_rows"] == 4 * lists(0).num_rows
