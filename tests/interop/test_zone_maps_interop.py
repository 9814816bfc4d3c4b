"""pylance works on files with zone maps as on any; zone maps stay right whatever it does to the table."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest
from corpus import difference
from lance.file import LanceFileReader
from lance_engine.dataset import DatasetVersion
from lance_engine.write.dataset import write_dataset


def table(rows: int) -> pa.Table:
    texts = [
        None if row % 11 == 0 else f"text {row // 10:06d} and more than a bound keeps" for row in range(rows)
    ]
    inner = pa.array([{"a": row, "l": [row]} for row in range(rows)])
    return pa.table(
        {
            "x": pa.array(range(rows), pa.int32()),
            "f": pa.array([None if row % 7 == 0 else row / 2 for row in range(rows)]),
            "t": texts,
            "flag": [row % 3 == 0 for row in range(rows)],
            "s": inner,
        }
    )


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_pylance_reads_filters_takes_and_counts(tmp_path: Path, version: str) -> None:
    written = table(5000)
    write_dataset(written, tmp_path, zone_rows=64, data_storage_version=version, max_rows_per_file=2000)
    theirs = lance.dataset(tmp_path)
    assert not difference(theirs.to_table(), written)
    assert theirs.to_table(filter="x >= 1990 AND x < 2010").num_rows == 20
    assert theirs.to_table(filter="t = 'text 000123 and more than a bound keeps'").num_rows > 0
    assert theirs.count_rows("s.a < 100") == 100
    assert not difference(theirs.take([4999, 0, 2500]), written.take([4999, 0, 2500]))
    assert theirs.schema.metadata is None
    (path, *_) = (tmp_path / "data").glob("*.lance")
    file = LanceFileReader(str(path))
    assert file.read_all().to_table().num_rows in (1000, 2000)
    assert b"lance-sql:zone-maps" in file.metadata().schema.metadata


def test_zone_maps_serve_tables_that_pylance_changed(tmp_path: Path) -> None:
    write_dataset(table(3000), tmp_path, zone_rows=100, max_rows_per_file=1000)
    theirs = lance.dataset(tmp_path)
    theirs.delete("x % 10 = 3")
    theirs.add_columns({"y": "x + 1"})
    theirs.alter_columns({"path": "x", "name": "renamed"})
    lance.write_dataset(lance.dataset(tmp_path).to_table().slice(0, 10), tmp_path, mode="append")
    ours = DatasetVersion.open(str(tmp_path))
    expected = lance.dataset(tmp_path)
    for text in ("renamed BETWEEN 990 AND 1010", "y < 5", "s.a = 1500", "t IS NULL AND renamed > 2900"):
        found = ours.scan(filter=text).to_table()
        assert not difference(found, expected.to_table(filter=text)), text
        assert ours.count_rows(text) == expected.count_rows(text)
    # The columns of pylance have no zone maps, ours keep theirs.
    assert "zones: 2 of 30" in ours.scan(filter="renamed BETWEEN 990 AND 1010").explain()


def test_compaction_by_pylance_leaves_no_stale_zone_maps(tmp_path: Path) -> None:
    write_dataset(table(3000), tmp_path, zone_rows=100, max_rows_per_file=1000)
    theirs = lance.dataset(tmp_path)
    theirs.delete("x < 500")
    theirs.optimize.compact_files()
    ours = DatasetVersion.open(str(tmp_path))
    assert ours.scan(filter="x BETWEEN 400 AND 520").to_table().num_rows == 21
    assert ours.count_rows("x < 500") == 0


def test_pylance_refuses_the_column_encoding_zone_index(tmp_path: Path) -> None:
    """Therefore it is written only on request."""
    written = table(1000)
    write_dataset(
        written,
        tmp_path,
        data_storage_version="2.0",
        zone_index="strict",
        zone_rows=64,
    )
    ours = DatasetVersion.open(str(tmp_path))
    assert not difference(ours.scan().to_table(), written)
    assert ours.scan(filter="x >= 640 AND x < 650").count() == 10
    theirs = lance.dataset(tmp_path)
    assert theirs.count_rows() == 1000
    with pytest.raises(Exception, match=r"(?i)decoder|ZoneIndex"):
        theirs.to_table()
