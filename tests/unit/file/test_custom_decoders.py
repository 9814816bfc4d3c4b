"""Encodings that are not built in: the error without a decoder, and reading with one."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import handmade_files as handmade
import numpy as np
import pyarrow as pa
import pytest
from lance_engine import encodings, kernels
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.format.container import PageMetadata
from lance_engine.format.pb import encodings21_pb2, table_pb2
from lance_engine.write.dataset import write_dataset
from native_files import NativeFile

NAME = "acme.Swapped"
ROWS = 500
VALUES = [None if row % 3 == 0 else row for row in range(ROWS)]
SCHEMA = pa.schema([("value", pa.int64())])
VERSIONS = {"2.0": (0, 3), "2.1": (2, 1), "2.2": (2, 2)}


@dataclass
class OneByte:
    """The message of the made-up encoding: the width of a value."""

    width: int

    def SerializeToString(self) -> bytes:  # noqa: N802 - as messages have it
        return bytes([self.width])


def file_content(version: str, *, short: int = 0) -> bytes:
    """A file whose only page has its values before its validity bitmap, `short` bytes too few of them."""
    values = np.array([value or 0 for value in VALUES], "<i8").tobytes()
    validity = np.packbits([value is not None for value in VALUES], bitorder="little").tobytes()
    buffers = [values[: len(values) - short], validity]
    page = handmade.Page(OneByte(8), buffers, ROWS, f"/{NAME}")  # type: ignore[arg-type]
    return handmade.make_file(SCHEMA, [[page]], ROWS, VERSIONS[version])


def swapped(message: bytes, page: PageMetadata) -> kernels.Page:
    values, validity = page.buffers
    flat = kernels.array_flat(values, 8 * message[0], "")
    return kernels.array_page(page.rows, kernels.array_nullable(kernels.array_flat(validity, 1, ""), flat))


@pytest.fixture
def registered() -> Iterator[None]:
    encodings.register_decoder(NAME, swapped)
    yield
    encodings.unregister_decoder(NAME)


@pytest.mark.parametrize("version", VERSIONS)
def test_without_a_decoder(version: str) -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        NativeFile.in_memory(file_content(version), SCHEMA)
    assert caught.value.message == "This file uses the encoding 'acme.Swapped', no decoder is configured"
    assert "register_decoder" in str(caught.value)
    assert caught.value.place == {"path": "file.lance", "column": "value", "page": 0}


@pytest.mark.parametrize("version", VERSIONS)
def test_with_a_decoder(registered: None, version: str) -> None:
    file = NativeFile.in_memory(file_content(version), SCHEMA)
    assert file.table()["value"].to_pylist() == VALUES
    assert file.range(100, 200)["value"].to_pylist() == VALUES[100:200]
    assert file.rows_at([0, 7, 499])["value"].to_pylist() == [None, 7, 499]


@pytest.mark.parametrize("version", VERSIONS)
def test_damaged_pages_are_named_like_others(registered: None, version: str) -> None:
    file = NativeFile.in_memory(file_content(version, short=8), SCHEMA)
    with pytest.raises(CorruptFileError, match="ends before") as caught:
        file.table()
    assert caught.value.place == {"path": "file.lance", "column": "value", "page": 0}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_dataset(registered: None, tmp_path: Path, version: str) -> None:
    """Scans, filters, look-ups and inspection."""
    write_dataset(pa.table({"value": VALUES}), str(tmp_path), data_storage_version=version, zone_maps=False)
    (path,) = (tmp_path / "data").glob("*.lance")
    path.write_bytes(file_content(version))
    (path,) = (tmp_path / "_versions").glob("*.manifest")
    path.write_bytes(without_file_sizes(path.read_bytes()))
    dataset = DatasetVersion.open(str(tmp_path))
    assert dataset.scan().to_table()["value"].to_pylist() == VALUES
    assert dataset.scan(filter="value > 490").count() == sum((value or 0) > 490 for value in VALUES)
    assert dataset.take([7, 3])["value"].to_pylist() == [7, None]
    assert dataset.inspect.pages()["encoding"].to_pylist() == [NAME]


def without_file_sizes(data: bytes) -> bytes:
    """A manifest file that does not say how long data files are."""
    (position,) = struct.unpack_from("<Q", data, len(data) - 16)
    message = table_pb2.Manifest.FromString(data[position + 4 : -16])
    for fragment in message.fragments:
        for file in fragment.files:
            file.ClearField("file_size_bytes")
    content = message.SerializeToString()
    return data[:position] + struct.pack("<I", len(content)) + content + data[-16:]


def test_encodings_of_the_format_keep_their_decoders() -> None:
    with pytest.raises(ValueError, match="built-in encoding"):
        encodings.register_decoder("lance.encodings21.PageLayout", swapped)


def test_alternatives_of_the_future_are_told_by_their_number() -> None:
    future = encodings21_pb2.PageLayout.FromString(bytes([0xF2, 0x03, 2, 8, 1]))  # field 62
    page = handmade.Page(future, [bytes(8)], ROWS)
    content = handmade.make_file(SCHEMA, [[page]], ROWS, (2, 1))
    with pytest.raises(UnsupportedFeatureError, match="encoding 'PageLayout number 62', no decoder"):
        NativeFile.in_memory(content, SCHEMA)
