"""Queries ordered by a distance: the same rows as from the engine, which reads fewer rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_sql

ROWS, DIMENSIONS = 400, 4


def dataset(path: Path, vectors: np.ndarray) -> str:
    values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    # Rows whose vector is missing come last.
    values = pa.array([None if i % 50 == 3 else row for i, row in enumerate(values.to_pylist())], values.type)
    table = pa.table({"id": range(len(vectors)), "part": [i % 7 for i in range(len(vectors))], "v": values})
    lance_sql.write(table, path, max_rows_per_file=150)
    return str(path)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    # Whole numbers: sums are exact whatever their order, and many rows are equally near.
    vectors = np.random.default_rng(3).integers(-3, 4, size=(ROWS, DIMENSIONS)).astype(np.float32)
    return dataset(tmp_path_factory.mktemp("nearest") / "t.lance", vectors)


def plain(engine: str, path: str) -> lance_sql.Connection:
    """A session in which the table is memory of the engine."""
    session = lance_sql.connect(engine=engine)
    session.register("t", lance_sql.open(path).to_table())
    return session


DISTANCES = {
    "duckdb": [
        "array_distance(v, {q}::FLOAT[4])",
        "array_cosine_distance(v, {q}::FLOAT[4])",
        "array_negative_inner_product({q}::FLOAT[4], v)",
    ],
    "datafusion": ["array_distance(v, {q})", "list_distance(v, {q})"],
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_the_first_rows_are_those_of_the_engine(engine: str, path: str) -> None:
    random = np.random.default_rng(5)
    own, ours = plain(engine, path), lance_sql.connect(engine=engine)
    searched = 0
    for distance in DISTANCES[engine]:
        for _ in range(3):
            query = [float(value) for value in random.integers(-3, 4, DIMENSIONS)]
            if not any(query):
                query[0] = 1.0
            k, skipped = int(random.integers(1, 60)), int(random.integers(0, 3))
            for where in ("", "WHERE part < 2", "WHERE part IN (1, 3) AND NOT id > 350 AND v IS NOT NULL"):
                text = (
                    f"SELECT id, {distance.format(q=query)} AS d FROM {{}} {where} "
                    f"ORDER BY d, id LIMIT {k} OFFSET {skipped}"
                )
                result = ours.sql(text.format(f"'{path}'"))
                searched += "Lance search" in str(result.explain())
                assert result.fetchall() == own.sql(text.format("t")).fetchall()
    assert searched == len(DISTANCES[engine]) * 9


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_more_rows_than_vectors_end_with_those_without(engine: str, path: str) -> None:
    function = DISTANCES[engine][0].format(q=[1.0, 0.0, 0.0, 0.0])
    text = f"SELECT id FROM {{}} ORDER BY {function}, id LIMIT 399"
    found = lance_sql.connect(engine=engine).sql(text.format(f"'{path}'")).fetchall()
    assert found == plain(engine, path).sql(text.format("t")).fetchall()
    assert len(found) == 399


def test_what_only_the_engine_can_order_is_left_to_it(path: str) -> None:
    session, near = lance_sql.connect(), "array_distance(v, [1, 0, 0, 0]::FLOAT[4])"
    for text in (
        f"SELECT id FROM '{path}' ORDER BY {near} DESC LIMIT 5",
        f"SELECT id FROM '{path}' ORDER BY {near} NULLS FIRST LIMIT 5",
        f"SELECT id FROM '{path}' ORDER BY {near}",
        f"SELECT part, min({near}) AS d FROM '{path}' GROUP BY part ORDER BY d LIMIT 5",
        f"SELECT DISTINCT part FROM '{path}' ORDER BY {near} LIMIT 5",
        f"SELECT count(*) OVER () FROM '{path}' ORDER BY {near} LIMIT 5",
        f"SELECT id FROM '{path}' WHERE id // 2 = 3 ORDER BY {near} LIMIT 5",
        f"SELECT id FROM '{path}' ORDER BY id, {near} LIMIT 5",
        f"SELECT id FROM '{path}' WHERE id = (SELECT 3) ORDER BY {near} LIMIT 5",
    ):
        try:
            assert "Lance search" not in str(session.explain(text)), text
        except lance_sql.LanceError:
            assert "DISTINCT" in text
    session.sql("SET default_null_order = 'nulls_first'")
    text = f"SELECT id FROM '{path}' ORDER BY {near} LIMIT 5"
    assert "Lance search" not in str(session.explain(text))


def test_parameters_and_row_ids(path: str) -> None:
    session = lance_sql.connect()
    text = f"SELECT _rowid, id FROM '{path}' AS x ORDER BY array_distance(x.v, $q::FLOAT[4]), id LIMIT $k"
    found = session.sql(text, {"q": [0.0, 1.0, 0.0, 0.0], "k": 4})
    own = plain("duckdb", path).sql(
        "SELECT id FROM t ORDER BY array_distance(v, [0, 1, 0, 0]::FLOAT[4]), id LIMIT 4"
    )
    assert [row[1:] for row in found.fetchall()] == own.fetchall()


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_parameters_without_a_name(path: str, engine: str) -> None:
    session = lance_sql.connect(engine=engine)
    near = "array_distance(v, ?::FLOAT[4])" if engine == "duckdb" else "array_distance(v, ?)"
    text = f"SELECT id FROM '{path}' WHERE id > ? ORDER BY {near}, id LIMIT ?"
    query = [0.0, 1.0, 0.0, 0.0]
    given = [20, query, 4]
    assert "Lance search" in str(session.explain(text, given))
    expected = lance_sql.open(path).nearest("v", query, 4, filter="id > 20", use_index=False)
    assert [row[0] for row in session.sql(text, given).fetchall()] == expected["id"].to_pylist()


def test_many_rows_at_the_same_distance(tmp_path: Path) -> None:
    path = dataset(tmp_path / "same.lance", np.ones((300, 4), dtype=np.float32))
    text = "SELECT id FROM {} ORDER BY array_distance(v, [1, 1, 1, 1]::FLOAT[4]), id DESC LIMIT 3"
    assert lance_sql.sql(text.format(f"'{path}'")).fetchall() == [(299,), (298,), (297,)]


def test_an_index_is_used_where_it_is_allowed(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(600, 8)).astype(np.float32)
    path = dataset(tmp_path / "t.lance", vectors)
    lance_sql.open(path).create_index("v", "IVF_FLAT", num_partitions=2)
    session = lance_sql.connect()
    query = {"q": vectors[9].tolist()}
    text = f"SELECT id FROM '{path}' ORDER BY array_distance(v, $q::FLOAT[8]) LIMIT 5"
    exact = session.sql(text, query)
    assert "index     " not in str(exact.explain())
    session.sql("SET lance_vector_index = 'auto'")
    found = session.sql(text, query)
    assert "index     v_idx (IVF_FLAT)" in str(found.explain())
    assert found.fetchall()[0] == exact.fetchall()[0] == (9,)
    session.sql("RESET lance_vector_index")
    assert "index     " not in str(session.explain(text, query))
    with pytest.raises(lance_sql.LanceError, match="auto or off"):
        session.sql("SET lance_vector_index = 'sometimes'")


def test_a_condition_on_zoned_times_means_what_the_engine_makes_of_it(tmp_path: Path) -> None:
    hours = pa.array([3_600_000_000 * hour for hour in range(24)], pa.int64())
    values = pa.array([[float(hour), 0.0] for hour in range(24)], pa.list_(pa.float32(), 2))
    table = pa.table({"moment": hours.cast(pa.timestamp("us", "UTC")), "v": values})
    lance_sql.write(table, tmp_path / "t.lance")
    with lance_sql.connect(tmp_path) as session:
        session.sql("SET TimeZone = 'America/New_York'")
        text = "FROM {} WHERE moment >= '1970-01-01' ORDER BY array_distance(v, [0, 0]::FLOAT[2]) LIMIT 1"
        session.register("memory_table", table)
        expected = session.sql(f"SELECT v {text.format('memory_table')}").fetchall()
        assert session.sql(f"SELECT v {text.format('t')}").fetchall() == expected == [((5.0, 0.0),)]
