"""Remote files with ranges outside of the file: an immediate error, without a request."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import handmade_files as handmade
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CorruptFileError
from lance_engine.file.contents import FileContents
from lance_engine.file.reader import FileReader
from lance_engine.io.local import LocalStore
from lance_engine.write.dataset import write_dataset
from native_files import NativeFile
from reference.levels import Layer, LevelArrays
from remote_store import RemoteStore
from structured import with_changed_pages, without_sizes

SIZE = 1000
OUTSIDE = [(0, 2**60), (2**60, 8), (0, SIZE + 1), (SIZE, 1), (-8, 4), (10, -1), (8, 2**64 - 8)]


def remote_file() -> tuple[RemoteStore, FileContents]:
    store = RemoteStore()
    store.put("data/file.lance", bytes(SIZE))
    return store, FileContents(store, "data/file.lance")


@pytest.mark.parametrize("span", OUTSIDE)
def test_a_range_that_leaves_the_file(span: tuple[int, int]) -> None:
    store, file = remote_file()
    inside = (100, 200)
    for ask in (
        lambda: file.fetch_lasting([inside, span]),
        lambda: file.fetch(file.overlay([], np.empty((0, 2), np.int64))[1], *span),
        lambda: file.read(*span),
        lambda: file.holds(*span),
    ):
        with pytest.raises(CorruptFileError, match="restore it from a backup") as caught:
            ask()
        assert caught.value.place["path"] == "data/file.lance"
    assert store.ranges == []


def test_ranges_up_to_the_end_of_the_file() -> None:
    store, file = remote_file()
    file.fetch_lasting([(0, 10), (SIZE - 10, 10), (SIZE, 0)])
    assert file.read(SIZE - 10, 10) == bytes(10)
    assert store.ranges


def test_a_page_whose_rows_end_before_they_begin() -> None:
    """The difference is a length of nearly 2**64 bytes."""
    values = [bytes([65 + row]) * 20 for row in range(4)]
    arrays = LevelArrays([Layer.ALL_VALID_ITEM], None, None, len(values))
    page = handmade.full_zip(arrays, len(values), handmade.variable_encoding(32), values, 32)
    page.buffers[1] = bytes([90]) + page.buffers[1][1:]  # the first row begins after the second
    schema = pa.schema([pa.field("value", pa.binary())])
    file = NativeFile.in_memory(handmade.make_file(schema, [[page]], len(values), (2, 1)), schema)
    with pytest.raises(CorruptFileError) as caught:
        file.rows_at([0])
    assert caught.value.place["path"] == "file.lance"


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_buffers_that_are_somewhere_else(tmp_path: Path, version: str) -> None:
    """Outside of the file is an error; elsewhere in it, nothing says that these are other bytes."""
    values = np.arange(1000, dtype=np.int64) * 7_654_321_987
    write_dataset(pa.table({"a": values, "b": -values}), str(tmp_path), data_storage_version=version)
    (path,) = (tmp_path / "data").glob("*.lance")
    sound = path.read_bytes()
    (manifest,) = (tmp_path / "_versions").glob("*.manifest")
    manifest.write_bytes(without_sizes(manifest.read_bytes()))
    kinds = set()
    for column, elsewhere in product(
        range(2), [0, 64, 640, len(sound) - 64, len(sound), 2**40, 2**63, 2**64 - 8]
    ):

        def move(page: Any, elsewhere: int = elsewhere) -> None:
            page.buffer_offsets[-1] = elsewhere

        path.unlink()
        path.write_bytes(with_changed_pages(sound, column, move))
        try:
            found = DatasetVersion.open(str(tmp_path)).scan().to_table()
            assert found.num_rows == 1000
            found.validate(full=True)
            assert elsewhere < len(sound)
            kinds.add("rows")
        except CorruptFileError:
            kinds.add("error")
    assert kinds == {"rows", "error"}


def test_a_scan_that_plans_rows_which_end_before_they_begin(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    table = pa.table({"value": pa.array([rng.bytes(100_000) for _ in range(40)], pa.large_binary())})
    write_dataset(table, str(tmp_path), data_storage_version="2.1")
    (path,) = (tmp_path / "data").glob("*.lance")
    (page, *_) = FileReader(LocalStore(str(path.parent)), path.name).column_metadata(0).pages
    (_, _), (offset, _) = page.buffers
    data = bytearray(path.read_bytes())
    # The first entry of four bytes lies past the others, but within the data.
    data[offset : offset + 4] = (3_500_000).to_bytes(4, "little")
    path.write_bytes(data)
    store = RemoteStore.of_folder(tmp_path)
    dataset = DatasetVersion.open(store)  # type: ignore[arg-type]
    with pytest.raises(CorruptFileError) as caught:
        dataset.scan(limit=2).to_table()
    assert str(caught.value.place["path"]).endswith(path.name)
    assert max(length or 0 for _, _, length in store.ranges) <= len(data)
