"""Decimals in 64 bits, and many rows read at once, of files that are not local."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.scan.projection import narrowed_schema
from lance_engine.scan.stream import ScanStream
from lance_engine.write.dataset import write_dataset
from remote_store import RemoteStore

ROWS = 20_000
NAMES = frozenset({"price", "rate"})


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    prices = [None if n % 7 == 0 else Decimal(n * 31 - ROWS).scaleb(-2) for n in range(ROWS)]
    table = pa.table(
        {
            "id": range(ROWS),
            "price": pa.array(prices, pa.decimal128(15, 2)),
            "rate": pa.array([Decimal(n % 11).scaleb(-2) for n in range(ROWS)], pa.decimal128(4, 2)),
            "wide": pa.array([Decimal(n) for n in range(ROWS)], pa.decimal128(30, 2)),
        }
    )
    found = tmp_path_factory.mktemp("narrowed") / "prices.lance"
    write_dataset(table, str(found), max_rows_per_file=12_000)
    return found


@pytest.mark.parametrize("filter", [None, "rate > 0.05", "price IS NULL", "id % 100 = 3", "id < 15000"])
@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("deleted", [False, True])
def test_decimals_in_64_bits_are_the_same_numbers(
    path: Path, tmp_path: Path, filter: str | None, remote: bool, deleted: bool
) -> None:
    shutil.copytree(path, tmp_path / "own")
    place = RemoteStore.of_folder(path) if remote else str(tmp_path / "own")
    dataset = DatasetVersion.open(place)  # type: ignore[arg-type]
    if deleted:
        dataset = dataset.delete("id % 9 = 1")
    expected = dataset.scan(filter=filter).to_table()
    scanner = dataset.scan(filter=filter, batch_size=1000)
    schema = narrowed_schema(scanner.schema, NAMES)
    batches = list(ScanStream(scanner, schema, narrowed=NAMES).batches())
    assert all(batch.schema.equals(schema) and 0 < batch.num_rows <= 1000 for batch in batches)
    assert pa.Table.from_batches(batches, schema).cast(expected.schema).equals(expected)


def test_remote_rows_are_read_many_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = DatasetVersion.open(RemoteStore.of_folder(path))  # type: ignore[arg-type]
    scanner = dataset.scan(batch_size=100)
    reads: list[int] = []
    read = scanner.reader.read

    def counted(piece: object, metrics: object) -> list[pa.RecordBatch]:
        batches = read(piece, metrics)  # type: ignore[arg-type]
        reads.append(len(batches))
        return batches

    monkeypatch.setattr(scanner.reader, "read", counted)
    assert sum(batch.num_rows for batch in scanner.to_batches()) == ROWS
    assert len(reads) <= 8  # two files; the first task of a stream is short
    assert sum(reads) >= ROWS // 100
