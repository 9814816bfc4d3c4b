"""The statements of queries/conformance return the rows written there, on every engine."""

from __future__ import annotations

from pathlib import Path

import pytest
import sql_tables
from engine_versions import missing_function
from script_cases import Case, read_cases, text

CASES = Path(__file__).parents[3] / "queries" / "conformance"

ALL_CASES = [case for path in sorted(CASES.glob("*.test")) for case in read_cases(path)]


def lines(rows) -> list[str]:
    return ["|".join(text(value) for value in row) for row in rows]


def check(case: Case, engine: str, run) -> None:
    """The rows of `run` are those of the case; a declared gap that closes must be noticed."""

    def rows() -> list[str]:
        *before, last = case.statement.split(";\n")
        for statement in before:
            run(statement)
        return lines(run(last))

    if engine not in case.gaps:
        assert rows() == case.rows
        return
    try:
        found = rows()
    except Exception:
        return
    assert found != case.rows, f"{engine} can do it now"


def test_there_are_cases():
    assert len(ALL_CASES) >= 180
    assert len({case.name for case in ALL_CASES}) == len(ALL_CASES)
    assert {gap for case in ALL_CASES for gap in case.gaps} <= {"duckdb", "datafusion", "spark"}


@pytest.mark.sampled(80)
@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)
def test_case(case, connection, engine):
    lacking = missing_function(engine, case.statement)
    if lacking:
        pytest.skip(lacking)
    if engine == "duckdb":
        connection.sql("SET TimeZone = 'UTC'")  # as the others have it, wherever the tests run
    check(case, engine, lambda statement: connection.sql(statement).fetchall())


@pytest.fixture(scope="module")
def spark_tables(spark, warehouse):
    """The session with the warehouse as views; they are read once, since starting a scan takes a while."""
    settings = {
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.shuffle.partitions": "1",
        # Spark's statistics of cached rows forget NaN, which then is not found
        "spark.sql.inMemoryColumnarStorage.partitionPruning": "false",
    }
    before = {key: spark.conf.get(key) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    tables = [*sql_tables.ALL, "stock"]
    for name in tables:
        spark.read.format("lance").load(f"{warehouse}/{name}.lance").createOrReplaceTempView(name)
        spark.catalog.cacheTable(name)
    yield spark
    for name in tables:
        spark.catalog.uncacheTable(name)
        spark.catalog.dropTempView(name)
    for key, value in before.items():
        spark.conf.set(key, value)


@pytest.mark.slow
@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)
def test_case_on_spark(case, spark_tables):
    check(case, "spark", lambda statement: [tuple(row) for row in spark_tables.sql(statement).collect()])
