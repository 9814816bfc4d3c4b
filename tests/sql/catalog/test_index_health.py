"""``index_health``: what the indices of a dataset cover."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_sql


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_rows_that_an_index_does_not_cover(tmp_path: Path, engine: str) -> None:
    vectors = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    table = pa.table({"id": range(300), "v": pa.FixedSizeListArray.from_arrays(vectors.ravel(), 4)})
    dataset = lance_sql.write(table, tmp_path / "t.lance")
    dataset = dataset.create_index("v", "IVF_FLAT", num_partitions=1).create_index("id", "BTREE")
    session = lance_sql.connect(tmp_path, engine=engine)
    health = "SELECT name, kind, segments, stale_segments, rows, unindexed_rows, advice FROM {}.index_health"
    fresh = [("id_idx", "BTree", 1, 0, 300, 0, None), ("v_idx", "IVF_FLAT", 1, 0, 300, 0, None)]
    assert session.sql(health.format("t") + " ORDER BY name").fetchall() == fresh
    lance_sql.write(table.slice(0, 20), tmp_path / "t.lance", "append").delete("id = 299")
    stale = [
        ("id_idx", "BTree", 1, 0, 299, 20, "optimize_indices"),
        ("v_idx", "IVF_FLAT", 1, 0, 299, 20, "optimize_indices"),
    ]
    assert session.sql(health.format(f"'{tmp_path}/t.lance'") + " ORDER BY name").fetchall() == stale
    shown = session.sql("SHOW INDEX_HEALTH FROM t").arrow()
    assert sorted(shown["name"].to_pylist()) == ["id_idx", "v_idx"]
    assert shown["unindexed_rows"].to_pylist() == [20, 20]
    lance_sql.open(tmp_path / "t.lance").optimize_indices()
    assert (
        session.sql(health.format("t") + " WHERE unindexed_rows > 0 OR stale_segments > 0").fetchall() == []
    )


def test_segments_that_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = lance_sql.write(pa.table({"id": range(100)}), tmp_path / "t.lance").create_index("id", "BTREE")
    monkeypatch.setattr("lance_engine.inspection.index_health.readable_kind", lambda name: None)
    (found,) = dataset.inspect.index_health().to_pylist()
    assert (found["stale_segments"], found["rows"], found["unindexed_rows"]) == (1, 0, 100)
    assert "not read" in found["advice"]
