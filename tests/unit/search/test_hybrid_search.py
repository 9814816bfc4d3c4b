"""Hybrid search, compared with combining both searches by hand."""

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import InvalidSearchError

import lance_sql

ROWS = 200


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    random = np.random.default_rng(3)
    vectors = random.normal(size=(ROWS, 4)).astype(np.float32)
    words = ["ash", "birch", "cedar", "elm"]
    table = pa.table(
        {
            "id": range(ROWS),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 4),
            "text": [" ".join(random.choice(words, size=1 + row % 5)) for row in range(ROWS)],
        }
    )
    return lance_sql.write(table, str(tmp_path_factory.mktemp("hybrid") / "t.lance")), vectors[5]


def parts(ds, vector, wanted, **options):
    near = ds.nearest("vector", vector, wanted, columns=["id"], **options).to_pydict()
    texts = ds.search("ash elm", "text", wanted, columns=["id"], **options).to_pydict()
    return dict(zip(near["id"], near["_distance"], strict=True)), dict(
        zip(texts["id"], texts["_score"], strict=True)
    )


@pytest.mark.parametrize("filter", [None, "id > 50"])
def test_ranks_decide(written, filter):
    ds, vector = written
    near, texts = parts(ds, vector, 20, filter=filter)
    expected = {}
    for found in (near, texts):
        for rank, row in enumerate(found, 1):
            expected[row] = expected.get(row, 0) + 1 / (60 + rank)
    found = ds.hybrid("vector", vector, "ash elm", "text", 5, filter=filter, columns=["id"]).to_pydict()
    assert found["id"] == sorted(expected, key=lambda row: (-expected[row], row))[:5]
    assert found["_hybrid_score"] == pytest.approx([expected[row] for row in found["id"]], rel=1e-5)
    assert found["_distance"] == [near.get(row) for row in found["id"]]
    assert found["_score"] == [texts.get(row) for row in found["id"]]


@pytest.mark.parametrize("alpha", [0, 0.3, 1])
def test_scores_are_weighed(written, alpha):
    ds, vector = written
    near, texts = parts(ds, vector, 30)
    low, high = min(near.values()), max(near.values())
    least, most = min(texts.values()), max(texts.values())
    expected = {
        row: alpha * ((high - near[row]) / (high - low) if row in near else 0)
        + (1 - alpha) * ((texts[row] - least) / (most - least) if row in texts else 0)
        for row in near.keys() | texts.keys()
    }
    found = ds.hybrid("vector", vector, "ash elm", "text", 10, alpha=alpha, oversample=3, columns=["id"])
    found = found.to_pydict()
    assert found["_hybrid_score"] == pytest.approx([expected[row] for row in found["id"]], abs=1e-5)
    assert found["_hybrid_score"] == pytest.approx(sorted(expected.values(), reverse=True)[:10], abs=1e-5)


def test_options_that_make_no_sense(written):
    ds, vector = written
    for options in ({"alpha": 2}, {"alpha": "a"}, {"k": 0}, {"oversample": 0}):
        with pytest.raises(InvalidSearchError):
            ds.hybrid("vector", vector, "ash", "text", **options)
    with pytest.raises(InvalidSearchError, match="one vector"):
        ds.hybrid("vector", [vector, vector], "ash", "text")
