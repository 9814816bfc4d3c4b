"""When indices are used, what they report, and what happens if their files are damaged."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance_engine import kernels
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CorruptFileError
from lance_engine.expr.from_sql import parse_sql
from lance_engine.format.index_section import parse_index_section, replace_indices
from lance_engine.format.pb import table_pb2
from lance_engine.index.bloomfilter import equal_to
from lance_engine.index.cache import CACHE, IndexCache
from lance_engine.index.files import number_in, whole_numbers
from lance_engine.index.search import IndexSearch, search
from lance_engine.table.snapshot import Snapshot
from lance_engine.write.dataset import write_dataset

ROWS = 50_000


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> DatasetVersion:
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "key": rng.permutation(ROWS),
            "group": rng.integers(0, 7, ROWS),
            "rare": pa.array([f"r{value}" for value in rng.integers(0, 5000, ROWS)]),
            "sorted": np.arange(ROWS),
            "plain": rng.integers(0, 9, ROWS),
            "s": pa.array([{"a": int(value)} for value in rng.permutation(ROWS)]),
        }
    )
    uri = str(tmp_path_factory.mktemp("indexed") / "t.lance")
    write_dataset(table, uri, max_rows_per_file=20_000)
    dataset = DatasetVersion.open(uri).create_index("key").create_index("group", "bitmap")
    dataset = dataset.create_index("rare", "bitmap").create_index("sorted", "zonemap")
    dataset = dataset.create_index("plain", "zonemap").create_index("s.a", "btree", name="inner")
    return dataset.create_index("key", "bloomfilter", name="key_bloom", rows_per_zone=1000)


def ask(dataset: DatasetVersion, text: str) -> IndexSearch | None:
    return search(dataset.snapshot, parse_sql(text, dataset.schema))


def used(dataset: DatasetVersion, text: str) -> set[str]:
    found = ask(dataset, text)
    return set() if found is None else {use.name for use in found.uses}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("key = 77", {"key_idx"}),
        ("key IN (1, 2, 3) OR key > 49990", {"key_idx"}),
        ("s.a = 5", {"inner"}),
        ("rare = 'r17'", {"rare_idx"}),
        ("rare LIKE 'r499_'", {"rare_idx"}),
        ("sorted BETWEEN 100 AND 200", {"sorted_idx"}),
        # All parts of a conjunction, if they exclude about as much.
        ("key < 500 AND rare = 'r17'", {"key_idx", "rare_idx"}),
        ("key = 77 AND group = 3", {"key_idx"}),
        ("key = 77 AND plain = 3", {"key_idx"}),
        ("key = 77 OR s.a = 5", {"key_idx", "inner"}),
        # Too many rows, or zones that all match.
        ("group = 3", set()),
        ("key > 100", set()),
        ("plain = 3", set()),
        ("key = 77 OR plain = 3", set()),
        # Nothing that an index could tell.
        ("key = plain", set()),
        ("key + 1 = 77", set()),
        ("key = 77 AND key + 1 = 78", {"key_idx"}),
    ],
)
def test_an_index_is_used_where_it_pays(built: DatasetVersion, text: str, names: set[str]) -> None:
    assert used(built, text) == names
    expected = built.scan(["_rowaddr"], filter=text, indices=False, zone_maps=False).to_table()
    assert built.scan(["_rowaddr"], filter=text).to_table().equals(expected)


def test_matches_tell_whether_they_are_exact(built: DatasetVersion) -> None:
    found = ask(built, "key = 77")
    assert found is not None
    assert sorted(found.matches) == [0, 1, 2]
    assert sum(len(match.ranges) for match in found.matches.values()) == 1
    assert all(match.exact for match in found.matches.values())
    assert found.uses[0] == ("key_idx", "btree", ("key",), 3, 3, "key = 77")
    partly = ask(built, "key < 100 AND plain = 3")
    assert partly is not None
    assert not any(match.exact for match in partly.matches.values() if len(match.ranges))
    long = ask(built, f"key IN ({', '.join(map(str, range(100)))})")
    assert long is not None
    assert long.uses[0].filter == "key IN (100 values)"


def test_what_is_not_covered_is_scanned(built: DatasetVersion, tmp_path: Path) -> None:
    uri = str(tmp_path / "copy.lance")
    shutil.copytree(built.uri, uri)
    write_dataset(built.scan(filter="key = 77").to_table(), uri, "append")
    dataset = DatasetVersion.open(uri)
    found = ask(dataset, "key = 77")
    assert found is not None
    assert sorted(found.matches) == [0, 1, 2]
    assert dataset.count_rows("key = 77") == 2
    optimized = dataset.optimize_indices()
    more = ask(optimized, "key = 77")
    assert more is not None
    assert sorted(more.matches) == [0, 1, 2, 3]
    assert optimized.optimize_indices().version == optimized.version


def test_statistics(built: DatasetVersion) -> None:
    told = built.index_statistics("key_idx")
    assert (told["kind"], told["columns"], told["rows"], told["uncovered_rows"]) == (
        "BTree",
        ["key"],
        ROWS,
        0,
    )
    assert told["segments"][0]["pages"] == 13
    assert told["bytes"] == told["segments"][0]["bytes"] > ROWS * 4
    assert built.index_statistics("rare_idx")["segments"][0]["distinct_values"] > 4900
    assert built.index_statistics("key_bloom")["segments"][0]["zones"] == 50


@pytest.mark.parametrize(
    "change", [{"index_version": 9}, {"fragment_bitmap": b""}, {"type_url": "/x.InvertedIndexDetails"}]
)
def test_what_is_not_known_is_ignored(built: DatasetVersion, change: dict[str, object]) -> None:
    section = table_pb2.IndexSection.FromString(built.snapshot.index_section or b"")
    for index in section.indices:
        index.index_details.type_url = str(change.get("type_url", index.index_details.type_url))
        index.index_version = int(str(change.get("index_version", index.index_version)))
        if "fragment_bitmap" in change:
            index.fragment_bitmap = b""
    snapshot = Snapshot(
        built.snapshot.store, built.snapshot.manifest, index_section=section.SerializeToString()
    )
    assert search(snapshot, parse_sql("key = 77", built.schema)) is None


@pytest.mark.parametrize("damage", ["missing", "truncated", "empty"])
@pytest.mark.parametrize("column", ["key", "rare", "sorted"])
def test_a_damaged_file_is_an_error_that_says_what_to_do(
    built: DatasetVersion, tmp_path: Path, damage: str, column: str
) -> None:
    uri = tmp_path / "copy.lance"
    shutil.copytree(built.uri, uri)
    dataset = DatasetVersion.open(str(uri))
    segments = parse_index_section(dataset.snapshot.index_section or b"")
    segment = next(segment for segment in segments if segment.name == f"{column}_idx")
    for path in (uri / "_indices" / str(segment.uuid)).iterdir():
        if damage == "missing":
            path.unlink()
        else:
            path.write_bytes(path.read_bytes()[:-20] if damage == "truncated" else b"")
    text = {"key": "key = 5", "rare": "rare = 'r3'", "sorted": "sorted = 9"}[column]
    with pytest.raises(CorruptFileError, match="index") as caught:
        dataset.scan(filter=text).to_table()
    assert f"drop_index('{column}_idx')" in caught.value.remedy
    assert str(segment.uuid) in str(caught.value.place["path"])
    assert dataset.scan(filter=text, indices=False).count() > 0
    assert dataset.drop_index(f"{column}_idx").count_rows(text) > 0


@pytest.mark.parametrize("text", ["", "x", "0", "-1", "9" * 30, "²"])
def test_numbers_in_metadata_are_checked(text: str) -> None:
    with pytest.raises(CorruptFileError, match="rows"):
        number_in({"rows": text}, "rows", 7, 1 << 32)
    assert number_in({}, "rows", 7, 10) == 7


@pytest.mark.parametrize("column", [pa.array([1, None], pa.uint64()), pa.array(["a"]), pa.array([-1])])
def test_numbers_in_columns_are_checked(column: pa.Array) -> None:
    with pytest.raises(CorruptFileError):
        whole_numbers(column)
    assert whole_numbers(pa.array([3], pa.uint32())).tolist() == [3]


def test_removing_the_last_index_leaves_no_section(built: DatasetVersion) -> None:
    section = built.snapshot.index_section
    segments = parse_index_section(section or b"")
    assert replace_indices(section, (), {segment.uuid for segment in segments}) is None


def test_hashes_are_those_of_the_specification() -> None:
    # From the test vectors that are published with the algorithm.
    cases = {
        b"": 0xEF46DB3751D8E999,
        b"a": 0xD24EC4F1A98C6E5B,
        b"abc": 0x44BC2CF5AD770999,
        struct.pack("<q", 7): None,
        bytes(range(100)): 0x6AC1E58032166597,
    }
    data = b"".join(cases)
    ends = np.cumsum([0, *map(len, cases)]).astype(np.int64)
    found = kernels.xxhash64(np.frombuffer(data, dtype=np.uint8), ends)
    for value, expected in zip(found.tolist(), cases.values(), strict=True):
        assert expected is None or value == expected
    with pytest.raises(IndexError):
        kernels.xxhash64(np.zeros(3, dtype=np.uint8), np.array([0, 4], dtype=np.int64))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("key = 3", [3]),
        ("key IN (3, 4) OR key = 5", [3, 4, 5]),
        ("key = 3 AND plain > 2", [3]),
        ("key > 3", None),
        ("key = 3 OR key > 4", None),
    ],
)
def test_values_that_a_filter_asks_for(built: DatasetVersion, text: str, values: list[int] | None) -> None:
    found = equal_to(parse_sql(text, built.schema))
    assert (None if found is None else sorted(found.to_pylist())) == values


def test_the_cache_keeps_to_its_limit() -> None:
    cache = IndexCache(lambda: 100)
    made = []

    def value(number: int, size: int) -> int:
        def make() -> int:
            made.append(number)
            return number

        return cache.get(number, make, lambda _: size)

    for number in (1, 2, 1, 3, 4, 5):
        value(number, 25)
    assert made == [1, 2, 3, 4, 5]
    value(1, 25)  # was used after 2, which went
    assert made == [1, 2, 3, 4, 5]
    value(2, 25)
    assert made == [1, 2, 3, 4, 5, 2]
    value(9, 90)
    value(9, 90)
    assert made[-2:] == [9, 9]
    assert cache.bytes == 100
    cache.clear()
    assert cache.bytes == 0
    assert CACHE.bytes >= 0
