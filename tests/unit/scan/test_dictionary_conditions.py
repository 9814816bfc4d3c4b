"""Conditions on columns that are stored as dictionaries, which are tested on their codes."""

from __future__ import annotations

import decimal
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from lance_engine.dataset import DatasetVersion
from lance_engine.write.dataset import write_dataset

ROWS = 6_000
SIZES = (1, 3, 63, 64, 65, 300)


def _words(size: int) -> list[str]:
    return [
        "",
        "it's",
        "Zoë",
        "a word that is longer than sixteen bytes",
        *(f"word {i}" for i in range(size)),
    ][:size]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    chance = random.Random(7)
    columns = {"row": pa.array(range(ROWS))}
    for size in SIZES:
        codes = [chance.randrange(size) for _ in range(ROWS)]
        nulls = [chance.random() < 0.1 for _ in range(ROWS)]
        words = _words(size)
        columns[f"word_{size}"] = pa.array([words[code] for code in codes])
        columns[f"null_word_{size}"] = pa.array(
            [None if null else words[code] for code, null in zip(codes, nulls, strict=True)], pa.string()
        )
        amounts = [decimal.Decimal(10**7 * (code * 37 % size)) / 100 for code in codes]
        columns[f"amount_{size}"] = pa.array(amounts, pa.decimal128(20, 2))
        columns[f"null_amount_{size}"] = pa.array(
            [None if null else amount for amount, null in zip(amounts, nulls, strict=True)],
            pa.decimal128(20, 2),
        )
    return pa.table(columns)


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable ids"])
def dataset(
    request: pytest.FixtureRequest, table: pa.Table, tmp_path_factory: pytest.TempPathFactory
) -> DatasetVersion:
    path = str(tmp_path_factory.mktemp("coded") / "t.lance")
    written = write_dataset(table, path, max_rows_per_file=4_000, stable_row_ids=request.param)
    return DatasetVersion(written).delete("row % 41 = 7")


def _literal(value: object) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else f"{value}"


@st.composite
def conditions(draw: st.DrawFn) -> tuple[str, str, Callable[[Any], bool]]:
    """A column, a condition on it as SQL, and what it gives for a value."""
    size = draw(st.sampled_from(SIZES))
    of_words = draw(st.booleans())
    column = draw(st.sampled_from(["", "null_"])) + ("word" if of_words else "amount") + f"_{size}"
    known: list[Any] = (
        [*_words(size), "unknown"] if of_words else [decimal.Decimal(10**5 * i) for i in range(-1, size + 1)]
    )
    one = draw(st.sampled_from(known))
    some = draw(st.lists(st.sampled_from(known), min_size=1, max_size=5))
    kind = draw(st.sampled_from(["=", "<>", "IN", "NOT IN", "NULL", "NOT NULL", "range", "OR", "NOT"]))
    if kind in ("=", "<>"):
        return column, f"{column} {kind} {_literal(one)}", lambda v: (v == one) == (kind == "=")
    if kind in ("IN", "NOT IN"):
        listed = ", ".join(map(_literal, some))
        return column, f"{column} {kind} ({listed})", lambda v: (v in some) == (kind == "IN")
    if kind in ("NULL", "NOT NULL"):
        return column, f"{column} IS {kind}", lambda v: (v is None) == (kind == "NULL")
    if kind == "range":
        low, high = min(one, some[0]), max(one, some[0])
        return (
            column,
            f"{column} >= {_literal(low)} AND {column} < {_literal(high)}",
            lambda v: low <= v < high,
        )
    if kind == "OR":
        text = f"{column} = {_literal(one)} OR {column} = {_literal(some[0])} OR {column} IS NULL"
        return column, text, lambda v: v is None or v in (one, some[0])
    text = f"NOT ({column} = {_literal(one)} OR {column} = {_literal(some[0])})"
    return column, text, lambda v: v not in (one, some[0])


@settings(max_examples=examples(10), deadline=None)
@given(condition=conditions())
def test_the_same_rows_as_value_by_value(
    table: pa.Table, dataset: DatasetVersion, condition: tuple[str, str, Callable[[Any], bool]]
) -> None:
    column, text, passes = condition
    about_nulls = "NULL" in text
    wanted = [
        row
        for row, value in enumerate(table[column].to_pylist())
        if row % 41 != 7 and (value is not None or about_nulls) and passes(value)
    ]
    for pruned in (True, False):
        scan = dataset.scan(columns=["row"], filter=text, zone_maps=pruned, indices=pruned)
        assert scan.to_table()["row"].to_pylist() == wanted
        assert scan.count() == len(wanted)
    assert sum(batch.num_rows for batch in dataset.scan(columns=[], filter=text).to_batches()) == len(wanted)
