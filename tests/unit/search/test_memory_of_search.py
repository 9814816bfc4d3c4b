"""How much memory builds of vector indices and searches in them take: less than the vectors."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from memory_peak import peak_memory
from vector_tables import vector_array

import lance_sql

ROWS, DIM = 400_000, 128
#: Bytes of the vectors. Batches, pages on their way to a file, ids and the sample take a part of it at most.
ALLOWED = ROWS * DIM * 4

#: Codes wait in a temporary file when they are more than 8 MB, as those of many rows do.
_BUILD = """
import lance_sql
from lance_engine.index.vector.writer import EncodedRows

EncodedRows.__init__.__defaults__ = (8 << 20,)

def work(path, kind):
    options = {"num_partitions": 40, "sample_rate": 16, "max_iters": 3}
    if kind.endswith("PQ"):
        options["num_sub_vectors"] = 8
    return lance_sql.open(path).create_index("v", kind, **options).version
"""

_SEARCH = """
import numpy as np
import lance_sql

def work(path):
    dataset = lance_sql.open(path)
    queries = np.random.default_rng(0).normal(size=(50, 128))
    found = dataset.nearest("v", queries, columns=["id"], nprobes=4, refine_factor=3)
    filtered = dataset.nearest("v", queries[0], columns=["id"], nprobes=4, filter="id % 2 = 0")
    return found.num_rows + filtered.num_rows
"""


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "v.lance"
    values = np.random.default_rng(0).standard_normal((ROWS, DIM), dtype=np.float32)
    lance_sql.write(pa.table({"id": range(ROWS), "v": vector_array(values)}), str(path))
    return path


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["IVF_PQ", pytest.param("IVF_SQ", marks=pytest.mark.slow)])
def test_peak_of_a_build(vectors: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "copy.lance"
    shutil.copytree(vectors, path, copy_function=os.link)
    version, peak = peak_memory(_BUILD, str(path), kind)
    assert int(version) > 1
    assert peak < ALLOWED
    if kind == "IVF_PQ":
        rows, peak = peak_memory(_SEARCH, str(path))
        assert rows == "510"
        assert peak < ALLOWED
