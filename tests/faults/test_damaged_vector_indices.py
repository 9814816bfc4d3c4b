"""Searches in damaged vector indices: an error of ours or an answer, never a crash, and no row twice."""

import contextlib
import json
import random

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from lance_engine import kernels
from lance_engine.errors import CorruptFileError, LanceError
from lance_engine.format.pb import index_pb2
from lance_engine.index.cache import CACHE, VECTORS
from lance_engine.index.vector.ivf import parse_ivf, parse_tensor_bytes
from vector_tables import clustered, vector_table

import lance_sql

KINDS = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 4},
    "IVF_SQ": {},
    "IVF_HNSW_SQ": {},
}
QUERY = clustered(1, 8, seed=3)[0]


@pytest.fixture(scope="module", params=KINDS)
def indexed(request, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("damaged") / "t")
    ds = lance_sql.write(vector_table(clustered(600, 8)), path)
    return ds.create_index("v", request.param, num_partitions=2, **KINDS[request.param])


def files_of(ds):
    return sorted((ds.snapshot.store.local_path("_indices") + "/" + str(path)) for path in index_names(ds))


def index_names(ds):
    segment = ds.index_statistics("v_idx")["segments"][0]["uuid"]
    return [f"{segment}/index.idx", f"{segment}/auxiliary.idx"]


def search(ds):
    CACHE.clear()
    VECTORS.clear()
    found = lance_sql.open(ds.uri).nearest("v", QUERY, 10, columns=["id"], nprobes=2)
    ids = found["id"].to_pylist()
    assert len(set(ids)) == len(ids)
    assert all(0 <= number < 600 for number in ids)
    return found


def test_changed_bytes(indexed):
    changes = random.Random(5)
    for path in files_of(indexed):
        with open(path, "rb") as file:
            sound = file.read()
        try:
            for _ in range(60):
                damaged = bytearray(sound)
                for _ in range(changes.choice([1, 1, 2, 8])):
                    damaged[changes.randrange(len(damaged))] = changes.randrange(256)
                with open(path, "wb") as file:
                    file.write(damaged)
                with contextlib.suppress(LanceError):
                    search(indexed)
        finally:
            with open(path, "wb") as file:
                file.write(sound)
    assert search(indexed).num_rows == 10


