"""Remainders of columns are tested while these are decoded, and as Arrow computes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance_engine import kernels
from lance_engine.dataset import DatasetVersion
from lance_engine.expr.evaluate import evaluate
from lance_engine.expr.from_sql import parse_sql
from lance_engine.scan.native_tests import native_tests
from lance_engine.write.dataset import write_dataset

EDGES = {
    pa.int8(): [-128, -100, -1, 0, 1, 99, 100, 127],
    pa.uint16(): [0, 1, 99, 100, 2**16 - 1],
    pa.int32(): [-(2**31), -101, 0, 100, 2**31 - 1],
    pa.uint32(): [0, 99, 2**31, 2**32 - 1],
    pa.int64(): [-(2**63), -(2**63) + 1, -(2**32), -1, 0, 2**32 - 1, 2**32, 2**62, 2**63 - 1],
}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Columns of each width: runs of small numbers, of any numbers, and of the edges, some of them null."""
    rng = np.random.default_rng(11)
    columns = {}
    for kind, edges in EDGES.items():
        info = np.iinfo(kind.to_pandas_dtype())
        small = rng.integers(0, 100, 1000)
        any_number = rng.integers(info.min, info.max, 1000, dtype=kind.to_pandas_dtype(), endpoint=True)
        values = np.concatenate([small, any_number, rng.choice(edges, 1000), small]).astype(info.dtype)
        columns[str(kind)] = pa.array(values, kind, mask=rng.random(len(values)) < 0.1)
    return pa.table(columns)


@pytest.mark.parametrize("column", [str(kind) for kind in EDGES])
def test_tests_of_remainders_are_those_of_arrow(column: str, table: pa.Table, tmp_path: Path) -> None:
    write_dataset(table, tmp_path / "t")
    dataset = DatasetVersion.open(tmp_path / "t")
    batch = table.combine_chunks().to_batches()[0]
    for divisor in (1, 7, 64, 2**32 - 1, 2**32, 2**63 - 1):
        for number in (0, -28, divisor - 1, 2**33):
            for op in ("=", "<>", "<", "<=", ">", ">="):
                filter = f"{column} % {divisor} {op} {number}"
                node = parse_sql(filter, table.schema)
                assert native_tests([node]) is not None, filter
                expected = evaluate(node, batch).true_count
                assert dataset.scan(filter=node).count() == expected, filter


@pytest.mark.parametrize(
    "filter",
    ["int64 % 0 = 1", "int64 % -5 = 1", "int64 % int8 = 1", "(int64 + 1) % 5 = 1", "int64 % 5 = 0.5"],
)
def test_other_remainders_are_left_to_arrow(filter: str, table: pa.Table) -> None:
    assert native_tests([parse_sql(filter, table.schema)]) is None


def test_tests_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="division by zero"):
        kernels.integer_remainder_test(64, True, 0, 0, 0, False)
    for bits, signed in ((64, False), (128, True), (7, True)):
        with pytest.raises(ValueError, match="64 bits with a sign"):
            kernels.integer_remainder_test(bits, signed, 3, 0, 0, False)


def test_addresses_are_those_of_the_rows_that_pass(tmp_path: Path) -> None:
    write_dataset(pa.table({"id": range(5000), "s": ["x"] * 5000}), tmp_path / "t", max_rows_per_file=2000)
    dataset = DatasetVersion.open(tmp_path / "t").delete("id % 1000 = 7")
    for filter in ("id % 10 = 7", "id >= 1990 AND id < 4100", "id = 7", "s = 'x'", None):
        scanner = dataset.scan(columns=[], filter=filter)
        found = np.concatenate([*scanner.addresses(), np.empty(0, np.uint64)])
        expected = dataset.scan(columns=["_rowaddr"], filter=filter).to_table()["_rowaddr"].to_numpy()
        assert np.array_equal(found, expected), filter
        metrics = scanner.metrics
        assert metrics is not None
        assert metrics.rows_out == len(expected)
    with pytest.raises(ValueError, match="limit"):
        next(dataset.scan(limit=3).addresses())
