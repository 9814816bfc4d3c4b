"""General purpose compression of whole buffers: LZ4 blocks and Zstandard frames behind their plain length."""

from __future__ import annotations

import pyarrow as pa
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError

from reference.sections import unsigned

LZ4 = 1
ZSTD = 2
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD_UNUSED_BIT = 0x10


def decompress(data: bytes, scheme: int) -> bytes:
    """LZ4: u32 length and a raw block. ZSTD: u64 length and a frame, or a bare frame; empty stays empty."""
    try:
        if scheme == LZ4:
            length = unsigned(data, 0, 4, "length prefix")
            return bytes(pa.Codec("lz4_raw").decompress(data[4:], length, asbytes=True)) if length else b""
        if scheme == ZSTD:
            if not data:
                return b""
            if data[:4] == ZSTD_MAGIC and len(data) > 4 and not data[4] & ZSTD_UNUSED_BIT:
                return _read_frame(data)
            length = unsigned(data, 0, 8, "length prefix")
            plain = _read_frame(data[8:])
            if len(plain) != length:
                raise CorruptFileError(f"a frame of {len(plain)} bytes declares {length}")
            return plain
    except (pa.ArrowException, OSError, MemoryError) as error:
        raise CorruptFileError(f"a compressed buffer does not decompress: {error}") from error
    raise UnsupportedFeatureError(f"buffer compression scheme {scheme}")


def _read_frame(frame: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(frame), "zstd") as stream:
        return bytes(stream.read())
