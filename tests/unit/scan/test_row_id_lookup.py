"""Conditions on row ids and addresses are looked up, with the answer of a scan that tests them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import RowNotFoundError
from lance_engine.format.operations import Overwrite
from lance_engine.io import open_store
from lance_engine.schema_tree import Schema
from lance_engine.table.build import CreateOptions
from lance_engine.table.commit import commit
from lance_engine.write.fragments import write_fragments
from lance_engine.write.options import WriteOptions

ROWS = 3_000


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable"])
def dataset(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> DatasetVersion:
    """Three fragments, deleted rows, and with stable ids also rows that moved."""
    table = pa.table({"x": np.arange(ROWS), "t": [f"row {row}" for row in range(ROWS)]})
    store = open_store(str(tmp_path_factory.mktemp("lookup")))
    schema = Schema.from_arrow(table.schema)
    fragments = write_fragments(store, schema, table.to_batches(), WriteOptions(max_rows_per_file=1_000))
    created = CreateOptions(stable_row_ids=request.param)
    found = DatasetVersion(
        commit(store, Overwrite(tuple(fragments), schema), read_version=0, options=created)
    )
    found = found.delete("x % 7 = 3")
    if not request.param:
        return found
    return found.update(
        {"t": lambda batch: pc.binary_join_element_wise(batch["t"], "!", "")}, "x BETWEEN 990 AND 1010"
    )


def _far(dataset: DatasetVersion, row: int) -> int:
    """The id or address of the row with this x."""
    return dataset.scan(columns=["_rowid"], filter=f"x = {row}").to_table()["_rowid"][0].as_py()


CONDITIONS = [
    "{c} = {a}",
    "{c} IN ({a}, {b}, 4, 999999999999, 10)",
    "{c} BETWEEN {a} AND {b}",
    "{c} >= {b}",
    "{c} < {a}",
    "{c} > {a} AND {c} <= {b}",
    "{c} = {a} OR {c} BETWEEN {b} AND {b} + 20",
    "{c} BETWEEN {a} AND {b} AND x % 2 = 0",
    "{c} IN ({a}, {b}) AND t LIKE 'row 1%'",
    "{c} NOT IN ({a}, {b}) AND {c} < {b} + 5",
    "{c} <> {a} AND {c} < {a} + 3",
    "{c} = {a} OR x = 77",
    "{c} > {b} AND {c} < {a}",
    "{c} = 18446744073709551615",
    "{c} IS NULL",
]


@pytest.mark.sampled(20)
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("column", ["_rowid", "_rowaddr"])
def test_lookups_find_what_a_test_finds(dataset: DatasetVersion, column: str, condition: str) -> None:
    text = condition.format(c=column, a=_far(dataset, 100), b=_far(dataset, 1_500))
    everything = dataset.scan(columns=["_rowid", "_rowaddr", "x", "t"]).to_table()
    # Through arithmetic the condition is beyond a lookup.
    tested = dataset.scan(columns=["x"], filter=text.replace(column, f"({column} + 0)"), zone_maps=False)
    expected = everything.filter(pc.is_in(everything["x"], value_set=tested.to_table()["x"].combine_chunks()))
    scan = dataset.scan(columns=["_rowid", "_rowaddr", "x", "t"], filter=text)
    assert scan.to_table().equals(expected)
    assert scan.count() == expected.num_rows


def test_a_lookup_reads_only_its_rows(dataset: DatasetVersion) -> None:
    wanted = [_far(dataset, row) for row in (5, 1_201, 2_998)]
    scan = dataset.scan(columns=["x"], filter=f"_rowid IN ({', '.join(map(str, wanted))}) AND t LIKE 'row %'")
    assert scan.to_table()["x"].to_pylist() == [5, 1_201, 2_998]
    assert scan.metrics is not None
    assert scan.metrics.rows_left == scan.metrics.rows_out == 3
    assert "looked up: all of the filter" in dataset.scan(filter=f"_rowid = {wanted[0]}").explain()


def test_missing_ids_are_listed_or_skipped(dataset: DatasetVersion) -> None:
    first, last = _far(dataset, 0), _far(dataset, 2_998)
    deleted = 3
    wanted = [last, deleted, first, 1 << 40, last, (1 << 64) - 1]
    with pytest.raises(
        RowNotFoundError, match=rf"3 row ids not found, or deleted: {deleted}, {1 << 40}, {(1 << 64) - 1}"
    ):
        dataset.take(wanted)
    assert dataset.take(wanted, ["x"], missing="skip")["x"].to_pylist() == [2_998, 0, 2_998]
    assert dataset.take([deleted], missing="skip").num_rows == 0
    with pytest.raises(ValueError, match="missing"):
        dataset.take([first], missing="drop")  # type: ignore[arg-type]


def test_threads_may_take_at_the_same_time(dataset: DatasetVersion) -> None:
    ids = dataset.scan(columns=["_rowid", "x"]).to_table()
    fresh = DatasetVersion.open(str(Path(dataset.uri)))

    def look_up(seed: int) -> bool:
        places = np.random.default_rng(seed).integers(0, len(ids), 200)
        rows = ids.take(pa.array(places))
        found = fresh.take(rows["_rowid"].to_numpy(), ["x", "t"])
        texts = [text.rstrip("!") for text in found["t"].to_pylist()]
        return bool(found["x"].equals(rows["x"])) and texts == [f"row {x}" for x in rows["x"].to_pylist()]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(look_up, range(64)))


def test_few_rows_that_are_looked_up_are_read_without_threads(tmp_path: Path) -> None:
    table = pa.table({"x": np.arange(ROWS)})
    uri = str(tmp_path / "t")
    store = open_store(uri)
    schema = Schema.from_arrow(table.schema)
    fragments = write_fragments(store, schema, table.to_batches(), WriteOptions(max_rows_per_file=1_000))
    dataset = DatasetVersion(commit(store, Overwrite(tuple(fragments), schema), read_version=0))
    dataset = dataset.create_index("x", "btree")
    few = [f"x IN (5, {ROWS - 1})", "x BETWEEN 990 AND 1010", f"_rowid IN (3, {2 << 32 | 7})", "x = -1"]
    for condition in few:
        assert dataset.scan(filter=condition).threads == 0
    many = ["x < 400", "x + 0 = 5", f"_rowid < {2 << 32}", "x > 5 OR x IS NULL"]
    for condition in many:
        assert dataset.scan(filter=condition).threads > 0
    assert dataset.scan().threads > 0
    here = dataset.scan(filter=many[0])
    here.decode_here()
    assert here.threads == 0
    assert here.to_table() == dataset.scan(filter=many[0]).to_table()
    for condition in [*few, *many]:
        with_threads = dataset.scan(filter=condition, indices=False).to_table()
        assert dataset.scan(filter=condition).to_table() == with_threads
    remote = open_store("memory://threads")
    for path in (tmp_path / "t").rglob("*.*"):
        remote.put(str(path.relative_to(tmp_path / "t")), path.read_bytes())
    assert DatasetVersion.open(remote).scan(filter=few[0]).threads > 0
