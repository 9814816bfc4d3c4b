"""Dictionary codes stand for the strings themselves, whatever is read and however."""

from __future__ import annotations

import gc
import random
import threading
import weakref
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from counts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lance_engine import kernels
from lance_engine.cache import cache_statistics, memory_limit, set_memory_limit
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CorruptFileError, InvalidArgumentError, UnsupportedFeatureError
from lance_engine.scan import dictionary_codes, stored_entries
from lance_engine.scan.code_columns import CodeColumn
from lance_engine.scan.dictionary_codes import DictionaryCodes
from lance_engine.scan.fragment import FragmentReader
from lance_engine.table.snapshot import Snapshot
from lance_engine.write.dataset import write_dataset

ROWS = 6_000
INT32 = pa.int32()
ODD = ["", "\0", "a\0b", "a", "Zoë", "漢字", "x" * 40, "y" * 300]


def strings(count: int, rows: int = ROWS, seed: int = 1, nulls: bool = True) -> pa.Array:
    """Strings of which about `count` are distinct."""
    chance = random.Random(seed)
    values = [*ODD, *(f"{seed} value {number}" for number in range(count))][:count]
    chosen = [None if nulls and chance.random() < 0.05 else chance.choice(values) for _ in range(rows)]
    return pa.array(chosen, pa.string())


def write(
    data: pa.Table, folder: Path, mode: Literal["create", "append"] = "create", **options: Any
) -> DatasetVersion:
    return DatasetVersion(write_dataset(data, folder / "t.lance", mode, **options))


def again(snapshot: Snapshot) -> Snapshot:
    """The same version, of which nothing is known yet."""
    return DatasetVersion.open(snapshot.uri).snapshot


def table(count: int, rows: int = ROWS, seed: int = 1, nulls: bool = True) -> pa.Table:
    return pa.table({"id": range(rows), "text": strings(count, rows, seed, nulls)})


def numbers_of(dataset: DatasetVersion, column: str = "text") -> DictionaryCodes:
    found = DictionaryCodes.of(dataset.snapshot, column)
    assert found is not None
    return found


def check(dataset: DatasetVersion, column: str = "text", **options: Any) -> None:
    """The numbers of a scan stand for the strings of the same scan."""
    numbers = numbers_of(dataset, column)
    both = dataset.scan([CodeColumn("number", column, numbers), column], **options).to_table()
    alone = dataset.scan([CodeColumn("number", column, numbers)], **options).to_table()
    assert alone["number"].equals(both["number"])
    assert both["number"].type == numbers.type
    assert numbers.strings(both["number"]).combine_chunks().equals(both[column].combine_chunks())


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("count", [5, 400])
def test_numbers_stand_for_the_strings(tmp_path: Path, version: str, kind: pa.DataType, count: int) -> None:
    data = table(count).set_column(1, "text", strings(count).cast(kind))
    dataset = write(data, tmp_path, data_storage_version=version)
    numbers = numbers_of(dataset)
    assert numbers.type == (pa.uint8() if count <= 250 else pa.int32())
    check(dataset)
    assert numbers.size == len(pc.unique(data["text"].drop_null()))
    assert numbers.size <= numbers.entries
    assert numbers.strings(pa.array([], numbers.type)).type == kind
    check(dataset, filter="id % 3 = 1")
    check(dataset, filter="id % 100 = 1")
    check(dataset, filter="id = 77")
    check(dataset, filter="text > '1 value 2' AND id < 3000")
    check(dataset, filter="text IS NULL")
    check(dataset, limit=100, offset=2_000)
    check(dataset, batch_size=100)
    check(dataset, batch_size=1000, batch_bytes=500)


def test_few_strings_are_sorted_and_known(tmp_path: Path) -> None:
    dataset = write(table(8), tmp_path, max_rows_per_file=1_000)
    numbers = numbers_of(dataset)
    assert numbers.known == tuple(sorted(ODD, key=str.encode))
    found = dataset.scan([CodeColumn("number", "text", numbers)], filter="text = 'a'").to_table()
    assert set(found["number"].to_pylist()) == {numbers.known.index("a")}


