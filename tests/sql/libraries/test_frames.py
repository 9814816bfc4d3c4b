"""Dask and Hugging Face datasets, with the real packages, read the rows of a scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

import lance_sql


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance_sql.Dataset:
    rows = range(1_000)
    table = pa.table({"id": rows, "price": [row % 97 + 0.5 for row in rows], "name": ["pen", "ink"] * 500})
    path = tmp_path_factory.mktemp("frames") / "x.lance"
    return lance_sql.write(table, path, max_rows_per_file=300).delete("id < 10")


def test_dask_reads_partitions(dataset: lance_sql.Dataset) -> None:
    from lance_sql import dask

    frame = dask.read(dataset, filter="price > 50", partition_rows=200)
    assert frame.npartitions == 7
    expected = dataset.to_pandas(filter="price > 50")
    read = frame.compute(scheduler="threads").reset_index(drop=True)
    assert read.astype(object).equals(expected.astype(object))
    counts = frame.groupby("name")["id"].count().compute(scheduler="processes")
    assert counts.to_dict() == expected.groupby("name")["id"].count().to_dict()


def test_dask_reads_only_the_columns_that_it_needs(
    dataset: lance_sql.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lance_sql import dask

    asked: list[Sequence[str]] = []
    read = dask._partition

    def counted(split: Any, columns: Sequence[str], **options: Any) -> Any:
        asked.append(columns)
        return read(split, columns, **options)

    monkeypatch.setattr(dask, "_partition", counted)
    assert dask.read(dataset)["price"].sum().compute(scheduler="sync") > 0
    assert asked == [["price"]] * 4
    assert dask.read(dataset.uri, ["id"])["id"].sum().compute(scheduler="sync") == sum(range(10, 1_000))


def test_dask_keeps_to_its_version(dataset: lance_sql.Dataset) -> None:
    from lance_sql import dask

    frame = dask.read(lance_sql.open(dataset.uri, version=1))
    assert len(frame) == 1_000
    with pytest.raises(ValueError, match="partition_rows must be at least 1"):
        dask.read(dataset, partition_rows=0)


def test_hugging_face_in_memory(dataset: lance_sql.Dataset) -> None:
    from lance_sql import huggingface

    loaded = huggingface.load(dataset, ["id", "name"], "id < 20")
    assert loaded.column_names == ["id", "name"]
    assert loaded[0] == {"id": 10, "name": "pen"}
    assert len(loaded) == 10


def test_hugging_face_streams_fragments(dataset: lance_sql.Dataset) -> None:
    from lance_sql import huggingface

    streamed = huggingface.stream(dataset, ["id"])
    assert streamed.num_shards == 4
    assert [row["id"] for row in streamed] == list(range(10, 1_000))
    assert [row["id"] for row in streamed.shard(4, 1)] == list(range(300, 600))
    assert [row["id"] for row in huggingface.stream(dataset.uri, ["id"], "id >= 990")] == list(
        range(990, 1_000)
    )
