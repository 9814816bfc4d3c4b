"""NGRAM: what is indexed, and what damaged files do."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CorruptFileError, LanceError, UnsupportedTypeError
from lance_engine.index import ngram
from lance_engine.write.dataset import write_dataset

import lance_sql
from tests.support.indices import addresses


def dataset_of(texts: pa.Array, path: Path) -> DatasetVersion:
    uri = str(path / "t.lance")
    write_dataset(pa.table({"t": texts}), uri)
    return DatasetVersion.open(uri)


@pytest.mark.parametrize(
    "texts", [[], [None, None], ["", "a", "ab"], ["ab", "cd"], ["abc"], ["a", None, "xyz"]]
)
def test_short_texts(tmp_path: Path, texts: list[str | None]) -> None:
    dataset = dataset_of(pa.array(texts, pa.string()), tmp_path).create_index("t", "ngram")
    for text in ("contains(t, 'abc')", "contains(t, 'xyz')", "contains(t, 'bcd')"):
        expected = addresses(dataset.scan(["_rowaddr"], filter=text, indices=False))
        assert addresses(dataset.scan(["_rowaddr"], filter=text)) == expected


def test_answers_are_those_of_a_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much is written and split at once."""
    rng = random.Random(5)
    letters = "abAB1é%_ -ß"
    texts = ["".join(rng.choice(letters) for _ in range(rng.randrange(12))) for _ in range(3000)]
    monkeypatch.setattr(ngram, "_STEP_BYTES", 5000)
    dataset = dataset_of(pa.array([*texts, None]), tmp_path).create_index("t", "ngram")
    for _ in range(150):
        part = "".join(
            rng.choice(letters.replace("%", "").replace("_", "")) for _ in range(rng.randrange(3, 7))
        )
        pattern = "".join(rng.choice([part, part[:3], "%", "_", "aB1"]) for _ in range(4))
        function = rng.choice(["contains", "starts_with", "ends_with"])
        text = rng.choice([f"{function}(t, '{part}')", f"t LIKE '{pattern}'", f"t ILIKE '%{part}%'"])
        expected = addresses(dataset.scan(["_rowaddr"], filter=text, indices=False))
        assert addresses(dataset.scan(["_rowaddr"], filter=text)) == expected, text


def test_an_escaped_wildcard_is_a_character() -> None:
    assert ngram._literal_runs(r"ab\%c%de_f\\g") == ["ab%c", "de", "f\\g"]


def test_only_texts_are_taken(tmp_path: Path) -> None:
    for values in (pa.array([1]), pa.array([b"abc"]), pa.array([["abc"]])):
        with pytest.raises(UnsupportedTypeError, match="ngram"):
            dataset_of(values, tmp_path / str(values.type)).create_index("t", "ngram")


def test_from_sql(tmp_path: Path) -> None:
    dataset = dataset_of(pa.array(["hello", "world", None] * 50), tmp_path)
    with lance_sql.connect() as connection:
        connection.sql(f"CREATE INDEX parts ON '{dataset.uri}' USING ngram (t)")
        query = f"SELECT count(*) FROM '{dataset.uri}' WHERE t LIKE '%orl%'"
        assert connection.sql(query).fetchall() == [(50,)]
    assert DatasetVersion.open(dataset.uri).index_statistics("parts")["segments"][0]["trigrams"] == 7


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_file_that_is_cut_off_is_an_error(tmp_path: Path, share: float) -> None:
    dataset = dataset_of(pa.array(["hello", None] * 50), tmp_path).create_index("t", "ngram")
    (path,) = Path(dataset.uri, "_indices").glob("*/*")
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(CorruptFileError, match="t_idx"):
        DatasetVersion.open(dataset.uri).count_rows("contains(t, 'hello')")
    assert DatasetVersion.open(dataset.uri).drop_index("t_idx").count_rows("contains(t, 'hello')") == 50


def test_changed_bytes_are_never_another_error(tmp_path: Path) -> None:
    rng = random.Random(2)
    failed = 0
    for number in range(40):
        dataset = dataset_of(pa.array(["hello", "world", None] * 9), tmp_path / str(number))
        dataset = dataset.create_index("t", "ngram")
        (path,) = Path(dataset.uri, "_indices").glob("*/*")
        changed = bytearray(path.read_bytes())
        for _ in range(3):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        path.write_bytes(changed)
        try:
            DatasetVersion.open(dataset.uri).count_rows("contains(t, 'hello')")
        except LanceError:
            failed += 1
    assert failed
