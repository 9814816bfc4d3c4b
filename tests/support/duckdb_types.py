"""Columns of every type of DuckDB in datasets: their names on each engine, and in data frames.

``python tests/support/duckdb_types.py`` writes the table in ``docs/types.md`` again.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import duckdb
import pandas as pd
from conformance_page import TYPES as PAGE
from conformance_page import with_part
from lance_engine.errors import LanceError

import lance_sql
import lance_sql.duckdb
from lance_sql.spark.types import spark_schema

#: Values of each type, in another order than that of what is stored of them.
TYPES: Final = {
    "HUGEINT": [
        "1", "-1", "170141183460469231731687303715884105727", "256",
        "(-170141183460469231731687303715884105727 - 1)",
    ],
    "UHUGEINT": ["1", "340282366920938463463374607431768211455", "256", "0"],
    "BIGNUM": ["'123456789012345678901234567890123456789012345'", "'-5'", "'10'", "'9'"],
    "BIT": ["'1'", "'101'", "'0011'", "'10101010111'"],
    "UUID": [
        "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "'00000000-0000-0000-0000-000000000001'",
        "'ffffffff-ffff-ffff-ffff-ffffffffffff'", "'80000000-0000-0000-0000-000000000000'",
    ],
    "ENUM('z', 'b', 'it''s')": ["'z'", "'b'", "'it''s'", "'z'"],
    "TUPLE(INTEGER, VARCHAR)": ["row(1, 'a')", "row(NULL, 'b')", "row(1, 'B')"],
    "UNION(n INTEGER, tag VARCHAR)": ["1", "'a'", "union_value(n := NULL)", "'b'"],
    "VARIANT": ["42", "'x'", "[1, 2]", "{'a': 1}"],
    "TIMESTAMPTZ": [
        "'2024-01-01 00:00:00+00'", "'infinity'", "'-infinity'", "'44-03-15 (BC) 00:00:00+00'",
        "'12000-01-01 00:00:00+00'",
    ],
    "TIMESTAMP_S": ["'2024-01-01 00:00:01'", "'infinity'", "'44-03-15 (BC)'"],
    "TIMESTAMP_MS": ["'2024-01-01 00:00:01.123'", "'infinity'"],
    "TIMESTAMP_NS": ["'2024-01-01 00:00:01.123456789'", "'infinity'"],
    "TIMESTAMP": ["'2024-01-01 00:00:01.123456'", "'infinity'", "'-infinity'", "'44-03-15 (BC)'"],
    "DATE": ["'2024-01-01'", "'infinity'", "'-infinity'", "'44-03-15 (BC)'"],
    "TIME": ["'12:00:00.123456'", "'00:00:00'", "'24:00:00'"],
    "TIME_NS": ["'12:00:00.123456789'", "'00:00:00'"],
    "TIMETZ": ["'12:00:00+05:30'", "'12:00:00-05'", "'00:00:00+00'", "'24:00:00-15:59:59'"],
    "INTERVAL": [
        "'1 month'", "'2 days'", "'30 days'", "'1 month 2 days -3 us'", "'200000000 hours'", "'-3 years'"
    ],
    "GEOMETRY": ["'POINT(1 2)'", "'POINT(0 0)'"],
    "JSON": ["'{\"a\":1}'", "'[1,2]'", "'\"x\"'"],
    "VARCHAR[3]": ["['a', 'b', 'c']", "['a', NULL, 'c']"],
    "HUGEINT[]": ["[1, -1]", "[]"],
    "STRUCT(a HUGEINT, b INTERVAL, c ENUM('y', 'x'))": [
        "{'a': 1, 'b': '1 day', 'c': 'x'}", "{'a': -1, 'b': NULL, 'c': 'y'}",
    ],
    "MAP(INTEGER[], STRUCT(a BIT))": ["MAP {[1]: {'a': '101'}}", "MAP {}"],
    "MAP(INTERVAL, UUID)": ["MAP {INTERVAL 1 DAY: 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'}", "MAP {}"],
    "UNION(n INTEGER, s VARCHAR[2])[]": ["[union_value(n := 1)]", "[]"],
    "FLOAT[3]": ["[1, 2, 3]", "[0, NULL, 1.5]"],
    "INTEGER[2][2]": ["[[1, 2], [3, 4]]", "[[0, 0], NULL]"],
    "VARCHAR[][]": ["[['a'], [], NULL]", "[]"],
}  # fmt: skip

_METADATA: Final = re.compile(r', metadata: \{(?:"(?:[^"\\]|\\.)*"(?:: |, )?)*\}')
_ORDER: Final = "SELECT v FROM {} ORDER BY i"
#: What became of a result, and how the page says so.
SAME, ONLY_HERE, REFUSED = "as DuckDB", "only here: DuckDB refuses it", "refused"


def statements(kind: str, name: str) -> list[str]:
    """A table `name` with the values of a type, and a null."""
    rows = ", ".join(f"({number}, {value})" for number, value in enumerate([*TYPES[kind], "NULL"]))
    return [f"CREATE TABLE {name} (i INTEGER, v {kind})", f"INSERT INTO {name} VALUES {rows}"]


def _frame(frame: Any) -> object:
    """A data frame of pandas as values that compare: its nulls and lists have several classes."""
    column = frame["v"].array
    if hasattr(column, "asi8"):  # times beyond those of Python
        return column.dtype, column.asi8.tolist()
    values = [value.tolist() if hasattr(value, "tolist") else value for value in column.tolist()]
    return repr([None if value is pd.NA else value for value in values])


def _outcome(ours: Callable[[], object], theirs: Callable[[], object]) -> str:
    """How a result of ours relates to that of DuckDB: one of the words above, or "other values"."""
    try:
        expected = theirs()
    except BaseException as error:  # Polars panics
        if isinstance(error, KeyboardInterrupt):
            raise
        expected = None
    try:
        found = ours()
    except LanceError:
        return REFUSED
    if expected is None:
        return ONLY_HERE
    return SAME if found == expected else "other values"


def rows(folder: Path) -> list[tuple[str, ...]]:
    """For each type: its names on the engines, and what pandas and Polars get of a session on DuckDB."""
    found = []
    with lance_sql.connect(folder) as ours, duckdb.connect() as plain, duckdb.connect() as own:
        for connection in (ours, plain, own):
            connection.execute("SET TimeZone = 'UTC'")
        lance_sql.duckdb.install(own, folder)
        for number, kind in enumerate(TYPES):
            name = f"t{number}"
            for statement in statements(kind, name):
                ours.execute(statement)
                plain.execute(statement)
            query = _ORDER.format(name)
            for text in (f"SELECT DISTINCT typeof(v) FROM {name}", query, f"DESCRIBE {name}"):
                expected = repr(plain.sql(text).fetchall())
                assert repr(ours.sql(text).fetchall()) == expected, text
                assert repr(own.sql(text).fetchall()) == expected, text
            arrow = _outcome(
                lambda q=query: ours.sql(q).arrow(), lambda q=query: plain.sql(q).to_arrow_table()
            )
            pandas = _outcome(
                lambda q=query: _frame(ours.sql(q).df()), lambda q=query: _frame(plain.sql(q).df())
            )
            polars = _outcome(
                lambda q=query: ours.sql(q).pl().to_arrow(), lambda q=query: plain.sql(q).pl().to_arrow()
            )
            schema = lance_sql.open(folder / f"{name}.lance").schema
            spark = spark_schema(schema)["v"].dataType.simpleString()
            found.append((kind, _datafusion(folder, name), spark, arrow, pandas, polars))
    return found


def _datafusion(folder: Path, name: str) -> str:
    with lance_sql.connect(folder, engine="datafusion") as session:
        ((named,),) = session.sql(f"SELECT arrow_typeof(v) AS k FROM {name} LIMIT 1").fetchall()
    return _METADATA.sub("", named)


def table() -> str:
    """The table of the page."""
    lines = [
        "| type | DataFusion reads | Spark reads | `arrow()` | `df()` | `pl()` |",
        "|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for kind, datafusion, spark, *frames in rows(Path(folder)):
            names = (f"`{name}`" for name in (kind, datafusion, spark))
            lines.append(f"| {' | '.join([*names, *frames])} |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """The page with the table as it is now."""
    return with_part(text, "types of duckdb", table())


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
