"""NGRAM both ways: equal results with each side's index, after any change to the table."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.file import LanceFileReader
from lance_engine.dataset import DatasetVersion
from pyroaring import BitMap64

from tests.support.indices import WHO_BEGINS, addresses, taking_turns

WORDS = [
    "hello",
    "Wörld",
    "straße",
    "ÆTHER",
    "a1b2",
    "ab",
    "100%",
    "x_yz",
    "",
    "日本abc",
    "\u0130stan",
    "Kbc",
]
INDEXED = [
    "contains(t, 'hell')",
    "contains(t, 'Wörld')",
    "contains(t, 'THER')",
    "contains(t, 'zzz')",
    "contains(t, 'hello a1b2')",
    "contains(t, 'stan')",
    "t LIKE '%ell%1b2%'",
    "t LIKE '%100%'",
    "t LIKE 'hel_o%'",
    "t ILIKE '%HELLO%'",
    "t ILIKE '%kbc%'",
    "starts_with(t, 'hello')",
    "ends_with(t, 'a1b2')",
    "contains(t, 'hell') AND contains(t, 'a1b')",
    "contains(t, 'hell') AND NOT contains(t, '1b')",
    "contains(t, 'hell') OR contains(t, 'a1b2')",
    "contains(t, 'hell') AND id < 50",
]
# Without three letters or digits of ASCII in a row, or true for texts without them.
SCANNED = [
    "contains(t, 'ab')",
    "contains(t, 'raße')",
    "contains(t, '')",
    "t LIKE '%h_l%'",
    "NOT contains(t, 'hello')",
    "contains(t, 'hell') OR contains(t, 'ab')",
    "contains(t, 'hell') OR id < 5",
    "t IS NULL",
]


def rows(rng: random.Random, count: int, first: int) -> pa.Table:
    texts = [
        None if rng.random() < 0.1 else " ".join(rng.choice(WORDS) for _ in range(rng.randrange(4)))
        for _ in range(count)
    ]
    return pa.table(
        {"t": pa.array(texts, pa.string()), "id": range(first, first + count), "x": ["a"] * count}
    )


def check(uri: str, step: str) -> None:
    ours, theirs = DatasetVersion.open(uri), lance.dataset(uri)
    for text in INDEXED + SCANNED:
        expected = addresses(ours.scan(["_rowaddr"], filter=text, indices=False))
        scan = ours.scan(["_rowaddr"], filter=text)
        assert addresses(scan) == expected, (step, text)
        assert ours.count_rows(text) == len(expected), (step, text)
        assert ("index t_idx (ngram" in scan.explain()) == (text in INDEXED), (step, text)
        found = theirs.to_table(["_rowaddr"], text)["_rowaddr"].to_pylist()
        assert sorted(found) == expected, (step, text)
    assert "ScalarIndex" in theirs.scanner(filter="contains(t, 'hell')").explain_plan(), step
    assert ours.verify().num_rows == 0, step


@pytest.mark.slow
@pytest.mark.sampled(1)
@WHO_BEGINS
def test_taking_turns(tmp_path: Path, by_pylance: bool, stable: bool) -> None:
    rng = random.Random(4)
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(rng, 200, 0), uri, max_rows_per_file=60, enable_stable_row_ids=stable)
    DatasetVersion.open(uri).delete("id IN (5, 80)")
    build(uri, by_pylance=by_pylance)
    turns = taking_turns(uri, lambda count, first: rows(rng, count, first), {"t": "'hello there'"})
    for name, step in turns.items():
        step()
        check(uri, name)


def build(uri: str, *, by_pylance: bool) -> None:
    if by_pylance:
        theirs: Any = lance.dataset(uri)
        theirs.create_scalar_index("t", "NGRAM")
    else:
        DatasetVersion.open(uri).create_index("t", "ngram")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_files_are_the_same(tmp_path: Path, kind: pa.DataType) -> None:
    """Tokens and sets of rows, for letters with accents and others that become ASCII as well."""
    odd = [
        "½abc",
        "Ⅷ viii",
        "e\u0301te",
        "ŒUVRE",
        "ßßß",
        "Ωmega",
        "İİİa",
        "ﾊﾝabc",
        "①②③",
        "ĸŉ\u017ft",
        "Ðþørn",
        "K\u212abc",
    ]
    texts = pa.array(
        [*WORDS, None, "Hello World", "\uff46\uff55\uff4c\uff4c", "ab", "c1d", "a" * 9, *odd], kind
    )
    contents = []
    for by_pylance in (False, True):
        uri = str(tmp_path / str(by_pylance))
        lance.write_dataset(pa.table({"t": texts}), uri)
        build(uri, by_pylance=by_pylance)
        (path,) = Path(uri, "_indices").glob("*/*")
        table = LanceFileReader(str(path)).read_all().to_table()
        lists = [list(BitMap64.deserialize(data)) for data in table["posting_list"].to_pylist()]
        contents.append((path.name, table.schema, dict(zip(table["tokens"].to_pylist(), lists, strict=True))))
    assert contents[0] == contents[1]
