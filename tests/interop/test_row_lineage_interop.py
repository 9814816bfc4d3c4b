"""Row ids, addresses and the versions of rows: as columns, in filters and in SQL, next to pylance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_sql

ROWS = 60
SYSTEM = ["_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"]
SPILL = {"lance.row_lineage.spill": "true", "lance.row_lineage.inline_max_bytes": "0"}


def table(start: int = 0, rows: int = ROWS) -> pa.Table:
    return pa.table({"id": np.arange(start, start + rows), "x": np.zeros(rows)})


def change(uri: str) -> None:
    """Appends, updates, deletions and a compaction, by both in turn."""
    lance_sql.write(table(ROWS, 10), uri, mode="append")
    lance.dataset(uri).update({"x": "1"}, "id % 7 = 3")
    lance_sql.open(uri).update({"x": "x + 1"}, "id % 5 = 3")
    lance.dataset(uri).delete("id % 11 = 1")
    source = pa.table({"id": [5, 13, 500], "x": [9.0, 9.0, 9.0]})
    lance_sql.open(uri).merge(source, "id").when_matched_update_all().when_not_matched_insert_all().execute()
    lance_sql.open(uri).delete("id % 13 = 2")


def check(uri: str) -> lance_sql.Dataset:
    ours, theirs = lance_sql.open(uri), lance.dataset(uri)
    expected = theirs.scanner(columns=["id", *SYSTEM]).to_table()
    found = ours.scan(["id", *SYSTEM]).to_table()
    assert found.to_pylist() == expected.to_pylist()
    assert found.schema.field("_row_created_at_version") == pa.field(
        "_row_created_at_version", pa.uint64(), nullable=False
    )
    ids = found["_rowid"].to_pylist()
    taken = ours.take(ids[::-1], columns=["id", *SYSTEM])
    assert taken.to_pylist() == found.to_pylist()[::-1]
    assert ours.verify(values=True).num_rows == 0
    theirs.validate()
    return ours


@pytest.mark.parametrize("config", [{}, SPILL], ids=["inline", "spilled"])
def test_lineage_after_changes_by_both(tmp_path: Path, config: dict[str, str]) -> None:
    uri = str(tmp_path / "t.lance")
    dataset: Any = lance.write_dataset(
        table(), uri, max_rows_per_file=20, enable_stable_row_ids=True, data_storage_version="2.1"
    )
    if config:
        dataset.update_config(config)
        lance.write_dataset(table(1000, 30), uri, mode="append")
        lance.dataset(uri).update({"x": "3"}, "id % 9 = 4")
        spilled = [fragment.has_spilled_lineage for fragment in check(uri).snapshot.fragments]
        assert spilled == [False, False, False, False, True]
    change(uri)
    ours = check(uri)
    if config:
        assert sum(fragment.has_spilled_lineage for fragment in ours.snapshot.fragments) >= 2
        lance.dataset(uri).update({"x": "100"}, "id > 1010")
        lance_sql.open(uri).update({"x": "200"}, "id > 1020")
        check(uri)
        lance_sql.open(uri).replace_columns({"x": "id + 0.5"})
        check(uri)
    before = {row["_rowid"]: row for row in ours.scan(["_rowid", "id"]).to_table().to_pylist()}
    ours = lance_sql.open(uri).compact()
    check(uri)
    assert {row["_rowid"]: row for row in ours.scan(["_rowid", "id"]).to_table().to_pylist()} == before
    lance.dataset(uri).delete("id = 6")
    lance.dataset(uri).optimize.compact_files(materialize_deletions_threshold=0.0)
    check(uri)


def test_constants_without_stable_row_ids(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(table(), uri, max_rows_per_file=20)
    change(uri)
    ours = check(uri)
    assert set(ours.scan(SYSTEM[2:]).to_table()["_row_created_at_version"].to_pylist()) == {1}


def test_versions_in_filters_and_sql(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(table(), uri, max_rows_per_file=20, enable_stable_row_ids=True)
    change(uri)
    ours = lance_sql.open(uri)
    rows = ours.scan(["id", "x", *SYSTEM]).to_table().to_pylist()
    for text, expected in (
        ("_row_created_at_version > 1", [r["id"] for r in rows if r["_row_created_at_version"] > 1]),
        (
            "_row_last_updated_at_version IN (3, 4) AND x > 0",
            [r["id"] for r in rows if r["_row_last_updated_at_version"] in (3, 4) and r["x"] > 0],
        ),
        (
            "_row_created_at_version < _row_last_updated_at_version AND _rowid < 20",
            [
                r["id"]
                for r in rows
                if r["_row_created_at_version"] < r["_row_last_updated_at_version"] and r["_rowid"] < 20
            ],
        ),
    ):
        assert expected
        assert ours.scan(["id"], filter=text).to_table()["id"].to_pylist() == expected
        for engine in ("duckdb", "datafusion"):
            found = lance_sql.sql(f"SELECT id FROM '{uri}' WHERE {text} ORDER BY _rowaddr", engine=engine)
            assert [row[0] for row in found.fetchall()] == expected
    changed = ours.delete("_row_last_updated_at_version = 1")
    assert changed.count_rows() == len([r for r in rows if r["_row_last_updated_at_version"] > 1])
    with pytest.raises(ValueError, match="already exists"):
        ours.add_columns({"_row_created_at_version": "1"})
