"""One page: which layout it has, and its levels and values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.format.pb import encodings21_pb2

from reference import blob, constant, full_zip, mini_block
from reference.arrow import is_variable
from reference.levels import LevelArrays, parse_layers
from reference.sections import section
from reference.values import Values

PAGE_LAYOUT = "lance.encodings21.PageLayout"
BUFFER_ALIGNMENT = 64


def parse_layout(page: Any) -> Any:
    """The ``PageLayout`` message of a ``ColumnMetadata.Page``."""
    if page.encoding.WhichOneof("location") != "direct":
        raise UnsupportedFeatureError("a page whose encoding is not stored with it")
    try:
        any_message = AnyMessage.FromString(page.encoding.direct.encoding)
        _, slash, name = any_message.type_url.rpartition("/")
        if not slash or name != PAGE_LAYOUT:
            raise UnsupportedFeatureError(f"a page encoded as {any_message.type_url!r}")
        return encodings21_pb2.PageLayout.FromString(any_message.value)
    except DecodeError as error:
        raise CorruptFileError(f"a page encoding is not a protobuf message: {error}") from error


def page_buffers(data: bytes, page: Any) -> list[bytes]:
    """The buffers of a page, cut out of the bytes of the file."""
    if len(page.buffer_offsets) != len(page.buffer_sizes):
        raise CorruptFileError("a page has not as many buffer sizes as offsets")
    for offset in page.buffer_offsets:
        if offset % BUFFER_ALIGNMENT:
            raise CorruptFileError(f"a page buffer at {offset} is not aligned to {BUFFER_ALIGNMENT} bytes")
    pairs = zip(page.buffer_offsets, page.buffer_sizes, strict=True)
    return [section(data, offset, size, "page buffer") for offset, size in pairs]


def decode_layout(
    data: bytes, layout: Any, buffers: list[bytes], length: int, arrow_type: pa.DataType
) -> tuple[LevelArrays, Values]:
    """The levels and visible values of a page of `length` rows of the leaf type `arrow_type`."""
    kind = layout.WhichOneof("layout")
    if kind == "mini_block_layout":
        return mini_block.decode(layout.mini_block_layout, buffers)
    if kind == "full_zip_layout":
        return full_zip.decode(layout.full_zip_layout, buffers, length)
    if kind == "constant_layout":
        nested = pa.types.is_nested(arrow_type) or pa.types.is_null(arrow_type)
        bits = None if nested or is_variable(arrow_type) else arrow_type.bit_width
        return constant.decode(layout.constant_layout, buffers, length, bits)
    if kind == "blob_layout":
        descriptors = pa.struct([("position", pa.uint64()), ("size", pa.uint64())])
        inner = decode_layout(data, layout.blob_layout.inner_layout, buffers, length, descriptors)
        return blob.decode(data, parse_layers(layout.blob_layout.layers), inner[1])
    raise UnsupportedFeatureError(f"page layout {kind}")


def decode(data: bytes, page: Any, arrow_type: pa.DataType) -> tuple[LevelArrays, Values]:
    """Decode one ``ColumnMetadata.Page`` of the file whose bytes are `data`."""
    return decode_layout(data, parse_layout(page), page_buffers(data, page), int(page.length), arrow_type)
