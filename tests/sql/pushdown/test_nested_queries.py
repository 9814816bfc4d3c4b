"""The queries on nested data return the same on Lance as on Parquet."""

from __future__ import annotations

import pytest
from engine_versions import missing_function

from benchmarks import nested, paired
from demo.queries import same

#: DataFusion for Python has no functions for JSON, and none that take functions.
LACKING_IN_DATAFUSION = {
    "filter a list of structs",
    "sum over the items of each row",
    "group by a string of a JSON document",
    "sum a number of JSON documents",
    "test a value of a JSON document",
    "first of a JSON array",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return nested.prepared(tmp_path_factory.mktemp("nested"), 20_000)


def rows(table):
    return sorted(zip(*table.to_pydict().values(), strict=True), key=repr)


def test_datafusion_lacks_only_what_it_has_no_function_for():
    assert set(nested.queries("duckdb")) - set(nested.queries("datafusion")) == LACKING_IN_DATAFUSION
    assert set(nested.queries("datafusion")) < set(nested.queries("duckdb"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_answers_are_the_same(place, engine):
    parquet = paired.over_parquet(engine, place, nested.TABLES)
    lance = paired.over_lance(engine, place)
    for name, text in nested.queries(engine).items():
        if missing_function(engine, text):
            continue
        expected, found = rows(parquet(text)), rows(lance(text))
        assert expected, name
        assert any(value for row in expected for value in row), name
        assert same(expected, found), name
