"""``lance_fts`` and ``lance_hybrid_search`` in SQL, on both engines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import UnsupportedFeatureError

import lance_sql

WORDS = ["fox", "dog", "bread", "river", "stone"]
VECTORS = np.random.default_rng(2).normal(size=(60, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    found = tmp_path_factory.mktemp("texts") / "t.lance"
    texts = [f"{WORDS[i % 5]} and {WORDS[i % 3]} {'quick ' * (i % 4)}" for i in range(60)]
    vectors = pa.FixedSizeListArray.from_arrays(VECTORS.ravel(), 4)
    lance_sql.write(pa.table({"id": range(60), "text": texts, "v": vectors}), found)
    return str(found)


@pytest.fixture(params=["duckdb", "datafusion"])
def session(request: pytest.FixtureRequest) -> lance_sql.Connection:
    return lance_sql.connect(engine=request.param)


def test_words(session: lance_sql.Connection, path: str) -> None:
    found = session.sql(f"SELECT id, _score FROM lance_fts('{path}', 'text', ?, k := 5)", ["quick stone"])
    assert "words     'quick stone' in text, 5 rows" in str(found.explain())
    expected = lance_sql.open(path).search("quick stone", "text", 5, columns=["id"])
    assert found.fetchall() == [tuple(row.values()) for row in expected.to_pylist()]
    few = (
        f"SELECT count(*) FROM lance_fts('{path}', 'text', 'quick', k := 100, prefilter := true) WHERE id < 9"
    )
    expected = lance_sql.open(path).search("quick", "text", 100, filter="id < 9")
    assert session.sql(few).fetchall() == [(expected.num_rows,)]


def test_vectors_and_words(session: lance_sql.Connection, path: str) -> None:
    dataset = lance_sql.open(path)
    text = (
        "SELECT id, _distance, _score, _hybrid_score, _rowid FROM "
        f"lance_hybrid_search('{path}', 'v', $v, 'text', 'quick stone', k := 6{{}}) "
        "ORDER BY _hybrid_score DESC, _rowid"
    )
    near = dataset.nearest("v", VECTORS[3], 24)["id"].to_pylist()
    words = dataset.search("quick stone", "text", 24)["id"].to_pylist()
    ranks = {
        row: sum(1 / (61 + order.index(row)) for order in (near, words) if row in order)
        for row in {*near, *words}
    }
    expected = sorted(ranks, key=lambda row: (-ranks[row], row))[:6]
    found = session.sql(text.format(""), {"v": VECTORS[3].tolist()}).fetchall()
    assert [row[0] for row in found] == expected
    assert [row[3] for row in found] == pytest.approx([ranks[row] for row in expected], rel=1e-5)
    by_vector = session.sql(text.format(", alpha := 1.0"), {"v": VECTORS[3].tolist()}).fetchall()
    assert [row[0] for row in by_vector] == near[:6]
    by_words = session.sql(text.format(", alpha := 0.0"), {"v": VECTORS[3].tolist()}).fetchall()
    assert [row[2] for row in by_words] == sorted((row[2] for row in by_words), reverse=True)
    assert by_words[0][3] == 1.0


def test_mistakes(session: lance_sql.Connection, path: str) -> None:
    for text, message in [
        (f"lance_hybrid_search('{path}', 'v', [1, 2, 3, 4], 'text', 'x', alpha := 2)", "alpha"),
        (f"lance_hybrid_search('{path}', 'v', [1, 2, 3, 4])", "words and options"),
        (f"lance_fts('{path}', 'text', 'x', nprobes := 3)", "no argument"),
    ]:
        with pytest.raises(lance_sql.LanceError, match=message):
            session.sql(f"SELECT * FROM {text}").fetchall()


def test_an_index_on_words_made_in_sql(session: lance_sql.Connection, path: str, tmp_path: Path) -> None:
    copied = f"'{tmp_path}/t.lance'"
    lance_sql.write(lance_sql.open(path).to_table(), tmp_path / "t.lance")
    text = f"SELECT id FROM lance_fts({copied}, 'text', 'quick stone', k := 5)"
    session.sql(f"CREATE INDEX words ON {copied} USING INVERTED (text) WITH (stem = false)")
    expected = lance_sql.open(tmp_path / "t.lance").search("quick stone", "text", 5, columns=["id"])
    assert session.sql(text).fetchall() == [(row,) for row in expected["id"].to_pylist()]
    health = session.sql(f"SELECT name, rows, unindexed_rows, advice FROM {copied}.index_health")
    assert health.fetchall() == [("words", 60, 0, None)]


def test_explain_names_the_index_and_what_it_lacks(session: lance_sql.Connection, tmp_path: Path) -> None:
    place = f"{tmp_path}/t.lance"
    table = pa.table({"id": range(6), "text": ["quick fox", "lazy dog"] * 3})
    lance_sql.write(table, place)
    search = f"SELECT id FROM lance_fts('{place}', 'text', 'fox'{{}})"
    assert "texts     6 rows in 1 fragment, read and scored" in str(session.explain(search.format("")))
    lance_sql.open(place).create_index("text", "INVERTED")
    lance_sql.write(table.slice(0, 2), place, mode="append")
    told = str(session.explain(search.format("")))
    assert "index     text_idx (INVERTED): segment of 6 rows in 1 fragment, 1 partition" in told
    assert "unindexed 2 rows in 1 fragment, read and scored" in told
    assert "1 fragment, left out" in str(session.explain(search.format(", fast_search = true")))
    assert "2 fragments, read and scored, as asked" in str(
        session.explain(search.format(", use_index = false"))
    )


@pytest.mark.parametrize("column", ["NULL", "3"])
def test_columns_are_given_by_name(session: lance_sql.Connection, path: str, column: str) -> None:
    for search in (
        f"lance_fts('{path}', {column}, 'fox')",
        f"lance_vector_search('{path}', {column}, [1, 2, 3, 4])",
        f"lance_hybrid_search('{path}', {column}, [1, 2, 3, 4], 'text', 'fox')",
        f"lance_hybrid_search('{path}', 'v', [1, 2, 3, 4], {column}, 'fox')",
    ):
        with pytest.raises(UnsupportedFeatureError, match=f"by name, in quotes, not {column}"):
            session.sql(f"SELECT * FROM {search}").fetchall()
