"""Decimals in 64 bits, and many rows read at once, of files that are not local."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import LanceError
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


@pytest.mark.parametrize("distinct", [7, ROWS])  # with a dictionary and without
@pytest.mark.parametrize("null", [False, True])
def test_decimals_of_more_digits_are_refused_where_they_are_not_null(
    tmp_path: Path, distinct: int, null: bool
) -> None:
    values = np.zeros((ROWS, 2), np.int64)
    values[:, 0] = np.arange(ROWS) % distinct
    values[ROWS // 2, 1] = 5  # more than 64 bits
    valid = np.ones(ROWS, np.bool_)
    valid[ROWS // 2] = not null
    bits = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
    kind = pa.decimal128(18, 0)
    prices = pa.Array.from_buffers(kind, ROWS, [bits, pa.py_buffer(values.tobytes())])
    write_dataset(pa.table({"price": prices}), str(tmp_path / "wide.lance"))
    scanner = DatasetVersion.open(str(tmp_path / "wide.lance")).scan()
    schema = pa.schema([pa.field("price", pa.decimal64(18, 0))])
    stream = ScanStream(scanner, schema, narrowed=["price"])
    if null:
        expected = [int(value) if here else None for value, here in zip(values[:, 0], valid, strict=True)]
        found = pa.Table.from_batches(stream.batches(), schema)["price"].to_pylist()
        assert found == expected
    else:
        with pytest.raises((LanceError, pa.ArrowInvalid), match="more digits than its type"):
            list(stream.batches())


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
