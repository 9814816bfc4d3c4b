"""Searches in connections and contexts that users opened themselves."""

from __future__ import annotations

from pathlib import Path

import datafusion
import duckdb
import numpy as np
import pyarrow as pa
import pytest

import lance_sql
import lance_sql.datafusion
import lance_sql.duckdb

VECTORS = np.random.default_rng(1).normal(size=(300, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = tmp_path_factory.mktemp("installed") / "t.lance"
    vectors = pa.FixedSizeListArray.from_arrays(VECTORS.ravel(), 4)
    lance_sql.write(pa.table({"id": range(300), "v": vectors}), found)
    return str(found)


def nearest(path: str, number: int, k: int) -> list[int]:
    ids: list[int] = lance_sql.open(path).nearest("v", VECTORS[number], k)["id"].to_pylist()
    return ids


def test_duckdb(path: str) -> None:
    connection = duckdb.connect()
    lance_sql.duckdb.install(connection)
    expected = nearest(path, 5, 3)
    function = f"SELECT id FROM lance_vector_search('{path}', 'v', {{}}, k := 3) ORDER BY _distance"
    query = VECTORS[5].tolist()
    for found in (
        connection.sql(function.format("$q"), params={"q": query}).fetchall(),
        connection.execute(function.format("?"), [query]).fetchall(),
        connection.execute(function.format("$q"), parameters={"q": query}).fetchall(),
        connection.sql(function.format(query)).fetchall(),
        connection.cursor().sql(function.format(query)).fetchall(),
        connection.sql(function.format(f"(SELECT v FROM '{path}' WHERE id = 5)")).fetchall(),
    ):
        assert [row for (row,) in found] == expected
    text = f"SELECT id FROM '{path}' ORDER BY array_distance(v, $q::FLOAT[4]) LIMIT 3"
    assert connection.sql(text, params={"q": query}).fetchall() == [(row,) for row in expected]
    assert connection.sql("SET lance_vector_index = 'auto'").fetchall() == []
    assert connection.sql(text, params={"q": query}).fetchall() == [(row,) for row in expected]


def test_datafusion(path: str) -> None:
    context = datafusion.SessionContext()
    lance_sql.datafusion.install(context)
    query = VECTORS[5].tolist()
    expected = {"id": nearest(path, 5, 3)}
    function = f"SELECT id FROM lance_vector_search('{path}', 'v', {{}}, k => 3) ORDER BY _distance"
    assert context.sql(function.format(query)).to_pydict() == expected
    assert context.sql(function.format("$q"), param_values={"q": query}).to_pydict() == expected
    assert (
        context.sql(f"SELECT id FROM '{path}' ORDER BY array_distance(v, {query}) LIMIT 3").to_pydict()
        == expected
    )


@pytest.mark.parametrize("kind", ["TEMP VIEW", "VIEW"])
def test_views_search_the_newest_version(tmp_path: Path, path: str, kind: str) -> None:
    lance_sql.write(lance_sql.open(path).to_table(), tmp_path / "t.lance")
    connection = duckdb.connect()
    lance_sql.duckdb.install(connection)
    connection.execute(
        f"CREATE {kind} near AS SELECT id, _distance FROM "
        f"lance_vector_search('{tmp_path}/t.lance', 'v', {VECTORS[9].tolist()}, k := 2)"
    )
    text = "SELECT id FROM near ORDER BY _distance"
    expected = nearest(path, 9, 3)
    assert connection.sql(text).fetchall() == [(row,) for row in expected[:2]]
    lance_sql.open(tmp_path / "t.lance").delete("id = 9")
    assert connection.sql(text).fetchall() == [(row,) for row in expected[1:]]


def test_vectors_of_another_table(path: str) -> None:
    connection = duckdb.connect()
    lance_sql.duckdb.install(connection)
    connection.execute(f"CREATE TABLE queries AS SELECT id, v FROM '{path}' WHERE id < 4")
    found = connection.sql(
        "SELECT q.id, r.id FROM queries q, "
        f"LATERAL lance_vector_search('{path}', 'v', q.v, k := 2) r ORDER BY q.id, r._distance"
    ).fetchall()
    assert found == [(number, row) for number in range(4) for row in nearest(path, number, 2)]


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two segments of a vector index and one of words, and rows of neither."""
    found = str(tmp_path_factory.mktemp("explained") / "t.lance")

    def rows(count: int) -> pa.Table:
        vectors = pa.FixedSizeListArray.from_arrays(np.resize(VECTORS, count * 4).ravel(), 4)
        return pa.table({"id": range(count), "v": vectors, "text": ["it's a fox"] * count})

    lance_sql.write(rows(600), found).create_index("v", "IVF_FLAT", num_partitions=2, name="near")
    lance_sql.open(found).create_index("text", "INVERTED", name="words")
    lance_sql.write(rows(100), found, mode="append").optimize_indices()
    lance_sql.write(rows(50), found, mode="append")
    return found


@pytest.mark.parametrize("analyze", ["", "ANALYZE "])
@pytest.mark.parametrize("place", ["duckdb", "datafusion"])
def test_plans(indexed: str, place: str, analyze: str) -> None:
    if place == "duckdb":
        connection = duckdb.connect()
        lance_sql.duckdb.install(connection)
        names = ["explain_key", "explain_value"]

        def plan(text: str) -> list[list[str]]:
            by_execute = connection.execute(text).fetchall()
            rows = connection.sql(text).to_arrow_table()
            assert len(by_execute) == rows.num_rows
            assert rows.column_names == names
            return [*map(list, rows.to_pydict().values())]

    else:
        context = datafusion.SessionContext()
        lance_sql.datafusion.install(context)
        names = ["plan_type", "plan"]

        def plan(text: str) -> list[list[str]]:
            rows = context.sql(text).to_pydict()
            assert list(rows) == names
            return [*rows.values()]

    vectors = f"lance_vector_search('{indexed}', 'v', [1, 2, 3, 4], nprobes := 1)"
    texts = f"lance_fts('{indexed}', 'text', 'it''s')"
    titles, lines = plan(f"EXPLAIN {analyze}SELECT * FROM {vectors} a JOIN {texts} b USING (id)")
    assert len(titles) > 2  # the plan of the engine as well
    told = [line for text in lines[-2:] for line in text.splitlines()]
    segments = [line for line in told if line.startswith("index     near (IVF_FLAT): segment of ")]
    assert sorted(line.split()[5] for line in segments) == ["100", "600"]
    assert all("1 of 2 partitions" in line for line in segments)
    assert any(line.startswith("index     words (INVERTED): segment of 600") for line in told)
    assert sum(line.startswith("unindexed 50 rows in 1 fragment") for line in told) == 2
    assert len(plan("EXPLAIN SELECT 1")[0]) < 3  # nothing is added where nothing is searched
