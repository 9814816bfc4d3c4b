"""Small parts of changes: what they compute with, write and leave behind."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import InvalidFilterError
from lance_engine.io import LocalStore, MemoryStore
from lance_engine.operations import text_build
from lance_engine.operations.pairs import PairCondition, Sides
from lance_engine.operations.staged_creation import StagedCreation
from lance_engine.write import write_dataset


class Compiler:
    """Knows one function, as an engine does."""

    def compile(self, text: str, schema: pa.Schema, target: pa.Field | None = None) -> Any:
        assert text == "known(source.a)"
        assert schema.names == ["source", "target"]
        return ("source",), lambda pairs: pa.array(
            [row["source"]["a"] for row in pairs.to_pylist()], self.kind
        )

    kind = pa.bool_()


def test_conditions_that_are_not_understood_are_compiled() -> None:
    compiler: Any = Compiler()
    sides = Sides(pa.schema([("a", pa.bool_())]), pa.schema([("b", pa.int64())]), compiler)
    condition = PairCondition("known(source.a)", sides)
    source, target = pa.record_batch({"a": [True, False, None]}), pa.record_batch({"b": [1, 2, 3]})
    assert condition.passing(source, target).tolist() == [True, False, False]
    compiler.kind = pa.int8()
    with pytest.raises(InvalidFilterError, match="must be boolean, not int8"):
        PairCondition("known(source.a)", sides)


class Builder:
    """A partition of so many bytes."""

    def __init__(self, size: int) -> None:
        self.nbytes = size

    def take(self, other: Builder) -> None:
        self.nbytes += other.nbytes


def test_the_rest_of_the_words_is_written_in_partitions_up_to_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written: list[int] = []
    monkeypatch.setattr(
        text_build, "write_partition", lambda builder, *_, **options: written.append(builder.nbytes)
    )
    options: Any = SimpleNamespace(with_position=False)
    parts = text_build._Partitions(options, None, 10)  # type: ignore[arg-type]
    parts._idle.extend(map(Builder, (6, 1, 9)))  # type: ignore[arg-type]
    parts.finish()
    assert written == [10, 6]


def test_vectors_within_structs_are_indexed() -> None:
    vectors = np.random.default_rng(0).random((40, 2), dtype=np.float32)
    inner = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 2)
    rows = pa.table({"v": pa.nulls(40), "s": pa.StructArray.from_arrays([inner], ["v"])})
    rows = rows.set_column(0, "v", pa.array(range(40), pa.int64()))
    dataset = DatasetVersion(write_dataset(rows, MemoryStore()))
    indexed = dataset.create_index("s.v", "IVF_FLAT", num_partitions=2)
    found = indexed.nearest("s.v", vectors[7], 1, columns=["v"], nprobes=2)
    assert found["v"].to_pylist() == [7]


def test_nothing_of_a_discarded_creation_is_left(tmp_path: Path) -> None:
    staged = StagedCreation(LocalStore(tmp_path / "t.lance"))
    staged._store.put("data/x.lance", b"x")
    assert any(path.is_file() for path in tmp_path.rglob("*"))
    staged.discard()
    assert list(tmp_path.rglob("*")) == []
