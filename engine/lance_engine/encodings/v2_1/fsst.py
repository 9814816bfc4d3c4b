"""FSST: strings as codes for up to 255 short symbols, each string encoded separately (format 2.1, FSST)."""

from __future__ import annotations

from lance_engine import kernels
from lance_engine.encodings.v2_1 import variable
from lance_engine.encodings.v2_1.candidate import Candidate, Encoded
from lance_engine.encodings.v2_1.context import PageContext
from lance_engine.encodings.values import Strings
from lance_engine.format.pb import encodings21_pb2 as pb

_MIN_LENGTH = 5
_MIN_BYTES = 32 << 10
_VALUE_NS, _BYTE_NS = 3.0, 1.2


def describe(symbol_table: bytes, values: pb.CompressiveEncoding) -> pb.CompressiveEncoding:
    """Values encoded one by one with the symbols of a table (2312 bytes)."""
    return pb.CompressiveEncoding(fsst=pb.Fsst(symbol_table=symbol_table, values=values))


def estimate(context: PageContext, values: Strings) -> Candidate | None:
    """The size is estimated from some of the values."""
    coder = coder_for(context, values)
    if coder is None:
        return None
    plain = values.input
    coded_bytes = plain.total_bytes * coder.share
    size = int(coded_bytes) + (plain.count + 1) * plain.offset_bits // 8

    def build() -> Encoded:
        coded, encoding = code(plain, coder)
        return variable.in_chunks(coded, context.string_chunk_bytes), encoding

    decoding = plain.count * _VALUE_NS + coded_bytes * _BYTE_NS
    return Candidate(size, decoding, build, asked=context.settings.compression == "fsst")


def coder_for(context: PageContext, values: Strings) -> kernels.FsstCoder | None:
    """Symbols for the values; None if not requested, not useful or the sample is too small."""
    wish = context.settings.compression
    if not (wish == "fsst" or (values.is_text and not wish)):
        return None
    if values.input.longest < _MIN_LENGTH or values.input.total_bytes < _MIN_BYTES:
        return None
    return kernels.FsstCoder.train(values.input)


def code(
    values: kernels.VariableInput, coder: kernels.FsstCoder
) -> tuple[kernels.VariableInput, pb.CompressiveEncoding]:
    """The codes of the values, and what describes them."""
    encoding = describe(coder.symbol_table().tobytes(), variable.describe(values.offset_bits))
    return coder.encode(values), encoding
