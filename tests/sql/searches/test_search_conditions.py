"""Conditions that searches take from the query around them mean what they mean in the query."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lance_sql
from lance_sql.errors import LanceError

ROWS = 2000


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("conditions")
    words = [f"word{number:04}" for number in range(ROWS)]
    table = pa.table(
        {
            "title": words,
            "s": [{"title": word} for word in reversed(words)],
            "v": pa.array([[float(n), 0.0] for n in range(ROWS)], pa.list_(pa.float32(), 2)),
        }
    )
    lance_sql.write(table, str(folder / "t.lance"))
    with lance_sql.connect(str(folder)) as connection:
        connection.sql("CREATE INDEX ON t USING ngram (title)")
    return str(folder)


@pytest.fixture
def connection(directory):
    with lance_sql.connect(directory) as opened:
        yield opened


def titles(connection, text, params=None):
    return [row[0] for row in connection.sql(text, params).fetchall()]


@pytest.mark.parametrize(
    ("source", "column", "found"),
    [
        ("t", "title", "word1998"),
        ("t", "t.title", "word1998"),
        ("t AS x", "x.title", "word1998"),
        ("t", "s.title", "word0001"),
        ("t AS x", "s.title", "word0001"),
        ("t AS s", "s.title", "word1998"),  # DuckDB prefers the table
    ],
)
def test_fields_of_structs_are_not_columns_of_that_name(connection, source, column, found):
    where = f"WHERE {column} LIKE '%word1998%'"
    assert titles(connection, f"SELECT title FROM {source} {where}") == [found]
    exact = f"WHERE {column} = 'word1998' ORDER BY array_distance(v, [0, 0]::FLOAT[2]) LIMIT 1"
    assert titles(connection, f"SELECT title FROM {source} {exact}") == [found]


def test_fields_of_structs_before_a_search(connection):
    search = "SELECT title FROM lance_vector_search('t', 'v', [0.0, 0.0], k := 1, prefilter := true)"
    assert titles(connection, f"{search} WHERE s.title = 'word0003'") == ["word1996"]
    assert titles(connection, f"{search} AS f WHERE f.title = 'word0003'") == ["word0003"]
    with pytest.raises(LanceError, match="s in the condition may be the search or a column of it"):
        titles(connection, f"{search} AS s WHERE s.title = 'word0003'")


def test_joins_without_select_have_no_condition_for_a_search(connection):
    connection.sql("CREATE TABLE other AS SELECT 'word0003' AS title")
    search = "lance_vector_search('t', 'v', [0.0, 0.0], k := 1, prefilter := true) AS f, other AS o"
    with pytest.raises(LanceError, match="without joins"):
        connection.sql(f"FROM {search} WHERE title = 'word0003'").fetchall()


def test_long_lists_are_conditions(connection):
    words = ", ".join(f"'word{number:04}'" for number in range(100, 160))
    search = "lance_vector_search('t', 'v', [0.0, 0.0], k := 1, prefilter := true)"
    assert titles(connection, f"SELECT title FROM {search} WHERE title IN ({words})") == ["word0100"]
    nearest = "ORDER BY array_distance(v, [0, 0]::FLOAT[2]) LIMIT 1"
    plan = connection.explain(f"SELECT title FROM t WHERE title IN ({words}) {nearest}")
    assert "lance_search" in str(plan)


@pytest.mark.parametrize("prefix", ["", "EXPLAIN ", "EXPLAIN (FORMAT json) "])
def test_explained_queries_use_the_same_searches(connection, prefix):
    text = f"{prefix}SELECT title FROM t WHERE title LIKE '%word1998%'"
    found = connection.sql(text).fetchall()
    assert found == [("word1998",)] if not prefix else "lance_search" in str(found)


def test_queries_that_begin_with_from_are_searched_for_each_row(connection):
    connection.sql("CREATE TABLE asked AS SELECT [1, 0]::FLOAT[2] AS w")
    text = "FROM asked, LATERAL lance_vector_search('t', 'v', asked.w, k := 1) AS f SELECT f.title"
    assert titles(connection, text) == ["word0001"]
