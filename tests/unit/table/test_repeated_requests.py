"""A store that receives conditional requests twice, as after a lost answer, holds what was created once."""

from __future__ import annotations

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import BranchExistsError, TagExistsError
from lance_engine.io.memory import MemoryStore
from lance_engine.write import write_dataset


class RepeatingStore(MemoryStore):
    """Carries out each conditional request twice, and returns the second answer."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        super().put_if_absent(path, data)
        super().put_if_absent(path, data)


def test_what_was_created_is_not_reported_as_taken() -> None:
    dataset = DatasetVersion(write_dataset(pa.table({"a": [1]}), RepeatingStore("twice")))
    assert dataset.tags.create("kept", 1).version == 1
    assert dataset.branches.create("side", 1).name == "side"
    assert [tag.name for tag in dataset.tags.list()] == ["kept"]
    assert [branch.name for branch in dataset.branches.list()] == ["side"]
    assert dataset.delete("a = 1").version == 2
    with pytest.raises(TagExistsError):
        dataset.tags.create("kept", 2)
    with pytest.raises(BranchExistsError):
        dataset.branches.create("side", 1)
