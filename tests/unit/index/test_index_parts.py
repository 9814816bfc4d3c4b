"""What parts of an index refuse, ask for and pass on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.format.pb import index_pb2
from lance_engine.index import live_zones, rtree
from lance_engine.index.files import SegmentFiles
from lance_engine.index.inverted import layout
from lance_engine.index.inverted.partition import TextPartition
from lance_engine.index.label_list import IS_NULL_LIST, LabelList
from lance_engine.index.vector.ivf import parse_ivf
from lance_engine.index.vector.kmeans import kmeans
from lance_engine.index.vector.metadata import json_of, real
from lance_engine.index.vector.rq import RotatedCodec
from lance_engine.kernels import Metric


def zones_file(fragment: int, start: int, length: int) -> Any:
    columns = [pa.array([number], pa.uint64()) for number in (fragment, start, length)]
    batch = pa.RecordBatch.from_arrays(columns, ["fragment_id", "zone_start", "zone_length"])
    return SimpleNamespace(read=lambda names: batch, path="zones")


def test_zones_are_within_fragments() -> None:
    last = 2**32 - 1
    zones = live_zones.parse_zones(zones_file(last, last, 2**32))
    assert [zones.fragment_ids.tolist(), zones.starts.tolist(), zones.ends.tolist()] == [
        [last], [last], [last + 2**32]
    ]  # fmt: skip
    for fragment, start, length in ((2**32, 0, 1), (0, 2**32, 1), (0, 0, 2**32 + 1)):
        with pytest.raises(CorruptFileError, match="outside all fragments"):
            live_zones.parse_zones(zones_file(fragment, start, length))


def test_null_rows_without_a_number_are_in_the_first_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_zones, "parse_row_id_map", lambda data: data)
    metadata = {live_zones.NULL_BITMAP: "1"}
    file: Any = SimpleNamespace(schema=SimpleNamespace(metadata=metadata), buffer=lambda number: number)
    assert live_zones.null_rows_in(file) == 1
    metadata.clear()
    assert live_zones.null_rows_in(file) is None


@pytest.mark.parametrize("value", [True, "1", None])
def test_numbers_of_metadata_are_numbers(value: object) -> None:
    with pytest.raises(CorruptFileError, match="entry 'x'"):
        real({"x": value}, "x")
    assert real({"x": 2}, "x") == 2.0


def test_metadata_that_is_missing_is_damage() -> None:
    assert json_of({"x": "[1]"}, "x") == [1]
    for metadata in ({}, {"x": "["}):
        with pytest.raises(CorruptFileError, match="'x' of the index is missing or not valid JSON"):
            json_of(metadata, "x")


def test_unknown_layouts_are_refused() -> None:
    assert layout._one_of({}, "codec", "first", "second") == "first"
    assert layout._one_of({"codec": "second"}, "codec", "first", "second") == "second"
    with pytest.raises(UnsupportedFeatureError, match="'codec' of the index is 'third'"):
        layout._one_of({"codec": "third"}, "codec", "first", "second")


def test_codes_have_at_least_one_bit() -> None:
    with pytest.raises(CorruptFileError, match="'num_bits' of the index is 0"):
        RotatedCodec({"num_bits": 0}, Metric.L2, 2, pa.schema([]), repr)  # type: ignore[arg-type]


def test_the_first_buffer_is_no_rotation() -> None:
    with pytest.raises(CorruptFileError, match="'rotate_mat_position' of the index is 0"):
        RotatedCodec({"query_estimator": "raw_query", "rotate_mat_position": 0}, Metric.L2, 2, pa.schema([]), repr)  # type: ignore[arg-type]  # fmt: skip  # noqa: E501


def test_training_reports_each_round() -> None:
    rounds: list[None] = []
    random = np.random.default_rng(0)
    vectors = random.random((50, 2), dtype=np.float32)
    kmeans(vectors, 3, 2, random, lambda: rounds.append(None))
    assert 1 <= len(rounds) <= 2


def test_centroids_that_are_not_a_tensor_are_one_for_each_partition() -> None:
    message = index_pb2.IVF(lengths=[3, 4], centroids=[1, 2, 3, 4, 5, 6])
    found = parse_ivf(message.SerializeToString(), 7)
    assert found.centroids is not None
    assert found.centroids.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert parse_ivf(index_pb2.IVF(lengths=[3, 4]).SerializeToString(), 7).centroids is None
    message.centroids.append(7)
    with pytest.raises(CorruptFileError, match="7 numbers cannot be the centroids of 2 partitions"):
        parse_ivf(message.SerializeToString(), 7)


@pytest.mark.parametrize(
    ("stored", "positions", "expected"),
    [
        ([layout.POSITIONS], True, [layout.POSITIONS, layout.POSITION_OFFSETS]),
        ([], True, [layout.OWN_POSITIONS]),
        ([layout.POSITIONS], False, []),
    ],
)
def test_positions_are_read_where_they_are(stored: list[str], positions: bool, expected: list[str]) -> None:
    part: Any = SimpleNamespace(_lists=SimpleNamespace(schema=SimpleNamespace(names=stored)))
    assert TextPartition._columns(part, positions) == [layout.POSTING, layout.COUNT, *expected]


def test_storage_is_asked_for_files_that_the_manifest_does_not_list() -> None:
    segment = SimpleNamespace(name="i", files=(), base_id=None, uuid="u")
    store = SimpleNamespace(exists=lambda path: path == "u/there")
    snapshot: Any = SimpleNamespace(
        with_manifest=lambda manifest: snapshot,
        manifest=None,
        uri="t",
        index_file_location=lambda segment, name: (store, f"{segment.uuid}/{name}"),
    )
    files = SegmentFiles(snapshot, segment)  # type: ignore[arg-type]
    assert files.exists("there")
    assert not files.exists("gone")


def test_entries_say_which_lists_are_null() -> None:
    items = pa.record_batch({"value": pa.array(["a"]), "row": pa.array([5], pa.uint64())})
    index: Any = SimpleNamespace(
        _null_lists={}, value_type=pa.string(), _items=SimpleNamespace(entries=lambda: [items])
    )
    (batch,) = LabelList.entries(index)
    assert batch.column(batch.schema.get_field_index(IS_NULL_LIST)).to_pylist() == [False]


def test_the_entries_of_a_tree_are_boxes_and_ids() -> None:
    sides = pa.struct([(side, pa.float64()) for side in rtree._SIDES])
    boxes = pa.array([dict(zip(rtree._SIDES, (1, 2, 3, 4), strict=True))], sides)
    batch = pa.RecordBatch.from_arrays([boxes, pa.array([9], pa.uint64())], rtree._COLUMNS)
    tree: Any = SimpleNamespace(_table=SimpleNamespace(read=lambda *_: batch, path="tree"))
    found, ids = rtree.RTree._read(tree, 0, 1)
    assert (found.tolist(), ids.tolist()) == ([[1, 2, 3, 4]], [9])


def test_the_levels_of_a_tree() -> None:
    assert rtree._levels(4, 4) == [(0, 4)]
    assert rtree._levels(10, 3) == [(0, 10), (10, 14), (14, 16)]
    with pytest.raises(UnsupportedFeatureError, match="can be read, but not built"):
        next(iter(rtree.RTree.entries(None)))  # type: ignore[arg-type]
