"""Random statements of sessions have the same outcome in plain DuckDB."""

from __future__ import annotations

import os

import pytest
from counts import examples
from random_sessions import differs, round_of

FIRST, _, END = os.environ.get("LANCE_SQL_SEEDS", f"0-{examples(2)}").partition("-")


@pytest.mark.parametrize("seed", range(int(FIRST), int(END)))
def test_each_statement_has_the_same_outcome(seed: int) -> None:
    outcomes, difference = round_of(seed)
    assert difference is None, difference
    assert outcomes["run"] > 0


NAMES = ["select", "from", "where", "values", "with", "lateral", "table", "order", "union"]
#: Queries in brackets, which begin with a word that may be the name of a table.
QUERIES = [
    "SELECT o.id FROM {t} o, (SELECT 1 AS n) l",
    "SELECT o.id, n FROM {t} o, LATERAL (SELECT o.id + 1 AS n) l",
    "SELECT o.id FROM {t} o JOIN LATERAL (FROM {t} SELECT max(id) AS m) l ON l.m = o.id",
    "SELECT id FROM {t}, (VALUES (1)) x(a)",
    "SELECT id FROM (WITH c AS (SELECT * FROM {t}) SELECT * FROM c)",
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NAMES)
def test_words_that_begin_queries_are_names_of_tables(name: str) -> None:
    table = f'"{name}"'
    begin = [f"CREATE TABLE {table} (id INTEGER)", f"INSERT INTO {table} VALUES (1), (2)"]
    for query in QUERIES:
        text = query.replace("{t}", table)
        for statements in (
            [text],
            [f"PREPARE p AS {text}", "EXECUTE p"],
            [f"CREATE VIEW v AS {text}", "FROM v"],
        ):
            # each in a session of its own, in which nothing else failed
            for count in range(1, len(statements) + 1):
                assert differs([*begin, *statements[:count]]) is None


#: What one name is prepared for: by the engine, by us, and what the engine refuses.
PREPARED = [
    "SELECT id FROM t WHERE id IN ($1, $2)",
    "DELETE FROM t WHERE id IN ($1, $2)",
    "SELECT nosuch FROM t",
    'UPDATE "select" SET id = id + $2 WHERE id = $1',
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("end", ["EXECUTE q(1, 2)", "DEALLOCATE q"])
@pytest.mark.parametrize("second", PREPARED)
@pytest.mark.parametrize("first", PREPARED)
def test_a_name_means_what_was_prepared_last(first: str, second: str, end: str) -> None:
    begin = ["CREATE TABLE t (id INTEGER)", "INSERT INTO t VALUES (1), (2)"]
    done = [*begin, f"PREPARE q AS {first}", f"PREPARE q AS {second}", end]
    assert differs(done) is None
    assert differs([*done, "EXECUTE q(2, 2)"]) is None
