"""Small datasets in memory, and what the tests of operations look for in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.format.operations import Overwrite
from lance_engine.io import MemoryStore
from lance_engine.schema_tree import Schema
from lance_engine.table.build import CreateOptions
from lance_engine.table.commit import commit
from lance_engine.write.fragments import write_fragments
from lance_engine.write.options import WriteOptions


def in_memory(data: pa.Table, *, rows_per_file: int, stable: bool = False) -> DatasetVersion:
    schema, store = Schema.from_arrow(data.schema), MemoryStore()
    options = WriteOptions(max_rows_per_file=rows_per_file)
    operation = Overwrite(tuple(write_fragments(store, schema, data.to_batches(), options)), schema)
    created = CreateOptions(stable_row_ids=stable)
    return DatasetVersion(commit(store, operation, read_version=0, options=created))


def rows_by_id(dataset: DatasetVersion, *columns: str) -> dict[int, tuple[Any, ...]]:
    """The values of `columns` by those of ``id``, of which there is one each."""
    found = dataset.scan(["id", *columns]).to_table().to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: tuple(row[name] for name in columns) for row in found}


@contextmanager
def nothing_left_behind(dataset: DatasetVersion, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Other writers win every race in the block; it must not change what is stored."""
    before = dataset.snapshot.store.list("")

    def lose(*_: object, **__: object) -> None:
        raise FileExistsError

    monkeypatch.setattr(MemoryStore, "put_if_absent", lose)
    monkeypatch.setattr("time.sleep", lambda _: None)
    yield
    assert dataset.snapshot.store.list("") == before