@pytest.mark.parametrize("rows_per_file", [700, 2_000])
def test_all_fragments_share_the_numbers(tmp_path: Path, rows_per_file: int) -> None:
    dataset = write(table(120), tmp_path, max_rows_per_file=rows_per_file)
    dataset = write(table(300, seed=2), tmp_path, mode="append", max_rows_per_file=3_000)
    check(dataset)
    assert numbers_of(dataset).size == len(pc.unique(dataset.scan(["text"]).to_table()["text"].drop_null()))
    dataset = dataset.delete("id % 7 = 3 OR text = 'a'")
    check(dataset)
    check(dataset, filter="id % 2 = 0")
    before = numbers_of(dataset)
    dataset = dataset.update({"text": "'new'"}, "id % 11 = 5")
    check(dataset)
    after = numbers_of(dataset)
    assert after is not before
    assert "new" in after.strings(pa.array(range(after.size))).to_pylist()


def test_fragments_without_the_column_have_nulls(tmp_path: Path) -> None:
    dataset = write(table(300).select(["id"]), tmp_path).add_columns(pa.field("text", pa.string()))
    numbers = DictionaryCodes.of(dataset.snapshot, "text")
    assert numbers is not None
    assert dataset.scan([CodeColumn("n", "text", numbers)]).to_table()["n"].null_count == ROWS
    dataset = write(table(300), tmp_path, mode="append")
    check(dataset)
    check(dataset, filter="id % 3 = 0")
    assert numbers_of(dataset).size > 250


def test_what_does_not_pay_has_no_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unique = pa.array([f"text {number}" for number in range(ROWS)])
    data = table(400).append_column("unique", unique).append_column("bytes", strings(9).cast(pa.binary()))
    data = data.append_column("pair", pa.StructArray.from_arrays([strings(9)], ["text"]))
    snapshot = write(data, tmp_path, max_rows_per_file=4_000).snapshot
    for name in ("id", "unique", "bytes", "pair", "pair.none", "_rowid", "missing"):
        assert DictionaryCodes.of(snapshot, name) is None
    assert DictionaryCodes.of(snapshot, "text") is DictionaryCodes.of(snapshot, "text")
    monkeypatch.setattr(dictionary_codes, "MOST_BYTES", 1_000)
    assert DictionaryCodes.of(again(snapshot), "text") is None
    monkeypatch.undo()
    monkeypatch.setattr(dictionary_codes, "MOST_STRINGS", 399)
    assert DictionaryCodes.of(again(snapshot), "text") is None
    monkeypatch.undo()
    monkeypatch.setattr(stored_entries, "MOST_FRAGMENTS", 1)
    assert DictionaryCodes.of(again(snapshot), "text") is None
    monkeypatch.undo()
    assert DictionaryCodes.of(again(snapshot), "text") is not None


def test_old_files_have_no_numbers(tmp_path: Path) -> None:
    snapshot = write(table(8), tmp_path, data_storage_version="2.0").snapshot
    assert DictionaryCodes.of(snapshot, "text") is None


def test_a_list_lives_as_long_as_its_snapshot(tmp_path: Path) -> None:
    dataset = write(table(400), tmp_path)
    later = dataset.delete("id = 3")  # versions share their schema
    assert later.snapshot.schema is dataset.snapshot.schema
    numbers = numbers_of(dataset)
    dataset.scan([CodeColumn("n", "text", numbers)]).to_table()
    kept = weakref.ref(numbers)
    del numbers
    gc.collect()
    assert kept() is not None
    del dataset
    gc.collect()
    assert kept() is None


