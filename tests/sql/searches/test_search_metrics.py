"""Every door to a vector search uses the metric of the index, and returns exact distances in its scale."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from engine_versions import runs_lateral
from lance_engine.errors import InvalidSearchError, UnsupportedFeatureError
from lance_engine.index.cache import CACHE
from lance_engine.index.vector.kind import VECTORS
from lance_engine.search import choice, indexed
from vector_tables import clustered, vector_array

import lance_sql
from lance_sql.cli.app import app

ROWS, DIM, K = 600, 16, 6
VALUES = clustered(ROWS, DIM) * np.random.default_rng(1).uniform(0.3, 3, (ROWS, 1)).astype(np.float32)
QUERY = VALUES[7]


def cosines(ids: list[int]) -> list[float]:
    found = VALUES[ids].astype(np.float64) @ QUERY
    return list(1 - found / np.linalg.norm(VALUES[ids].astype(np.float64), axis=1) / np.linalg.norm(QUERY))


NEAREST = np.argsort(cosines(list(range(ROWS))))[:K].tolist()


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table with an index by cosine, which also answers searches with a filter."""
    monkeypatch.setattr(indexed, "_FEW_ROWS", 0)
    words = pa.array(["red fox" if row % 3 else "dog" for row in range(ROWS)])
    table = pa.table({"id": range(ROWS), "text": words, "v": vector_array(VALUES)})
    ds = lance_sql.write(table, tmp_path / "t.lance", max_rows_per_file=200)
    ds = ds.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=4, metric="cosine")
    ds.create_index("text", "INVERTED")
    return str(tmp_path / "t.lance")


@pytest.fixture(params=["duckdb", "datafusion"])
def session(request: pytest.FixtureRequest) -> lance_sql.Connection:
    return lance_sql.connect(engine=request.param)


