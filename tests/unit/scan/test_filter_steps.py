"""Which conditions of a filter are tested together, and which need no test."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.expr.from_sql import parse_sql
from lance_engine.scan.filter import FilterSteps
from lance_engine.write.dataset import write_dataset

TABLE = pa.table(
    {
        "a": pa.array([1, None, 3, 4, None, 6], pa.int32()),
        "b": pa.array([None, 2, 3, None, 5, 6], pa.int32()),
        "t": pa.array(["x", None, "xy", "", "y", None]),
    }
)


@pytest.mark.parametrize(
    "filter",
    ["a IS NOT NULL AND a >= 3 AND a < 6", "a IN (3, 6) AND a IS NOT NULL", "t IS NOT NULL AND t = 'x'"],
)
def test_no_null_is_looked_for_where_a_comparison_excludes_it(filter: str, tmp_path: Path) -> None:
    schema = write_dataset(TABLE, tmp_path / "t").schema
    assert FilterSteps(parse_sql(filter, TABLE.schema), schema).are_native
    plain = " AND ".join(part for part in filter.split(" AND ") if "NULL" not in part)
    dataset = DatasetVersion.open(tmp_path / "t")
    assert dataset.scan(filter=filter).to_table() == dataset.scan(filter=plain).to_table()


@pytest.mark.parametrize(
    ("filter", "rows"),
    [
        ("a IS NOT NULL", [0, 2, 3, 5]),
        ("a IS NOT NULL AND b IS NOT NULL", [2, 5]),
        ("a IS NOT NULL AND b > 2", [2, 5]),
        ("a IS NOT NULL AND (a > 3 OR b = 5)", [3, 5]),
        ("a IS NOT NULL AND NOT (a > 3 AND b > 3)", [0, 2]),
        ("a IS NOT NULL AND (a > 3 OR a IS NULL)", [3, 5]),
        ("a IS NULL AND a > 3", []),
        ("t IS NOT NULL AND t LIKE 'x%'", [0, 2]),
        ("t IS NOT NULL AND NOT t LIKE 'x%'", [3, 4]),
    ],
)
def test_other_tests_for_nulls_stay(filter: str, rows: list[int], tmp_path: Path) -> None:
    write_dataset(TABLE, tmp_path / "t")
    dataset = DatasetVersion.open(tmp_path / "t")
    assert dataset.scan(filter=filter).to_table() == TABLE.take(pa.array(rows, pa.int64()))
