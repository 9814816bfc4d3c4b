"""Fields of structs that are decoded without these have the values that they have inside."""

from __future__ import annotations

import random
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from lance_engine.dataset import DatasetVersion
from lance_engine.scan.code_columns import CodeColumn
from lance_engine.scan.dictionary_codes import DictionaryCodes
from lance_engine.write.dataset import write_dataset

PATHS = ("st.text", "st.number", "st.in.text", "st.in.number", "st.in.amount", "st.in.vector", "full.text")
TEXTS = ("st.text", "st.in.text", "full.text")
ROWS = 4_000


def _nulls(chance: random.Random, rows: int, share: float) -> pa.Array:
    return pa.array([chance.random() < share for _ in range(rows)])


def _fields(chance: random.Random, rows: int, share: float) -> dict[str, pa.Array]:
    def texts(count: int) -> pa.Array:
        codes = [chance.randrange(count) for _ in range(rows)]
        words = pa.array(["", *(f"a word, number {n}" for n in range(count))])
        return words.take(pa.array(codes, mask=np.asarray(_nulls(chance, rows, share))))

    numbers = pa.array([chance.randrange(1000) for _ in range(rows)])
    vectors = pa.FixedSizeListArray.from_arrays(
        pa.array([float(n) for n in range(2 * rows)], pa.float32()), 2, mask=_nulls(chance, rows, share)
    )
    inner = pa.StructArray.from_arrays(
        [texts(40), numbers, numbers.cast(pa.decimal128(25, 2)), vectors],
        ["text", "number", "amount", "vector"],
        mask=_nulls(chance, rows, share),
    )
    outer = pa.StructArray.from_arrays(
        [texts(300), numbers.take(pa.array(range(rows))[::-1]), inner],
        ["text", "number", "in"],
        mask=_nulls(chance, rows, share),
    )
    full = pa.StructArray.from_arrays([texts(7)], ["text"])
    return {"st": outer, "full": full, "id": pa.array(range(rows))}


def _without_structs_null(column: pa.StructArray) -> pa.StructArray:
    """As version 2.0 stores structs, which are never null there."""
    fields = [
        _without_structs_null(child) if pa.types.is_struct(child.type) else child
        for child in column.flatten()
    ]
    return pa.StructArray.from_arrays(fields, names=[field.name for field in column.type])


def _value(column: pa.Array, path: list[str]) -> list[Any]:
    for name in path:
        column = column.flatten()[column.type.get_field_index(name)]
    found: list[Any] = column.to_pylist()
    return found


@pytest.fixture(
    scope="module",
    params=[(version, by) for version in ("2.0", "2.1", "2.2") for by in ("us", "pylance")],
    ids=lambda param: " ".join(param),
)
def stored(request, tmp_path_factory) -> tuple[DatasetVersion, dict[str, list[Any]]]:
    """A dataset of several fragments without some rows, and what the fields on some paths have."""
    version, writer = request.param
    chance = random.Random(f"{version} {writer}")
    columns = _fields(chance, ROWS + 10, 0.15)
    if version == "2.0":
        columns["st"] = _without_structs_null(columns["st"])
    # Slices have offsets, and what is below nulls.
    table = pa.table({name: column.slice(10) for name, column in columns.items()})
    path = str(tmp_path_factory.mktemp("alone") / "t.lance")
    options: dict[str, Any] = {"max_rows_per_file": 1_500, "data_storage_version": version}
    if writer == "us":
        write_dataset(table, path, **options)
    else:  # it fails with slices of fixed-size lists
        lance.write_dataset(table.take(pa.array(range(ROWS))), path, **options)
    kept = [row for row in range(ROWS) if row % 13 != 5]
    dataset = DatasetVersion.open(path).delete("(id - 10) % 13 = 5")
    left = table.take(pa.array(kept)).combine_chunks()
    values = {}
    for wanted in PATHS:
        first, *below = wanted.split(".")
        values[wanted] = _value(left.column(first).chunk(0), below)
    return dataset, values


@settings(max_examples=examples(6), deadline=None)
@given(data=st.data())
def test_fields_are_null_where_structs_are(stored, data):
    dataset, values = stored
    paths = data.draw(st.lists(st.sampled_from(PATHS), min_size=1, unique=True))
    coded = data.draw(st.sets(st.sampled_from(TEXTS))).intersection(paths)
    first = data.draw(st.integers(0, ROWS))
    count = data.draw(st.integers(0, ROWS))
    rows = data.draw(st.sampled_from((100, 1_000, 100_000)))
    scan = dataset.scan(paths, offset=first, limit=count, batch_size=rows, dictionaries=coded)
    found = scan.to_table()
    assert found.column_names == paths
    for path in paths:
        column = found.column(path)
        assert pa.types.is_dictionary(column.type) == (path in coded)
        assert column.to_pylist() == values[path][first : first + count]


@settings(max_examples=examples(3), deadline=None)
@given(least=st.integers(0, ROWS), path=st.sampled_from(TEXTS))
def test_conditions_and_other_fields(stored, least, path):
    dataset, values = stored
    condition = f"id >= {least + 10} AND {path} IS NOT NULL"
    found = dataset.scan([path, "st.number"], condition, dictionaries=[path])
    ids = [row for row in range(ROWS) if row % 13 != 5]
    expected = [
        (text, number)
        for row, text, number in zip(ids, values[path], values["st.number"], strict=True)
        if row >= least and text is not None
    ]
    table = found.to_table()
    assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == expected


@pytest.mark.parametrize("path", TEXTS)
def test_numbers_of_their_strings(stored, path):
    dataset, values = stored
    numbers = DictionaryCodes.of(dataset.snapshot, path)
    if numbers is None:
        pytest.skip("stored without dictionaries")
    found = dataset.scan([CodeColumn("number", path, numbers), "st.in.number"]).to_table()
    assert numbers.strings(found.column("number")).to_pylist() == values[path]
    assert found.column("st.in.number").to_pylist() == values["st.in.number"]


def test_strings_of_structs_are_stored_as_dictionaries(stored):
    dataset, _ = stored
    coded = dataset._reader(0).is_dictionary_coded("st.in.text")
    assert coded == all(file.storage_version != "2.0" for file in dataset.snapshot.fragments[0].files)
