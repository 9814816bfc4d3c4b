"""After any change to an indexed table, a scan that uses the indices returns the same rows."""

from __future__ import annotations

import datetime
import math
import random
import tempfile
from decimal import Decimal
from typing import Any
from unittest import mock

import hypothesis.strategies as st
import lance
import pyarrow as pa
import pytest
from counts import examples
from hypothesis import HealthCheck, Phase, given, settings
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import UnsupportedTypeError
from lance_engine.index import search

from tests.support.indices import KINDS, addresses

NAN = math.nan
DAY = datetime.date(2024, 1, 1)
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), [-(2**31), -7, -1, 0, 1, 2, 3, 5, 8, 2**31 - 1]),
    "u": (pa.uint64(), [0, 1, 2**63, 2**64 - 1]),
    "f": (pa.float64(), [NAN, -math.inf, -1.5, -0.0, 0.0, 0.25, 3.0, math.inf]),
    "h": (pa.float16(), [NAN, -1.5, -0.0, 0.0, 3.0]),
    "t": (pa.string(), ["", "a", "ab", "abc", "b", "é", "\U0010ffff"]),
    "raw": (pa.binary(), [b"", b"a", b"\xff"]),
    "flag": (pa.bool_(), [False, True]),
    "price": (pa.decimal128(9, 2), [Decimal("-3.50"), Decimal("0.00"), Decimal("7.25")]),
    "day": (pa.date32(), [DAY + datetime.timedelta(day) for day in range(6)]),
    "moment": (pa.timestamp("us"), [datetime.datetime(2024, 1, 1, hour) for hour in range(6)]),
}
LITERALS = {
    "i": ["-1", "0", "2", "5"],
    "u": ["0", "1", "9223372036854775808"],
    "f": ["0.0", "0.25", "'nan'::double", "3.0"],
    "h": ["0.0", "-1.5", "3.0"],
    "t": ["''", "'a'", "'ab'", "'é'"],
    "raw": ["'a'::blob", "''::blob"],
    "flag": ["true", "false"],
    "price": ["-3.5", "0", "7.25"],
    "day": ["DATE '2024-01-01'", "DATE '2024-01-04'"],
    "moment": ["TIMESTAMP '2024-01-01 02:00:00'", "TIMESTAMP '2024-01-01 05:00:00'"],
}
FORMS = ["=", "=", "<", "<=", ">", ">=", "<>", "between", "in", "null", "like", "odd"]
ACTIONS = ["append", "delete", "update", "replace", "compact", "optimize", "restore"]
INDEXED = st.tuples(st.sampled_from(list(VALUES)), st.sampled_from(KINDS))
# A case takes a second: smaller ones are not worth the search.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


@st.composite
def predicates(draw: st.DrawFn, depth: int = 2) -> str:
    if depth and draw(st.booleans()):
        left, right = draw(predicates(depth - 1)), draw(predicates(depth - 1))
        joined = f"({left}) {draw(st.sampled_from(['AND', 'AND', 'OR']))} ({right})"
        return f"NOT ({joined})" if draw(st.integers(0, 3)) == 0 else joined
    name = draw(st.sampled_from(list(VALUES)))

    def constant() -> str:
        return draw(st.sampled_from(LITERALS[name]))

    form = draw(
        st.sampled_from(["=", "=", "<", "<=", ">", ">=", "<>", "between", "in", "null", "like", "odd"])
    )
    if form == "between":
        return f"{name} BETWEEN {constant()} AND {constant()}"
    if form == "in":
        null = draw(st.sampled_from(["", "", ", NULL"]))
        return f"{name} {draw(st.sampled_from(['IN', 'NOT IN']))} ({constant()}, {constant()}{null})"
    if form == "null":
        return f"{name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    if form == "like":
        return (
            f"t {draw(st.sampled_from(['', 'NOT ']))}LIKE '{draw(st.sampled_from(['a%', 'ab%', '%b', '_']))}'"
        )
    if form == "odd":
        return draw(st.sampled_from(["i % 2 = 0", "i < u", "f > 2.0 * i", "_rowid < 9"]))
    return f"{name} {form} {constant()}"


def random_table(rng: random.Random, rows: int) -> pa.Table:
    def column(kind: pa.DataType, values: list[Any]) -> pa.Array:
        return pa.array([None if rng.random() < 0.15 else rng.choice(values) for _ in range(rows)], kind)

    return pa.table({name: column(kind, values) for name, (kind, values) in VALUES.items()})


def step(uri: str, rng: random.Random, action: str) -> None:
    dataset = DatasetVersion.open(uri)
    match action:
        case "append":
            lance.write_dataset(random_table(rng, rng.randint(1, 20)), uri, mode="append")
        case "delete":
            dataset.delete(rng.choice(["i = 2", "t = 'a' AND f < 1", "u IS NULL", "flag AND i < 0"]))
        case "update":
            column, value = rng.choice([("i", "3"), ("t", "'ab'"), ("f", "0.25"), ("flag", "true")])
            dataset.update({column: value}, rng.choice(["i = 5", "day = DATE '2024-01-02'", "f > 1"]))
        case "replace":
            dataset.replace_columns({"i": lambda batch: pa.array(range(batch.num_rows), pa.int32())})
        case "compact":
            dataset.compact(target_rows=rng.choice([10, 1000]))
        case "optimize":
            dataset.optimize_indices()
        case "restore":
            dataset.restore(rng.randint(1, dataset.version))


@settings(max_examples=examples(6), deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**32),
    filters=st.lists(predicates(), min_size=15, max_size=15),
    indexed=st.lists(INDEXED, min_size=3, max_size=7),
    actions=st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=4),
    stable=st.booleans(),
)
def test_indices_do_not_change_answers(
    seed: int, filters: list[str], indexed: list[tuple[str, str]], actions: list[str], stable: bool
) -> None:
    check_indices(seed, filters, indexed, actions, stable=stable)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=1000, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**32),
    filters=st.lists(predicates(3), min_size=20, max_size=20),
    indexed=st.lists(INDEXED, min_size=3, max_size=9),
    actions=st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=8),
    stable=st.booleans(),
)
def test_indices_do_not_change_answers_of_many(
    seed: int, filters: list[str], indexed: list[tuple[str, str]], actions: list[str], stable: bool
) -> None:
    check_indices(seed, filters, indexed, actions, stable=stable)


def check_indices(
    seed: int, filters: list[str], indexed: list[tuple[str, str]], actions: list[str], *, stable: bool
) -> None:
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as uri:
        lance.write_dataset(random_table(rng, 60), uri, max_rows_per_file=25, enable_stable_row_ids=stable)
        for column, kind in indexed:
            options = {"btree": {"page_rows": 7}, "bitmap": {}}.get(kind, {"rows_per_zone": 8})
            try:
                DatasetVersion.open(uri).create_index(
                    column, kind, name=f"{column}_{kind}", replace=True, **options
                )
            except UnsupportedTypeError:
                assert kind == "bloomfilter"
        for action in actions:
            step(uri, rng, action)
        dataset = DatasetVersion.open(uri)
        assert dataset.verify().num_rows == 0
        # Indices are of use here however little they exclude.
        with mock.patch.object(search, "MIN_EXCLUDED_SHARE", -1.0):
            for text in filters:
                scan = dataset.scan(["_rowaddr"], filter=text, zone_maps=False)
                plain = dataset.scan(["_rowaddr"], filter=text, zone_maps=False, indices=False)
                expected = addresses(plain)
                assert addresses(scan) == expected, (text, actions)
                assert dataset.scan([], filter=text).count() == len(expected), (text, actions)
