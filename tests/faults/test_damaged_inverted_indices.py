"""Searches in damaged inverted indices: an error of ours or an answer, never a crash, and no row twice."""

import contextlib
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance_engine import kernels
from lance_engine.errors import LanceError
from lance_engine.index.cache import CACHE, VECTORS

import lance_sql
from lance_sql.full_text import Match, Phrase

ROWS = 900
WORDS = [f"word{number}" for number in range(30)]


@pytest.fixture(scope="module", params=["ours", "pylance 1", "pylance 3"])
def indexed(request, tmp_path_factory):
    lance = pytest.importorskip("lance")
    path = str(tmp_path_factory.mktemp("damaged") / "t")
    generator = random.Random(4)
    values = [" ".join(generator.choices(WORDS, k=generator.randrange(12))) for _ in range(ROWS)]
    ds = lance_sql.write(pa.table({"id": range(ROWS), "text": values}), path)
    with pytest.MonkeyPatch.context() as patched:
        if request.param == "ours":
            ds.create_index("text", "INVERTED", with_position=True)
        else:
            patched.setenv("LANCE_FTS_FORMAT_VERSION", request.param[-1])
            lance.dataset(path).create_scalar_index("text", "INVERTED", with_position=True)
    return path


def search(path):
    CACHE.clear()
    VECTORS.clear()
    ds = lance_sql.open(path)
    for query in (Match("word1 word2"), Match("wrd3", fuzziness=1), Phrase("word4 word5")):
        ids = ds.search(query, "text", None, columns=["id"])["id"].to_pylist()
        assert len(set(ids)) == len(ids)
        assert all(0 <= number < ROWS for number in ids)


def test_changed_bytes(indexed):
    changes = random.Random(5)
    search(indexed)
    files = sorted(Path(indexed, "_indices").rglob("*.lance"))
    assert len(files) == 4
    for path in files:
        sound = path.read_bytes()
        try:
            for _ in range(12):
                data = bytearray(sound)
                for _ in range(changes.randrange(1, 4)):
                    data[changes.randrange(len(data))] = changes.randrange(256)
                path.write_bytes(data)
                with contextlib.suppress(LanceError):
                    search(indexed)
        finally:
            path.write_bytes(sound)


def test_missing_files_are_named(indexed):
    for path in sorted(Path(indexed, "_indices").rglob("part*.lance")):
        sound = path.read_bytes()
        path.unlink()
        try:
            with pytest.raises(LanceError, match="text_idx"):
                search(indexed)
        finally:
            path.write_bytes(sound)


def part(rows):
    return kernels.TextPart(np.arange(rows, dtype=np.uint64), np.full(rows, 9, dtype=np.uint32), False)


def built(rows, *, seed=0):
    """Posting lists of a few terms, as they are written."""
    generator = np.random.default_rng(seed)
    builder = kernels.IndexBuilder(True)
    analyzer = kernels.Analyzer(
        kernels.BaseTokenizer.WHITESPACE, np.empty(0, dtype=np.uint8), 0, 3, 3, False, False
    )
    texts = [" ".join(generator.choice(["a", "b", "cc"], size=9)) for _ in range(rows)]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    tokens = analyzer.split(ends, np.frombuffer("".join(texts).encode(), dtype=np.uint8), None, None)
    analyzer.resolve(analyzer.unresolved())
    builder.add(analyzer, tokens, np.arange(rows, dtype=np.uint64))
    builder.finish()
    return builder.columns(0, builder.terms)


@pytest.mark.parametrize("block_size", [128, 256])
@pytest.mark.parametrize("varint", [False, True])
def test_posting_lists_of_any_bytes(block_size, varint):
    generator = random.Random(7)
    documents = part(1000)
    blocks, block_ends, lists, _, counts, positions, position_ends, offsets = built(1000)
    sound = blocks[block_ends[lists[0]] : block_ends[lists[1]]].tobytes()
    ends = block_ends[lists[0] : lists[1] + 1].copy()
    decoded = 0
    for _ in range(400):
        data = bytearray(sound)
        for _ in range(generator.randrange(3)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        try:
            found = kernels.Postings(
                documents,
                block_size,
                varint,
                ends,
                np.frombuffer(bytes(data), dtype=np.uint8),
                int(counts[0]),
            )
            found.read_shared_positions(
                block_size,
                True,
                offsets[lists[0] : lists[1]].copy(),
                positions[position_ends[0] : position_ends[1]].copy(),
            )
            decoded += 1
        except kernels.CorruptDataError:
            continue
    assert bool(decoded) == (block_size == 128 and varint)


@pytest.mark.parametrize("case", ["count", "documents", "ends", "descending ends"])
def test_posting_lists_that_contradict_themselves(case):
    blocks, block_ends, lists, _, counts, *_ = built(300)
    data = blocks[: block_ends[lists[1]]].copy()
    ends = block_ends[: lists[1] + 1].copy()
    count, documents = int(counts[0]), part(300)
    kernels.Postings(documents, 128, True, ends, data, count)
    if case == "count":
        count += 128
    elif case == "documents":
        documents = part(200)
    elif case == "ends":
        ends[-1] += 1
    else:
        ends[1] = ends[2] + 1
    with pytest.raises(kernels.CorruptDataError):
        kernels.Postings(documents, 128, True, ends, data, count)


def test_tokens_that_contradict_themselves():
    def listed(ends, data, numbers, limit):
        return kernels.TokenSet.listed(
            np.array(ends, dtype=np.int64),
            np.frombuffer(data, dtype=np.uint8),
            np.array(numbers, dtype=np.uint32),
            limit,
        )

    assert listed([0, 1, 2], b"ab", [1, 0], 2).find(b"a") == 1
    for wrong in (
        ([0, 1, 2], b"ba", [0, 1], 2),
        ([0, 1, 2], b"ab", [0, 2], 2),
        ([0, 1, 3], b"ab", [0, 1], 2),
        ([0, 2, 1], b"ab", [0, 1], 2),
    ):
        with pytest.raises(kernels.CorruptDataError):
            listed(*wrong)
    generator = random.Random(9)
    for _ in range(300):
        data = (3).to_bytes(8, "little") + bytes(generator.randrange(256) for _ in range(60))
        data += (4).to_bytes(8, "little") + generator.randrange(70).to_bytes(8, "little") + bytes(4)
        with contextlib.suppress(kernels.CorruptDataError):
            kernels.TokenSet.transducer(np.frombuffer(data, dtype=np.uint8), 10, 1000)
