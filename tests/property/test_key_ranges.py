"""Keys of more rows than are looked up one by one are found by their range, for every type of a key."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.errors import ConstraintError

import lance_sql

#: More than the keys that are looked up individually.
MANY = 3000
TYPES = [
    pa.int8(), pa.int64(), pa.uint64(), pa.float64(), pa.string(), pa.large_string(), pa.binary(),
    pa.decimal128(38, 3), pa.date32(), pa.time32("ms"), pa.time64("us"), pa.time64("ns"),
    pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.duration("us"), pa.duration("ns"),
]  # fmt: skip


def values(kind: pa.DataType, numbers: list[int]) -> pa.Array:
    if pa.types.is_date32(kind) or kind == pa.time32("ms"):
        return pa.array(numbers, pa.int32()).cast(kind)
    if pa.types.is_binary(kind):
        return pa.array([b"%012d" % number for number in numbers])
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.array([f"{number:012d}" for number in numbers], kind)
    if pa.types.is_decimal(kind):
        return pa.array(numbers, pa.int64()).cast(pa.decimal128(38, 3))
    return pa.array(numbers, pa.int64()).cast(kind)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_row_at_the_end_of_the_range(tmp_path: Path, kind: pa.DataType) -> None:
    # One unit beyond a microsecond, or a second beyond the year 9999.
    last = 10**12 if kind == pa.timestamp("s") else 100 if kind == pa.int8() else 5_000_001
    many = min(MANY, last)
    path = tmp_path / "t.lance"
    dataset = lance_sql.write(pa.table({"k": values(kind, [last])}), path).add_key(["k"])
    new = [*range(1, many), last]
    with pytest.raises(ConstraintError, match="Duplicate key"):
        lance_sql.write(pa.table({"k": values(kind, new)}), path, "append")
    assert lance_sql.open(path).version == dataset.version
    assert lance_sql.write(pa.table({"k": values(kind, new[:-1])}), path, "append").count_rows() == many
