"""Columns that are tested and returned: the same as filtering what was decoded."""

from __future__ import annotations

import decimal
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from lance_engine.dataset import DatasetVersion
from lance_engine.write.dataset import write_dataset

ROWS = 12_000
WORDS = ("", "few", "some words", "many more words than fit into sixteen bytes", None)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    chance = random.Random(9)
    numbers = [chance.randrange(1 << 40) for _ in range(ROWS)]
    return pa.table(
        {
            "number": numbers,
            "word": [WORDS[number % 4] for number in numbers],
            "nullable": [WORDS[number % 5] for number in numbers],
            "large": pa.array([WORDS[number // 7 % 5] for number in numbers], pa.large_string()),
            "sorted": [f"word {row // 3000}" for row in range(ROWS)],
            "cents": pa.array([decimal.Decimal(number % 17) / 100 for number in numbers]),
            "text": [f"{number:x}" for number in numbers],
            "pair": [{"word": WORDS[number % 3], "number": number % 11} for number in numbers],
        }
    )


@pytest.fixture(scope="module", params=["2.1", "2.2"])
def dataset(
    request: pytest.FixtureRequest, table: pa.Table, tmp_path_factory: pytest.TempPathFactory
) -> DatasetVersion:
    path = str(tmp_path_factory.mktemp("kept") / "t.lance")
    written = write_dataset(table, path, data_storage_version=request.param, max_rows_per_file=7_000)
    return DatasetVersion(written).delete("number % 29 = 3")


CONDITIONS = {
    "word <> ''": pc.field("word") != "",
    "nullable <> 'few'": pc.field("nullable") != "few",
    "nullable LIKE '%words%'": pc.match_substring(pc.field("nullable"), "words"),
    "large = 'some words'": pc.field("large") == "some words",
    "sorted IN ('word 1', 'word 2')": pc.field("sorted").isin(["word 1", "word 2"]),
    "word = 'absent'": pc.field("word") == "absent",
    "cents > 0.05": pc.field("cents") > decimal.Decimal("0.05"),
    "cents <> 0.16": pc.field("cents") != decimal.Decimal("0.16"),
    "number % 3 <> 1": pc.field("number") - pc.floor(pc.field("number") / 3).cast("int64") * 3 != 1,
    "number < 400000000000": pc.field("number") < 400_000_000_000,
    "number < 4000000000": pc.field("number") < 4_000_000_000,
    "text > '8'": pc.field("text") > "8",
}


@settings(max_examples=examples(10), deadline=None)
@given(
    conditions=st.lists(st.sampled_from(sorted(CONDITIONS)), min_size=1, max_size=3, unique=True),
    columns=st.lists(
        st.sampled_from(["number", "word", "nullable", "large", "sorted", "cents", "text", "pair"]),
        min_size=1,
        unique=True,
    ),
    coded=st.booleans(),
    batch_size=st.sampled_from([None, 700, 5_000]),
)
def test_rows_are_those_that_filtering_finds(
    table: pa.Table,
    dataset: DatasetVersion,
    conditions: list[str],
    columns: list[str],
    coded: bool,
    batch_size: int | None,
) -> None:
    scan = dataset.scan(
        columns=columns,
        filter=" AND ".join(conditions),
        dictionaries=[name for name in ("word", "nullable") if coded and name in columns],
        batch_size=batch_size,
    )
    found = scan.to_table()
    found.validate(full=True)
    wanted = table.filter(pc.field("number") - pc.floor(pc.field("number") / 29).cast("int64") * 29 != 3)
    for condition in conditions:
        wanted = wanted.filter(CONDITIONS[condition])
    assert found.cast(wanted.select(columns).schema).equals(wanted.select(columns))


def test_dictionaries_of_many_entries(tmp_path: Path) -> None:
    words = [f"a longer word with the number {row % 9_000 // 2}" for row in range(54_000)]
    dataset = DatasetVersion(write_dataset(pa.table({"word": words}), str(tmp_path / "t.lance")))
    wanted = [word for word in words if word != "a longer word with the number 7"]
    scan = dataset.scan(filter="word <> 'a longer word with the number 7'", batch_size=10_000)
    assert scan.to_table()["word"].to_pylist() == wanted
