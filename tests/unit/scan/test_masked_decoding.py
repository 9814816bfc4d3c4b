"""Rows that a mask leaves out are dropped while decoding: the same as filtering what was decoded."""

from __future__ import annotations

import decimal
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as at
import pytest
from counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from lance_engine import kernels
from lance_engine.dataset import DatasetVersion
from lance_engine.write.dataset import write_dataset

ROWS = 20_000
WORDS = ("", "few", "some words", "many more words than fit into sixteen bytes")


def _with_nulls(values: Sequence[object], kind: pa.DataType, chance: random.Random) -> pa.Array:
    return pa.array([None if chance.random() < 0.1 else value for value in values], kind)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    chance = random.Random(5)
    numbers = [chance.randrange(1 << 40) for _ in range(ROWS)]
    small = [number % 11 for number in numbers]
    dollars = [decimal.Decimal(number % 10_000_000) / 100 for number in numbers]
    cents = [decimal.Decimal(value) / 100 for value in small]
    wide = [decimal.Decimal(10) ** 30 + value for value in numbers]
    texts = [f"{number:x}"[: number % 9] * (number % 4) for number in numbers]
    words = [WORDS[number % 4] for number in numbers]
    return pa.table(
        {
            "number": numbers,
            "nullable": _with_nulls(numbers, pa.int64(), chance),
            "small": pa.array(small, pa.int8()),
            "runs": pa.array([row // 700 for row in range(ROWS)], pa.int16()),
            "float": pa.array([number / 7 for number in numbers], pa.float32()),
            "flag": pa.array([number % 3 == 0 for number in numbers]),
            "maybe": _with_nulls([number % 3 == 0 for number in numbers], pa.bool_(), chance),
            "dollars": pa.array(dollars, pa.decimal128(15, 2)),
            "cents": _with_nulls(cents, pa.decimal128(15, 2), chance),
            "wide": _with_nulls(wide, pa.decimal128(38), chance),
            "text": _with_nulls(texts, pa.string(), chance),
            "large": pa.array(texts, pa.large_binary()),
            "word": pa.array(words),
            "nullable_word": _with_nulls(words, pa.string(), chance),
            "three": pa.array([number.to_bytes(5, "little")[:3] for number in numbers], pa.binary(3)),
            "none": pa.nulls(ROWS, pa.int32()),
            "same": pa.array(["same"] * ROWS),
            "pair": pa.array(
                [None if number % 13 == 0 else {"a": number, "b": str(number)} for number in numbers]
            ),
        }
    )  # fmt: skip


@pytest.fixture(scope="module", params=["2.1", "2.2"])
def dataset(
    request: pytest.FixtureRequest, table: pa.Table, tmp_path_factory: pytest.TempPathFactory
) -> DatasetVersion:
    path = str(tmp_path_factory.mktemp("masked") / "t.lance")
    return DatasetVersion(write_dataset(table, path, data_storage_version=request.param))


@st.composite
def masks(draw: st.DrawFn) -> npt.NDArray[np.bool_]:
    """Stretches of rows of which none, a few, many or all are wanted."""
    chance = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    lengths = draw(st.lists(st.sampled_from([1, 63, 64, 1000, 1024, 3000, 9000]), min_size=1, max_size=8))
    shares = st.sampled_from([0.0, 0.001, 0.05, 0.3, 0.6, 0.99, 1.0])
    parts = [chance.random(length) < draw(shares) for length in lengths]
    found: npt.NDArray[np.bool_] = np.concatenate(parts)[:ROWS]
    return found


@settings(max_examples=examples(10), deadline=None)
@given(mask=masks(), data=st.data())
def test_dropped_rows_are_those_that_filtering_drops(
    table: pa.Table, dataset: DatasetVersion, mask: npt.NDArray[np.bool_], data: st.DataObject
) -> None:
    begin = data.draw(st.integers(0, ROWS - len(mask)))
    skipped = data.draw(st.sampled_from([0, 1, 7, 8, 65]))
    bits = pa.array(np.concatenate([np.ones(skipped, np.bool_), mask])).slice(skipped)
    projection = dataset._reader(0).projection(tuple(table.column_names))
    assert projection.takes_masks
    found = projection.read_wanted(begin, begin + len(mask), bits)
    found.validate(full=True)
    wanted = table.slice(begin, len(mask)).filter(bits)
    assert pa.Table.from_batches([found]).cast(wanted.schema).equals(wanted)


@settings(max_examples=examples(10), deadline=None)
@given(mask=masks())
def test_codes_and_narrow_decimals_are_dropped_too(
    table: pa.Table, dataset: DatasetVersion, mask: npt.NDArray[np.bool_]
) -> None:
    texts = ("word", "nullable_word", "text", "same")
    reader = dataset._reader(0)
    found = reader.projection(texts, frozenset(texts)).read_wanted(0, len(mask), pa.array(mask))
    found.validate(full=True)
    assert all(at.is_dictionary(kind) for kind in found.schema.types)
    wanted = table.slice(0, len(mask)).filter(pa.array(mask))
    for name in texts:
        assert found[name].dictionary_decode().to_pylist() == wanted[name].to_pylist()
    decimals = ("dollars", "cents")
    narrow = reader.projection(decimals).narrowed(decimals).read_wanted(0, len(mask), pa.array(mask))
    narrow.validate(full=True)
    for name in decimals:
        assert at.is_decimal64(narrow[name].type)
        assert narrow[name].cast(pa.decimal128(15, 2)).to_pylist() == wanted[name].to_pylist()


def test_the_dictionary_of_a_page_is_returned_once(dataset: DatasetVersion) -> None:
    mask = pa.array(np.arange(ROWS) % 3 > 0)
    reader = dataset._reader(0)
    found = reader.projection(("word",), frozenset(["word"])).read_wanted(0, ROWS, mask)
    assert len(found["word"].dictionary) == len(WORDS)


def test_lists_do_not_take_masks(tmp_path: Path) -> None:
    table = pa.table({"number": range(ROWS), "items": [[row] * (row % 3) for row in range(ROWS)]})
    dataset = DatasetVersion(write_dataset(table, str(tmp_path / "t.lance")))
    decoders = kernels.Columns([dataset._reader(0).built(dataset._reader(0).field("items")).decoder])
    assert not decoders.take_masks
    with pytest.raises(ValueError, match="do not take masks"):
        decoders.decode_wanted(0, 8, np.zeros(1, np.uint8), 0)
    numbers = kernels.Columns([dataset._reader(0).built(dataset._reader(0).field("number")).decoder])
    with pytest.raises(ValueError, match="shorter than its range"):
        numbers.decode_wanted(0, 9, np.zeros(1, np.uint8), 0)
    condition = "number % 3 <> 1 AND number >= 5"
    wanted = table.filter(pa.array([row % 3 != 1 and row >= 5 for row in range(ROWS)]))
    assert dataset.scan(filter=condition).to_table().equals(wanted)


def test_a_count_decodes_only_what_is_tested(dataset: DatasetVersion) -> None:
    scan = dataset.scan(columns=[], filter="small < 4")
    assert sum(batch.num_rows for batch in scan.to_batches()) == scan.count()
    assert scan.metrics is not None
    assert scan.metrics.rows_decoded == ROWS
