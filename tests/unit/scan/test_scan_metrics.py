"""The metrics of a scan: numbers that follow from known properties of the data."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.expr.tree import In
from lance_engine.io.memory import MemoryStore
from lance_engine.scan.stream import ScanStream
from lance_engine.write.dataset import write_dataset

ROWS = 100_000


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> DatasetVersion:
    folder = str(tmp_path_factory.mktemp("metrics"))
    return DatasetVersion(write_dataset(_table(), folder, max_rows_per_file=50_000))


def _table() -> pa.Table:
    numbers = np.random.default_rng(7)
    columns = {f"c{i:02}": numbers.integers(0, 1 << 40, ROWS) for i in range(14)}
    text = [f"text of row {row} {row * 7919 % 10007}" for row in range(ROWS)]
    return pa.table({"at": np.arange(ROWS), "text": text, **columns})


def test_numbers_of_a_selective_scan(dataset: DatasetVersion) -> None:
    scan = dataset.scan(columns=["c01", "at"], filter="at BETWEEN 60000 AND 60010")
    assert scan.metrics is None
    assert scan.to_table().num_rows == 11
    metrics = scan.metrics
    assert metrics is not None
    assert (metrics.fragments, metrics.fragments_read) == (2, 1)
    assert (metrics.zones, metrics.zones_read) == (14, 1)
    assert (metrics.rows, metrics.rows_left, metrics.rows_untested) == (ROWS, 8192, 0)
    assert (metrics.rows_out, metrics.batches, metrics.requests) == (11, 1, 0)
    assert metrics.rows_decoded == 8192
    assert 0 < metrics.pages_read <= metrics.pages
    assert metrics.pushed == ["at >= 60000 AND at <= 60010"]
    assert {"plan", "filter", "read", "total"} <= set(metrics.seconds)
    shown = metrics.as_dict()
    assert shown["rows_out"] == 11
    assert shown["indices"] == []
    assert not any(name.startswith("_") for name in shown)


def test_numbers_are_complete_when_the_rows_are(
    dataset: DatasetVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decoding thread that is still reporting its share when the last batch goes out is waited for."""
    reported = ScanStream.report

    def slowly(
        self: ScanStream, batches: int, rows: int, decoded: int, read: int, seconds: float, last: bool
    ) -> None:
        if not last:
            time.sleep(0.3)
        reported(self, batches, rows, decoded, read, seconds, last)

    monkeypatch.setattr(ScanStream, "report", slowly)
    scan = dataset.scan(columns=["c01"], batch_size=2000)
    assert scan.to_table().num_rows == ROWS
    assert scan.metrics is not None
    assert (scan.metrics.rows_out, scan.metrics.rows_decoded) == (ROWS, ROWS)


def test_a_selective_query_reads_few_bytes(dataset: DatasetVersion) -> None:
    """One day of a hundred, 16 columns: the bytes looked at, metadata and zone maps included."""
    fresh = DatasetVersion.open(dataset.uri)
    scan = fresh.scan(filter="at BETWEEN 31000 AND 31500")
    assert scan.to_table().num_columns == 16
    assert scan.metrics is not None
    assert scan.metrics.rows_out == 501
    assert 0 < scan.metrics.bytes_read < 0.05 * _size(dataset)


def _size(dataset: DatasetVersion) -> int:
    return sum(path.stat().st_size for path in Path(dataset.uri, "data").iterdir())


def test_every_byte_of_a_full_scan_is_counted(dataset: DatasetVersion) -> None:
    scan = dataset.scan()
    scan.to_table()
    assert scan.metrics is not None
    assert 0.9 * _size(dataset) < scan.metrics.bytes_read <= 1.05 * _size(dataset)
    assert scan.metrics.pages_read == scan.metrics.pages > 0
    assert scan.metrics.rows_decoded == scan.metrics.rows_out == ROWS


def test_requests_to_a_store_are_counted() -> None:
    store = MemoryStore("requests")
    fresh = DatasetVersion(write_dataset(_table().slice(0, 20_000), store))
    scan = fresh.scan(columns=["c03"], filter="at < 100")
    store.reset_counters()
    assert scan.to_table().num_rows == 100
    assert scan.metrics is not None
    assert (scan.metrics.requests, scan.metrics.bytes_read) == (store.requests, store.bytes_read)


def test_counting_reads_only_what_zones_leave_open(dataset: DatasetVersion) -> None:
    scan = dataset.scan(columns=[], filter="at >= 8192 AND at < 57344")
    assert scan.count() == 57344 - 8192
    assert scan.metrics is not None
    # The fragments end at 50,000 rows, their zones at multiples of 8,192 from there.
    assert scan.metrics.rows_decoded == 8192
    decided = dataset.scan(filter="at >= 8192 AND at < 50000")
    assert decided.count() == 50_000 - 8192
    assert decided.metrics is not None
    assert decided.metrics.rows_decoded == 0


def test_explain(dataset: DatasetVersion) -> None:
    scan = dataset.scan(columns=["text"], filter="at = 7 AND c05 > 3", limit=5)
    plan = scan.explain()
    assert "filter: at = 7 AND c05 > 3" in plan
    assert "tested: at = 7, then c05 > 3" in plan
    assert "zones: 1 of 14" in plan
    assert "bytes read" not in plan
    assert scan.metrics is None
    done = scan.explain(analyze=True)
    assert "rows out: 1, batches: 1" in done
    assert "pages: 3 of " in done
    assert "time: plan " in done


def test_batches_keep_to_their_bounds(dataset: DatasetVersion) -> None:
    for options in ({"filter": "c00 > 1000"}, {}):
        whole = dataset.scan(columns=["text", "c00"], **options).to_table()
        small = list(dataset.scan(columns=["text", "c00"], batch_bytes=50_000, **options).to_batches())
        assert max(batch.nbytes for batch in small) <= 50_000
        assert pa.Table.from_batches(small).equals(whole)
        both = list(
            dataset.scan(columns=["text"], batch_bytes=1 << 20, batch_size=300, **options).to_batches()
        )
        assert max(batch.num_rows for batch in both) <= 300
    assert [
        batch.num_rows for batch in dataset.scan(columns=["text"], limit=3, batch_bytes=1).to_batches()
    ] == [
        1,
        1,
        1,
    ]
    with pytest.raises(ValueError, match="batch_bytes"):
        dataset.scan(batch_bytes=0)


def test_the_text_of_a_filter_is_made_for_those_who_ask(
    dataset: DatasetVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    text = In.list_text
    monkeypatch.setattr(In, "list_text", lambda node: asked.append(1) or text(node))
    scan = dataset.scan(columns=["at"], filter=pc.field("at").isin(pa.array(range(0, 10_000, 2))))
    assert scan.to_table().num_rows == 5000
    assert not asked
    assert scan.metrics is not None
    assert scan.metrics.pushed[0].startswith("at IN (0, 2, 4")
