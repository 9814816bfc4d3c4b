"""A first search by a vector index on an object store takes no more requests than pylance's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lance
import pytest
from lance_engine.index.cache import CACHE, VECTORS
from s3_proxy import Request, s3_proxy
from vector_tables import clustered, vector_table

import lance_sql

if TYPE_CHECKING:
    from conftest import ObjectStore

ROWS, DIM = 20_000, 32
QUERY = clustered(ROWS, DIM)[7]


def read(requests: list[Request]) -> list[Request]:
    """The requests that wait for a response of the store."""
    return [request for request in requests if request.method in ("GET", "HEAD")]


def by_us(uri: str, options: dict[str, str], **search: Any) -> list[int]:
    ds = lance_sql.open(uri, storage_options=options)
    return ds.nearest("v", QUERY, 10, columns=["id"], **search)["id"].to_pylist()


def by_pylance(uri: str, options: dict[str, str], **search: Any) -> list[int]:
    ds = lance.dataset(uri, storage_options=options)
    nearest = {"column": "v", "q": QUERY, "k": 10, **search}
    return ds.to_table(columns=["id", "_distance"], nearest=nearest)["id"].to_pylist()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["IVF_PQ", "IVF_HNSW_SQ"])
def test_requests_of_a_first_search(object_store: ObjectStore, kind: str) -> None:
    uri = object_store.s3("vectors.lance")
    table = vector_table(clustered(ROWS, DIM))
    ds = lance_sql.write(table, uri, storage_options=object_store.options)
    ds.create_index("v", kind, num_partitions=16)
    # What is the default here, so that both compare rows by their vectors.
    search = {"nprobes": 4, "refine_factor": 10 if kind == "IVF_PQ" else 4}
    with s3_proxy(object_store.endpoint) as proxy:
        options = {**object_store.options, "aws_endpoint": proxy.endpoint}
        told = {}
        for name, find in (("ours", by_us), ("pylance", by_pylance)):
            CACHE.clear()
            VECTORS.clear()
            proxy.reset()
            found = find(uri, options, **search)
            told[name] = read(proxy.requests)
            assert 7 in found
    assert len(told["ours"]) <= len(told["pylance"]), told
    # Partitions are read together, and begin with the same descriptions of pages: each is fetched once.
    assert len(set(told["ours"])) == len(told["ours"])
