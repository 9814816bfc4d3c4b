"""Random queries return in sessions what the engines return for the same rows in memory.

``LANCE_SQL_SEEDS=100-200 LANCE_SQL_STATEMENTS=300`` runs others, and more of each. A difference is printed
with the seed that replays it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
import pytest
from random_queries import Queries
from random_tables import RandomTable, as_tables, write_tables

import lance_sql

FIRST, _, END = os.environ.get("LANCE_SQL_SEEDS", "0-3").partition("-")
SEEDS = range(int(FIRST), int(END))
STATEMENTS = int(os.environ.get("LANCE_SQL_STATEMENTS", "12"))


class Difference(NamedTuple):
    """A statement for which a session returned something else than the plain engine."""

    seed: int
    engine: str
    statement: str
    ours: Any
    plain: Any

    def __str__(self) -> str:
        lines = [f"seed {self.seed}, {self.engine}: {self.statement}"]
        if isinstance(self.ours, Counter) and isinstance(self.plain, Counter):
            lines += [f"  only in the session: {list((self.ours - self.plain).items())[:5]}"]
            lines += [f"  only in the engine: {list((self.plain - self.ours).items())[:5]}"]
        else:
            lines += [f"  session: {str(self.ours)[:300]}", f"  engine: {str(self.plain)[:300]}"]
        return "\n".join(lines)


def rows(values: list[tuple[Any, ...]]) -> Counter[str]:
    """The rows as a multiset; -0.0 and 0.0 are equal to engines."""
    return Counter(repr(tuple(_plain(value) for value in row)) for row in values)


def _plain(value: Any) -> Any:
    return 0.0 if isinstance(value, float) and value == 0 else value


class PlainDuckDB:
    """DuckDB over tables of its own."""

    def __init__(self, tables: list[RandomTable]) -> None:
        self._connection = duckdb.connect()
        for name, table in as_tables(tables).items():
            self._connection.register("rows_", table)
            self._connection.execute(f"CREATE TABLE {name} AS SELECT * FROM rows_")
            self._connection.unregister("rows_")

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._connection.execute(statement).fetchall()
        return found


class PlainDataFusion:
    """DataFusion over record batches in memory."""

    def __init__(self, tables: list[RandomTable]) -> None:
        from datafusion import SessionContext

        self._context = SessionContext()
        for name, table in as_tables(tables).items():
            batches = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
            self._context.register_record_batches(name, [batches])

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        table = self._context.sql(statement).to_arrow_table()
        return (
            list(zip(*[column.to_pylist() for column in table.columns], strict=True)) or [()] * table.num_rows
        )


PLAIN = {"duckdb": PlainDuckDB, "datafusion": PlainDataFusion}


def outcome(run: Any, statement: str) -> Any:
    """The rows of a statement, or the class of its error."""
    try:
        return rows(run(statement))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # DataFusion's panics are not subclasses of Exception
        return error


def differences(folder: Path, seed: int, engine: str, statements: int) -> Iterator[Difference]:
    """What differs for the statements of a seed."""
    tables = write_tables(folder, seed)
    plain = PLAIN[engine](tables)
    with lance_sql.connect(str(folder), engine=engine) as session:
        queries = Queries(tables, seed, dialect=engine)
        # Every second seed reaches the pushdowns that pay for large tables only.
        if seed % 2:
            session.sql("SET lance_force_pushdowns = true")
        if seed % 4 > 1:
            session.sql("SET lance_verify = true")

        def ours(text: str) -> list[tuple[Any, ...]]:
            return session.sql(text).fetchall()

        for _ in range(statements):
            statement = queries.statement()
            found, expected = outcome(ours, statement), outcome(plain.rows, statement)
            if isinstance(expected, BaseException):
                continue  # a statement that the engine refuses, or on which it fails
            if found != expected:
                yield Difference(seed, engine, statement, found, expected)
            yield from _parts(session, seed, engine, queries)


def _parts(session: lance_sql.Connection, seed: int, engine: str, queries: Queries) -> Iterator[Difference]:
    """A condition, its negation and NULL divide the rows; a count is the sum of what it counts."""
    source, scopes = queries._from(1)
    condition = queries.condition(scopes)
    texts = [
        f"SELECT count(*) FROM {source} WHERE {test}"
        for test in (condition, f"NOT ({condition})", f"({condition}) IS NULL")
    ]
    texts += [
        f"SELECT count(*) FROM {source}",
        f"SELECT coalesce(sum(CASE WHEN {condition} THEN 1 ELSE 0 END), 0) FROM {source}",
    ]
    try:
        true, false, null, every, summed = (int(session.sql(text).fetchall()[0][0]) for text in texts)
    except lance_sql.LanceError:
        return
    if true + false + null != every or true != summed:
        yield Difference(seed, engine, texts[0], (true, false, null, summed), every)


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize("seed", SEEDS)
def test_sessions_return_what_engines_return(tmp_path: Path, engine: str, seed: int) -> None:
    found = list(differences(tmp_path, seed, engine, STATEMENTS))
    assert not found, "\n".join(map(str, found))
