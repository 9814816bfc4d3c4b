"""Search functions in SQL, on both engines: the same rows as `Dataset.nearest`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from engine_versions import runs_lateral
from lance_engine.errors import (
    DatasetNotFoundError,
    InvalidArgumentError,
    InvalidSearchError,
    UnsupportedFeatureError,
)

import lance_sql

ROWS, DIMENSIONS = 500, 8


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = tmp_path_factory.mktemp("search") / "t.lance"
    vectors = np.random.default_rng(0).normal(size=(ROWS, DIMENSIONS)).astype(np.float32)
    table = pa.table(
        {
            "id": range(ROWS),
            "group": [number % 5 for number in range(ROWS)],
            "v": pa.FixedSizeListArray.from_arrays(vectors.ravel(), DIMENSIONS),
        }
    )
    lance_sql.write(table, found)
    return str(found)


@pytest.fixture(params=["duckdb", "datafusion"])
def session(request: pytest.FixtureRequest) -> lance_sql.Connection:
    return lance_sql.connect(engine=request.param)


@pytest.fixture
def lateral(session: lance_sql.Connection) -> None:
    if not runs_lateral(session.engine):
        pytest.skip("DataFusion 53 plans no LATERAL join")


def nearest(path: str, number: int, k: int, **options: Any) -> list[int]:
    dataset = lance_sql.open(path)
    query = dataset.take([number], ["v"])["v"][0].as_py()
    ids: list[int] = dataset.nearest("v", query, k, **options)["id"].to_pylist()
    return ids


def vector(path: str, number: int) -> list[float]:
    found: list[float] = lance_sql.open(path).take([number], ["v"])["v"][0].as_py()
    return found


def test_parameters_literals_and_queries(session: lance_sql.Connection, path: str) -> None:
    expected = [(number,) for number in nearest(path, 7, 3)]
    query = vector(path, 7)
    function = f"SELECT id FROM lance_vector_search('{path}', 'v'"
    assert session.sql(f"{function}, ?, k := 3)", [query]).fetchall() == expected
    assert session.sql(f"{function}, $q, k => $k)", {"q": query, "k": 3}).fetchall() == expected
    assert session.sql(f"{function}, {query}, 3)").fetchall() == expected
    assert session.sql(f"{function}, (SELECT v FROM '{path}' WHERE id = 7), k := 3)").fetchall() == expected
    assert session.sql(f"{function}, ?, k := 3) WHERE id <> ?", [query, 7]).fetchall() == expected[1:]


def test_several_vectors_are_searched_at_once(session: lance_sql.Connection, path: str) -> None:
    found = session.sql(
        f"SELECT query_index, id FROM lance_vector_search('{path}', 'v', "
        f"(SELECT v FROM '{path}' WHERE id < 4 ORDER BY id), k := 2) ORDER BY query_index, _distance"
    ).fetchall()
    assert found == [(number, row) for number in range(4) for row in nearest(path, number, 2)]


def test_conditions_before_and_behind_the_search(session: lance_sql.Connection, path: str) -> None:
    query = vector(path, 7)
    text = f"SELECT id FROM lance_vector_search('{path}', 'v', ?, k := 4{{}}) AS s WHERE \"group\" = 2"
    behind = session.sql(text.format(""), [query]).fetchall()
    before = session.sql(text.format(", prefilter := true"), [query]).fetchall()
    assert len(before) == 4
    assert set(behind) < set(before)
    assert before == [(row,) for row in nearest(path, 7, 4, filter="group = 2")]
    given = f"SELECT id FROM lance_vector_search('{path}', 'v', ?, k := 4, filter := '\"group\" = 2')"
    assert session.sql(given, [query]).fetchall() == before


def test_answers_are_tables(session: lance_sql.Connection, path: str, tmp_path: Path) -> None:
    session.register("things", path)
    query = vector(path, 3)
    joined = session.sql(
        "SELECT count(*), min(s._distance) FROM lance_vector_search(things, 'v', $q, k := 20) s "
        "JOIN things t ON s.id = t.id",
        {"q": query},
    )
    assert joined.fetchall() == [(20, 0.0)]
    twice = session.sql(
        "SELECT a.id, b.id FROM lance_vector_search(things, 'v', $q, k := 1) a, "
        "lance_vector_search(things, 'v', $q, k := 2) b ORDER BY b._distance",
        {"q": query},
    )
    assert twice.fetchall() == [(3, 3), (3, nearest(path, 3, 2)[1])]
    if session.engine == "duckdb":
        session.sql(
            f"CREATE TABLE '{tmp_path}/near.lance' AS "
            f"SELECT id FROM lance_vector_search('{path}', 'v', {query}, k := 5)"
        )
        assert lance_sql.open(tmp_path / "near.lance").count_rows() == 5


def test_an_index_made_in_sql_is_searched(path: str, tmp_path: Path) -> None:
    session = lance_sql.connect(tmp_path)
    session.sql(f"CREATE TABLE copied AS SELECT * FROM '{path}'")
    session.sql("CREATE INDEX near ON copied USING ivf_flat (v) WITH (num_partitions = 4, metric = 'cosine')")
    assert session.sql("SELECT name FROM copied.indices").fetchall() == [("near",)]
    query = {"q": vector(path, 3)}
    search = "SELECT id, _distance FROM lance_vector_search(copied, 'v', $q, k := 5, nprobes := 4{})"
    found = session.sql(search.format(""), query).fetchall()
    exact = session.sql(search.format(", metric := 'cosine', use_index := false"), query).fetchall()
    assert [row for row, _ in found] == [row for row, _ in exact]
    with pytest.raises(InvalidArgumentError, match="nonsense"):
        session.sql("CREATE INDEX other ON copied USING ivf_flat (v) WITH (nonsense = 7)")


def test_the_names_of_answers_are_forgotten(path: str) -> None:
    session = lance_sql.connect()
    result = session.sql(f"SELECT id FROM lance_vector_search('{path}', 'v', {vector(path, 1)}, k := 1)")
    assert result.fetchall() == [(1,)]
    del result
    names = session.sql("SELECT view_name FROM duckdb_views() WHERE view_name LIKE 'lance_search%'")
    assert names.fetchall() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'v', [1, 2], nprob := 4", "nprobes"),
        ("'v'", "takes a table, a column, a vector"),
        ("'v', ? || [1]", "uses a parameter in an expression"),
        ("'v', (SELECT v, id FROM '{path}')", "returns 2 columns"),
        ("'v', (SELECT v FROM '{path}' WHERE id < 0)", "does not return a vector"),
        ("'v', $missing", "has no value"),
    ],
)
def test_mistakes_are_explained(
    session: lance_sql.Connection, path: str, arguments: str, message: str
) -> None:
    text = f"SELECT * FROM lance_vector_search('{path}', {arguments.format(path=path)})"
    with pytest.raises(UnsupportedFeatureError, match=message):
        session.sql(text).fetchall()


def test_prefilter_refuses_what_it_cannot_test(session: lance_sql.Connection, path: str) -> None:
    text = f"SELECT * FROM lance_vector_search('{path}', 'v', {vector(path, 1)}, prefilter := true)"
    for rest in (" s JOIN (SELECT 1 AS id) t ON s.id = t.id WHERE t.id = 1", " WHERE _distance < 3"):
        with pytest.raises(UnsupportedFeatureError, match="prefilter"):
            session.sql(text + rest)


def test_prefilter_refuses_times_that_depend_on_the_time_zone(tmp_path: Path) -> None:
    hours = pa.array([3_600_000_000 * hour for hour in range(24)], pa.int64())
    values = pa.array([[float(hour), 0.0] for hour in range(24)], pa.list_(pa.float32(), 2))
    table = pa.table({"moment": hours.cast(pa.timestamp("us", "UTC")), "v": values})
    lance_sql.write(table, tmp_path / "t.lance")
    with lance_sql.connect(tmp_path) as session:
        session.sql("SET TimeZone = 'America/New_York'")
        search = (
            "SELECT v FROM lance_vector_search(t, 'v', [0.0, 0.0], k := 1, prefilter := true) WHERE moment "
        )
        for condition in (">= '1970-01-01'", "BETWEEN '1970-01-01 03:00:00+00' AND '1970-01-02'"):
            with pytest.raises(UnsupportedFeatureError, match="depends on the session's time zone"):
                session.sql(search + condition)
        found = session.sql(search + ">= '1970-01-01 00:00:00-05'").fetchall()
        assert found == session.sql("SELECT v FROM t WHERE moment >= '1970-01-01' LIMIT 1").fetchall()
        assert found == [((5.0, 0.0),)]


def test_no_such_dataset(session: lance_sql.Connection) -> None:
    with pytest.raises(DatasetNotFoundError):
        session.sql("SELECT * FROM lance_vector_search('missing.lance', 'v', [1.0])")


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The columns of the searches that ran."""
    from lance_engine.dataset import DatasetVersion

    ran: list[str] = []
    run = DatasetVersion.nearest

    def nearest(self: DatasetVersion, column: str, *arguments: Any, **options: Any) -> pa.Table:
        ran.append(column)
        return run(self, column, *arguments, **options)

    monkeypatch.setattr(DatasetVersion, "nearest", nearest)
    return ran


