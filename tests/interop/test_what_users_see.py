"""Half precision in updates, durations in zone maps, restoring over later changes, metadata of results."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import lance_sql


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2.5", [2.5, 2.5]),
        ("f + 1", [2.5, 3.5]),
        ("CASE WHEN id = 1 THEN 3.5 ELSE f END", [3.5, 2.5]),
    ],
)
def test_half_precision_in_updates(tmp_path: Path, value: str, expected: list[float]) -> None:
    table = pa.table({"id": [1, 2], "f": pa.array(np.array([1.5, 2.5], np.float16))})
    dataset = lance_sql.write(table, str(tmp_path / "t.lance"))
    changed = dataset.update({"f": value})
    assert changed.schema.field("f").type == pa.float16()
    assert [float(found) for found in changed.scan().to_table()["f"].to_pylist()] == expected


def test_zone_maps_of_durations(tmp_path: Path) -> None:
    table = pa.table({"id": range(100), "d": pa.array(range(100), pa.duration("us"))})
    for name in ("ours", "theirs"):
        uri = str(tmp_path / name)
        lance.write_dataset(table, uri)
        if name == "ours":
            lance_sql.open(uri).create_index("d", "zonemap", rows_per_zone=10)
        else:
            lance.dataset(uri).create_scalar_index("d", "ZONEMAP")
        dataset = lance_sql.open(uri)
        assert dataset.scan(filter="d > INTERVAL '97' MICROSECOND").to_table()["id"].to_pylist() == [98, 99]
        assert dataset.scan(filter="d IS NULL").count() == 0
        assert [bound.value for bound in dataset.min_max("d")] == [0, 99]


@pytest.mark.parametrize("writer", ["ours", "pylance"])
def test_restoring_over_later_changes(tmp_path: Path, writer: str) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = lance_sql.write(pa.table({"id": [1, 2]}), uri)
    if writer == "ours":
        dataset.update_schema_metadata({"k": "v"}).delete("id = 1")
    else:
        lance.dataset(uri).update_schema_metadata({"k": "v"})
        lance.dataset(uri).delete("id = 1")
    restored = lance_sql.open(uri, version=1).restore()
    assert restored.version == 4
    assert restored.scan().to_table()["id"].to_pylist() == [1, 2]
    assert lance.dataset(uri).count_rows() == 2


def test_tables_have_the_metadata_of_the_schema(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    frame = pd.DataFrame({"x": [1, 2]}, index=pd.Index(["a", "b"], name="label"))
    lance.write_dataset(pa.Table.from_pandas(frame), uri)
    dataset, theirs = lance_sql.open(uri), lance.dataset(uri)
    assert dataset.scan().to_table().to_pandas().equals(frame)
    assert dataset.scan().to_table().schema.metadata == theirs.to_table().schema.metadata
    ids = dataset.scan(columns=["_rowid"]).to_table()["_rowid"]
    assert dataset.take(ids).schema.metadata == theirs.take([0, 1]).schema.metadata
    assert dataset.scan(filter="x > 1").to_table().to_pandas().index.tolist() == ["b"]
