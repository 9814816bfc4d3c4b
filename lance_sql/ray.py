"""Ray Data: tasks read ranges of rows of one version, and write files that one commit publishes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from lance_engine.base import public
from lance_engine.errors import InvalidArgumentError
from lance_engine.scan import ScanSplit

from lance_sql.api import open as open_dataset
from lance_sql.dataset import Dataset
from lance_sql.distributed_write import DistributedWrite
from lance_sql.errors import extra
from lance_sql.sampling import stretches

with extra("ray"):
    import ray.data
    from ray.data.block import BlockAccessor, BlockMetadata
    from ray.data.datasource import Datasink, Datasource, ReadTask


__all__ = ["read", "write"]


@public
def read(
    source: str | os.PathLike[str] | Dataset,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    *,
    task_rows: int = 1_000_000,
) -> ray.data.Dataset:
    """A Ray dataset with the rows of one version; a task reads up to `task_rows` rows of a fragment.

    `source` is a path or an open dataset; each task opens the same version. `columns` and `filter` are as in
    ``Dataset.scan``. Ray reads fewer columns after ``select_columns``.
    """
    if task_rows < 1:
        raise ValueError(f"task_rows must be at least 1, got {task_rows}")
    dataset = source if isinstance(source, Dataset) else open_dataset(source)
    return ray.data.read_datasource(_Source(dataset, columns, filter, task_rows))


@public
def write(
    rows: ray.data.Dataset,
    path: str | os.PathLike[str],
    mode: str = "create",
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> Dataset:
    """Write a Ray dataset as one new version of the dataset at `path`; `mode` is as in ``lance_sql.write``.

    If anything fails, nothing is committed, and files written by tasks are removed.
    """
    schema = rows.schema()
    if schema is None:
        raise InvalidArgumentError("Ray does not know the columns of this dataset", path=os.fspath(path))
    types = pa.schema(list(zip(schema.names, schema.types, strict=True)))
    plan = DistributedWrite(os.fspath(path), mode, types, storage_options)
    rows.write_datasink(_Sink(plan))
    return open_dataset(path, storage_options=storage_options)


class _Source(Datasource):
    def __init__(self, dataset: Dataset, columns: Sequence[str] | None, filter: Any, task_rows: int) -> None:
        super().__init__()
        self._projection_map: dict[str, str] | None = None  # which the base class reads but does not set
        self._dataset, self._filter, self._task_rows = dataset, filter, task_rows
        self._columns = list(dataset.schema.names if columns is None else columns)

    def get_name(self) -> str:
        return "Lance"

    def supports_projection_pushdown(self) -> bool:
        return True

    def estimate_inmemory_data_size(self) -> int | None:
        return None

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        pruned = self.get_projection_map()
        columns = self._columns if pruned is None else [name for name in self._columns if name in pruned]
        scanned = self._dataset.scan(columns).schema
        return [
            ReadTask(
                _reading(self._dataset.__reduce__(), columns, self._filter, split),
                BlockMetadata(None, None, None),
                scanned,
                per_task_row_limit,
            )
            for split in stretches(self._dataset, self._task_rows)
        ]


def _reading(
    reopen: tuple[Any, ...], columns: Sequence[str], filter: Any, split: ScanSplit
) -> Callable[[], Iterator[pa.Table]]:
    def blocks() -> Iterator[pa.Table]:
        opened, arguments = reopen
        scanner = opened(*arguments).scan(columns, filter, splits=[split])
        empty = True
        for batch in scanner.to_batches():
            empty = False
            yield pa.Table.from_batches([batch])
        if empty:
            yield scanner.schema.empty_table()

    return blocks


class _Sink(Datasink[list[bytes]]):
    def __init__(self, plan: DistributedWrite) -> None:
        self._plan = plan

    def write(self, blocks: Iterable[Any], ctx: Any) -> list[bytes]:
        tables = (BlockAccessor.for_block(block).to_arrow() for block in blocks)
        return self._plan.write(batch for table in tables for batch in table.to_batches())

    def on_write_complete(self, write_result: Any) -> None:
        self._plan.commit(part for parts in write_result.write_returns for part in parts)

    def on_write_failed(self, error: Exception) -> None:
        self._plan.discard()