def test_searches_run_with_their_statement(
    session: lance_sql.Connection, path: str, searched: list[str]
) -> None:
    result = session.sql(f"SELECT id FROM lance_vector_search('{path}', 'v', ?, k := 3)", [[0.0] * 8])
    assert "exact     500 rows" in str(result.explain())
    assert "lance_search" in str(
        session.sql(f"EXPLAIN SELECT id FROM lance_vector_search('{path}', 'v', {[0.0] * 8})").fetchall()
    )
    assert searched == []
    assert len(result.fetchall()) == 3
    assert searched == ["v"]


def test_explanations_tell_of_the_index(session: lance_sql.Connection, path: str, tmp_path: Path) -> None:
    copied = lance_sql.write(lance_sql.open(path).to_table(), tmp_path / "t.lance")
    copied = copied.create_index("v", "IVF_FLAT", num_partitions=1)
    lance_sql.write(lance_sql.open(path).scan(limit=20).to_table(), tmp_path / "t.lance", "append")
    text = f"SELECT id FROM lance_vector_search('{tmp_path}/t.lance', 'v', ?, k := 3, nprobes := 1{{}})"
    told = str(session.explain(text.format(", refine_factor := 5"), [[0.0] * 8]))
    for part in (
        "nearest   3 by l2 in v",
        "index     v_idx (IVF_FLAT): segment of 500 rows in 1 fragment, 1 of 1 partitions",
        "unindexed 20 rows in 1 fragment, searched exactly",
        "refined   15 rows",
    ):
        assert part in told
    assert "filter    id < 9" in str(session.explain(text.format(", filter := 'id < 9'"), [[0.0] * 8]))
    explained = str(session.sql("EXPLAIN " + text.format(""), [[0.0] * 8]).fetchall())
    assert "v_idx (IVF_FLAT)" in explained
    assert "exact" in str(session.explain(text.format(", use_index := false"), [[0.0] * 8]))


