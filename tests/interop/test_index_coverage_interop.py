"""After our operations, indices of pylance cover what they would after its own, and results are correct."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.format.index_section import parse_index_section

import lance_sql

ROWS = 80
KINDS = {"b": "BTREE", "m": "BITMAP", "z": "ZONEMAP"}


def create(path: Path, *, stable: bool) -> str:
    uri = str(path / "t.lance")
    table = pa.table(
        {
            "id": np.arange(ROWS),
            "b": np.arange(ROWS) % 7,
            "m": np.arange(ROWS) % 5,
            "z": np.arange(ROWS),
            "o": np.zeros(ROWS, dtype=np.int64),
        }
    )
    dataset: Any = lance.write_dataset(
        table, uri, max_rows_per_file=20, enable_stable_row_ids=stable, data_storage_version="2.1"
    )
    for column, kind in KINDS.items():
        dataset.create_scalar_index(column, kind)
    return uri


def coverage(uri: str) -> dict[str, list[int]]:
    """The fragments that each index covers, of those that there are."""
    snapshot = lance_sql.open(uri).snapshot
    present = {fragment.id for fragment in snapshot.fragments}
    segments = parse_index_section(snapshot.index_section or b"")
    return {segment.name[0]: sorted(present & set(segment.fragment_ids or ())) for segment in segments}


def check(uri: str) -> None:
    """Queries by pylance, which uses the indices, find what a scan of ours finds."""
    ours, theirs = lance_sql.open(uri), lance.dataset(uri)
    for text in ("b = 3", "m = 2", "m IN (1, 4)", "z BETWEEN 30 AND 50", "b > 4 AND m < 2", "m IS NULL"):
        rows = ours.scan(["id", "o"], filter=text, zone_maps=False, indices=False).to_table().to_pylist()
        expected = sorted(row["id"] for row in rows)
        assert sorted(theirs.to_table(["id"], text)["id"].to_pylist()) == expected, text
        assert sorted(ours.scan(["id"], filter=text).to_table()["id"].to_pylist()) == expected, text
    theirs.validate()
    assert ours.verify().num_rows == 0


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
def test_coverage_is_that_of_pylance(tmp_path: Path, stable: bool) -> None:
    ours, theirs = (create(tmp_path / name, stable=stable) for name in ("ours", "theirs"))
    assert coverage(ours) == {"b": [0, 1, 2, 3], "m": [0, 1, 2, 3], "z": [0, 1, 2, 3]}
    lance_sql.open(ours).update({"o": "1"}, "id = 3 OR id = 25")
    lance.dataset(theirs).update({"o": "1"}, "id = 3 OR id = 25")
    assert coverage(ours) == coverage(theirs)
    check(ours)
    assert coverage(ours)["m"] == ([0, 1, 2, 3, 4] if stable else [0, 1, 2, 3])
    lance_sql.open(ours).update({"m": "2"}, "id = 30")
    lance.dataset(theirs).update({"m": "2"}, "id = 30")
    assert coverage(ours) == coverage(theirs)
    assert 5 not in coverage(ours)["m"]
    check(ours)
    source = pa.table({"id": [5, 500], "b": [6, 6], "m": [0, 0], "z": [5, 500], "o": [9, 9]})
    lance_sql.open(ours).merge(source, "id").when_matched_update_all().when_not_matched_insert_all().execute()
    check(ours)
    lance_sql.open(ours).delete("id % 3 = 0")
    check(ours)
    lance_sql.open(ours).replace_columns({"b": "id % 4", "o": "id"})
    covered = coverage(ours)
    assert covered["b"] == []
    assert covered["z"] == [0, 1, 2, 3]
    check(ours)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
def test_compaction(tmp_path: Path, stable: bool) -> None:
    uri = create(tmp_path, stable=stable)
    new = pa.table({"id": [100], "b": [3], "m": [2], "z": [100], "o": [0]})
    lance_sql.write(new, uri, mode="append")
    lance_sql.open(uri).delete("id % 10 = 7").compact()
    check(uri)
    covered = coverage(uri)
    # The row that no index knows stays apart, so that the others stay covered.
    assert covered == {"b": [5], "m": [5], "z": []}
    assert len(lance_sql.open(uri).snapshot.fragments) == 2
    dataset = lance.dataset(uri)
    dataset.optimize.optimize_indices()
    check(uri)
    # Fragments that nothing covers are covered again; those of the zone map by pylance's choice.
    for name in ("b_idx", "m_idx"):
        assert lance_sql.open(uri).index_statistics(name)["uncovered_fragments"] == 0
    lance_sql.open(uri).restore(1)
    check(uri)
