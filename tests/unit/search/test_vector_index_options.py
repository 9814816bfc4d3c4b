"""Creating vector indices: what is refused, few rows, and the files of builds that fail."""

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import (
    IndexExistsError,
    InvalidSearchError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
)
from lance_engine.index.vector import writer
from lance_engine.index.vector.kmeans import kmeans, kmeans_by_faiss
from lance_engine.index.vector.options import vector_options
from lance_engine.index.vector.writer import EncodedRows
from lance_engine.write.data_file import DataFileWriter
from vector_tables import clustered, vector_table

import lance_sql


@pytest.fixture
def ds(tmp_path):
    return lance_sql.write(vector_table(clustered(600)), str(tmp_path / "t"))


@pytest.mark.parametrize(
    ("error", "column", "kind", "options"),
    [
        (UnsupportedFeatureError, "v", "IVF_XY", {}),
        (InvalidSearchError, "v", "IVF_PQ", {"num_sub_vectors": 5}),
        (InvalidSearchError, "v", "IVF_PQ", {"num_bits": 7}),
        (InvalidSearchError, "v", "IVF_FLAT", {"num_partitions": 0}),
        (InvalidSearchError, "v", "IVF_FLAT", {"metric": "taxi"}),
        (UnsupportedTypeError, "v", "IVF_FLAT", {"metric": "hamming"}),
        (InvalidSearchError, "id", "IVF_FLAT", {}),
        (TypeError, "v", "IVF_FLAT", {"num_sub_vectors": 4}),
        (InvalidSearchError, "v", "IVF_HNSW_SQ", {"m": 1}),
        (InvalidSearchError, "v", "IVF_PQ", {"trainer": "other"}),
    ],
)
def test_what_makes_no_sense_is_refused(ds, error, column, kind, options):
    with pytest.raises(error):
        ds.create_index(column, kind, **options)
    assert ds.inspect.indices().num_rows == 0


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_HNSW_SQ"])
def test_the_last_partition_may_fill_a_batch(ds, kind, monkeypatch):
    monkeypatch.setattr("lance_engine.index.vector.writer._BATCH_BYTES", 100)
    ds = ds.create_index("v", kind, num_partitions=2)
    found = ds.nearest("v", clustered(1)[0], columns=["id"], nprobes=2, refine_factor=60, ef=600)
    assert found.equals(ds.nearest("v", clustered(1)[0], columns=["id"], use_index=False))


def test_an_index_of_the_name_is_not_replaced_unless_asked(ds):
    ds = ds.create_index("v", "ivf_flat")
    with pytest.raises(IndexExistsError):
        ds.create_index("v", "IVF_PQ")
    ds = ds.create_index("v", "IVF_SQ", replace=True)
    assert len(ds.index_statistics("v_idx")["segments"]) == 1
    assert ds.drop_index("v_idx").inspect.indices().num_rows == 0


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ"])
@pytest.mark.parametrize("rows", [0, 1, 3, 40])
def test_few_rows(tmp_path, kind, rows):
    values = clustered(max(rows, 1))[:rows]
    ds = lance_sql.write(vector_table(values), str(tmp_path / "t"))
    ds = ds.create_index("v", kind, num_partitions=4)
    found = ds.nearest("v", clustered(1)[0], columns=["id"], refine_factor=10)
    assert found.equals(ds.nearest("v", clustered(1)[0], columns=["id"], use_index=False))
    assert found.num_rows == min(rows, 10)


def test_equal_vectors(tmp_path):
    ds = lance_sql.write(vector_table(np.ones((700, 8), np.float32)), str(tmp_path / "t"))
    for kind in ("IVF_PQ", "IVF_SQ", "IVF_HNSW_SQ"):
        ds = ds.create_index("v", kind, num_partitions=2, replace=True)
        assert ds.nearest("v", [1.0] * 8, 5, nprobes=2).num_rows == 5


def test_cancelling_leaves_no_files(ds, tmp_path):
    class StopHereError(Exception):
        pass

    def stop(event):
        if event.stage == "writing the index":
            raise StopHereError

    with pytest.raises(StopHereError):
        ds.create_index("v", "IVF_PQ", progress=stop)
    assert not list((tmp_path / "t").rglob("*.idx"))
    assert lance_sql.open(ds.uri).version == ds.version


def test_progress_tells_the_stages(ds):
    stages = []
    ds.create_index("v", "IVF_PQ", progress=lambda event: stages.append(event.stage))
    assert list(dict.fromkeys(stages)) == [
        "reading a sample",
        "training partitions",
        "training codes",
        "reading the column",
        "writing the index",
    ]