def test_row_ids_of_what_was_found(session: lance_sql.Connection, path: str) -> None:
    text = f"SELECT _rowid, id FROM lance_vector_search('{path}', 'v', ?, k := 3) ORDER BY _distance"
    assert session.sql(text, [vector(path, 7)]).fetchall() == [(row, row) for row in nearest(path, 7, 3)]
    counted = session.sql(f"SELECT count(*) FROM lance_vector_search('{path}', 'v', ?, 5)", [[0.0] * 8])
    assert counted.fetchall() == [(5,)]


@pytest.mark.usefixtures("lateral")
@pytest.mark.parametrize("join", [", LATERAL", ",", " LEFT JOIN LATERAL", " CROSS JOIN LATERAL"])
def test_vectors_of_another_table_are_searched_in_one_pass(
    session: lance_sql.Connection, path: str, searched: list[str], join: str
) -> None:
    end = " ON true" if "LEFT" in join else ""
    found = session.sql(
        f"SELECT q.id AS query, r.* FROM (SELECT id, v FROM '{path}') AS q{join} "
        f"lance_vector_search('{path}', 'v', q.v, k := 3) AS r{end} "
        "WHERE q.id < 6 ORDER BY query, r._distance"
    )
    assert searched == []
    rows = found.arrow()
    assert searched == ["v"]
    assert rows.schema.names == ["query", "id", "group", "v", "_distance"]
    expected = [(number, row) for number in range(6) for row in nearest(path, number, 3)]
    assert list(zip(rows["query"].to_pylist(), rows["id"].to_pylist(), strict=True)) == expected


