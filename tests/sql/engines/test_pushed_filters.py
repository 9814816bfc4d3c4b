"""The expressions that DuckDB and DataFusion really push into a dataset, read by `from_arrow`.

A recording dataset filters with the tree: an engine's answer over it is that over plain memory tables.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import datafusion
import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest
from lance_engine.expr.evaluate import evaluate
from lance_engine.expr.from_arrow import from_arrow

NAN = float("nan")
CENTS = (5, 7, None, 1000, 310, -100)
DAYS = (10471, None, 10472, 18262, 0, -3594)
TEXTS = ["abc", None, "a%c", "B_d", "", "zz"]
STRUCTS = [
    {"a": 1, "b": {"c": "x"}},
    None,
    {"a": None, "b": None},
    {"a": 3, "b": {"c": "y"}},
    {"a": 4, "b": {"c": None}},
    {"a": 5, "b": {"c": "z"}},
]
DECIMALS = [None if cents is None else Decimal(cents).scaleb(-2) for cents in CENTS]
DATES = [None if days is None else datetime.date(1970, 1, 1) + datetime.timedelta(days) for days in DAYS]

TABLE = pa.table(
    {
        "id": pa.array(range(6), pa.int64()),
        "i": pa.array([1, 2, None, 5, -7, 0], pa.int32()),
        "u": pa.array([1, 2**64 - 1, None, 0, 7, 8], pa.uint64()),
        "f": pa.array([0.1, NAN, None, -0.0, 3.0, -3.0], pa.float32()),
        "x": pa.array([1.5, None, NAN, 0.0, 4.0, -4.0]),
        "d": pa.array(DECIMALS, pa.decimal128(15, 2)),
        "s": pa.array(TEXTS),
        "l": pa.array(TEXTS, pa.large_string()),
        "k": pa.array(["u", None, "v", "u", "w", "u"]).dictionary_encode(),
        "bl": pa.array([b"\xaa", b"", None, b"ab", b"a", b"b"]),
        "bo": pa.array([True, None, False, True, False, True]),
        "dt": pa.array(DATES),
        "ts": pa.array([0, None, 10**15, 5, -1, 10**12], pa.timestamp("us")),
        "ms": pa.array([0, None, 10**12, 5, -1, 10**9], pa.timestamp("ms")),
        "tz": pa.array([0, None, 10**15, 5, -1, 10**12], pa.timestamp("us", "UTC")),
        "st": pa.array(STRUCTS),
    }
)


class Recording(pads.Dataset):
    """A dataset that filters with our tree and remembers the filters."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.filters: list[str] = []

    @property
    def schema(self) -> pa.Schema:
        return self._table.schema

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[Any]:
        return iter([Fragment(self)])

    def scanner(self, columns: list[str] | None = None, filter: pc.Expression | None = None, **_: Any) -> Any:
        table = self._table.combine_chunks()
        if filter is not None:
            node = from_arrow(filter, table.schema)
            self.filters.append(str(node))
            table = table.filter(evaluate(node, table.to_batches()[0]))
        table = table if columns is None else table.select(columns)
        return pads.Scanner.from_batches(table.to_batches(), schema=table.schema)


class Fragment:
    """The one fragment that DataFusion reads."""

    def __init__(self, dataset: Recording) -> None:
        self._dataset = dataset

    def scanner(self, _schema: pa.Schema, **options: Any) -> Any:
        return self._dataset.scanner(**options)


#: Conditions, and whether DuckDB pushes them; what an engine pushes it does not check again.
CONDITIONS = [
    ("i = 1", True),
    ("i <> 1", True),
    ("i < 2 OR i >= 5", True),
    ("NOT (i > 1 AND bo = true)", True),
    ("i BETWEEN 1 AND 2", True),
    ("i IN (1, 5)", True),
    ("i IN (1, 5, 7, 8, 9)", True),
    ("i NOT IN (1, 5, 7, 8, 9)", True),
    ("i NOT IN (1, 5)", True),
    ("i IS NULL", True),
    ("i IS NOT NULL AND f IS NULL", True),
    ("u > 7", True),
    ("f <= 0.5", True),
    ("f > 1", False),
    ("f = 0", True),
    ("f <> 3", False),
    ("x >= 1.5", False),
    ("x < 2", True),
    ("NOT (x < 2)", False),
    ("x IN (1.5, 4, 5, 6, 7)", True),
    ("d < 10.00", True),
    ("d BETWEEN 0.05 AND 0.07", True),
    ("s = 'abc'", True),
    ("s >= 'a'", True),
    ("s IN ('abc', 'zz', 'q', 'r', 't')", True),
    ("l = 'abc'", True),
    ("k = 'u'", True),
    ("k IN ('u', 'w', 'x', 'y')", True),
    ("bo", False),
    ("NOT bo", False),
    ("dt < DATE '1998-09-03'", True),
    ("dt IN (DATE '1998-09-03', DATE '2020-01-01')", True),
    ("ts < TIMESTAMP '2001-01-01 00:00:00'", True),
    ("ms >= TIMESTAMP '1970-01-01 00:00:00'", False),
    ("i = 1 AND s = 'abc' AND d < 1", True),
]
DUCKDB_ONLY = [
    ("st.a > 1", True),
    ("st.b.c = 'x'", True),
    ("st.a IS NULL", True),
    ("bl = '\\xAA'::BLOB", True),
    ("tz >= TIMESTAMPTZ '1970-01-01 00:00:00+00'", True),
    ("i + 1 = 6", True),
    ("year(dt) = 1998", True),
    ("s LIKE 'abc'", True),
    ("x IN (0, 1.5)", True),
    ("s LIKE 'a%'", False),
]


#: DataFusion pushes all but these, in which it casts the column.
DATAFUSION_KEEPS = ("f <= 0.5", "k IN ('u', 'w', 'x', 'y')")


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("condition", "pushed"), CONDITIONS + DUCKDB_ONLY)
def test_duckdb(condition: str, pushed: bool) -> None:
    dataset = Recording(TABLE)
    query = f"SELECT id FROM {{}} WHERE {condition} ORDER BY id"
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute("SET TimeZone = 'UTC'")
        con.register("ours", dataset)
        con.register("theirs", TABLE)
        assert con.execute(query.format("ours")).fetchall() == con.execute(query.format("theirs")).fetchall()
    assert bool(dataset.filters) == pushed, dataset.filters


@pytest.mark.sampled(12)
@pytest.mark.parametrize("condition", [text for text, _ in CONDITIONS])
def test_datafusion(condition: str) -> None:
    dataset = Recording(TABLE)
    context = datafusion.SessionContext()
    context.register_dataset("ours", dataset)
    context.register_record_batches("theirs", [TABLE.to_batches()])
    query = f"SELECT id FROM {{}} WHERE {condition} ORDER BY id"
    ours, theirs = (
        pa.table(context.sql(query.format(name))).column(0).to_pylist() for name in ("ours", "theirs")
    )
    if condition == "f = 0" and int(datafusion.__version__.partition(".")[0]) < 55:
        assert set(ours) > set(theirs), "older tables of DataFusion's own tell -0.0 from 0.0"
    else:
        assert ours == theirs
    assert bool(dataset.filters) == (condition not in DATAFUSION_KEEPS)
