"""Which strings DuckDB receives as dictionaries: those whose dictionaries are small next to a batch."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion

import lance_sql
from lance_sql.engines.table import EngineTable

ROWS = 40_000
FEW, MANY = 100, 8_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dictionaries")
    table = pa.table(
        {
            "few": [f"one of few values {row % FEW}" for row in range(ROWS)],
            "many": [None if row % 11 == 0 else f"one of many values {row % MANY}" for row in range(ROWS)],
        }
    )
    lance_sql.write(table, folder / "words.lance")
    return folder


@pytest.fixture
def dataset(folder: Path) -> DatasetVersion:
    return lance_sql.open(folder / "words.lance")


@pytest.mark.parametrize(
    ("most", "names"),
    [
        (None, ["few", "many"]),
        (MANY + 1, ["few", "many"]),
        (MANY // 2, ["few"]),
        (FEW, ["few"]),
        (FEW - 1, []),
    ],
)
def test_dictionary_columns_of_at_most_so_many_entries(
    dataset: DatasetVersion, most: int | None, names: list[str]
) -> None:
    assert dataset.dictionary_columns(most) == names


@pytest.mark.parametrize(
    ("batch_rows", "names"),
    [(None, {"few", "many"}), (65_536, {"few", "many"}), (16_384, {"few"}), (256, set())],
)
def test_a_dictionary_that_is_large_next_to_a_batch_is_not_delivered(
    dataset: DatasetVersion, batch_rows: int | None, names: set[str]
) -> None:
    table = EngineTable(dataset, dictionaries=True, batch_rows=batch_rows)
    assert table.coded == names
    assert {field.name for field in table.schema if pa.types.is_dictionary(field.type)} == names
    for batch in table.scan(run=None).batches():
        assert batch.schema.types == table.schema.types


def test_answers_are_the_same_in_either_form(folder: Path) -> None:
    with lance_sql.connect(folder) as connection:
        rows = connection.sql(
            "SELECT few, count(DISTINCT many) AS kinds, count(many) AS known FROM words"
            " WHERE many IS NULL OR many LIKE '%values 7%' GROUP BY few ORDER BY few"
        ).fetchall()
    expected: dict[str, tuple[set[str], int]] = {}
    for row in range(ROWS):
        few, many = f"one of few values {row % FEW}", f"one of many values {row % MANY}"
        if row % 11 == 0:
            expected.setdefault(few, (set(), 0))
        elif "values 7" in many:
            kinds, known = expected.get(few, (set(), 0))
            expected[few] = (kinds | {many}, known + 1)
    assert rows == [(few, len(kinds), known) for few, (kinds, known) in sorted(expected.items())]
