"""Columns of every type: its name on each engine, and that the values are the ones that were written."""

from __future__ import annotations

import column_types
import pyarrow as pa
import pytest
from column_types import plain
from engine_versions import needs_duckdb_2
from lance_engine.logical_types import describe

import lance_sql
from lance_sql.types.kinds import KINDS as KINDS_OF_DUCKDB
from lance_sql.types.table import TYPES

NAMES = {"duckdb": "typeof", "datafusion": "arrow_typeof"}
KINDS = {kind: (f"c{number}", column) for number, (kind, column) in enumerate(column_types.COLUMNS.items())}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    place = tmp_path_factory.mktemp("types")
    lance_sql.write(column_types.table(), place / "kinds.lance")
    return place


@pytest.mark.parametrize("names", TYPES, ids=lambda names: names.lance)
def test_logical_types(names):
    assert describe(pa.field("c", names.arrow), "c").logical_type == names.lance


def test_duckdb_stores_its_types_in_those_that_it_reads_as_them():
    called = {names.arrow: names.duckdb for names in TYPES}
    plain_kinds = [kind for kind in KINDS_OF_DUCKDB.values() if not kind.extension and kind.arrow in called]
    assert len(plain_kinds) > 15
    assert [called[kind.arrow] for kind in plain_kinds] == [kind.name for kind in plain_kinds]


@needs_duckdb_2
def test_types_and_values(directory, engine):
    called = column_types.recorded()
    assert list(called) == list(KINDS)
    with lance_sql.connect(directory, engine=engine) as connection:
        if engine == "duckdb":
            connection.sql("SET TimeZone = 'UTC'")
        for kind, (name, column) in KINDS.items():
            rows = connection.sql(f"SELECT {name}, {NAMES[engine]}({name}) FROM kinds ORDER BY id").fetchall()
            assert {said for _, said in rows} == {called[kind][engine]}, kind
            assert [plain(value) for value, _ in rows] == [plain(v) for v in column.to_pylist()], kind


@pytest.mark.slow
def test_types_and_values_in_spark(directory, spark):
    called = column_types.recorded()
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        frame = spark.read.format("lance").load(f"{directory}/kinds.lance").orderBy("id")
        rows = frame.collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    for kind, (name, column) in KINDS.items():
        assert frame.schema[name].dataType.simpleString() == called[kind]["spark"], kind
        assert [plain(row[name]) for row in rows] == [plain(value) for value in column.to_pylist()], kind