@pytest.mark.usefixtures("lateral")
def test_vectors_of_named_queries_and_of_repeated_rows(session: lance_sql.Connection, path: str) -> None:
    found = session.sql(
        f"WITH q AS (SELECT id % 2 AS n, v FROM '{path}' WHERE id IN ($a, $b)), "
        "twice AS (SELECT * FROM q UNION ALL SELECT * FROM q) "
        f"SELECT n, count(*), min(r.id) FROM twice t JOIN LATERAL "
        f"lance_vector_search('{path}', 'v', t.v, k := 1) r ON true GROUP BY n ORDER BY n",
        {"a": 4, "b": 9},
    ).fetchall()
    assert found == [(0, 2, 4), (1, 2, 9)]
    empty = f"SELECT * FROM (SELECT v FROM '{path}' WHERE id < 0) q, "
    empty += f"LATERAL lance_vector_search('{path}', 'v', q.v) r"
    assert session.sql(empty).fetchall() == []
    with pytest.raises(UnsupportedFeatureError, match="must be a column of a table"):
        session.sql(f"SELECT * FROM '{path}' a, LATERAL lance_vector_search('{path}', 'v', b.v) r")


def test_views_search_again(session: lance_sql.Connection, path: str, tmp_path: Path) -> None:
    lance_sql.write(lance_sql.open(path).to_table(), tmp_path / "t.lance")
    kind = "TEMP VIEW" if session.engine == "duckdb" else "VIEW"
    session.sql(
        f"CREATE {kind} near AS SELECT id, _distance FROM "
        f"lance_vector_search('{tmp_path}/t.lance', 'v', {vector(path, 3)}, k := 2)"
    )
    assert session.sql("SELECT id FROM near ORDER BY _distance").fetchall() == [
        (row,) for row in nearest(path, 3, 2)
    ]
    lance_sql.open(tmp_path / "t.lance").delete("id = 3")
    assert session.sql("SELECT count(*) FROM near WHERE id = 3").fetchall() == [(0,)]


def test_vectors_of_a_table_that_means_another_version_meanwhile(tmp_path):
    """What finds the vectors of a search may make the session register a table again: it waited forever."""
    path = str(tmp_path / "t.lance")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.eye(4, dtype=np.float32).ravel()), 4)
    lance_sql.write(pa.table({"id": range(4), "v": vectors}), path)
    call = f"lance_vector_search('{path}', 'v', q.v, k := 1)"
    query = f"SELECT q.id, r.id FROM (SELECT id, v FROM '{path}') q, LATERAL {call} r ORDER BY 1"
    with lance_sql.connect() as session:
        session.sql(f"SELECT _rowid FROM '{path}'").fetchall()
        asked = session.sql(query)
        lance_sql.open(path).delete("id = 2")
        assert asked.fetchall() == [(0, 0), (1, 1), (3, 3)]
        assert session.sql(query).fetchall() == [(0, 0), (1, 1), (3, 3)]


def _of_every_vector(path: str) -> str:
    call = f"lance_vector_search('{path}', 'v', q.v, k := 2)"
    return f"SELECT q.id, r.id AS found FROM '{path}' q, LATERAL {call} r WHERE q.id < 3"


@pytest.mark.usefixtures("lateral")
@pytest.mark.parametrize("before", ["EXPLAIN", "explain analyze", "/* of */ EXPLAIN ANALYZE"])
def test_explained_searches_for_the_vectors_of_a_table(
    session: lance_sql.Connection, path: str, before: str
) -> None:
    plan = str(session.sql(f"{before} {_of_every_vector(path)}").fetchall())
    assert "join" in plan.lower()
    assert "exact     500 rows" in plan