def check(rows: list[tuple[Any, ...]]) -> None:
    """Pairs of ids and distances, nearest first."""
    assert [row[0] for row in rows] == NEAREST
    np.testing.assert_allclose([row[1] for row in rows], cosines(NEAREST), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("options", ["", ", use_index := false", ", filter := 'id >= 0'", ", upper := 1.5"])
@pytest.mark.parametrize("appended", [False, True])
def test_search_functions(session: lance_sql.Connection, path: str, options: str, appended: bool) -> None:
    if appended:
        far = pa.table({"id": [1000], "text": ["cat"], "v": vector_array(-VALUES[:1])})
        lance_sql.write(far, path, "append")
    call = f"lance_vector_search('{path}', 'v', $q, k := {K}{options})"
    rows = session.sql(f"SELECT id, _distance FROM {call} ORDER BY _distance", params={"q": QUERY}).fetchall()
    check(rows)
    rows = session.sql(
        f"SELECT id, _distance FROM {call} WHERE id < 1000 ORDER BY _distance, id", params={"q": QUERY}
    ).fetchall()
    check(rows)
    assert "by cosine" in str(session.explain(f"SELECT id FROM {call}", params={"q": QUERY}))


def test_hybrid_searches(session: lance_sql.Connection, path: str) -> None:
    for options in ("", ", use_index := false"):
        rows = session.sql(
            "SELECT id, _distance "
            f"FROM lance_hybrid_search('{path}', 'v', $q, 'text', 'fox', k := 50{options}) "
            "WHERE _distance IS NOT NULL",
            params={"q": QUERY},
        ).fetchall()
        ids = [row[0] for row in rows]
        assert {*NEAREST} <= {*ids}
        np.testing.assert_allclose([row[1] for row in rows], cosines(ids), rtol=1e-5, atol=1e-6)


def test_lateral_searches(session: lance_sql.Connection, path: str) -> None:
    if not runs_lateral(session.engine):
        pytest.skip("DataFusion 53 plans no LATERAL join")
    for options in ("", ", use_index := false"):
        rows = session.sql(
            f"SELECT r.id, r._distance FROM '{path}' q, "
            f"LATERAL lance_vector_search('{path}', 'v', q.v, k := {K}{options}) r "
            "WHERE q.id = 7 ORDER BY r._distance"
        ).fetchall()
        check(rows)


def test_deletions_of_what_a_search_finds(session: lance_sql.Connection, path: str) -> None:
    found = f"SELECT id FROM lance_vector_search('{path}', 'v', {QUERY.tolist()}, k := {K})"
    session.sql(f"DELETE FROM '{path}' WHERE id IN ({found})").fetchall()
    left = lance_sql.open(path).to_table(columns=["id"])["id"].to_pylist()
    assert left == [row for row in range(ROWS) if row not in NEAREST]


def test_order_by_a_distance(session: lance_sql.Connection, path: str) -> None:
    text = (
        f"SELECT id, array_cosine_distance(v, $q::FLOAT[{DIM}]) AS d FROM '{path}' ORDER BY d LIMIT {K}"
        if session.engine == "duckdb"
        else f"SELECT id, cosine_distance(v, $q) AS d FROM '{path}' ORDER BY d LIMIT {K}"
    )
    for value in ("off", "auto"):
        session.sql(f"SET lance_vector_index = '{value}'")
        check(session.sql(text, params={"q": QUERY.tolist()}).fetchall())


@pytest.mark.parametrize("options", [[], ["--exact"], ["--where", "id >= 0"]])
def test_command_line(path: str, options: list[str]) -> None:
    vector = json.dumps(QUERY.tolist())
    done = CliRunner().invoke(app, ["nearest", path, "v", vector, "-k", str(K), *options, "--json"])
    check([(row["id"], row["_distance"]) for row in json.loads(done.stdout)])


def test_an_index_that_is_not_read(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its metric counts: it is in the manifest, and in files where old releases did not write it there."""

    def unreadable(files: Any) -> Any:
        raise UnsupportedFeatureError("Not read")

    ds = lance_sql.open(path)
    exact = ds.nearest("v", QUERY, K, use_index=False)
    check(list(zip(exact["id"].to_pylist(), exact["_distance"].to_pylist(), strict=True)))
    with monkeypatch.context() as patched:
        patched.setattr(choice, "metric_in_details", lambda details: None)
        assert ds.nearest("v", QUERY, K, use_index=False).equals(exact)
        assert ds.nearest("v", QUERY, K, refine_factor=60).equals(exact)
    CACHE.clear()
    monkeypatch.setattr(VECTORS, "opener", unreadable)
    assert ds.nearest("v", QUERY, K).equals(exact)
    CACHE.clear()


def test_several_indices(tmp_path: Path) -> None:
    """The first by name counts, also after changes that list it last."""
    path = str(tmp_path / "t.lance")
    table = pa.table({"id": range(ROWS), "v": vector_array(VALUES)})
    ds = lance_sql.write(table, path)
    ds.create_index("v", "IVF_FLAT", num_partitions=2, name="b")
    ds = lance_sql.open(path).create_index("v", "IVF_SQ", num_partitions=2, metric="cosine", name="a")
    for changed in (False, True):
        if changed:
            lance_sql.write(pa.table({"id": [1000], "v": vector_array(-VALUES[:1])}), path, "append")
            ds = lance_sql.open(path).optimize_indices()
        for use_index in (True, False):
            found = ds.nearest("v", QUERY, K, use_index=use_index)
            check(list(zip(found["id"].to_pylist(), found["_distance"].to_pylist(), strict=True)))


def test_lists_of_vectors(tmp_path: Path) -> None:
    """Their index is not read, but its metric counts."""
    lists = pa.ListArray.from_arrays(pa.array(range(0, ROWS + 1, 2), pa.int32()), vector_array(VALUES))
    theirs = lance.write_dataset(pa.table({"id": range(ROWS // 2), "v": lists}), tmp_path / "t")
    theirs.create_index("v", "IVF_FLAT", num_partitions=2, metric="cosine")
    ds = lance_sql.open(str(tmp_path / "t"))
    assert ds.nearest("v", VALUES[:2], K).equals(ds.nearest("v", VALUES[:2], K, "cosine"))
    assert not ds.nearest("v", VALUES[:2], K).equals(ds.nearest("v", VALUES[:2], K, "l2"))


def test_another_metric_is_searched_exactly(path: str) -> None:
    ds = lance_sql.open(path)
    wanted = ((VALUES.astype(np.float64) - QUERY) ** 2).sum(axis=1)
    found = ds.nearest("v", QUERY, K, "l2")
    assert found["id"].to_pylist() == np.argsort(wanted)[:K].tolist()
    np.testing.assert_allclose(found["_distance"].to_numpy(), np.sort(wanted)[:K], rtol=1e-5, atol=1e-5)


def test_estimates(session: lance_sql.Connection, path: str) -> None:
    text = f"SELECT _distance FROM lance_vector_search('{path}', 'v', $q, k := {K}, estimates := {{}})"
    exact, estimated = (
        np.array(session.sql(text.format(given), params={"q": QUERY}).fetchall())
        for given in ("false", "true")
    )
    assert not np.array_equal(exact, estimated)
    with pytest.raises(InvalidSearchError, match="estimates must be true or false"):
        session.sql(text.format("1"), params={"q": QUERY}).fetchall()
    with pytest.raises(InvalidSearchError, match="Pass one of them"):
        lance_sql.open(path).nearest("v", QUERY, estimates=True, refine_factor=2)
    assert "estimated distances" in str(session.explain(text.format("true"), params={"q": QUERY}))
    assert "refined   60 rows" in str(session.explain(text.format("false"), params={"q": QUERY}))
