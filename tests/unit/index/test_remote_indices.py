"""Files, pages and partitions of indices on object stores are asked for together, not one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.index.cache import CACHE, VECTORS
from lance_engine.write.dataset import write_dataset
from remote_store import RemoteStore

ROWS = 20_000
# In order; of values that cannot be compressed, so that not all is fetched with the end of the file.
IDS = np.sort(np.random.default_rng(2).integers(0, 1 << 60, ROWS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("indices") / "table"
    rng = np.random.default_rng(1)
    vectors = pa.FixedSizeListArray.from_arrays(rng.random(ROWS * 8, dtype=np.float32), 8)
    words = pa.array([f"word{number % 50} common" for number in range(ROWS)])
    table = pa.table({"id": rng.permutation(IDS), "vector": vectors, "text": words})
    write_dataset(table, str(path))
    dataset = DatasetVersion.open(str(path)).create_index("id", "btree", page_rows=64)
    dataset.create_index("vector", "IVF_FLAT", num_partitions=16).create_index("text", "INVERTED")
    return path


def by_values(dataset: DatasetVersion, values: range) -> int:
    wanted = ", ".join(str(IDS[value]) for value in values)
    return dataset.scan(columns=["id"], filter=f"id IN ({wanted})").to_table().num_rows


def by_vector(dataset: DatasetVersion, probes: range) -> int:
    return dataset.nearest("vector", np.zeros(8), 5, columns=["id"], nprobes=len(probes)).num_rows


@pytest.mark.parametrize(
    ("search", "one", "many"),
    [(by_values, range(100, 101), range(1000, 12_000, 1000)), (by_vector, range(1), range(10))],
    ids=["pages of values", "partitions of vectors"],
)
def test_parts_of_an_index_are_fetched_together(
    folder: Path, search: Callable[[DatasetVersion, range], int], one: range, many: range
) -> None:
    CACHE.clear()
    VECTORS.clear()
    store = RemoteStore.of_folder(folder)
    dataset = DatasetVersion.open(store)  # type: ignore[arg-type]
    search(dataset, one)  # opens the index
    store.reset_counters()
    together = len(many) - 2  # of which some may be here already
    store.gather(together)
    search(dataset, many)
    assert store.most_in_flight >= together


def test_files_of_a_segment_are_opened_together(folder: Path) -> None:
    """Its metadata, tokens, documents and posting lists are asked for at once."""
    CACHE.clear()
    VECTORS.clear()
    store = RemoteStore.of_folder(folder)
    dataset = DatasetVersion.open(store)  # type: ignore[arg-type]
    (metadata,) = folder.glob("_indices/*/metadata.lance")
    files = len(list(metadata.parent.iterdir()))
    store.gather(files)
    assert dataset.search("word3 word7", "text", 5, columns=["id"]).num_rows == 5
    assert store.most_in_flight >= files