def test_strings_of_numbers(tmp_path: Path) -> None:
    dataset = write(table(400), tmp_path)
    numbers = numbers_of(dataset)
    found = dataset.scan([CodeColumn("n", "text", numbers)]).to_table()["n"].combine_chunks()
    given = dataset.scan(["text"]).to_table()["text"].combine_chunks()
    assert found.null_count
    assert numbers.strings(found).equals(given)
    assert numbers.strings(found.slice(9, 30)).equals(given.slice(9, 30))
    chunks = pa.chunked_array([found.slice(0, 9), found.slice(4)])
    assert numbers.strings(chunks).to_pylist() == [*given.to_pylist()[:9], *given.to_pylist()[4:]]
    assert numbers.strings(pa.array([3, 0], pa.uint8())).type == pa.string()
    for wrong in (-1, numbers.size, 1 << 40):
        with pytest.raises(InvalidArgumentError, match=f"not among the {numbers.size} strings"):
            numbers.strings(pa.array([0, wrong, None], pa.int64()))
    with pytest.raises(InvalidArgumentError, match="are integers"):
        numbers.strings(pa.array([0.5]))


def test_dictionaries_with_more_than_they_claim_are_damaged(tmp_path: Path) -> None:
    dataset = write(table(300), tmp_path)
    for native in (
        kernels.StringNumbers(299, 1 << 20),
        kernels.StringNumbers(1 << 20, 2_000),
    ):
        numbers = DictionaryCodes(native, 299)
        with pytest.raises(CorruptFileError, match=r"more values than it claims.*column: text"):
            dataset.scan([CodeColumn("n", "text", numbers)]).to_table()
    known = DictionaryCodes(kernels.StringNumbers([b"a", b"b"]), 2, ("a", "b"))
    with pytest.raises(CorruptFileError, match=r"other values than before.*column: text"):
        dataset.scan([CodeColumn("n", "text", known)]).to_table()


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("count", [5, 400])
@pytest.mark.parametrize("nulls", [False, True])
def test_rows_added_later_have_no_dictionary(tmp_path: Path, version: str, count: int, nulls: bool) -> None:
    dataset = write(table(count), tmp_path, data_storage_version=version)
    for seed in (2, 3):
        later = table(count, 60, seed, nulls)
        dataset = write(later, tmp_path, mode="append")
    last = FragmentReader(dataset.snapshot, dataset.snapshot.fragments[-1])
    assert count == 5 or not last.is_dictionary_coded("text")
    check(dataset)
    check(dataset, filter="id % 3 = 1")
    check(dataset, filter="id % 20 = 1")
    check(dataset, filter="text IS NULL")
    check(dataset, limit=6_050)
    numbers = numbers_of(dataset)
    assert (numbers.known is not None) == (count == 5)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("same", [None, "", "the same"])
@pytest.mark.parametrize("others", [5, 300])
def test_pages_of_equal_strings(tmp_path: Path, version: str, same: str | None, others: int) -> None:
    data = pa.table({"id": range(ROWS), "text": pa.array([same] * ROWS, pa.string())})
    dataset = write(data, tmp_path, data_storage_version=version)
    check(dataset)
    sometimes = pa.array([None if row % 3 == 0 else same for row in range(ROWS)], pa.string())
    dataset = write(data.set_column(1, "text", sometimes), tmp_path, mode="append")
    dataset = write(table(others), tmp_path, mode="append")
    check(dataset)
    check(dataset, filter="id % 3 = 1")
    check(dataset, filter="id % 100 = 1")


def test_many_plain_strings_have_no_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(table(300), tmp_path)
    snapshot = write(table(300, 60), tmp_path, mode="append").snapshot
    with monkeypatch.context() as patched:
        patched.setattr(stored_entries, "MOST_PLAIN_BYTES", 10)
        assert DictionaryCodes.of(again(snapshot), "text") is None
    stored = stored_entries.stored_entries(snapshot, "text")
    assert stored is not None
    nothing = kernels.StringNumbers(9, 9).memory
    monkeypatch.setattr(dictionary_codes, "MOST_BYTES", stored.bytes + nothing + 100)
    assert DictionaryCodes.of(again(snapshot), "text") is None


