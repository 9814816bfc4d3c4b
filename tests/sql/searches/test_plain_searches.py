"""Statements that only return the rows of a search: the same result without the engine."""

import numpy as np
import pyarrow as pa
import pytest

import lance_sql
from lance_sql.searches.plain import PlainSearch

VECTORS = np.random.default_rng(2).normal(size=(300, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    path = str(tmp_path_factory.mktemp("plain") / "t.lance")
    columns = {
        "id": pa.array(range(300)),
        "small": pa.array([n % 9 if n % 7 else None for n in range(300)], pa.uint8()),
        "half": pa.array([n / 2 for n in range(300)], pa.float32()),
        "name": pa.array([None if n % 11 == 2 else f"word{n % 5} of {n}" for n in range(300)]),
        "day": pa.array(range(300), pa.date32()),
        "v": pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), 4),
    }
    lance_sql.write(pa.table(columns), path)
    return path


def is_plain(session, text, params=None) -> bool:
    return isinstance(session.sql(text, params=params)._query, PlainSearch)


PLAIN = [
    "SELECT id, _distance FROM {v} ORDER BY _distance",
    "SELECT _distance, name, small, half, id FROM {v} ORDER BY _distance ASC LIMIT 7;",
    'SELECT "id" FROM {v} AS r ORDER BY "_distance" LIMIT 0',
    "SELECT id, _rowid FROM {v} LIMIT 5",
    "select id from {v} limit 5",
    "SELECT id, name, _score FROM {w} ORDER BY _score DESC LIMIT 4",
]
OTHER = [
    "SELECT id FROM {v} ORDER BY _distance DESC",
    "SELECT id FROM {v} ORDER BY id LIMIT 3",
    "SELECT id, id FROM {v}",
    "SELECT ID FROM {v}",
    "SELECT id AS n FROM {v}",
    "SELECT id + 1 AS n FROM {v}",
    "SELECT day FROM {v}",
    "SELECT DISTINCT small FROM {v} ORDER BY small",
    "SELECT count(*) AS n FROM {v}",
    "SELECT id FROM {v} WHERE small = 3",
    "SELECT r.id FROM {v} r ORDER BY r._distance LIMIT 3",
    "SELECT id FROM {v} ORDER BY _distance LIMIT 3 OFFSET 2",
    "SELECT id FROM {w} ORDER BY _score",
]


@pytest.mark.parametrize("text", [*PLAIN, *OTHER])
def test_the_answer_is_that_of_the_engine(path, text, monkeypatch):
    session = lance_sql.connect()
    vector = f"lance_vector_search('{path}', 'v', [0.5, 0.1, -0.3, 0.2], k := 12)"
    words = f"lance_fts('{path}', 'name', 'word3 of', k := 12)"
    text = text.format(v=vector, w=words)
    ours = session.sql(text)
    assert is_plain(session, text) == (text in {one.format(v=vector, w=words) for one in PLAIN})
    monkeypatch.setattr("lance_sql.searches.plain.plain_search", lambda *_: None)
    theirs = session.sql(text)
    assert ours.arrow().equals(theirs.arrow())
    assert ours.arrow().schema == theirs.arrow().schema
    assert ours.fetchall() == theirs.fetchall()
    assert ours.columns == theirs.columns
    assert ours.types == theirs.types


def test_parameters_views_and_several_vectors(path):
    session = lance_sql.connect()
    call = f"lance_vector_search('{path}', 'v', ?, k := 3)"
    text = f"SELECT id FROM {call} ORDER BY _distance"
    assert is_plain(session, text, [VECTORS[5]])
    assert session.sql(text, params=[VECTORS[5]]).fetchone() == (5,)
    several = f"SELECT id FROM lance_vector_search('{path}', 'v', (SELECT v FROM '{path}' LIMIT 2), k := 3)"
    assert not is_plain(session, several)
    assert session.sql(several).arrow().num_rows == 6
    assert not is_plain(session, f"{text} LIMIT ?", [VECTORS[5], 2])
    assert "nearest" in str(session.explain(text, [VECTORS[5]])).lower()
    with pytest.raises(lance_sql.LanceError, match="dimensions"):
        session.sql(text, params=[[1.0]]).fetchall()
    session.close()
    with pytest.raises(lance_sql.LanceError, match="closed"):
        session.sql(text, params=[VECTORS[5]])


def test_a_stored_column_of_the_name_is_no_order(tmp_path):
    path = str(tmp_path / "t.lance")
    lance_sql.write(pa.table({"id": [1, 2], "_distance": [0.5, 0.1], "text": ["fox fox", "fox"]}), path)
    found = lance_sql.sql(f"SELECT id, _distance FROM lance_fts('{path}', 'text', 'fox') ORDER BY _distance")
    assert found.fetchall() == [(2, 0.1), (1, 0.5)]