def test_rows_beyond_memory_wait_in_a_file():
    random = np.random.default_rng(0)
    parts = [
        (
            random.integers(0, 1 << 40, 50, dtype=np.uint64),
            random.integers(0, 7, 50, dtype=np.uint32),
            random.integers(0, 255, (50, 12), dtype=np.uint8),
        )
        for _ in range(8)
    ]
    found = []
    for memory in (1 << 20, 1000):
        with EncodedRows(12, memory) as rows:
            for part in parts:
                rows.add(*part)
            found.append([(ids.tolist(), codes.tolist()) for ids, codes in rows.partitions(9)])
    assert found[0] == found[1]
    assert [len(ids) for ids, _ in found[0]][7:] == [0, 0]
    assert sum(len(ids) for ids, _ in found[0]) == 400


def test_centroids_are_in_the_middle_of_clusters():
    random = np.random.default_rng(3)
    centres = random.normal(size=(20, 6)) * 50
    values = (centres[random.integers(0, 20, 4000)] + random.normal(size=(4000, 6))).astype(np.float32)
    found = kmeans(values, 20, 50, random)
    distances = np.linalg.norm(centres[:, None] - found[None], axis=2)
    assert (distances.min(axis=1) < 1).mean() >= 0.9
    spread = np.linalg.norm(values[:, None] - found[None], axis=2).min(axis=1)
    assert spread.mean() < 4


def test_options_of_arrow(tmp_path):
    table = pa.table({"id": [1, 2], "s": ["a", "b"]})
    with pytest.raises(InvalidSearchError, match="expected vectors"):
        lance_sql.write(table, str(tmp_path / "s")).create_index("s", "IVF_PQ")


def test_training_with_faiss(ds, monkeypatch):
    pytest.importorskip("faiss", reason="faiss is an extra")
    vectors = clustered(2000)
    told = []
    found = kmeans_by_faiss(vectors, 12, 30, np.random.default_rng(0), lambda: told.append(1))
    own = kmeans(vectors, 12, 30, np.random.default_rng(0))

    def loss(centroids):
        return ((vectors[:, None] - centroids[None]) ** 2).sum(axis=2).min(axis=1).sum()

    assert found.shape == own.shape
    assert loss(found) <= 1.05 * loss(own)
    assert 1 <= len(told) <= 30
    few = kmeans_by_faiss(vectors[:3], 5, 30, np.random.default_rng(0))
    assert few.tolist() == kmeans(vectors[:3], 5, 30, np.random.default_rng(0)).tolist()
    ds = ds.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=4, trainer="faiss")
    nearest = ds.nearest("v", clustered(1)[0], columns=["id"], nprobes=2, refine_factor=60)
    assert nearest.equals(ds.nearest("v", clustered(1)[0], columns=["id"], use_index=False))


def test_faiss_that_is_missing_is_named(ds, monkeypatch):
    monkeypatch.setattr("lance_engine.index.vector.options.find_spec", lambda name: None)
    with pytest.raises(UnsupportedFeatureError, match=r"lance-sql\[train\]"):
        ds.create_index("v", "IVF_PQ", trainer="faiss")


def test_graphs_are_written_as_they_are_built(ds, monkeypatch):
    """The graphs of all partitions together would not fit in memory."""
    built, written = [], []
    graph = writer._graph

    def counted(encoder, codes):
        assert len(written) == len(built), "the graph before is still in memory"
        built.append(len(codes))
        return graph(encoder, codes)

    class Writer(DataFileWriter):
        def write(self, batch):
            if "__neighbors" in batch.schema.names:
                written.append(batch.num_rows)
            super().write(batch)

    monkeypatch.setattr(writer, "_graph", counted)
    monkeypatch.setattr("lance_engine.operations.index_files.DataFileWriter", Writer)
    ds.create_index("v", "IVF_HNSW_FLAT", num_partitions=2)
    assert len(built) == len(written) == 2
    assert sum(built) == 600


def test_partitions_with_graphs_and_samples_fit_in_memory():
    for dim in (8, 128, 1536):
        kind = pa.list_(pa.float32(), dim)
        found = vector_options("IVF_HNSW_SQ", kind, 10_000_000, {})
        rows = 10_000_000 / found.partitions
        assert rows * (4 * dim + 4 * 8 * found.neighbours) < 1 << 30
        for name in ("IVF_FLAT", "IVF_PQ", "IVF_SQ"):
            assert vector_options(name, kind, 10_000_000, {}).sample_rows * dim * 4 <= 400 << 20
