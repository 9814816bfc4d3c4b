"""Which encodings are allowed in which place, and the dispatch to its module.

Three contexts: the value buffers of a mini-block chunk, one self-contained block (levels, dictionaries), and
single full-zip values of fixed or of variable width.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError

from reference import (
    bitpacking,
    byte_stream_split,
    fixed_size_list,
    flat,
    fsst,
    general,
    packed_struct,
    rle,
    variable,
)
from reference.values import Bytes, Fixed, Struct, Values, Variable


def kind_of(encoding: Any) -> str:
    """The name of the encoding a message holds."""
    kind = encoding.WhichOneof("compression")
    if kind is None:
        raise UnsupportedFeatureError("a compressive encoding of unknown kind")
    return str(kind)


def _flat_bits(encoding: Any, what: str) -> int:
    if kind_of(encoding) != "flat":
        raise UnsupportedFeatureError(f"{what} encoded as {kind_of(encoding)}")
    return int(encoding.flat.bits_per_value)


def _offset_bits(encoding: Any) -> int:
    bits = _flat_bits(encoding.offsets, "variable-width offsets")
    if bits not in (32, 64):
        raise CorruptFileError(f"variable-width offsets of {bits} bits")
    return bits


def _strings(values: Values) -> Variable:
    if not isinstance(values, Variable):
        raise CorruptFileError("FSST over values of fixed width")
    return values


def buffer_count(encoding: Any) -> int:
    """How many value buffers a mini-block chunk has with this encoding."""
    kind = kind_of(encoding)
    if kind == "general":
        return buffer_count(encoding.general.values)
    if kind == "rle":
        return 2
    if kind == "fixed_size_list":
        return 1 + sum(has_validity for _, has_validity in fixed_size_list.layers_of(encoding)[0])
    return 1


def decode_chunk(encoding: Any, buffers: list[bytes], count: int) -> Values:
    """The `count` values of one mini-block chunk."""
    kind = kind_of(encoding)
    if len(buffers) != buffer_count(encoding):
        raise CorruptFileError(f"{kind} needs {buffer_count(encoding)} buffers, the page has {len(buffers)}")
    if kind == "flat":
        return flat.decode(buffers[0], int(encoding.flat.bits_per_value), count)
    if kind == "variable":
        return variable.decode_chunk(buffers[0], _offset_bits(encoding.variable), count)
    if kind == "inline_bitpacking":
        bits = int(encoding.inline_bitpacking.uncompressed_bits_per_value)
        return Fixed.from_integers(bitpacking.decode_inline(buffers[0], bits, count))
    if kind == "fsst":
        coded = _strings(decode_chunk(encoding.fsst.values, buffers, count))
        return Variable(fsst.decode(coded.items, encoding.fsst.symbol_table))
    if kind == "rle":
        bits = _flat_bits(encoding.rle.values, "run values")
        if _flat_bits(encoding.rle.run_lengths, "run lengths") != 8:
            raise UnsupportedFeatureError("run lengths of more than 8 bits")
        return rle.decode(buffers[0], buffers[1], bits, count)
    if kind == "byte_stream_split":
        bits = _flat_bits(encoding.byte_stream_split.values, "byte stream split values")
        return byte_stream_split.decode(buffers[0], bits, count)
    if kind == "general":
        plain = general.decompress(buffers[0], encoding.general.compression.scheme)
        return decode_chunk(encoding.general.values, [plain, *buffers[1:]], count)
    if kind == "fixed_size_list":
        return fixed_size_list.decode_chunk(encoding, buffers, count)
    if kind == "packed_struct":
        rows = flat.decode(buffers[0], _flat_bits(encoding.packed_struct.values, "packed struct"), count)
        return packed_struct.split_rows(rows.data.view(np.uint8), list(encoding.packed_struct.bits_per_value))
    raise UnsupportedFeatureError(f"{kind} in a mini-block page")


def decode_block(encoding: Any, data: bytes, count: int) -> Values:
    """The `count` values of one block."""
    kind = kind_of(encoding)
    if kind == "flat":
        return flat.decode(data, int(encoding.flat.bits_per_value), count)
    if kind == "variable":
        return variable.decode_block(data, _offset_bits(encoding.variable), count)
    if kind == "inline_bitpacking":
        bits = int(encoding.inline_bitpacking.uncompressed_bits_per_value)
        return Fixed.from_integers(bitpacking.decode_inline(data, bits, count))
    if kind == "out_of_line_bitpacking":
        message = encoding.out_of_line_bitpacking
        packed = _flat_bits(message.values, "bit-packed values")
        bits = int(message.uncompressed_bits_per_value)
        return Fixed.from_integers(bitpacking.decode_out_of_line(data, bits, packed, count))
    if kind == "rle":
        return rle.decode_block(data, _flat_bits(encoding.rle.values, "run values"), count)
    if kind == "general":
        plain = general.decompress(data, encoding.general.compression.scheme)
        return decode_block(encoding.general.values, plain, count)
    raise UnsupportedFeatureError(f"{kind} in a block")


def decode_rows(encoding: Any, rows: Bytes) -> Values:
    """Full-zip values of fixed width, uint8[n, bytes per value]."""
    kind = kind_of(encoding)
    if kind == "flat":
        if encoding.flat.bits_per_value != rows.shape[1] * 8:
            raise CorruptFileError(f"{encoding.flat.bits_per_value} bits in rows of {rows.shape[1]} bytes")
        return Fixed(rows.shape[1] * 8, rows)
    if kind == "fixed_size_list":
        return fixed_size_list.decode_rows(encoding, rows)
    raise UnsupportedFeatureError(f"{kind} for full-zip values of fixed width")


def decode_items(encoding: Any, items: list[bytes]) -> Values:
    """Full-zip values of variable width, each compressed alone."""
    kind = kind_of(encoding)
    if kind == "variable":
        return Variable(items)
    if kind == "fsst":
        coded = _strings(decode_items(encoding.fsst.values, items))
        return Variable(fsst.decode(coded.items, encoding.fsst.symbol_table))
    if kind == "general":
        scheme = encoding.general.compression.scheme
        # A null slot has no bytes, not even those of an empty frame.
        plain = [general.decompress(item, scheme) if item else b"" for item in items]
        return decode_items(encoding.general.values, plain)
    if kind == "variable_packed_struct":
        fields = encoding.variable_packed_struct.fields
        columns: list[list[bytes]] = [[] for _ in fields]
        for item in items:
            for column, part in zip(columns, packed_struct.split_variable_row(item, fields), strict=True):
                column.append(part)
        children: list[Values] = []
        for field, column in zip(fields, columns, strict=True):
            if field.WhichOneof("layout") == "bits_per_value":
                width = int(field.bits_per_value) // 8
                rows = np.frombuffer(b"".join(column), np.uint8).reshape(len(column), width)
                children.append(decode_rows(field.value, rows))
            else:
                children.append(decode_items(field.value, column))
        return Struct(len(items), tuple(children))
    raise UnsupportedFeatureError(f"{kind} for full-zip values of variable width")
