"""Search indices of pylance that lack something: a layout of today, or rows in each partition."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from vector_tables import KINDS

import lance_sql

KEPT = Path(__file__).parent / "old_releases" / "changed"
WORDS = {
    "dog": {0, 1, 5, 8, 9, 11, 13, 16},
    "dogs": {0, 1, 5, 8, 9, 11, 13, 16},
    "cat": {2, 10, 11},
    "run": {0, 7, 8, 15},
    "the": set(),
}


def found(uri: str, words: str, **options: Any) -> set[int]:
    ids = lance_sql.open(uri).search(words, "t", k=None, **options)["id"].to_pylist()
    assert len(set(ids)) == len(ids)
    return set(ids)


def check_words(uri: str, gone: int | None = None) -> None:
    for words, ids in WORDS.items():
        assert found(uri, words) == ids - {gone}, words
        theirs = lance.dataset(uri).to_table(full_text_query=words)["id"].to_pylist()
        assert set(theirs) == ids - {gone}, words


def test_texts_of_release_0_27(tmp_path: Path) -> None:
    """Texts are read and cut into the words of the index, and `optimize_indices` writes a new one."""
    uri = str(tmp_path / "t.lance")
    shutil.unpack_archive(KEPT / "text-0.27.0.zip", uri)
    check_words(uri)
    assert found(uri, "dogs", fast_search=True) == WORDS["dogs"] - {16}
    lance_sql.open(uri).delete("id = 5").compact()
    check_words(uri, gone=5)
    lance_sql.open(uri).optimize_indices()
    check_words(uri, gone=5)
    statistics = lance_sql.open(uri).index_statistics("t_text")
    assert statistics["uncovered_rows"] == 0
    assert sum(segment["documents"] for segment in statistics["segments"]) > 0
    assert lance_sql.open(uri).verify().num_rows == 0


def rows(first: int, count: int, centre: float) -> pa.Table:
    values = np.random.default_rng(first).normal(centre, 0.01, size=count * 16).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), 16)
    return pa.table({"id": pa.array(range(first, first + count)), "v": vectors})


def check_vectors(uri: str) -> None:
    ours, theirs = lance_sql.open(uri), lance.dataset(uri)
    for query in ([0.0] * 16, [10.0] * 16):
        exact = set(ours.nearest("v", query, k=5, use_index=False)["id"].to_pylist())
        assert set(ours.nearest("v", query, k=5, nprobes=9, refine_factor=50)["id"].to_pylist()) == exact
        nearest = {"column": "v", "q": query, "k": 5, "nprobes": 9, "refine_factor": 50}
        assert set(theirs.to_table(nearest=nearest)["id"].to_pylist()) == exact


@pytest.mark.parametrize("kind", KINDS)
def test_empty_partitions(tmp_path: Path, kind: str) -> None:
    """One never had a row, the one of the second segment has none, and later all rows of another are gone."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.concat_tables([rows(0, 150, 0), rows(150, 150, 10)]), uri, max_rows_per_file=150)
    centroids = np.repeat([0, 10, -500], 16).reshape(3, 16).astype(np.float32)
    options: dict[str, Any] = {**KINDS[kind], "num_partitions": 3, "ivf_centroids": centroids}
    lance.dataset(uri).create_index("v", kind, **options)
    lance.write_dataset(rows(300, 20, 0), uri, mode="append")
    lance.dataset(uri).optimize.optimize_indices(num_indices_to_merge=0)
    lance_sql.open(uri).delete("id % 10 = 3").compact(deleted_share=0)
    check_vectors(uri)
    lance_sql.open(uri).delete("id >= 150 AND id < 300").compact(deleted_share=0)
    lance_sql.write(rows(400, 10, 10), uri, mode="append").optimize_indices()
    check_vectors(uri)
    lance_sql.open(uri).compact()
    check_vectors(uri)


def test_exact_vectors_beside_indexed_words(tmp_path: Path) -> None:
    """`use_index` of a hybrid search is about its vectors: words stay those of the index."""
    uri = str(tmp_path / "t.lance")
    table = rows(0, 4, 0).append_column("t", pa.array(["Dogs run", "a cat", "DOG", "fish"]))
    lance_sql.write(table, uri).create_index("t", kind="inverted")
    for use_index in (True, False):
        answer = lance_sql.open(uri).hybrid("v", [0.0] * 16, "dog", "t", k=4, use_index=use_index)
        scored = {row["id"] for row in answer.to_pylist() if row["_score"] is not None}
        assert scored == {0, 2}
        zeros = [0.0] * 16
        query = f"lance_hybrid_search('{uri}', 'v', {zeros}, 't', 'dog', k := 4, use_index := {use_index})"
        told = lance_sql.sql(f"SELECT id, _score FROM {query}").fetchall()
        assert {number for number, score in told if score is not None} == {0, 2}
