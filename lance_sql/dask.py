"""Dask: a dataset as a data frame whose partitions are read by tasks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from lance_engine.base import public
from lance_engine.scan import ScanSplit

from lance_sql.api import open as open_dataset
from lance_sql.dataset import Dataset
from lance_sql.errors import extra
from lance_sql.sampling import stretches

with extra("dask"):
    import dask.dataframe as dd
    import pandas as pd


__all__ = ["read"]


@public
def read(
    source: str | os.PathLike[str] | Dataset,
    columns: Sequence[str] | None = None,
    filter: Any = None,
    *,
    partition_rows: int = 1_000_000,
) -> dd.DataFrame:
    """A Dask data frame with the rows of one version, `partition_rows` or fewer in each partition.

    `source` is a path or an open dataset; each task opens the same version. `columns` and `filter` are as in
    ``Dataset.scan``. Dask reads fewer columns if a graph needs fewer.
    """
    if partition_rows < 1:
        raise ValueError(f"partition_rows must be at least 1, got {partition_rows}")
    dataset = source if isinstance(source, Dataset) else open_dataset(source)
    splits: list[ScanSplit | None] = [*stretches(dataset, partition_rows)]
    wanted = list(dataset.schema.names if columns is None else columns)
    empty = dataset.scan(wanted).schema.empty_table().to_pandas()
    return dd.from_map(
        _partition,
        splits or [None],
        columns=wanted,
        reopen=dataset.__reduce__(),
        condition=filter,
        meta=empty,
    )


def _partition(
    split: ScanSplit | None, columns: Sequence[str] | None = None, *, reopen: tuple[Any, ...], condition: Any
) -> pd.DataFrame:
    """One partition; Dask passes the `columns` that a graph needs."""
    opened, arguments = reopen
    dataset: Dataset = opened(*arguments)
    return dataset.scan(columns, condition, splits=[split] if split else []).to_table().to_pandas()
