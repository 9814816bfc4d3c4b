"""Cutting a fragment to the zones that a filter can match, where its columns have different zones."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa
from lance_engine.dataset import DatasetVersion
from lance_engine.expr.from_sql import parse_sql
from lance_engine.file.zone_map import ZoneMap
from lance_engine.format.fragment import Fragment
from lance_engine.io.memory import MemoryStore
from lance_engine.scan.prune import Pruner, RowRange
from lance_engine.schema_tree import Field
from lance_engine.write.dataset import write_dataset

ROWS = 100
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.int64()), ("d", pa.int64())])
SNAPSHOT = DatasetVersion(write_dataset(SCHEMA.empty_table(), MemoryStore("prune"))).snapshot


def ascending(rows_per_zone: int) -> ZoneMap:
    """The zone map of a column that holds its row numbers."""
    starts = np.arange(0, ROWS, rows_per_zone)
    ends = np.minimum(starts + rows_per_zone, ROWS) - 1
    none = np.zeros(len(starts), dtype=np.int64)
    return ZoneMap(ROWS, rows_per_zone, pa.array(starts), pa.array(ends), none, nan_order_known=True)


class _Reader:
    """A fragment whose columns a and b have zones of different lengths, c has none and d is not stored."""

    rows = ROWS
    fragment = Fragment(id=3, files=(), physical_rows=ROWS)

    def holds(self, leaf: Field) -> bool:
        return leaf.name != "d"

    def zone_map(self, leaf: Field, name: str) -> ZoneMap | None:
        return {"a": ascending(10), "b": ascending(15)}.get(leaf.name)


def pruned(text: str, begin: int = 0, end: int = ROWS, least: int = 1) -> list[tuple[int, int, bool]]:
    schema = SCHEMA.append(pa.field("_rowid", pa.uint64()))
    found = Pruner(parse_sql(text, schema), SNAPSHOT).prune(cast(Any, _Reader()), begin, end, least)
    assert all(isinstance(part, RowRange) for part in found.ranges)
    return [tuple(part) for part in found.ranges]


def test_one_column() -> None:
    assert pruned("a = 25") == [(20, 30, True)]
    assert pruned("b = 25") == [(15, 30, True)]
    assert pruned("a IN (5, 15, 95)") == [(0, 20, True), (90, 100, True)]
    assert pruned("a >= 30") == [(30, 100, False)]
    assert pruned("a >= 35") == [(30, 40, True), (40, 100, False)]
    assert pruned("a < 0") == []
    assert pruned("c = 1") == [(0, 100, True)]


def test_columns_with_different_zones() -> None:
    assert pruned("a = 25 AND b = 25") == [(20, 30, True)]
    assert pruned("a = 25 OR b = 44") == [(20, 45, True)]
    assert pruned("a >= 40 AND b < 60") == [(40, 60, False)]
    assert pruned("a >= 40 AND b < 50") == [(40, 45, False), (45, 60, True)]
    assert pruned("a = 25 AND c = 1") == [(20, 30, True)]
    assert pruned("a = 25 OR c = 1") == [(0, 100, True)]


def test_a_part_of_the_rows() -> None:
    assert pruned("a >= 35", 33, 62) == [(33, 40, True), (40, 62, False)]
    assert pruned("a = 25", 27, 28) == [(27, 28, True)]
    assert pruned("a = 25", 30, 40) == []
    assert pruned("a >= 40 AND b < 50", 42, 58) == [(42, 45, False), (45, 58, True)]
    assert pruned("a = 25", 40, 40) == []


def test_few_rows_without_a_test_join_their_neighbours() -> None:
    assert pruned("a >= 35 AND a < 55", least=5) == [(30, 40, True), (40, 50, False), (50, 60, True)]
    assert pruned("a >= 35 AND a < 55", least=11) == [(30, 60, True)]
    # No neighbours to join.
    assert pruned("a >= 40 AND a < 50", least=11) == [(40, 50, False)]


def test_a_column_that_is_not_stored_is_null() -> None:
    assert pruned("d = 1") == []
    assert pruned("d IS NULL") == [(0, 100, False)]
    assert pruned("d IS NULL AND a = 25") == [(20, 30, True)]


def test_row_addresses() -> None:
    first = 3 << 32
    assert pruned(f"_rowid = {first + 25} AND a > 0") == [(20, 30, True)]
    assert pruned(f"_rowid < {first}") == []
    assert pruned(f"_rowid >= {first}") == [(0, 100, False)]


def test_columns_that_are_only_computed_with_need_no_zone_maps() -> None:
    class WithoutZoneMaps(_Reader):
        def zone_map(self, leaf: Field, name: str) -> ZoneMap | None:
            raise AssertionError(f"the zone map of {name} was read")

    def pruner(text: str) -> Pruner:
        return Pruner(parse_sql(text, SCHEMA), SNAPSHOT)

    assert not pruner("a % 7 = 3").is_of_use
    found = pruner("a % 7 = 3").prune(cast(Any, WithoutZoneMaps()), 0, ROWS, 1)
    assert [tuple(part) for part in found.ranges] == [(0, ROWS, True)]
    assert pruner("a % 7 = 3 OR b < 5").is_of_use
    assert pruned("a % 7 = 3 AND b < 15") == [(0, 15, True)]
