"""Columns of lists of vectors: the rows and distances that pylance finds."""

from __future__ import annotations

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_sql

ROWS, DIM = 150, 8


@pytest.fixture(scope="module", params=[np.float16, np.float32, np.float64])
def path(request, tmp_path_factory) -> str:
    random = np.random.default_rng(0)
    counts = random.integers(1, 5, ROWS)
    values = random.normal(size=(counts.sum(), DIM)).astype(request.param)
    items = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), DIM)
    lists = pa.ListArray.from_arrays(pa.array([0, *np.cumsum(counts)], pa.int32()), items)
    path = str(tmp_path_factory.mktemp("multi") / "t")
    table = pa.table({"id": range(ROWS), "v": lists})
    lance.write_dataset(table, path, max_rows_per_file=ROWS // 2).delete("id % 11 = 4")
    return path


@pytest.mark.sampled(6)
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("filter", [None, "id > 100"])
def test_lists_of_vectors(path, metric, filter):
    query = np.random.default_rng(1).normal(size=(3, DIM)).astype(np.float32)
    ours = lance_sql.open(path).nearest("v", query, 7, metric, columns=["id"], filter=filter)
    typed = query.astype(lance.dataset(path).schema.field("v").type.value_type.value_type.to_pandas_dtype())
    nearest = {"column": "v", "q": typed, "k": 7, "metric": metric}
    theirs = lance.dataset(path).to_table(
        columns=["id", "_distance"], nearest=nearest, filter=filter, prefilter=True
    )
    assert ours["id"].to_pylist() == theirs["id"].to_pylist()
    assert np.allclose(ours["_distance"], theirs["_distance"], rtol=5e-3, atol=5e-3)
