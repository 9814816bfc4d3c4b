"""The words of a text index as a finite-state transducer: pylance finds each word, and so do we."""

from __future__ import annotations

import random
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.file import LanceFileReader
from lance.query import MatchQuery

import lance_sql

#: Words are cut at spaces and are stored as they are.
AS_THEY_ARE = {
    "stem": False,
    "remove_stop_words": False,
    "ascii_folding": False,
    "lower_case": False,
    "base_tokenizer": "whitespace",
    "max_token_length": None,
}
#: More letters than 32, for which nodes have another form, and letters of several bytes.
LETTERS = "".join(map(chr, range(33, 127))) + "äöß日本語😀"


def _random_words() -> list[str]:
    chance = random.Random(1)
    return ["".join(chance.choices(LETTERS, k=chance.choice([1, 1, 2, 3, 8, 40]))) for _ in range(3000)]


CASES = {
    "none": [],
    "one": ["a"],
    "each begins the next": ["a" * length for length in (1, 2, 3, 300)],
    "long": ["a" * 70_000 + "b", "a" * 70_000 + "c", "b" * 70_000],
    "every letter": [f"x{letter}{rest}" for letter in LETTERS for rest in ("", "y")],
    "random": _random_words(),
}


def crc32c(data: bytes) -> int:
    found = 0xFFFFFFFF
    for byte in data:
        found ^= byte
        for _ in range(8):
            found = found >> 1 ^ (0x82F63B78 if found & 1 else 0)
    return found ^ 0xFFFFFFFF


def token_files(place: str) -> list[pa.Table]:
    files = sorted(Path(place).glob("_indices/*/part_*_tokens.lance"))
    return [LanceFileReader(str(file)).read_all().to_table() for file in files]


@pytest.mark.parametrize("case", CASES)
def test_words(tmp_path: Path, case: str) -> None:
    """A row for each word, and one without any."""
    words, place = CASES[case], str(tmp_path / "t.lance")
    table = pa.table({"id": range(len(words) + 1), "c": pa.array([*words, None], pa.string())})
    lance.write_dataset(table, place)
    lance_sql.open(place).create_index("c", "INVERTED", **AS_THEY_ARE)
    ours, theirs = lance_sql.open(place), lance.dataset(place)
    for word in [*random.Random(2).sample(words, min(len(words), 40)), "zzz", "aa"]:
        ids = [number for number, other in enumerate(words) if other == word]
        assert sorted(ours.search(word, "c", None, columns=["id"])["id"].to_pylist()) == ids
        found = theirs.to_table(["id", "_score"], full_text_query=MatchQuery(word, "c"))
        assert sorted(found["id"].to_pylist()) == ids
    assert ours.verify().num_rows == 0


def test_the_file_is_that_of_pylance(tmp_path: Path) -> None:
    """Columns, header, number of words and checksum; equal ends of words are stored once by pylance only."""
    table = pa.table({"c": ["river stone", "stone rivers apple"]})
    found = []
    for side in ("ours", "pylance"):
        place = str(tmp_path / side)
        lance.write_dataset(table, place)
        if side == "ours":
            lance_sql.open(place).create_index("c", "INVERTED", stem=False)
        else:
            lance.dataset(place).create_scalar_index("c", "INVERTED", stem=False)
        (tokens,) = token_files(place)
        (row,) = tokens.to_pylist()
        data = row.pop("_token_fst_bytes")
        root = int.from_bytes(data[-12:-4], "little")
        assert root == len(data) - 21
        summed = crc32c(data[:-4])
        masked = ((summed >> 15 | summed << 17) + 0xA282EAD8) & 0xFFFFFFFF
        assert int.from_bytes(data[-4:], "little") == masked
        found.append((tokens.schema, row, data[:16], data[-20:-12]))
    assert found[0] == found[1]


def test_pylance_merges_them_with_its_own(tmp_path: Path) -> None:
    """Also after it extended the index by rows without a word."""
    place = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"c": ["river stone", "fox"] * 20}), place, enable_stable_row_ids=True)
    lance_sql.open(place).create_index("c", "INVERTED")
    for texts in ([None] * 5, ["river apple"] * 3):
        lance.write_dataset(pa.table({"c": pa.array(texts, pa.string())}), place, mode="append")
        lance.dataset(place).optimize.optimize_indices(num_indices_to_merge=0)
    lance.dataset(place).optimize.optimize_indices(num_indices_to_merge=9)
    for word, count in (("river", 23), ("fox", 20), ("apple", 3)):
        assert lance_sql.open(place).search(word, "c", None).num_rows == count
        assert lance.dataset(place).to_table(full_text_query=word).num_rows == count
