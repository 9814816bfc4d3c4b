"""LABEL_LIST both ways: equal results with each side's index, after any change to the table."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.file import LanceFileReader
from lance_engine.dataset import DatasetVersion

from tests.support.indices import WHO_BEGINS, addresses, taking_turns

INDEXED = [
    "array_has(l, 1)",
    "array_has(l, 99)",
    "list_contains(l, 2)",
    "array_has_any(l, [1, 3])",
    "array_has_all(l, [2, 3])",
    "array_has_all(l, [2, 99])",
    "array_has(l, 1) AND array_has(l, 2)",
    "array_has(l, 1) OR array_has(l, 7)",
    "array_has(l, 1) AND id < 30",
    "array_has(l, 1) AND NOT array_has(l, 2)",
]
# Null items count here, or lists that an index does not name: these are scanned.
SCANNED = [
    "array_has_any(l, [NULL])",
    "array_has_any(l, [1, NULL])",
    "array_has_all(l, [3, NULL])",
    "array_has_all(l, [])",
    "array_has_any(l, [])",
    "array_has(l, NULL)",
    "NOT array_has(l, 1)",
    "array_has(l, 1) OR id < 3",
    "l IS NULL",
]


def rows(rng: random.Random, count: int, first: int) -> pa.Table:
    def item() -> int | None:
        return None if rng.random() < 0.1 else rng.randrange(8)

    lists = [None if rng.random() < 0.1 else [item() for _ in range(rng.randrange(4))] for _ in range(count)]
    return pa.table(
        {
            "l": pa.array(lists, pa.list_(pa.int64())),
            "id": range(first, first + count),
            "x": ["a"] * count,
        }
    )


def check(uri: str, step: str) -> None:
    ours, theirs = DatasetVersion.open(uri), lance.dataset(uri)
    for text in INDEXED + SCANNED:
        expected = addresses(ours.scan(["_rowaddr"], filter=text, indices=False))
        scan = ours.scan(["_rowaddr"], filter=text)
        assert addresses(scan) == expected, (step, text)
        assert ours.count_rows(text) == len(expected), (step, text)
        assert ("index l_idx (label_list" in scan.explain()) == (text in INDEXED), (step, text)
        their_text = text.replace("list_contains", "array_contains")
        found = theirs.to_table(["_rowaddr"], their_text)["_rowaddr"].to_pylist()
        assert sorted(found) == expected, (step, text)
    assert "ScalarIndex" in theirs.scanner(filter="array_has(l, 1)").explain_plan(), step
    assert ours.verify().num_rows == 0, step


@pytest.mark.sampled(1)
@WHO_BEGINS
def test_taking_turns(tmp_path: Path, by_pylance: bool, stable: bool) -> None:
    rng = random.Random(3)
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(rng, 200, 0), uri, max_rows_per_file=60, enable_stable_row_ids=stable)
    DatasetVersion.open(uri).delete("id IN (5, 80)")
    if by_pylance:
        theirs: Any = lance.dataset(uri)
        theirs.create_scalar_index("l", "LABEL_LIST")
    else:
        DatasetVersion.open(uri).create_index("l", "label_list")
    turns = taking_turns(uri, lambda count, first: rows(rng, count, first), {"l": "[1, 9]"})
    for name, step in turns.items():
        step()
        check(uri, name)
    assert DatasetVersion.open(uri).inspect.index_health()["unindexed_rows"].to_pylist() == [0]


def test_files_are_the_same(tmp_path: Path) -> None:
    """Keys, sets of rows, and the lists that are null."""
    contents = []
    for side in ("ours", "theirs"):
        uri = str(tmp_path / side)
        lists = [[1, 2], None, [], [None], [3, None], [1], [2, 2, 3], None]
        lance.write_dataset(pa.table({"l": pa.array(lists, pa.list_(pa.int64()))}), uri)
        if side == "ours":
            DatasetVersion.open(uri).create_index("l", "label_list")
        else:
            theirs: Any = lance.dataset(uri)
            theirs.create_scalar_index("l", "LABEL_LIST")
        (path,) = Path(uri, "_indices").glob("*/*")
        reader = LanceFileReader(str(path))
        number = int(reader.metadata().schema.metadata[b"lance:label_list_nulls"])
        contents.append(
            (path.name, reader.read_all().to_table().to_pydict(), reader.read_global_buffer(number))
        )
    assert contents[0] == contents[1]


@pytest.mark.parametrize(
    ("kind", "values", "text"),
    [
        (pa.large_list(pa.int32()), [[1], [2, 3], None], "array_has(l, 2)"),
        (pa.list_(pa.string()), [["a"], ["b", "é"], []], "array_has_any(l, ['é', 'z'])"),
        (pa.list_(pa.float64()), [[float("nan")], [-0.0, 1.5], [0.0]], "array_has(l, 0.0)"),
        (pa.list_(pa.float64()), [[float("nan")], [-0.0, 1.5], None], "array_has(l, 'nan'::double)"),
        (pa.list_(pa.bool_()), [[True], [False, True], [False]], "array_has_all(l, [true, false])"),
        (pa.list_(pa.date32()), [[1], [2], []], "array_has(l, DATE '1970-01-03')"),
    ],
)
@pytest.mark.parametrize("by_pylance", [False, True], ids=["ours", "theirs"])
def test_types_of_items(
    tmp_path: Path, kind: pa.DataType, values: list[Any], text: str, by_pylance: bool
) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"s": pa.StructArray.from_arrays([pa.array(values, kind)], ["l"])}), uri)
    if by_pylance:
        theirs: Any = lance.dataset(uri)
        theirs.create_scalar_index("s.l", "LABEL_LIST")
    else:
        DatasetVersion.open(uri).create_index("s.l", "label_list")
    ours = DatasetVersion.open(uri)
    nested = text.replace("(l,", "(s.l,")
    scan = ours.scan(["_rowaddr"], filter=nested)
    expected = addresses(ours.scan(["_rowaddr"], filter=nested, indices=False))
    assert expected
    assert addresses(scan) == expected
    # An index does not tell one NaN from another.
    assert ("(label_list on s.l)" in scan.explain()) == ("nan" not in text)
