"""Values that are picked from chunks, and tests that pass over chunks without a match, in every encoding."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_engine.dataset import DatasetVersion

import lance_sql

ROWS = 50_000
RNG = np.random.default_rng(11)
NUMBERS = RNG.integers(0, 1 << 22, ROWS)
WORDS = np.array([f"word {n} of the text" for n in range(3000)])


def _table() -> pa.Table:
    nulls = RNG.random(ROWS) < 0.1
    return pa.table(
        {
            "packed": NUMBERS,
            "narrow": pa.array(NUMBERS % 200, pa.uint8()),
            "nullable": pa.array(NUMBERS.astype(np.int32), mask=nulls),
            "runs": np.repeat(RNG.integers(0, 1 << 40, ROWS // 5), 5),
            "price": pa.array([Decimal(int(n)) / 100 for n in NUMBERS], pa.decimal128(15, 2)),
            "float": RNG.random(ROWS),
            "text": pa.array([f"{WORDS[n % 3000]} {n}" for n in NUMBERS], mask=nulls),
            "kind": pa.array(np.array(["a", "bb", "ccc"])[NUMBERS % 3]),
        }
    )


@pytest.fixture(scope="module", params=["2.0", "2.1"])
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[pa.Table, DatasetVersion]:
    table = _table()
    path: Path = tmp_path_factory.mktemp("picked") / "t.lance"
    return table, lance_sql.write(table, path, data_storage_version=request.param, max_rows_per_file=30_000)


@pytest.mark.parametrize("rows", [1, 40, 3000, 20_000])
def test_take(written: tuple[pa.Table, DatasetVersion], rows: int) -> None:
    table, ds = written
    ids = ds.scan(columns=["_rowid"]).to_table()["_rowid"].to_numpy()
    places = RNG.integers(0, ROWS, rows)
    assert ds.take(ids[places]).equals(table.take(places))


@pytest.mark.sampled(40)
@pytest.mark.parametrize("wanted", [1, 7, 16, 17, 100, 5000])
@pytest.mark.parametrize("column", ["packed", "nullable", "runs", "narrow"])
@pytest.mark.parametrize("negated", [False, True])
def test_lists(written: tuple[pa.Table, DatasetVersion], column: str, wanted: int, negated: bool) -> None:
    table, ds = written
    values = [*pc.unique(table[column].drop_null())[: wanted - 1].to_pylist(), 0]
    text = ", ".join(map(str, values))
    found = ds.scan(filter=f"{column} {'NOT ' * negated}IN ({text})").to_table()
    mask = pc.is_in(table[column], pa.array(values, table[column].type))
    mask = pc.and_(pc.invert(mask) if negated else mask, pc.is_valid(table[column]))
    assert found.equals(table.filter(mask))


@pytest.mark.parametrize("share", [0.00002, 0.001, 0.1, 0.3, 0.9])
@pytest.mark.parametrize("column", ["packed", "nullable", "runs", "narrow", "float"])
def test_ranges(written: tuple[pa.Table, DatasetVersion], column: str, share: float) -> None:
    table, ds = written
    bound = np.quantile(table[column].drop_null().to_numpy(), share)
    bound = float(bound) if column == "float" else int(bound)
    found = ds.scan(filter=f"{column} <= {bound!r}").to_table()
    assert found.equals(table.filter(pc.less_equal(table[column], bound)))