@pytest.mark.usefixtures("lateral")
def test_statements_that_run_at_once_search_for_the_vectors_of_a_table(
    session: lance_sql.Connection, path: str, tmp_path: Path
) -> None:
    query = _of_every_vector(path)
    found = sorted(session.sql(query).fetchall())
    assert len(found) == 6
    session.sql(f"CREATE TABLE kept AS {query}")
    session.sql(f"COPY ({query}) TO '{tmp_path / 'kept.parquet'}'")
    assert sorted(session.sql("SELECT * FROM kept").fetchall()) == found
    assert sorted(session.sql(f"SELECT * FROM '{tmp_path / 'kept.parquet'}'").fetchall()) == found
    whole = query.replace("SELECT q.id, r.id AS found ", "")
    assert len(session.sql(whole).fetchall()) == 6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("[1.0, 2.0]", "The query has 2 dimensions, but the vectors have 8"),
        ("NULL", "The query vector is null"),
        ("[NULL, 0, 0, 0, 0, 0, 0, 0]", "contains NaN or null"),
        ("[0, 0, 0, 0, 0, 0, 0, 0], k := 0", "k must be a positive integer"),
        ("[0, 0, 0, 0, 0, 0, 0, 0], k := -1", "k must be a positive integer"),
        ("[0, 0, 0, 0, 0, 0, 0, 0], nprobes := 0", "nprobes must be a positive integer"),
        ("[0, 0, 0, 0, 0, 0, 0, 0], metric := 'manhattan'", "Unknown metric"),
    ],
)
def test_wrong_arguments_are_errors_of_searches_on_both_engines(
    session: lance_sql.Connection, path: str, arguments: str, message: str
) -> None:
    with pytest.raises(InvalidSearchError, match=message):
        session.sql(f"SELECT * FROM lance_vector_search('{path}', 'v', {arguments})").fetchall()


@pytest.mark.parametrize(("dimensions", "version"), [(1, "2.0"), (4096, "2.1"), (3, "2.2")])
def test_small_and_large_vectors_in_all_versions(
    session: lance_sql.Connection, tmp_path: Path, dimensions: int, version: str
) -> None:
    values = np.random.default_rng(1).normal(size=(40, dimensions)).astype(np.float32)
    nulls = pa.array([number % 9 == 4 for number in range(40)])
    column = pa.FixedSizeListArray.from_arrays(values.ravel(), dimensions, mask=nulls)
    path = str(tmp_path / "t.lance")
    ds = lance_sql.write(pa.table({"id": range(40), "v": column}), path, data_storage_version=version)
    call = f"SELECT id FROM lance_vector_search('{path}', 'v', ?, k := 1000000)"
    found = session.sql(call, [values[3].tolist()]).fetchall()
    distances = ((values - values[3]) ** 2).sum(axis=1)
    assert [row for (row,) in found] == [row for row in np.argsort(distances).tolist() if row % 9 != 4]
    ds.delete("id >= 0")
    assert session.sql(call, [values[3].tolist()]).fetchall() == []


@pytest.mark.parametrize("flag", ["use_index", "fast_search", "prefilter"])
def test_flags_are_true_or_false(session: lance_sql.Connection, path: str, flag: str) -> None:
    call = f"SELECT id FROM lance_vector_search('{path}', 'v', {vector(path, 3)}, k := 2, {flag} := {{}})"
    for value in ("'no'", "1", "NULL"):
        with pytest.raises(InvalidSearchError, match=f"{flag} must be true or false"):
            session.sql(call.format(value)).fetchall()
    assert session.sql(call.format("false")).fetchall() == [(row,) for row in nearest(path, 3, 2)]


@pytest.mark.usefixtures("lateral")
def test_prepared_searches(session: lance_sql.Connection, path: str) -> None:
    session.sql(f"PREPARE near AS SELECT id FROM lance_vector_search('{path}', 'v', $1, k := $2)")
    for number in (3, 8):
        expected = [(row,) for row in nearest(path, number, 4)]
        assert session.sql(f"EXECUTE near({vector(path, number)}, 4)").fetchall() == expected
    call = f"lance_vector_search('{path}', 'v', q.v, k := 2)"
    session.sql(
        f"PREPARE each AS SELECT q.id, r.id AS found FROM '{path}' q, LATERAL {call} r WHERE q.id < ?"
    )
    found = session.sql("EXECUTE each(1 + 2)").fetchall()
    assert sorted(found) == sorted((number, row) for number in range(3) for row in nearest(path, number, 2))
    with pytest.raises(InvalidArgumentError, match="no value for parameter 2"):
        session.sql(f"EXECUTE near({vector(path, 1)})")
    with pytest.raises(InvalidArgumentError, match="for an unknown parameter: 2"):
        session.sql("EXECUTE each(1, 2)")
    with pytest.raises(UnsupportedFeatureError, match="cannot be parameters"):
        session.sql("EXECUTE each(?)", [1])
    session.sql("DEALLOCATE near")
    with pytest.raises(lance_sql.LanceError, match="near"):
        session.sql(f"EXECUTE near({vector(path, 1)}, 4)").fetchall()
    session.sql("PREPARE each AS SELECT 1 + $1 AS n")
    assert session.sql("EXECUTE each(2)").fetchall() == [(3,)]


