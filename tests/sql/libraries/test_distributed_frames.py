"""Ray Data and Daft, with the real packages, read the rows of a scan and write with one commit."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.errors import DatasetExistsError, DatasetNotFoundError, LanceError

import lance_sql

TABLE = pa.table(
    {
        "id": pa.array(range(1_000), pa.int64()),
        "price": [None if row % 9 == 0 else row % 97 + 0.5 for row in range(1_000)],
        "name": ["pen", None] * 500,
        "tags": [["a"] * (row % 3) for row in range(1_000)],
    }
)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance_sql.Dataset:
    path = tmp_path_factory.mktemp("frames") / "x.lance"
    return lance_sql.write(TABLE, path, max_rows_per_file=300).delete("id < 10")


class Daft:
    def __init__(self) -> None:
        self.module = importlib.import_module("lance_sql.daft")

    def frame(self, table: pa.Table) -> Any:
        import daft

        return daft.from_arrow(table)

    def table(self, frame: Any) -> pa.Table:
        return frame.to_arrow()

    def select(self, frame: Any, names: list[str]) -> Any:
        return frame.select(*names)


class Ray:
    def __init__(self) -> None:
        self.module = importlib.import_module("lance_sql.ray")

    def frame(self, table: pa.Table) -> Any:
        import ray

        half = table.num_rows // 2
        return ray.data.from_arrow([table.slice(0, half), table.slice(half)])

    def table(self, frame: Any) -> pa.Table:
        import ray

        parts = [ray.get(part) for part in frame.to_arrow_refs()]
        return pa.concat_tables(parts) if parts else pa.table({})

    def select(self, frame: Any, names: list[str]) -> Any:
        return frame.select_columns(names)


@pytest.fixture(scope="module", params=["daft", "ray"])
def engine(request: pytest.FixtureRequest) -> Iterator[Any]:
    pytest.importorskip(request.param, reason=f"{request.param} is not installed: pip install it to run this")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of these packages, about one another
        if request.param == "daft":
            yield Daft()
            return
        import ray

        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20)
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield Ray()
        ray.shutdown()


pytestmark = pytest.mark.filterwarnings("ignore")


def rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: row["id"])


def test_reads_one_version(engine: Any, dataset: lance_sql.Dataset) -> None:
    dataset = lance_sql.open(dataset.uri)  # other engines have restored it
    frame = engine.module.read(dataset, task_rows=200)
    dataset_now = dataset.delete("id < 20")
    assert rows(engine.table(frame)) == TABLE.slice(10).to_pylist()
    assert rows(engine.table(engine.module.read(dataset_now.uri))) == TABLE.slice(20).to_pylist()
    dataset_now.restore(dataset.version)


def test_filters_and_columns(engine: Any, dataset: lance_sql.Dataset) -> None:
    frame = engine.module.read(dataset, ["name", "id"], "price > 50 AND id < 700")
    expected = dataset.scan(["name", "id"], "price > 50 AND id < 700").to_table()
    assert rows(engine.table(frame)) == rows(expected)
    selected = engine.table(engine.select(engine.module.read(dataset), ["id", "tags"]))
    assert rows(selected) == rows(dataset.scan(["id", "tags"]).to_table())
    with pytest.raises(ValueError, match="task_rows must be at least 1"):
        engine.module.read(dataset, task_rows=0)


def test_a_filter_that_nothing_passes(engine: Any, dataset: lance_sql.Dataset) -> None:
    assert engine.table(engine.module.read(dataset, ["id"], "id < 0")).num_rows == 0


def test_writes_are_one_version(engine: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    written = engine.module.write(engine.frame(TABLE), path)
    assert written.version == 1
    assert rows(written.scan().to_table()) == TABLE.to_pylist()
    appended = engine.module.write(engine.frame(TABLE.slice(0, 10)), path, "append")
    assert appended.version == 2
    assert appended.count_rows() == 1_010
    replaced = engine.module.write(engine.frame(TABLE.select(["id"])), path, "overwrite")
    assert (replaced.version, replaced.schema.names) == (3, ["id"])
    with pytest.raises(DatasetExistsError, match="already exists"):
        engine.module.write(engine.frame(TABLE), path)
    with pytest.raises(DatasetNotFoundError, match="No dataset to append to"):
        engine.module.write(engine.frame(TABLE), tmp_path / "u.lance", "append")
    with pytest.raises(LanceError, match="mode must be"):
        engine.module.write(engine.frame(TABLE), path, "replace")


def test_an_append_of_other_columns_is_refused(engine: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    lance_sql.write(TABLE, path)
    before = sorted(file.name for file in (path / "data").iterdir())
    with pytest.raises(LanceError, match="nothere"):
        engine.module.write(engine.frame(pa.table({"nothere": [1]})), path, "append")
    assert lance_sql.open(path).version == 1
    assert sorted(file.name for file in (path / "data").iterdir()) == before
