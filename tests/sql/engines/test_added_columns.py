"""Columns that engines get in addition to strings: their numbers."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.scan.code_columns import CodeColumn
from lance_engine.scan.dictionary_codes import DictionaryCodes

import lance_sql
from lance_sql.engines.added_columns import AddedColumns
from lance_sql.engines.duckdb.table import DuckDBTable, source
from lance_sql.engines.statement_run import StatementRun
from lance_sql.engines.table import EngineTable

ROWS = 8_000


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> DatasetVersion:
    random = np.random.default_rng(3)
    texts = [None if i == 0 else f"Text {i}" for i in random.integers(0, 300, ROWS)]
    data = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "text": pa.array(texts),
            "large": pa.array(texts, pa.large_string()),
            "flag": pa.array([None if i == 3 else "ABC"[i] for i in random.integers(0, 4, ROWS)]),
            "price": pa.array(random.integers(0, 10**6, ROWS), pa.int32()).cast(pa.decimal128(12, 2)),
            "half": pa.array(random.integers(0, 9, ROWS).astype(np.float16)),
        }
    )
    place = str(tmp_path_factory.mktemp("added") / "t.lance")
    lance_sql.write(data, place, max_rows_per_file=3_000)
    return lance_sql.open(place).delete("id % 13 = 4")


def added(dataset: DatasetVersion) -> AddedColumns:
    return AddedColumns(
        "t", tuple(CodeColumn(f"{name}#", name, number_of(dataset, name)) for name in ("text", "flag"))
    )


def number_of(dataset: DatasetVersion, column: str) -> DictionaryCodes:
    found = DictionaryCodes.of(dataset.snapshot, column)
    assert found is not None
    return found


def duckdb_rows(dataset: DatasetVersion, text: str) -> pa.Table:
    table = source(dataset, "t", added=added(dataset))
    connection = duckdb.connect()
    connection.register("t", table)
    return connection.sql(text).to_arrow_table()


def sorted_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def test_added_columns_come_last(dataset: DatasetVersion) -> None:
    table = EngineTable(dataset, "other", added=added(dataset), system_columns=["_rowid"])
    assert table.name == "t"
    assert table.schema.names[-3:] == ["_rowid", "text#", "flag#"]
    assert table.schema.types[-2:] == [pa.int32(), pa.uint8()]
    assert table.coded_columns == ("text", "flag")


@pytest.mark.sampled(12)
@pytest.mark.parametrize("dictionaries", [False, True])
@pytest.mark.parametrize("columns", [None, ["text#"], ["text", "text#"], ["id", "flag#"]])
@pytest.mark.parametrize("filter", [None, "id % 2 = 0", "id % 200 = 1", "text = 'Text 7'", "half > 3"])
@pytest.mark.parametrize("how", ["whole", "limited", "small batches"])
def test_scans_have_what_stands_for_the_strings(
    dataset: DatasetVersion,
    dictionaries: bool,
    columns: list[str] | None,
    filter: str | None,
    how: str,
) -> None:
    def declare(kind: pa.DataType) -> pa.DataType:
        return pa.float32() if kind == pa.float16() else kind

    table = EngineTable(dataset, "t", added=added(dataset), dictionaries=dictionaries, declare=declare)
    run = StatementRun()
    options = {}
    if how == "limited":
        run.ranges["t"] = range(5, 105)
        options = {"limit": 100, "offset": 5} if filter is None else {}
    scan = table.scan(columns, filter, run=run, batch_size=70 if how == "small batches" else None)
    found = pa.Table.from_batches(scan.batches(), scan.schema)
    expected = dataset.scan(["text", "flag"], filter, **options).to_table()
    assert found.num_rows == expected.num_rows
    if "text#" in found.schema.names:
        assert number_of(dataset, "text").strings(found["text#"]).equals(expected["text"])
    if "flag#" in found.schema.names:
        assert number_of(dataset, "flag").strings(found["flag#"]).equals(expected["flag"])
    if "text" in found.schema.names:
        assert found["text"].cast(pa.string()).equals(expected["text"])


@pytest.mark.parametrize("rest", ["", " WHERE text LIKE '%1%' AND id < 5000", " WHERE id % 50 = 1"])
def test_duckdb_groups_by_numbers(dataset: DatasetVersion, rest: str) -> None:
    plain = f"SELECT text AS k, count(*), sum(price), max(text) FROM t{rest} GROUP BY k"
    found = duckdb_rows(dataset, plain.replace("text AS k", '"text#" AS k'))
    found = found.set_column(0, "k", number_of(dataset, "text").strings(found["k"]))
    assert sorted_rows(found) == sorted_rows(duckdb_rows(dataset, plain))


def test_filters_on_added_columns_stay_with_duckdb(dataset: DatasetVersion) -> None:
    table = source(dataset, "t", pushdown="all", added=added(dataset))
    assert isinstance(table, DuckDBTable)
    connection = duckdb.connect()
    connection.register("t", table)
    text = "SELECT count(*) FROM t WHERE {} AND id < 40"
    found = connection.sql(text.format('"text#" IN (1, 3)')).fetchall()
    strings = number_of(dataset, "text").strings(pa.array([1, 3])).to_pylist()
    kept = dataset.scan(["text"], "id < 40").to_table()["text"].to_pylist()
    assert found == [(sum(1 for value in kept if value in strings),)]
    decided = [offered.decision for offered in table._offered.values()]
    assert any(decision.pushed for decision in decided if "id" in decision.condition)
    assert not any(decision.pushed for decision in decided if "#" in decision.condition)
