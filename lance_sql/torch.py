"""PyTorch: a dataset as batches of tensors, by position or as a stream that is shuffled by blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from lance_engine.errors import InvalidArgumentError

from lance_sql.api import open as open_dataset
from lance_sql.dataset import Dataset
from lance_sql.errors import extra
from lance_sql.sampling import Columns, arrays, batches_of_shard

with extra("torch"):
    import torch
    import torch.distributed
    import torch.utils.data


__all__ = ["IterableLanceDataset", "LanceDataset", "collate"]


class _PerProcess:
    """A dataset that each process opens itself, at the same version."""

    def __init__(self, source: str | os.PathLike[str] | Dataset) -> None:
        dataset = source if isinstance(source, Dataset) else open_dataset(source)
        self._how = dataset.__reduce__()
        self._opened = os.getpid(), dataset

    def __call__(self) -> Dataset:
        process, dataset = self._opened
        if process != os.getpid():  # in a forked worker, which must not share connections
            open_again, arguments = self._how
            dataset = open_again(*arguments)
            self._opened = os.getpid(), dataset
        return dataset

    def __reduce__(self) -> tuple[Any, ...]:
        return _PerProcess, (self._opened[1],)


class Batch(Sequence[dict[str, Any]]):
    """Rows as dictionaries, created on access; `tensors` are the columns."""

    def __init__(self, tensors: dict[str, Any]) -> None:
        self.tensors = tensors

    def __len__(self) -> int:
        return len(next(iter(self.tensors.values()), ()))

    def __getitem__(self, row: Any) -> Any:
        return {name: values[row] for name, values in self.tensors.items()}


def collate(batch: Batch) -> dict[str, Any]:
    """The columns of a batch, for ``DataLoader(collate_fn=...)``: faster than stacking its rows again."""
    return batch.tensors


class LanceDataset(torch.utils.data.Dataset):
    """The rows of a dataset by position; a `DataLoader` fetches those of a batch together.

    Rows are dictionaries: tensors for numbers, booleans and vectors, Python values for everything else. Only
    rows that pass `filter` are included.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Dataset,
        columns: Sequence[str] | None = None,
        filter: Any = None,
    ) -> None:
        self._dataset = _PerProcess(source)
        self._columns = columns
        ids = self._dataset().scan(["_rowid"], filter).to_table().column(0)
        self._row_ids = np.array(ids.to_numpy())

    def __len__(self) -> int:
        return len(self._row_ids)

    def __getitem__(self, position: int) -> dict[str, Any]:
        row: dict[str, Any] = self.__getitems__([position])[0]
        return row

    def __getitems__(self, positions: Sequence[int]) -> Batch:
        return Batch(_tensors(arrays(self._dataset().take(self._row_ids[positions], self._columns))))


class IterableLanceDataset(torch.utils.data.IterableDataset):
    """Batches of a dataset as dictionaries of tensors; pass it to ``DataLoader(..., batch_size=None)``.

    Every row is read by one worker of one rank. With `shuffle`, blocks of `block_rows` rows are read in a
    random order determined by `seed` and the epoch, and the rows of `mixed_blocks` blocks, which a worker
    holds in memory, are shuffled together. `rank` and `world_size` default to those of ``torch.distributed``,
    otherwise those of ``torchrun``. Ranks may get different numbers of batches.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Dataset,
        columns: Sequence[str] | None = None,
        filter: Any = None,
        *,
        batch_size: int = 1024,
        shuffle: bool = False,
        seed: int = 0,
        block_rows: int = 1024,
        mixed_blocks: int = 16,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        if min(batch_size, block_rows, mixed_blocks) < 1:
            raise InvalidArgumentError("batch_size, block_rows and mixed_blocks must be at least 1")
        if (rank is None) != (world_size is None):
            raise InvalidArgumentError("Pass both rank and world_size, or neither")
        if rank is not None and world_size is not None and not 0 <= rank < world_size:
            raise InvalidArgumentError(f"rank must be in 0 ... {world_size - 1}, got {rank}")
        self._dataset = _PerProcess(source)
        self._rank = None if rank is None or world_size is None else (rank, world_size)
        self._epoch = torch.zeros(1, dtype=torch.int64).share_memory_()  # shared with persistent workers
        self._options = {
            "columns": columns,
            "filter": filter,
            "batch_size": batch_size,
            "block_rows": block_rows,
            "mixed_blocks": mixed_blocks,
            "shuffle": shuffle,
            "seed": seed,
        }

    def set_epoch(self, epoch: int) -> None:
        """Call it before each epoch, so that each epoch has a different order."""
        self._epoch[0] = epoch

    def __iter__(self) -> Iterator[dict[str, Any]]:
        rank, ranks = self._place()
        worker = torch.utils.data.get_worker_info()
        number, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        batches = batches_of_shard(
            self._dataset(),
            shard=rank * workers + number,
            shards=ranks * workers,
            epoch=int(self._epoch[0]),
            **self._options,
        )
        return map(_tensors, batches)

    def _place(self) -> tuple[int, int]:
        if self._rank is not None:
            return self._rank
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return torch.distributed.get_rank(), torch.distributed.get_world_size()
        return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rank": self._place()}  # spawned workers do not belong to a process group


def _tensors(columns: Columns) -> dict[str, Any]:
    return {
        name: torch.from_numpy(values) if isinstance(values, np.ndarray) else values
        for name, values in columns.items()
    }
