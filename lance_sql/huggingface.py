"""Hugging Face ``datasets``: a dataset in memory, or one that streams and is split between workers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from lance_engine.base import public

from lance_sql.api import open as open_dataset
from lance_sql.dataset import Dataset
from lance_sql.errors import extra
from lance_sql.sampling import stretches

with extra("huggingface"):
    import datasets


__all__ = ["load", "stream"]


@public
def load(
    source: str | os.PathLike[str] | Dataset, columns: Sequence[str] | None = None, filter: Any = None
) -> datasets.Dataset:
    """Rows of a dataset as a ``datasets.Dataset`` in memory.

    `source` is a path or an open dataset, `columns` and `filter` are as in ``Dataset.scan``.
    """
    return datasets.Dataset(datasets.table.InMemoryTable(_opened(source).to_table(columns, filter)))


@public
def stream(
    source: str | os.PathLike[str] | Dataset, columns: Sequence[str] | None = None, filter: Any = None
) -> datasets.IterableDataset:
    """A ``datasets.IterableDataset`` that reads rows as it is iterated, with one shard for each fragment.

    The version is fixed when this is called. `columns` and `filter` are as in ``Dataset.scan``.
    """
    dataset = _opened(source)
    chosen = None if columns is None else tuple(columns)
    return datasets.IterableDataset.from_generator(
        _rows,
        features=datasets.Features.from_arrow_schema(dataset.scan(columns).schema),
        gen_kwargs={  # workers divide this list among themselves
            "fragments": [fragment.id for fragment in dataset.snapshot.fragments],
            "reopen": dataset.__reduce__(),
            "columns": chosen,
            "filter": filter,
        },
    )


def _rows(
    fragments: list[int], reopen: tuple[Any, ...], columns: Sequence[str] | None, filter: Any
) -> Iterator[dict[str, Any]]:
    opened, arguments = reopen
    dataset: Dataset = opened(*arguments)
    splits = [split for split in stretches(dataset) if split.fragment_id in fragments]
    for batch in dataset.scan(columns, filter, splits=splits).to_batches():
        yield from batch.to_pylist()


def _opened(source: str | os.PathLike[str] | Dataset) -> Dataset:
    return source if isinstance(source, Dataset) else open_dataset(source)
