"""Seeds of version 2.0 in encodings that are part of the format but that writers of today do not choose."""

from __future__ import annotations

import handmade_files as handmade
import numpy as np
import pyarrow as pa
from fuzz_files import ARRAY_ENCODING, FilePage, PagedFile
from lance_engine.format.pb import encodings_pb2 as pb
from reference import bitpacking

ROWS = 1500
WORDS = [b"", b"abc", b"the end", b"12345678", b"z"]


def _buffer(index: int) -> pb.Buffer:
    return pb.Buffer(buffer_index=index)


def _flat(bits: int, index: int) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(flat=pb.Flat(bits_per_value=bits, buffer=_buffer(index)))


def _file(kind: pa.DataType, encoding: pb.ArrayEncoding, *buffers: bytes) -> PagedFile:
    page = FilePage(ARRAY_ENCODING, encoding.SerializeToString(), buffers, ROWS)
    return PagedFile(pa.schema([("value", kind)]), "2.0", ROWS, ((page,),))


def _bits(values: np.ndarray, width: int) -> bytes:
    """The values as a stream of `width` bits each."""
    bits = (values[:, None] >> np.arange(width)) & 1
    return np.packbits(bits.astype(np.uint8).ravel(), bitorder="little").tobytes()


def seeds() -> list[PagedFile]:
    """One file per encoding and width."""
    values = np.arange(ROWS) % 29
    found = []
    for bits, kind in ((8, pa.uint8()), (16, pa.int16()), (32, pa.int32()), (64, pa.uint64())):
        stream = pb.Bitpacked(
            compressed_bits_per_value=5,
            uncompressed_bits_per_value=bits,
            buffer=_buffer(0),
            signed=pa.types.is_signed_integer(kind),
        )
        found.append(_file(kind, pb.ArrayEncoding(bitpacked=stream), _bits(values, 5)))
        padded = np.pad(values, (0, -ROWS % 1024)).astype(f"<u{bits // 8}")
        blocks = [bitpacking.pack_block(padded[at : at + 1024], 5) for at in range(0, len(padded), 1024)]
        block = pb.BitpackedForNonNeg(
            compressed_bits_per_value=5, uncompressed_bits_per_value=bits, buffer=_buffer(0)
        )
        found.append(_file(kind, pb.ArrayEncoding(bitpacked_for_non_neg=block), b"".join(blocks)))
        squeezed = _flat(bits, 0)
        squeezed.flat.compression.scheme = "lz4" if bits == 8 else "zstd"
        plain = values.astype(f"<u{bits // 8}").tobytes()
        found.append(_file(kind, squeezed, handmade.compress(plain, squeezed.flat.compression.scheme)))
    fixed = pb.ArrayEncoding(fixed_size_binary=pb.FixedSizeBinary(bytes=_flat(8, 0), byte_width=3))
    found.append(_file(pa.string(), fixed, b"abc" * ROWS))
    coded = [handmade.fsst_code(WORDS[number % len(WORDS)]) for number in range(ROWS)]
    ends = np.cumsum([len(word) for word in coded]).astype("<u8")
    binary = pb.Binary(indices=_flat(64, 0), bytes=_flat(8, 1), null_adjustment=int(ends[-1]) + 1)
    fsst = pb.Fsst(binary=pb.ArrayEncoding(binary=binary), symbol_table=handmade.fsst_table())
    found.append(_file(pa.large_string(), pb.ArrayEncoding(fsst=fsst), ends.tobytes(), b"".join(coded)))
    return found
