"""The queries of ClickBench return the same on Lance as on Parquet."""

from __future__ import annotations

import re

import pytest

from benchmarks import clickbench, paired
from demo.queries import same


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return clickbench.prepared(tmp_path_factory.mktemp("clickbench"), 5_000)


def rows(table):
    return sorted(zip(*table.to_pydict().values(), strict=True), key=repr)


def test_there_are_43_queries():
    assert len(clickbench.queries()) == 43


@pytest.mark.sampled(1)
@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_answers_are_the_same(place, engine):
    parquet = paired.over_parquet(engine, place, ["hits"])
    lance = paired.over_lance(engine, place)
    answered = 0
    for query in clickbench.queries():
        text = re.sub(r" LIMIT \d+( OFFSET \d+)?$", "", query)  # of equal counts, any may come first
        expected, found = rows(parquet(text)), rows(lance(text))
        assert same(expected, found), text
        assert paired.same_size(parquet(query), lance(query)), query
        answered += bool(found)
    assert answered > 35
