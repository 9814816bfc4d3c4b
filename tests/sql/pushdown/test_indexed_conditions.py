"""Conditions of SQL on parts of lists and texts, which `label_list` and `ngram` indices serve."""

import duckdb
import pyarrow as pa
import pytest

import lance_sql

ROWS = 9000
ENGINES = ("duckdb", "datafusion")


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "id": numbers,
            "tags": [None if n % 11 == 3 else [f"t{n % 700}", "all"][: n % 3] for n in numbers],
            "codes": [[n % 900, n % 7] for n in numbers],
            "title": [None if n % 13 == 5 else f"Part {n:06d} of 100%" for n in numbers],
        }
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    path = str(tmp_path_factory.mktemp("conditions") / "t.lance")
    ds = lance_sql.write(rows(0, ROWS), path)
    for column, kind in [("tags", "label_list"), ("codes", "label_list"), ("title", "ngram")]:
        ds = ds.create_index(column, kind)
    ds = lance_sql.write(rows(ROWS, 50), path, mode="append")
    ds.delete("id % 17 = 4")
    return path


def plan(session, query: str) -> str:
    return str(session.sql(query).explain())


SERVED = [
    "array_has(tags, 't5')",
    "list_contains(tags, 't5') AND id > 100",
    "array_has_any(tags, ['t5', 't6', 'none'])",
    "array_has_all(codes, [5, 3])",
    "array_has(codes, 17) AND title IS NOT NULL",
    "title LIKE '%0012%'",
    "contains(title, '0077')",
    "starts_with(title, 'Part 0034')",
    "title LIKE '%0_001%' AND array_has(tags, 't1')",
    "title LIKE 'Part 000012 of 100%'",
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("condition", SERVED)
def test_the_rows_are_those_without_an_index(path, engine, condition):
    session = lance_sql.connect(engine=engine)
    table = lance_sql.open(path).to_table()
    query = f"SELECT id, title FROM {{}} AS t WHERE {condition} ORDER BY id"
    if engine == "datafusion" and "list_contains" in condition:
        query = query.replace("list_contains", "array_contains")
    told = plan(session, query.format(f"'{path}'"))
    assert (
        "index tags_idx (label_list" in told or "index codes_idx" in told or "index title_idx (ngram" in told
    )
    session.register("plain", table)
    found = session.sql(query.format(f"'{path}'")).arrow()
    assert found.equals(session.sql(query.format("plain")).arrow())
    assert found.num_rows


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "condition",
    [
        "array_has(tags, 'all')",  # too many rows
        "NOT array_has(tags, 't5')",
        "array_has(tags, 't5') OR id = 7",
        "title LIKE '%a%'",
        "title LIKE '%100\\%'",
    ],
)
def test_conditions_that_engines_test_alone(path, engine, condition):
    session = lance_sql.connect(engine=engine)
    assert "index " not in plan(session, f"SELECT id FROM '{path}' WHERE {condition}")


@pytest.mark.parametrize("engine", ENGINES)
def test_parameters_aggregates_and_names(path, engine):
    session = lance_sql.connect(engine=engine)
    session.register("things", path)
    where = "WHERE array_has(things.tags, $tag) GROUP BY odd"
    query = f"SELECT things.id % 2 AS odd, count(*) AS n FROM things {where}"
    found = session.sql(query, params={"tag": "t5"}).arrow()
    expected = lance_sql.open(path).to_table(columns=["id"], filter="array_has(tags, 't5')")
    assert sum(found["n"].to_pylist()) == expected.num_rows
    assert "label_list" in str(session.sql(query, params={"tag": "t5"}).explain())


@pytest.mark.parametrize("engine", ENGINES)
def test_parameters_without_a_name(path, engine):
    session = lance_sql.connect(engine=engine)
    query = (
        f"SELECT '?' AS mark, id FROM '{path}' WHERE id > ? AND array_has(tags, ?) AND id <> ? ORDER BY id"
    )
    given = [100, "t5", 705]
    assert "label_list" in str(session.sql(query, params=given).explain())
    found = session.sql(query, params=given).arrow()
    expected = lance_sql.open(path).to_table(
        columns=["id"], filter="id > 100 AND id <> 705 AND array_has(tags, 't5')"
    )
    assert found["id"].to_pylist() == sorted(expected["id"].to_pylist())
    assert found.num_rows


def test_statements_of_other_shapes(path):
    session = lance_sql.connect()
    joined = f"SELECT count(*) AS n FROM '{path}' a JOIN '{path}' b USING (id) WHERE array_has(a.tags, 't5')"
    (n,) = session.sql(joined).fetchone()
    inside = f"SELECT count(*) AS n FROM (SELECT * FROM '{path}' LIMIT 100) WHERE array_has(tags, 't5')"
    assert session.sql(inside).fetchone() == (1,)
    assert session.sql(f"SELECT count(*) AS n FROM '{path}' WHERE array_has(tags, 't5')").fetchone() == (n,)
    described = session.sql(f"SELECT _rowid, id FROM '{path}' WHERE list_contains(tags, 't5') ORDER BY id")
    assert described.arrow()["_rowid"].to_pylist() == sorted(described.arrow()["_rowid"].to_pylist())


def test_explain_statement_and_installed_connection(path):
    query = f"SELECT id FROM '{path}' WHERE list_contains(tags, 't5') ORDER BY id"
    (text,) = [row[1] for row in lance_sql.sql(f"EXPLAIN {query}").fetchall() if "label_list" in row[1]]
    assert "index tags_idx (label_list on tags)" in text
    with duckdb.connect() as connection:
        lance_sql.duckdb.install(connection)
        found = connection.sql(query).fetchall()
    expected = lance_sql.open(path).to_table(columns=["id"], filter="array_has(tags, 't5')")
    assert [row[0] for row in found] == sorted(expected["id"].to_pylist())
