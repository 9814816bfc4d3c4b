"""``python -m benchmarks.training``: rows per second into a PyTorch loop, against pylance and Parquet.

Every peer feeds PyTorch's own ``DataLoader`` with the same rows: ids, labels, prices and vectors. All run in
one process and take turns, with warm caches; a figure is the median of the rounds. Needs PyTorch and pylance.

- in order: batches of 1,024 rows, one after the other.
- shuffled: ours shuffles the rows of 16 blocks at a time, pylance whole batches (``ShardedBatchSampler``),
  Parquet the rows of one row group at a time.
- by position: batches of 256 random rows. pylance twice: with its own ``SafeLanceDataset``, which makes
  Python values, and with a class that makes tensors of what ``take`` returns.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import itertools
import random
import shutil
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import lance
import lance.sampler
import lance.torch.data
import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

import lance_sql
from demo.timing import timed
from lance_sql.torch import IterableLanceDataset, LanceDataset, collate

BATCH: Final = 1_024
DRAWN: Final = 256
BLOCK: Final = 16 * BATCH

#: The batches of one epoch; the argument is the number of workers.
Epoch = Callable[[int], Iterable[Any]]


def rows_of_training(rows: int, width: int) -> pa.Table:
    values = np.random.default_rng(0)
    vectors = pa.array(values.random(rows * width, np.float32))
    return pa.table(
        {
            "id": np.arange(rows),
            "label": values.integers(0, 1_000, rows, np.int32),
            "price": values.random(rows).round(2),
            "vector": pa.FixedSizeListArray.from_arrays(vectors, width),
        }
    )


def tensors(batch: Any) -> dict[str, Any]:
    """Columns as tensors that may be written to."""
    found = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        vectors = pa.types.is_fixed_size_list(array.type)
        values = np.array((array.flatten() if vectors else array).to_numpy(zero_copy_only=False))
        found[name] = torch.from_numpy(values.reshape(len(array), -1) if vectors else values)
    return found


class ParquetStream(IterableDataset):
    """What a user would write with pyarrow: batches in order, or the rows of row groups in random order."""

    def __init__(self, path: Path, *, shuffle: bool) -> None:
        self._path, self._shuffle = path, shuffle

    def __iter__(self) -> Iterator[dict[str, Any]]:
        worker = torch.utils.data.get_worker_info()
        number, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        file = pq.ParquetFile(self._path)
        groups = list(range(number, file.num_row_groups, workers))
        if not self._shuffle:
            return map(tensors, file.iter_batches(BATCH, row_groups=groups))
        random.Random(0).shuffle(groups)
        mixed = (self._mixed(file.read_row_group(group)) for group in groups)
        return map(tensors, itertools.chain.from_iterable(mixed))

    @staticmethod
    def _mixed(group: pa.Table) -> list[pa.RecordBatch]:
        order = np.random.default_rng(0).permutation(group.num_rows)
        batches: list[pa.RecordBatch] = group.take(order).combine_chunks().to_batches(BATCH)
        return batches


class Taken(Dataset):
    """Rows by position of anything that has ``take``, as tensors."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        count: int = self._dataset.count_rows()
        return count

    def __getitems__(self, positions: Sequence[int]) -> dict[str, Any]:
        return tensors(self._dataset.take(positions))


def as_it_is(batch: Any) -> Any:
    return batch


def streams(folder: Path) -> dict[str, dict[str, Epoch]]:
    """Name of a case and of a peer -> its epoch."""
    ours, theirs, parquet = (str(folder / name) for name in ("ours.lance", "theirs.lance", "rows.parquet"))
    drawn = [random.Random(0).sample(range(lance_sql.open(ours).count_rows()), DRAWN) for _ in range(40)]

    def stream(dataset: Any) -> Epoch:
        return lambda workers: DataLoader(dataset, batch_size=None, num_workers=workers)

    def by_position(dataset: Any, put_together: Any, batches: int = len(drawn)) -> Epoch:
        return lambda workers: DataLoader(
            dataset, batch_sampler=drawn[:batches], collate_fn=put_together, num_workers=workers
        )

    values: Any = lance.torch.data.SafeLanceDataset  # it has no types

    def of_lance(sampler: Any = None) -> Epoch:
        return stream(lance.torch.data.LanceDataset(theirs, BATCH, sampler=sampler, columns=[*COLUMNS]))

    return {
        "in order": {
            "lance-sql": stream(IterableLanceDataset(ours, batch_size=BATCH)),
            "pylance": of_lance(),
            "Parquet": stream(ParquetStream(Path(parquet), shuffle=False)),
        },
        "shuffled": {
            "lance-sql": stream(IterableLanceDataset(ours, batch_size=BATCH, shuffle=True)),
            "pylance": of_lance(lance.sampler.ShardedBatchSampler(0, 1, randomize=True)),
            "Parquet": stream(ParquetStream(Path(parquet), shuffle=True)),
        },
        "by position": {
            "lance-sql": by_position(LanceDataset(ours), collate),
            "pylance": by_position(Taken(lance.dataset(theirs)), as_it_is),
            "pylance, SafeLanceDataset": by_position(values(theirs), None),
            "Parquet": by_position(Taken(pads.dataset(parquet)), as_it_is, 4),
        },
    }


COLUMNS: Final = ("id", "label", "price", "vector")


def rows_seen(epoch: Epoch, workers: int) -> int:
    """A training loop that does not train."""
    return sum(len(batch["id"]) for batch in epoch(workers))


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.training", description=__doc__)
    options.add_argument("--rows", type=int, default=500_000, help="rows of the data (default 500,000)")
    options.add_argument("--width", type=int, default=64, help="numbers in a vector (default 64)")
    options.add_argument("--rounds", type=int, default=5, help="epochs of each case (default 5)")
    options.add_argument("--workers", type=int, default=0, help="workers of the loaders (default 0)")
    options.add_argument("--folder", type=Path, default=Path("build/benchmarks"), help="where the data goes")
    chosen = options.parse_args()
    folder = chosen.folder.absolute() / f"training-{chosen.rows}x{chosen.width}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    table = rows_of_training(chosen.rows, chosen.width)
    lance_sql.write(table, folder / "ours.lance")
    lance.write_dataset(table, str(folder / "theirs.lance"))
    pq.write_table(table, folder / "rows.parquet", row_group_size=BLOCK)
    del table
    versions = {package: importlib.metadata.version(package) for package in ("torch", "pylance", "pyarrow")}
    print(f"{chosen.rows:,} rows, vectors of {chosen.width}, {chosen.workers} workers, {versions}")
    for case, peers in streams(folder).items():
        speeds: dict[str, list[float]] = {name: [] for name in peers}
        for number in range(chosen.rounds + 1):
            for name, epoch in peers.items():
                rows, seconds = timed(functools.partial(rows_seen, epoch, chosen.workers))
                if number:  # the first epoch warms up
                    speeds[name].append(rows / seconds)
        for name, found in speeds.items():
            median = statistics.median(found)
            ratio = statistics.median(speeds["lance-sql"]) / median
            print(f"{case:12} {name:28} {median:>12,.0f} rows/s   lance-sql is {ratio:.2f}x", flush=True)


if __name__ == "__main__":
    main()
