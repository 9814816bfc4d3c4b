"""The memory of operations that rewrite rows does not depend on the size of the dataset."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from memory_peak import peak_memory, write_large

#: Bytes of the dataset in memory: much more than what an operation may take.
SIZE = 640 << 20
ALLOWED = 450 << 20

WORK = """
    import pyarrow as pa
    from lance_engine.dataset import DatasetVersion

    def merge(dataset):
        source = pa.table({"id": range(0, 2_000_000, 4), "group": range(500_000)})
        return dataset.merge(source, "id").when_matched_update_all().execute()

    OPERATIONS = {
        "delete": lambda dataset: dataset.delete('id % 3 = 1 AND "group" + 0 < 6'),
        "update": lambda dataset: dataset.update({"group": '"group" + 1'}, where="id % 4 <> 1"),
        "merge": merge,
        "compact": lambda dataset: dataset.delete("id % 3 = 1").compact(),
    }

    def work(path, operation):
        return OPERATIONS[operation](DatasetVersion.open(path)).version
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "large.lance"
    write_large(path, SIZE)
    return path


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "operation",
    ["delete", "update", *(pytest.param(name, marks=pytest.mark.slow) for name in ("merge", "compact"))],
)
def test_peak_of_an_operation(large: Path, tmp_path: Path, operation: str) -> None:
    path = tmp_path / "copy.lance"
    shutil.copytree(large, path, copy_function=os.link)
    version, peak = peak_memory(WORK, str(path), operation)
    assert int(version) > 1
    assert peak < ALLOWED
