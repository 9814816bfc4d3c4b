"""Every instruction set gives the distances of plain numpy."""

import os
import subprocess
import sys

import numpy as np
import pytest
from lance_engine import kernels

_CHECK = """
import numpy as np
from lance_engine import kernels

random = np.random.default_rng(1)
DTYPES = {"FLOAT16": np.float16, "FLOAT32": np.float32, "FLOAT64": np.float64}


def found(metric, element, queries, stored):
    precise = np.float64 if element == "FLOAT64" else np.float32
    values = queries.astype(precise).view(np.uint8).ravel()
    query = kernels.VectorQuery(kernels.Metric[metric], kernels.Element[element], queries.shape[1], values)
    # One byte in front: nothing is aligned.
    return query.distances(np.frombuffer(b"x" + stored.astype(DTYPES[element]).tobytes(), np.uint8)[1:])


for dim in (1, 3, 8, 15, 16, 17, 64, 100):
    for rows in (0, 1, 3, 4, 5, 700):
        for count in (1, 4, 6):
            stored = random.normal(size=(rows, dim)).astype(np.float16)
            queries = random.normal(size=(count, dim)).astype(np.float32)
            wide = stored.astype(np.float64)[None], queries.astype(np.float64)[:, None]
            dot = (wide[0] * wide[1]).sum(axis=2)
            norms = np.linalg.norm(wide[0], axis=2) * np.linalg.norm(wide[1], axis=2)
            l2 = ((wide[0] - wide[1]) ** 2).sum(axis=2)
            for metric, expected in {"L2": l2, "DOT": 1 - dot, "COSINE": 1 - dot / norms}.items():
                for element in DTYPES:
                    distances = found(metric, element, queries, stored)
                    close = np.allclose(distances, expected, rtol=1e-4, atol=1e-4)
                    assert close, (dim, rows, count, metric, element)
halves = np.arange(65536, dtype=np.uint16).view(np.float16).reshape(-1, 1)
with np.errstate(invalid="ignore"):
    expected = 1 - halves.astype(np.float32)[:, 0]
distances = found("DOT", "FLOAT16", np.ones((1, 1), np.float32), halves)
assert np.array_equal(distances[0], expected, equal_nan=True)
for dim in (1, 15, 16, 17, 40, 100):
    codes = random.integers(0, 256, size=(50, dim)).astype(np.uint8)
    wanted = random.integers(0, 256, size=dim).astype(np.uint8)
    ids = np.arange(50, dtype=np.uint64)
    # One byte in front here too.
    shifted = np.frombuffer(b"x" + codes.tobytes(), np.uint8)[1:]
    stored = kernels.Partition.scalar(kernels.Metric.L2, dim, 0.0, 255.0, ids, shifted)
    nearest = kernels.Nearest(1, 50, float("nan"), float("nan"))
    everything = kernels.RowSet(ids[:1], ids[-1:] + 1)
    nearest.search(0, [stored], wanted.astype(np.float32), everything, False, 10)
    _, rows, distances = nearest.result()
    expected = ((codes.astype(np.int64) - wanted.astype(np.int64)) ** 2).sum(axis=1)
    assert np.array_equal(distances, expected[rows.astype(np.int64)]), dim
print(kernels.simd_level())
"""


@pytest.mark.parametrize("level", kernels.simd_levels())
def test_distances_at_every_level(level):
    environment = {**os.environ, "LANCE_SQL_SIMD": level}
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _CHECK],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == level


def test_wrong_lengths_are_refused():
    query = kernels.VectorQuery(
        kernels.Metric.L2, kernels.Element.FLOAT32, 4, np.zeros(4, np.float32).view(np.uint8)
    )
    nearest = kernels.Nearest(1, 3, float("nan"), float("nan"))
    ids = np.arange(2, dtype=np.uint64)
    with pytest.raises(ValueError, match="length"):
        nearest.scan(query, 0, np.zeros(31, np.uint8), ids, None)
    with pytest.raises(ValueError, match="length"):
        nearest.scan(query, 0, np.zeros(32, np.uint8), ids, np.zeros(1, np.uint8))
    with pytest.raises(ValueError, match="queries"):
        nearest.scan(query, 1, np.zeros(32, np.uint8), ids, None)
    with pytest.raises(ValueError, match="whole"):
        query.distances(np.zeros(15, np.uint8))
    with pytest.raises(ValueError, match="whole"):
        kernels.VectorQuery(kernels.Metric.L2, kernels.Element.FLOAT32, 4, np.zeros(15, np.uint8))
