"""Searches with an inverted index return the same rows and scores as reading all texts."""

import random

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import InvalidSearchError
from lance_engine.operations import text_build
from lance_engine.scan.partial import shared_readers
from lance_engine.scan.scanner import Scanner

import lance_sql
from lance_sql.full_text import Boolean, Match, MultiMatch, Phrase

WORDS = [f"w{number}" for number in range(25)]
#: Of indices that cut texts as a search without an index does.
AS_WRITTEN = {
    "max_token_length": None,
    "lower_case": False,
    "stem": False,
    "remove_stop_words": False,
    "ascii_folding": False,
}


def texts(rows, generator, most=40):
    weights = [1 / (number + 1) for number in range(len(WORDS))]
    return [
        None
        if generator.random() < 0.1
        else " ".join(generator.choices(WORDS, weights, k=generator.randrange(most)))
        for _ in range(rows)
    ]


def queries(generator, count):
    for _ in range(count):
        words = " ".join(generator.choices(WORDS, k=generator.randrange(1, 4)))
        yield generator.choice(
            [
                Match(words),
                Match(words, operator="and"),
                Match(words, fuzziness=1, boost=0.5),
                Phrase(words),
                Phrase(words, slop=2),
                Boolean(must=[Match(words)], should=[Match("w1")], must_not=[Match("w9")]),
                MultiMatch(words, ["text", "other"], boosts=[1.0, 2.5]),
            ]
        )


def small_batches(snapshot, columns, fragments):
    assert len(fragments) == len(snapshot.fragments)
    return Scanner(snapshot, shared_readers(snapshot), columns=columns, batch_size=200)


def found(ds, query, k, **options):
    rows = ds.search(query, "text", k, columns=["id"], **options).to_pydict()
    return rows["id"], rows["_score"]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("partition_bytes", [256 << 20, 20_000])
def test_indexed_is_flat(tmp_path, monkeypatch, seed, partition_bytes):
    monkeypatch.setitem(text_build.build_texts.__kwdefaults__, "partition_bytes", partition_bytes)
    monkeypatch.setattr(text_build, "scan", small_batches)
    generator = random.Random(seed)
    rows = 3000
    table = pa.table({"id": range(rows), "text": texts(rows, generator), "other": texts(rows, generator, 5)})
    ds = lance_sql.write(table, str(tmp_path / "t"), max_rows_per_file=1100)
    for column in ("text", "other"):
        ds = ds.create_index(column, "INVERTED", with_position=True, **AS_WRITTEN)
    partitions = ds.index_statistics("text_idx")["segments"][0]["partitions"]
    assert (partitions > 1) == (partition_bytes < 1 << 20)
    for query in queries(generator, 12):
        ids, scores = found(ds, query, None, use_index=False)
        by_index, their_scores = found(ds, query, None)
        assert dict(zip(by_index, their_scores, strict=True)) == pytest.approx(
            dict(zip(ids, scores, strict=True)), rel=1e-4, abs=1e-5
        ), query
        for k in (1, 10):
            _, best = found(ds, query, k)
            assert best == pytest.approx(scores[:k], rel=1e-4, abs=1e-5), query
        kept = [row for row in by_index if row % 10 == 3]
        assert set(found(ds, query, None, filter="id % 10 = 3")[0]) == set(kept)


def test_rows_that_are_gone_are_not_found(tmp_path):
    generator = random.Random(11)
    table = pa.table({"id": range(800), "text": texts(800, generator)})
    ds = lance_sql.write(table, str(tmp_path / "t"), max_rows_per_file=300)
    ds = ds.create_index("text", "INVERTED", **AS_WRITTEN)
    before = set(found(ds, "w0 w3", None)[0])
    ds = ds.delete("id % 4 = 1 OR id < 300")
    after = {row for row in before if row % 4 != 1 and row >= 300}
    assert set(found(ds, "w0 w3", None)[0]) == after
    ds = ds.compact()
    assert set(found(ds, "w0 w3", None)[0]) == after
    assert set(found(ds, "w0 w3", None, fast_search=True)[0]) == after


def test_fast_search_leaves_out_what_is_not_covered(tmp_path):
    path = str(tmp_path / "t")
    ds = lance_sql.write(pa.table({"id": [1, 2], "text": ["ash", "oak"]}), path)
    ds.create_index("text", "INVERTED")
    ds = lance_sql.write(pa.table({"id": [3], "text": ["ashes"]}), path, "append")
    assert set(found(ds, "ash", None)[0]) == {1, 3}
    assert found(ds, "ash", None, fast_search=True)[0] == [1]
    assert set(found(ds.optimize_indices(), "ash", None, fast_search=True)[0]) == {1, 3}


def test_empty_tables(tmp_path):
    path = str(tmp_path / "t")
    ds = lance_sql.write(pa.table({"id": pa.array([], pa.int64()), "text": pa.array([], pa.string())}), path)
    ds = ds.create_index("text", "INVERTED", with_position=True)
    assert ds.search("ash").num_rows == 0
    ds = lance_sql.write(pa.table({"id": [1], "text": pa.array([None], pa.string())}), path, "append")
    assert ds.optimize_indices().search(Phrase("ash"), "text").num_rows == 0


def test_options_of_an_index(tmp_path):
    ds = lance_sql.write(pa.table({"text": ["ash"]}), str(tmp_path / "t"))
    with pytest.raises(TypeError, match="steming"):
        ds.create_index("text", "INVERTED", steming=True)
    with pytest.raises(InvalidSearchError):
        ds.create_index("text", "INVERTED", with_position="yes")


def test_many_tokens_and_long_documents(tmp_path):
    """Blocks of every size, gaps of every width, positions of more than a block."""
    random_numbers = np.random.default_rng(1)
    values = [" ".join(f"t{number}" for number in random_numbers.integers(0, 3000, 400)) for _ in range(300)]
    values += ["often " * count + "end" for count in (1, 127, 128, 129, 300, 1000)]
    ds = lance_sql.write(pa.table({"id": range(len(values)), "text": values}), str(tmp_path / "t"))
    ds = ds.create_index("text", "INVERTED", with_position=True, **AS_WRITTEN)
    for query in (Match("t7 t2999"), Match("often"), Phrase("often end"), Phrase("often often often")):
        ids, scores = found(ds, query, None, use_index=False)
        by_index, their_scores = found(ds, query, None)
        assert ids
        assert dict(zip(by_index, their_scores, strict=True)) == pytest.approx(
            dict(zip(ids, scores, strict=True)), rel=1e-4
        )
