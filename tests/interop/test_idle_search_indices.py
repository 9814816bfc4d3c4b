"""Vector and text indices that cover no rows any more: they still say how their columns are searched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.query import MatchQuery, PhraseQuery

import lance_sql
from lance_sql.full_text import Phrase

ROWS, DIM = 64, 4
TEXTS = ["running far", "run the fox", "a stone", "Runs"]


def table() -> pa.Table:
    # The lengths differ, so that cosine and l2 find other rows.
    vectors = np.random.default_rng(5).normal(size=(ROWS, DIM)) * np.arange(1, ROWS + 1)[:, None]
    return pa.table(
        {
            "id": range(ROWS),
            "t": [TEXTS[number % 4] for number in range(ROWS)],
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.astype(np.float32).reshape(-1)), DIM),
        }
    )


def moved_by_us(uri: str) -> None:
    lance_sql.open(uri).merge(table(), on="id").when_matched_update_all().execute()


def moved_by_pylance(uri: str) -> None:
    theirs: Any = lance.dataset(uri)
    theirs.optimize.compact_files(defer_index_remap=True)
    lance.write_dataset(table().slice(0, 0), uri, mode="append")


def ids(found: pa.Table) -> list[int]:
    return sorted(found["id"].to_pylist())


@pytest.mark.parametrize("move", [moved_by_us, moved_by_pylance])
def test_texts_are_cut_into_the_same_words(tmp_path: Path, move: Any) -> None:
    uri = str(tmp_path / "t.lance")
    lance_sql.write(table(), uri, max_rows_per_file=40).create_index("t", "INVERTED", with_position=True)
    words = [number for number in range(ROWS) if number % 4 != 2]
    phrase = list(range(1, ROWS, 4))

    def check(ours: lance_sql.Dataset) -> None:
        assert ids(ours.search("running", "t", k=None)) == words
        assert ids(ours.search("the", "t", k=None)) == []
        assert ids(ours.search(Phrase("runs fox"), "t", k=None)) == []
        assert ids(ours.search(Phrase("run the fox"), "t", k=None)) == phrase

    check(lance_sql.open(uri))
    move(uri)
    ours = lance_sql.open(uri)
    check(ours)
    ours = ours.optimize_indices()
    (listed,) = [row for row in ours.inspect.indices().to_pylist() if row["name"] == "t_idx"]
    assert listed["uncovered_fragments"] == 0
    check(ours)
    theirs = lance.dataset(uri)
    assert ids(theirs.to_table(full_text_query=MatchQuery("running", "t"))) == words
    assert ids(theirs.to_table(full_text_query=PhraseQuery("run the fox", "t"))) == phrase


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_HNSW_SQ"])
@pytest.mark.parametrize("move", [moved_by_us, moved_by_pylance])
def test_distances_are_of_the_same_kind(tmp_path: Path, kind: str, move: Any) -> None:
    uri = str(tmp_path / "t.lance")
    created = lance_sql.write(table(), uri, max_rows_per_file=40)
    created.create_index("v", kind, metric="cosine", num_partitions=2)
    query = table()["v"][7].as_py()
    nearest = {metric: ids(created.nearest("v", query, 5, metric)) for metric in ("cosine", "l2")}
    assert nearest["cosine"] != nearest["l2"]
    move(uri)
    ours = lance_sql.open(uri)
    assert ids(ours.nearest("v", query, 5)) == nearest["cosine"]
    assert ids(ours.nearest("v", query, 5, "l2")) == nearest["l2"]
    ours = ours.optimize_indices()
    (listed,) = [row for row in ours.inspect.indices().to_pylist() if row["name"] == "v_idx"]
    assert listed["uncovered_fragments"] == 0
    assert ids(ours.nearest("v", query, 5, nprobes=2, refine_factor=10)) == nearest["cosine"]
    asked = {"column": "v", "q": query, "k": 5, "nprobes": 2, "refine_factor": 10}
    assert ids(lance.dataset(uri).to_table(nearest=asked)) == nearest["cosine"]