def test_queries_of_the_duckdb_extension_run_unchanged(session: lance_sql.Connection, tmp_path: Path) -> None:
    """As in its manual, except for the location of the dataset."""
    vectors = np.random.default_rng(1).normal(size=(400, 4)).astype(np.float32)
    table = pa.table(
        {
            "id": range(400),
            "label": [["cat", "dog"][number % 2] for number in range(400)],
            "text": [["a puppy runs", "a cat sleeps", "cat, puppy"][number % 3] for number in range(400)],
            "vec": pa.FixedSizeListArray.from_arrays(vectors.ravel(), 4),
        }
    )
    place = f"{tmp_path}/t.lance"
    ds = lance_sql.write(table, place)
    query = [0.1, 0.2, 0.3, 0.4]

    def rows(text: str) -> list[Any]:
        return list(session.sql(text.replace("path/to/dataset.lance", place)).fetchall())

    for column, kind, options in (
        ("vec", "IVF_FLAT", " WITH (num_partitions=1, metric_type='l2')"),
        ("label", "BTREE", ""),
        ("text", "INVERTED", ""),
    ):
        rows(f"CREATE INDEX {column}_idx ON 'path/to/dataset.lance' ({column})\nUSING {kind}{options};")
    kinds = {row[0]: row[1].upper() for row in rows("SHOW INDEXES ON 'path/to/dataset.lance';")}
    assert kinds == {"vec_idx": "IVF_FLAT", "label_idx": "BTREE", "text_idx": "INVERTED"}
    nearest = ds.nearest("vec", query, 5)["id"].to_pylist()
    for kind in ("FLOAT[]", "FLOAT[4]", "DOUBLE[]", "DOUBLE[4]"):
        found = rows(
            f"""SELECT id, label, _distance
            FROM lance_vector_search('path/to/dataset.lance', 'vec', [0.1, 0.2, 0.3, 0.4]::{kind},
                                     k = 5, use_index = true, nprobs = 4, refine_factor = 2, prefilter = true)
            ORDER BY _distance ASC"""
        )
        assert [row[0] for row in found] == nearest
    found = rows(
        """SELECT id, text, _score FROM lance_fts('path/to/dataset.lance', 'text', 'puppy', k = 10,
        prefilter = true) WHERE label = 'dog' ORDER BY _score DESC"""
    )
    assert len(found) == 10
    assert all(row[0] % 2 == 1 and "puppy" in row[1] for row in found)
    found = rows(
        """SELECT id, _hybrid_score, _distance, _score
        FROM lance_hybrid_search('path/to/dataset.lance', 'vec', [0.1, 0.2, 0.3, 0.4]::FLOAT[4],
                                 'text', 'puppy', k = 10, prefilter = false, alpha = 0.5,
                                 oversample_factor = 4)
        ORDER BY _hybrid_score DESC"""
    )
    expected = lance_sql.open(place).hybrid("vec", query, "puppy", "text", k=10, alpha=0.5)
    assert [row[1] for row in found] == pytest.approx(expected["_hybrid_score"].to_pylist())
    rows("DROP INDEX vec_idx ON 'path/to/dataset.lance';")
    rows(
        f"""COPY (SELECT 1::BIGINT AS id, 'x'::VARCHAR AS s LIMIT 0)
        TO '{tmp_path}/empty.lance' (FORMAT lance, mode 'overwrite', write_empty_file true)"""
    )
    assert lance_sql.open(tmp_path / "empty.lance").count_rows() == 0
    rows(f"ATTACH '{tmp_path}' AS ns (TYPE LANCE);")
    for name in ("'ns.main.t'", "ns.main.t"):
        assert [
            row[0] for row in rows(f"SELECT id FROM lance_vector_search({name}, 'vec', {query}, k = 5)")
        ] == nearest