def test_threads_share_the_numbers(tmp_path: Path) -> None:
    data = pa.concat_tables([table(100 + 20 * seed, seed=seed) for seed in range(5)])
    dataset = write(data, tmp_path, max_rows_per_file=2_500)
    numbers = numbers_of(dataset)
    failures: list[BaseException] = []
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        try:
            barrier.wait()
            for turn in range(5):
                opened = DatasetVersion(dataset.snapshot)
                columns = [CodeColumn("n", "text", numbers), "text"]
                found = opened.scan(columns, f"id % 5 <> {(number + turn) % 5}", batch_size=500).to_table()
                assert numbers.strings(found["n"]).combine_chunks().equals(found["text"].combine_chunks())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert numbers.size == len(pc.unique(data["text"].drop_null()))


def outcome(snapshot: Snapshot, column: str | CodeColumn) -> str:
    """What became of reading a column."""
    try:
        DictionaryCodes.of(again(snapshot), "text")  # reads no more than is there
        values = DatasetVersion(again(snapshot)).scan([column]).to_table()[0]
    except (CorruptFileError, UnsupportedFeatureError) as error:
        return str(error)
    return "read" if len(values) == ROWS else "short"


def test_damaged_indices_are_reported(tmp_path: Path) -> None:
    """What numbers replace is checked as strings are."""
    dataset = write(table(300, nulls=False), tmp_path)
    columns: list[str | CodeColumn] = ["text", CodeColumn("n", "text", numbers_of(dataset))]
    (path,) = (tmp_path / "t.lance" / "data").iterdir()
    whole = path.read_bytes()
    outcomes = set()
    for place in range(0, len(whole), 67):
        path.write_bytes(whole[:place] + bytes([255] * 8) + whole[place + 8 :])
        outcomes.add(tuple(outcome(dataset.snapshot, column) for column in columns))
    out_of_range = [numbered for _, numbered in outcomes if "dictionary index is out of range" in numbered]
    assert out_of_range
    assert all("text" in error for error in out_of_range)
    for plain, numbered in outcomes:
        if plain != numbered:
            # Text that is not UTF-8 is not looked at here, and a damaged dictionary has other values.
            assert "more values than it claims" in numbered or plain == "read", (plain, numbered)


@settings(max_examples=examples(10), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    values=st.lists(st.one_of(st.none(), st.text(max_size=30)), min_size=1, max_size=400),
    seed=st.integers(0, 100),
    version=st.sampled_from(["2.1", "2.2"]),
    rows_per_file=st.sampled_from([500, 1_300, 10_000]),
    deleted=st.sampled_from([None, "id % 2 = 0", "id > 10", "id % 97 = 5"]),
    filter=st.sampled_from([None, "id % 3 = 1", "id < 50", "id % 40 = 7", "id < 0"]),
)
def test_any_strings(
    tmp_path_factory: pytest.TempPathFactory,
    values: list[str | None],
    seed: int,
    version: str,
    rows_per_file: int,
    deleted: str | None,
    filter: str | None,
) -> None:
    chance = random.Random(seed)
    texts = pa.array([chance.choice(values) for _ in range(2_000)], pa.string())
    data = pa.table({"id": range(2_000), "text": texts})
    place = tmp_path_factory.mktemp("any")
    dataset = write(data, place, data_storage_version=version, max_rows_per_file=rows_per_file)
    if deleted is not None:
        dataset = dataset.delete(deleted)
    if DictionaryCodes.of(dataset.snapshot, "text") is not None:
        check(dataset, filter=filter)


def test_lists_count_towards_the_memory_limit(tmp_path: Path) -> None:
    dataset = write(table(900), tmp_path)
    snapshot, limit = dataset.snapshot, memory_limit()
    try:
        before = cache_statistics().bytes
        numbers = DictionaryCodes.of(snapshot, "text")
        assert numbers is not None
        found = dataset.scan([CodeColumn("n", "text", numbers), "text"]).to_table()
        assert numbers.strings(found["n"]).equals(found["text"])
        assert cache_statistics().bytes - before >= numbers.native.memory > 900 * len("1 value 1")
        assert DictionaryCodes.of(snapshot, "text") is numbers
        set_memory_limit(1024)
        other = DictionaryCodes.of(snapshot, "text")
        assert other is not None
        assert other is not numbers
        assert numbers.strings(found["n"]).equals(found["text"])
    finally:
        set_memory_limit(limit)
