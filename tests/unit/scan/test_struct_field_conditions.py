"""Conditions on fields of structs, which are tested while decoding: a field of a null struct is null."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.write.dataset import write_dataset

ROWS = 5_000
Row = dict[str, Any]


def _row(number: int) -> Row:
    inner = {"c": None if number % 11 == 0 else f"w{number % 4}", "d": number / 3}
    outer = {"a": None if number % 5 == 0 else number % 9, "b": None if number % 13 == 0 else inner}
    return {
        "row": number,
        "st": None if number % 7 == 0 else outer,
        "full": {"a": number},
        "required": None if number % 3 == 0 else {"a": number % 4},
    }


SCHEMA = pa.schema(
    [
        ("row", pa.int64()),
        ("st", pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string()), ("d", pa.float64())]))])),
        ("full", pa.struct([("a", pa.int64())])),
        ("required", pa.struct([pa.field("a", pa.int64(), nullable=False)])),
    ]
)


@pytest.fixture(scope="module", params=["2.0", "2.1", "2.2"])
def dataset(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> DatasetVersion:
    rows = [_row(number) for number in range(ROWS)]
    if request.param == "2.0":  # has no null structs
        rows = [row for row in rows if row["st"] and row["st"]["b"] and row["required"]]
    path = str(tmp_path_factory.mktemp("structs") / "t.lance")
    table = pa.Table.from_pylist(rows, SCHEMA)
    written = write_dataset(table, path, max_rows_per_file=3_000, data_storage_version=request.param)
    return DatasetVersion(written).delete("row % 97 = 5")


def _of(row: Row, *names: str) -> Any:
    value: Any = row
    for name in names:
        value = None if value is None else value[name]
    return value


CONDITIONS: list[tuple[str, Callable[[Row], bool], bool]] = [
    ("st.a = 5", lambda row: _of(row, "st", "a") == 5, True),
    ("st.a <> 5", lambda row: _of(row, "st", "a") not in (None, 5), True),
    ("st.b.c = 'w1'", lambda row: _of(row, "st", "b", "c") == "w1", True),
    ("st.b.c NOT IN ('w1', 'w2')", lambda row: _of(row, "st", "b", "c") in ("w0", "w3"), True),
    ("NOT (st.b.d < 100)", lambda row: (_of(row, "st", "b", "d") or 0) >= 100, True),
    ("full.a >= 70 AND full.a < 4000", lambda row: 70 <= row["row"] < 4000, True),
    ("required.a <> 1", lambda row: _of(row, "required", "a") not in (None, 1), True),
    (
        "required.a = 1 OR st.b.c = 'w1'",
        lambda row: _of(row, "required", "a") == 1 or _of(row, "st", "b", "c") == "w1",
        True,
    ),
    ("st.b.c IS NULL", lambda row: _of(row, "st", "b", "c") is None, False),
    ("st.b IS NOT NULL", lambda row: _of(row, "st", "b") is not None, False),
]


@pytest.mark.parametrize(("condition", "passes", "native"), CONDITIONS)
def test_the_same_rows_as_value_by_value(
    dataset: DatasetVersion, condition: str, passes: Callable[[Row], bool], native: bool
) -> None:
    wanted = [row["row"] for row in dataset.scan().to_table().to_pylist() if passes(row)]
    assert 0 < len(wanted) < ROWS
    for pruned in (True, False):
        scan = dataset.scan(["row"], condition, zone_maps=pruned, indices=pruned)
        assert scan.to_table()["row"].to_pylist() == wanted
        assert scan.count() == len(wanted)
        assert scan._steps is not None
        assert scan._steps.are_native is native
