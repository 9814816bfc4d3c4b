"""Datasets for PyTorch, in its own loaders: with forked and spawned workers, in every rank."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lance_sql

torch = pytest.importorskip(
    "torch",
    reason="PyTorch is not a development dependency: its wheel for Linux has 0.5 GB, and needs CUDA's",
)

ROWS = 3_000


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("torch") / "x.lance")
    table = pa.table({"id": range(ROWS), "name": [f"n{number}" for number in range(ROWS)]})
    lance_sql.write(table, path, max_rows_per_file=1_000).delete("id = 5")
    return path


WORKERS = [
    {},
    {"num_workers": 2, "multiprocessing_context": "fork"},
    {"num_workers": 2, "multiprocessing_context": "spawn"},
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forks while threads run
@pytest.mark.parametrize("workers", WORKERS, ids=["here", "fork", "spawn"])
def test_by_position(uri: str, workers: dict[str, Any]) -> None:
    from lance_sql.torch import LanceDataset, collate

    data = LanceDataset(uri)
    assert len(data) == ROWS - 1
    assert data[5]["id"].item() == 6
    loader = torch.utils.data.DataLoader(data, 100, shuffle=True, collate_fn=collate, **workers)
    found = list(loader)
    assert sorted(torch.cat([batch["id"] for batch in found]).tolist()) == sorted({*range(ROWS)} - {5})
    assert found[0]["name"][0] == f"n{found[0]['id'][0]}"
    stacked = next(iter(torch.utils.data.DataLoader(data, 4)))  # PyTorch's own collate works too
    assert stacked["id"].tolist() == [0, 1, 2, 3]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("workers", WORKERS, ids=["here", "fork", "spawn"])
def test_as_a_stream_in_every_rank(uri: str, workers: dict[str, Any]) -> None:
    from lance_sql.torch import IterableLanceDataset

    found = []
    for rank in range(2):
        data = IterableLanceDataset(uri, batch_size=50, shuffle=True, block_rows=64, rank=rank, world_size=2)
        for batch in torch.utils.data.DataLoader(data, batch_size=None, **workers):
            found += batch["id"].tolist()
    assert sorted(found) == sorted({*range(ROWS)} - {5})
    assert found != sorted(found)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_persistent_workers_follow_the_epoch(uri: str) -> None:
    from lance_sql.torch import IterableLanceDataset

    data = IterableLanceDataset(uri, shuffle=True, block_rows=64)
    loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=1, persistent_workers=True)
    orders = []
    for epoch in (0, 1, 0):
        data.set_epoch(epoch)
        orders.append([number for batch in loader for number in batch["id"].tolist()])
    assert orders[0] == orders[2] != orders[1]
