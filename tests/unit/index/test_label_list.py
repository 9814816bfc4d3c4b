"""LABEL_LIST: what is indexed, which conditions it answers, and what damaged files do."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from counts import examples
from hypothesis import HealthCheck, given, settings
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CorruptFileError, LanceError, UnsupportedTypeError
from lance_engine.format.row_id_map import row_id_map, serialize_row_id_map
from lance_engine.operations import index_files
from lance_engine.write.dataset import write_dataset

import lance_sql
from tests.support.indices import addresses


def dataset_of(lists: pa.Array, path: Path, **options: Any) -> DatasetVersion:
    uri = str(path / "t.lance")
    write_dataset(pa.table({"l": lists}), uri, **options)
    return DatasetVersion.open(uri)


def some_lists(rng: random.Random, rows: int) -> pa.Array:
    def item() -> str | None:
        return rng.choice(["", "a", "b", "c", "d", None])

    return pa.array(
        [None if rng.random() < 0.2 else [item() for _ in range(rng.randrange(4))] for _ in range(rows)],
        pa.list_(pa.string()),
    )


WANTED = st.lists(st.sampled_from(["''", "'a'", "'b'", "'c'", "'z'", "NULL"]), max_size=3)
CONDITIONS = st.one_of(
    st.sampled_from(["array_has(l, 'a')", "array_has(l, 'z')", "l IS NULL", "array_has(l, NULL)"]),
    st.builds(lambda items: f"array_has_any(l, [{', '.join(items)}])", WANTED),
    st.builds(lambda items: f"array_has_all(l, [{', '.join(items)}])", WANTED),
)
FILTERS = st.one_of(
    CONDITIONS,
    st.builds("({}) AND NOT ({})".format, CONDITIONS, CONDITIONS),
    st.builds("({}) OR ({})".format, CONDITIONS, CONDITIONS),
    st.builds("NOT ({})".format, CONDITIONS),
)


@settings(
    max_examples=examples(7),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 1000), filters=st.lists(FILTERS, min_size=8, max_size=8), deleted=st.booleans())
def test_answers_are_those_of_a_scan(
    tmp_path_factory: pytest.TempPathFactory, seed: int, filters: list[str], deleted: bool
) -> None:
    rng = random.Random(seed)
    path = tmp_path_factory.mktemp("labels")
    dataset = dataset_of(some_lists(rng, 60), path, max_rows_per_file=25).create_index("l", "label_list")
    write_dataset(pa.table({"l": some_lists(rng, 10)}), dataset.uri, mode="append")
    dataset = DatasetVersion.open(dataset.uri)
    if deleted:
        dataset = dataset.delete("array_has(l, 'c')").optimize_indices()
    for text in filters:
        expected = addresses(dataset.scan(["_rowaddr"], filter=text, indices=False))
        assert addresses(dataset.scan(["_rowaddr"], filter=text)) == expected, text
        assert dataset.count_rows(text) == len(expected), text


@pytest.mark.parametrize(
    "lists",
    [
        pa.array([[1, 2]], pa.list_(pa.int32(), 2)),
        pa.array([[[1]]]),
        pa.array([[{"a": 1}]]),
        pa.ListArray.from_arrays([0, 1], pa.array(["{}"], pa.json_())),
        pa.array([1]),
    ],
    ids=lambda lists: str(lists.type),
)
def test_what_cannot_be_built(lists: pa.Array, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTypeError, match="label_list"):
        dataset_of(lists, tmp_path).create_index("l", "label_list")


def test_other_kinds_do_not_take_lists(tmp_path: Path) -> None:
    dataset = dataset_of(pa.array([["a"]]), tmp_path)
    for kind in ("btree", "bitmap", "zonemap", "bloomfilter"):
        with pytest.raises(UnsupportedTypeError, match=kind):
            dataset.create_index("l", kind)


def test_from_sql(tmp_path: Path) -> None:
    dataset = dataset_of(pa.array([["a", "b"], ["b"], None, []] * 50), tmp_path)
    with lance_sql.connect() as connection:
        connection.sql(f"CREATE INDEX labels ON '{dataset.uri}' USING label_list (l)")
        query = f"SELECT count(*) FROM '{dataset.uri}' WHERE list_contains(l, 'a')"
        assert connection.sql(query).fetchall() == [(50,)]
    (index,) = DatasetVersion.open(dataset.uri).inspect.indices().to_pylist()
    assert (index["name"], index["kind"], index["index_version"]) == ("labels", "LabelList", 1)
    told = DatasetVersion.open(dataset.uri).index_statistics("labels")
    assert told["segments"][0]["distinct_items"] == 2


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_file_that_is_cut_off_is_an_error(tmp_path: Path, share: float) -> None:
    dataset = dataset_of(pa.array([["a", "b"], None] * 50), tmp_path).create_index("l", "label_list")
    (path,) = Path(dataset.uri, "_indices").glob("*/*")
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(CorruptFileError, match="l_idx"):
        DatasetVersion.open(dataset.uri).count_rows("array_has(l, 'a')")
    assert DatasetVersion.open(dataset.uri).drop_index("l_idx").count_rows("array_has(l, 'a')") == 50


def test_changed_bytes_are_never_another_error(tmp_path: Path) -> None:
    dataset = dataset_of(pa.array([["a", "b"], None] * 20), tmp_path).create_index("l", "label_list")
    (path,) = Path(dataset.uri, "_indices").glob("*/*")
    data = path.read_bytes()
    rng = random.Random(1)
    failed = 0
    for _ in range(60):
        changed = bytearray(data)
        for _ in range(3):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        # Another dataset each time: opened indices are kept by their place.
        uri = str(tmp_path / f"{rng.random()}.lance")
        _copy(Path(dataset.uri), Path(uri), path, bytes(changed))
        try:
            DatasetVersion.open(uri).count_rows("array_has_all(l, ['a', 'b'])")
        except LanceError:
            failed += 1
    assert failed


def _copy(source: Path, target: Path, changed: Path, data: bytes) -> None:
    for file in source.rglob("*"):
        if file.is_file():
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data if file == changed else file.read_bytes())


@pytest.mark.parametrize(
    ("metadata", "buffers", "is_damaged"),
    [
        ({}, [], False),
        ({"lance:label_list_nulls": "x"}, [], True),
        ({"lance:label_list_nulls": "9"}, [], True),
        ({"lance:label_list_nulls": "1"}, [b"\x01\x00\x00\x00"], True),
        (
            {"lance:label_list_nulls": "1"},
            [serialize_row_id_map(row_id_map(pa.array([1], pa.uint64()).to_numpy()))],
            False,
        ),
    ],
)
def test_the_lists_that_are_null(
    tmp_path: Path,
    metadata: dict[str, str],
    buffers: list[bytes],
    is_damaged: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their set is checked, and may be left out from version 1 on."""
    finish = index_files._IndexFile.finish

    def changed(file: Any, kept: Mapping[str, str], _: Iterable[bytes] = ()) -> None:
        others = {key: value for key, value in kept.items() if "nulls" not in key}
        finish(file, {**others, **metadata}, buffers)

    monkeypatch.setattr(index_files._IndexFile, "finish", changed)
    dataset = dataset_of(pa.array([["a"], None, ["b"]]), tmp_path).create_index("l", "label_list")
    if is_damaged:
        with pytest.raises(CorruptFileError, match="l_idx"):
            dataset.count_rows("array_has(l, 'a')")
    else:
        assert dataset.count_rows("array_has(l, 'a')") == 1


def test_an_index_whose_keys_are_not_text_follows_its_rows(tmp_path: Path) -> None:
    """Bytes of strings that were changed on disk do not stop a compaction."""
    dataset = dataset_of(pa.array([["needle"], None] * 9), tmp_path).create_index("l", "label_list")
    (path,) = Path(dataset.uri, "_indices").glob("*/*")
    data = path.read_bytes()
    assert b"needle" in data
    path.write_bytes(data.replace(b"needle", b"\xbd" * 6))
    compacted = DatasetVersion.open(dataset.uri).delete("l IS NULL").compact()
    assert compacted.inspect.indices()["fragments"].to_pylist() == [1]
    assert compacted.count_rows() == 9
