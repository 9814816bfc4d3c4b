"""Rows picked again and again from a file that is large enough to be read before it is mapped."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import lance_sql

ROWS, DIMENSION = 20_000, 128
WINDOW = 64 << 10


def vectors() -> npt.NDArray[np.float32]:
    return np.random.default_rng(7).random((ROWS, DIMENSION), dtype=np.float32)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance_sql.Dataset:
    path = tmp_path_factory.mktemp("picks") / "x.lance"
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors().reshape(-1)), DIMENSION)
    words = pa.array([f"{row:05d}" * (200 + row % 7) for row in range(ROWS)])
    lance_sql.write(pa.table({"v": column, "s": words}), str(path))
    assert sum(file.stat().st_size for file in (path / "data").iterdir()) > 4 << 20
    return lance_sql.open(str(path))


def same_rows(dataset: lance_sql.Dataset, rows: npt.NDArray[np.int64]) -> None:
    taken = dataset.take(rows)
    values = taken["v"].combine_chunks().flatten().to_numpy().reshape(-1, DIMENSION)
    np.testing.assert_array_equal(values, vectors()[rows])
    assert taken["s"].to_pylist() == [f"{row:05d}" * (200 + row % 7) for row in rows.tolist()]


def test_the_same_rows_are_found_before_and_after_they_are_mapped(dataset: lance_sql.Dataset) -> None:
    rows = np.random.default_rng(1).integers(0, ROWS, 40)
    for _ in range(6):
        same_rows(dataset, rows)


def test_rows_beside_the_border_of_a_window(dataset: lance_sql.Dataset) -> None:
    per_window = WINDOW // (4 * DIMENSION)
    borders = np.arange(per_window, ROWS, per_window)
    for _ in range(5):
        same_rows(dataset, np.sort(np.concatenate([borders - 1, borders, borders + 1])))


def test_many_threads_pick_at_once(dataset: lance_sql.Dataset) -> None:
    with ThreadPoolExecutor(8) as pool:
        generators = [np.random.default_rng(seed) for seed in range(40)]
        for done in [pool.submit(same_rows, dataset, g.integers(0, ROWS, 60)) for g in generators]:
            done.result()


def test_open_files_are_few_however_many_are_mapped(tmp_path: Path) -> None:
    part = pa.table({"v": pa.array(np.random.default_rng(3).random(600_000))})
    path = str(tmp_path / "many.lance")
    dataset = lance_sql.write(part, path)
    before = len(os.listdir("/proc/self/fd"))
    opened = []
    for _ in range(150):
        dataset = lance_sql.open(path)
        dataset.take([1, 500_000])
        opened.append(dataset)
    assert len(os.listdir("/proc/self/fd")) - before <= 128