def test_a_cut_file_is_told_with_the_remedy(indexed):
    path = files_of(indexed)[0]
    with open(path, "rb") as file:
        sound = file.read()
    try:
        with open(path, "wb") as file:
            file.write(sound[: len(sound) // 2])
        with pytest.raises(CorruptFileError, match="v_idx") as caught:
            search(indexed)
        assert "drop_index" in caught.value.remedy
    finally:
        with open(path, "wb") as file:
            file.write(sound)


def test_messages_of_partitions_are_checked():
    good = index_pb2.IVF(
        offsets=[0, 3],
        lengths=[3, 4],
        centroids_tensor=index_pb2.Tensor(data_type=2, shape=[2, 4], data=bytes(32)),
    )
    assert parse_ivf(good.SerializeToString(), 7).partitions == 2
    for change in (
        {"offsets": [0, 4]},
        {"offsets": [0]},
        {"offsets": [0, 2**63]},
        {"lengths": [3]},
        {"lengths": [3, 4, 2**32 - 1]},
        {"centroids_tensor": index_pb2.Tensor(data_type=2, shape=[3, 4], data=bytes(48))},
        {"centroids_tensor": index_pb2.Tensor(data_type=2, shape=[2, 4], data=bytes(31))},
        {"centroids_tensor": index_pb2.Tensor(data_type=2, shape=[2**31, 2**31], data=bytes(32))},
        {"centroids_tensor": index_pb2.Tensor(data_type=2, shape=[0, *[2**31] * 3])},
        {"centroids_tensor": index_pb2.Tensor(data_type=7, shape=[2, 4], data=bytes(64))},
        {"centroids_tensor": index_pb2.Tensor(data_type=2, shape=[8], data=bytes(32))},
        {"centroids_tensor": index_pb2.Tensor(data_type=2, shape=[2, 4], data=b"\xff" * 32)},
    ):
        fields = {name: getattr(good, name) for name in ("offsets", "lengths", "centroids_tensor")} | change
        with pytest.raises(CorruptFileError):
            parse_ivf(index_pb2.IVF(**fields).SerializeToString(), 7)
    changes = random.Random(1)
    sound = good.SerializeToString()
    for _ in range(3000):
        data = bytearray(sound)
        for _ in range(changes.randrange(1, 4)):
            data[changes.randrange(len(data))] = changes.randrange(256)
        for parse in (lambda data: parse_ivf(data, 7), parse_tensor_bytes):
            try:
                parse(bytes(data))
            except CorruptFileError:
                pass
            except DecodeError as error:
                raise AssertionError("an error of the parser came through") from error


def test_graphs_that_contradict_themselves_are_refused():
    def partition():
        ids = np.arange(4, dtype=np.uint64)
        return kernels.Partition.scalar(kernels.Metric.L2, 2, 0.0, 1.0, ids, np.zeros(8, np.uint8))

    def graph(entry=0, ends=(4, 5), ids=(0, 1, 2, 3, 2), offsets=(0, 1, 2, 2, 2, 2), neighbours=(1, 0)):
        partition().set_graph(
            entry,
            np.array(ends, np.uint64),
            np.array(ids, np.uint32),
            np.array(offsets, np.int32),
            np.array(neighbours, np.uint32),
        )

    graph()
    for change in (
        {"entry": 4},
        {"ends": ()},
        {"ends": (3, 5)},
        {"ends": (4, 2**64 - 1)},
        {"ends": (4, 3, 5)},
        {"ids": (0, 1, 2, 3, 4)},
        {"ids": (1, 0, 2, 3, 2)},
        {"offsets": (0, 1, 2, 2, 2, 3)},
        {"offsets": (0, -1, 2, 2, 2, 2)},
        {"offsets": (0, 2, 1, 2, 2, 2)},
        {"offsets": (0, 2)},
        {"neighbours": (1, 4)},
    ):
        with pytest.raises(ValueError, match="graph"):
            graph(**change)


def test_parts_of_other_lengths_are_refused():
    metric, ids = kernels.Metric.L2, np.arange(3, dtype=np.uint64)
    floats, codes = np.zeros(16, np.float32), np.zeros(12, np.uint8)
    book = kernels.Codebook(metric, 4, 2, 8, np.zeros(1024, np.float32))
    calls = [
        lambda: kernels.Partition.flat(metric, kernels.Element.FLOAT32, 4, ids, codes),
        lambda: kernels.Partition.flat(kernels.Metric.HAMMING, kernels.Element.UINT8, 4, ids, codes[:8]),
        lambda: kernels.Partition.scalar(metric, 4, 0.0, 0.0, ids, codes),
        lambda: kernels.Partition.scalar(metric, 4, 0.0, float("inf"), ids, codes),
        lambda: kernels.Partition.scalar(metric, 0, 0.0, 1.0, ids, codes),
        lambda: kernels.Partition.product(book, floats[:3], ids, codes[:6], True, False),
        lambda: kernels.Partition.product(book, floats[:4], ids, codes[:5], True, False),
        lambda: kernels.Codebook(metric, 4, 3, 8, np.zeros(1024, np.float32)),
        lambda: kernels.Codebook(metric, 4, 2, 8, np.zeros(1023, np.float32)),
        lambda: kernels.Rotation(8, np.zeros(3, np.uint8), np.zeros(0, np.float32)),
        lambda: kernels.Rotation(8, np.zeros(0, np.uint8), np.zeros(63, np.float32)),
        lambda: kernels.RowSet(np.array([5], np.uint64), np.array([4], np.uint64)),
        lambda: kernels.RowSet(np.array([5, 1], np.uint64), np.array([6, 2], np.uint64)),
        lambda: kernels.Centroids(floats[:3], 2, False),
        lambda: kernels.build_graph(metric, 4, floats[:3], 4, 10, 3, 1),
        lambda: kernels.build_graph(metric, 4, floats, 1, 10, 3, 1),
    ]
    rotation = kernels.Rotation(8, np.zeros(4, np.uint8), np.zeros(0, np.float32))
    for lengths in ((2, 0, 3, 3), (3, 1, 3, 3), (3, 0, 2, 3), (3, 0, 3, 2)):
        first, other, add, scale = lengths
        calls.append(
            lambda first=first, other=other, add=add, scale=scale: kernels.Partition.rotated(
                metric,
                rotation,
                floats[:8],
                ids,
                1,
                codes[:first],
                False,
                codes[:other],
                floats[:add],
                floats[:scale],
            )
        )
    for call in calls:
        with pytest.raises(ValueError, match=r"\w"):
            call()
    nearest = kernels.Nearest(1, 3, float("nan"), float("nan"))
    partition = kernels.Partition.scalar(metric, 4, 0.0, 1.0, ids, codes)
    rows = kernels.RowSet(np.zeros(1, np.uint64), np.full(1, 9, np.uint64))
    with pytest.raises(ValueError, match="length"):
        nearest.search(0, [partition], floats[:3], rows, False, 10)
    with pytest.raises(ValueError, match="queries"):
        nearest.search(1, [partition], floats[:4], rows, False, 10)
    nearest.search(0, [partition], floats[:4], rows, False, 10)
    assert nearest.result()[1].tolist() == [0, 1, 2]


def test_metadata_of_other_shapes(indexed, monkeypatch):
    """Any JSON in the files leads to an error of ours or is ignored."""
    from lance_engine.index.vector import segment

    genuine = segment._metadata
    changes = random.Random(9)
    values = [None, True, -1, 0, 1, 3, 2**40, 1e300, "", "x", [], [[]], {}, ["{}"], "IVF_PQ", "l2"]
    keys = ["lance:index", "lance:ivf", "lance:flat", "lance:hnsw", "storage_metadata"]

    def mutated(value):
        if isinstance(value, dict) and value and changes.random() < 0.8:
            key = changes.choice(list(value))
            return {**value, key: mutated(value[key])}
        if isinstance(value, list) and value and changes.random() < 0.8:
            place = changes.randrange(len(value))
            return [*value[:place], mutated(value[place]), *value[place + 1 :]]
        if isinstance(value, str) and value.startswith("{") and changes.random() < 0.9:
            return json.dumps(mutated(json.loads(value)))
        return changes.choice(values)

    def changed(file):
        metadata = dict(genuine(file))
        key = changes.choice([key for key in keys if key in metadata])
        metadata[key] = json.dumps(mutated(json.loads(metadata[key])))
        return metadata

    monkeypatch.setattr(segment, "_metadata", changed)
    for _ in range(150):
        with contextlib.suppress(LanceError):
            search(indexed)
