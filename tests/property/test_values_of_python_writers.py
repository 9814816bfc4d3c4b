"""Python's update, merge, replace_columns and append convert values as DuckDB's casts do, or refuse them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from engine_versions import needs_duckdb_2
from lance_engine.errors import LanceError

import lance_sql

pytestmark = needs_duckdb_2

VALUES = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["1", "-127"],
    "BIGINT": ["7", "300", "-9223372036854775807"],
    "HUGEINT": ["170141183460469231731687303715884105727", "5", "-1"],
    "UHUGEINT": ["340282366920938463463374607431768211455", "5"],
    "FLOAT": ["1.5", "'nan'", "3e38"],
    "DOUBLE": ["2.5", "1e40", "'inf'", "0.1"],
    "DECIMAL(10,3)": ["2.500", "-0.125", "1234567.891"],
    "VARCHAR": ["'1'", "'hello'", "'2024-01-02'", "'\\x42'", "'1 day'", "'101'", "'1e40'"],
    "BLOB": ["'\\x42\\x00'::BLOB", "'ab'"],
    "DATE": ["'2024-01-02'", "'infinity'"],
    "TIME": ["'12:00:00.123456'"],
    "TIMESTAMP": ["'2024-01-01 00:00:01.999999'", "'1960-01-01 00:00:01.5'", "'infinity'"],
    "TIMESTAMP_S": ["'2024-01-01 00:00:01'"],
    "TIMESTAMP_MS": ["'2024-01-01 00:00:01.999'"],
    "TIMESTAMP_NS": ["'2024-01-01 00:00:01.123456789'"],
    "TIMESTAMPTZ": ["'2024-01-01 00:00:00.5+00'"],
    "TIMETZ": ["'12:00:00+05:30'"],
    "INTERVAL": ["'1 month'", "'2 days'"],
    "UUID": ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"],
    "BIT": ["'101'"],
    "ENUM('hello', '1')": ["'hello'", "'1'"],
    "GEOMETRY": ["'POINT(1 2)'"],
    "STRUCT(a INTEGER, b VARCHAR)": ["{'a': 1, 'b': 'x'}"],
    "STRUCT(A BIGINT)": ["{'A': 3000000000}", "{'A': 3}"],
    "TUPLE(INTEGER, VARCHAR)": ["row(1, 'x')"],
    "INTEGER[]": ["[1, NULL]", "[]"],
    "VARCHAR[2]": ["['1', '2']"],
    "DOUBLE[2]": ["[1e40, 1]", "[0.5, 1]"],
    "FLOAT[2]": ["[0.5, 1]"],
    "UNION(n INTEGER, s VARCHAR)": ["union_value(n := 1)"],
}  # fmt: skip

#: Types whose values functions receive in their stored form.
OPAQUE = (
    "HUGEINT",
    "UHUGEINT",
    "TIMETZ",
    "INTERVAL",
    "UUID",
    "BIT",
    "ENUM",
    "GEOMETRY",
    "TUPLE",
    "VARCHAR[",
    "UNION",
)

Writer = Callable[[Any, pa.Table], Any]
WRITERS: dict[str, Writer] = {
    "update": lambda ds, _: ds.update({"v": "s"}),
    "update with a function": lambda ds, _: ds.update({"v": lambda batch: batch.column("s")}),
    "replace_columns": lambda ds, _: ds.replace_columns({"v": "s"}),
    "merge": lambda ds, rows: ds.merge(rows, "i").when_matched_update({"v": "source.s"}).execute(),
}


def _cast(plain: duckdb.DuckDBPyConnection, value: str, source: str, target: str) -> str | None:
    """What DuckDB makes of a value, as text; None where it refuses."""
    query = f"SELECT CAST(CAST(CAST(({value}) AS {source}) AS {target}) AS VARCHAR)"
    try:
        ((found,),) = plain.execute(query).fetchall()
    except duckdb.Error:
        return None
    return str(found)


def _check(place: Any, sources: list[str], target: str, writer: str) -> None:
    with lance_sql.connect(place, engine="duckdb") as session, duckdb.connect() as plain:
        for connection in (session, plain):
            connection.execute("SET TimeZone = 'UTC'")
        for source in sources:
            if "function" in writer and source.startswith(OPAQUE):
                continue
            expected = {value: _cast(plain, value, source, target) for value in VALUES[source]}
            fitting = [value for value in expected if expected[value] is not None]
            refused = [[value] for value in expected if expected[value] is None]
            for values in [*refused, *([fitting] if fitting else [])]:
                rows = ", ".join(f"({number}, {value}, NULL)" for number, value in enumerate(values))
                session.execute(f"CREATE OR REPLACE TABLE t (i INTEGER, s {source}, v {target})")
                session.execute(f"INSERT INTO t VALUES {rows}")
                dataset = lance_sql.open(place / "t.lance")
                case = (writer, source, target, values)
                try:
                    WRITERS[writer](dataset, dataset.to_table(["i", "s"]))
                except LanceError:
                    assert values != fitting, case
                else:
                    found = session.sql("SELECT v::VARCHAR FROM t ORDER BY i").fetchall()
                    assert found == [(expected[value],) for value in values], case


@pytest.mark.parametrize("writer", WRITERS)
def test_some_values(tmp_path, writer):
    chosen = random.Random(writer)
    for target in chosen.sample(list(VALUES), 5):
        _check(tmp_path, chosen.sample(list(VALUES), 2), target, writer)


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("target", VALUES)
def test_all_values(tmp_path, target, writer):
    _check(tmp_path, list(VALUES), target, writer)
