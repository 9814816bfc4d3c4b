"""Daft: a dataset as a data frame that reads the columns it needs; data frames written with one commit."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from lance_engine.base import public
from lance_engine.scan import ScanSplit

from lance_sql.api import open as open_dataset
from lance_sql.dataset import Dataset
from lance_sql.distributed_write import DistributedWrite
from lance_sql.errors import extra
from lance_sql.sampling import stretches

with extra("daft"):
    import daft
    from daft.io.sink import DataSink, WriteResult
    from daft.io.source import DataSource, DataSourceTask
    from daft.recordbatch import MicroPartition, RecordBatch


__all__ = ["read", "write"]


@public
def read(
    source: str | os.PathLike[str] | Dataset,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    *,
    task_rows: int = 1_000_000,
) -> daft.DataFrame:
    """A Daft data frame with the rows of one version; a task reads up to `task_rows` rows of a fragment.

    `source` is a path or an open dataset; each task opens the same version. `columns` and `filter` are as in
    ``Dataset.scan``. Daft reads fewer columns if a query needs fewer.
    """
    if task_rows < 1:
        raise ValueError(f"task_rows must be at least 1, got {task_rows}")
    dataset = source if isinstance(source, Dataset) else open_dataset(source)
    return _Source(dataset, list(columns or dataset.schema.names), filter, task_rows).read()


@public
def write(
    frame: daft.DataFrame,
    path: str | os.PathLike[str],
    mode: str = "create",
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> Dataset:
    """Write a Daft data frame as one new version of the dataset at `path`.

    `mode` is the same as in ``lance_sql.write``. If anything fails, nothing is committed.
    """
    plan = DistributedWrite(os.fspath(path), mode, frame.schema().to_pyarrow_schema(), storage_options)
    try:
        frame.write_sink(_Sink(plan))
    except BaseException:
        plan.discard()
        raise
    return open_dataset(path, storage_options=storage_options)


class _Source(DataSource):
    def __init__(self, dataset: Dataset, columns: list[str], filter: Any, task_rows: int) -> None:
        self._dataset, self._columns, self._filter, self._rows = dataset, columns, filter, task_rows

    @property
    def name(self) -> str:
        return "Lance"

    @property
    def schema(self) -> daft.Schema:
        return daft.Schema.from_pyarrow_schema(self._dataset.scan(self._columns).schema)

    async def get_tasks(self, pushdowns: Any) -> AsyncIterator[DataSourceTask]:
        wanted = self._columns
        if pushdowns.columns is not None:
            wanted = [name for name in self._columns if name in pushdowns.columns]
        for split in stretches(self._dataset, self._rows):
            yield _Task(self._dataset.__reduce__(), wanted, self._filter, split)


class _Task(DataSourceTask):
    def __init__(self, reopen: tuple[Any, ...], columns: list[str], filter: Any, split: ScanSplit) -> None:
        self._reopen, self._columns, self._filter, self._split = reopen, columns, filter, split

    def _scan(self) -> Any:
        opened, arguments = self._reopen
        return opened(*arguments).scan(self._columns, self._filter, splits=[self._split])

    @property
    def schema(self) -> daft.Schema:
        return daft.Schema.from_pyarrow_schema(self._scan().schema)

    async def read(self) -> AsyncIterator[RecordBatch]:
        for batch in self._scan().to_batches():
            yield RecordBatch.from_arrow_record_batches([batch], batch.schema)


class _Sink(DataSink[list[bytes]]):
    def __init__(self, plan: DistributedWrite) -> None:
        self._plan = plan

    def name(self) -> str:
        return "Lance"

    def schema(self) -> daft.Schema:
        return daft.Schema.from_pyarrow_schema(pa.schema([("version", pa.int64())]))

    def write(self, micropartitions: Iterator[MicroPartition]) -> Iterator[WriteResult[list[bytes]]]:
        for part in micropartitions:
            table = part.to_arrow()
            yield WriteResult(self._plan.write(table.to_batches()), table.nbytes, table.num_rows)

    def finalize(self, write_results: list[WriteResult[list[bytes]]]) -> MicroPartition:
        version = self._plan.commit(part for written in write_results for part in written.result)
        return MicroPartition.from_pydict({"version": pa.array([version], pa.int64())})
