"""The table of compressive encodings, and how a tree of encoding messages becomes kernels.

The keys are the names of the alternatives in `CompressiveEncoding`.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from lance_engine import kernels
from lance_engine.encodings.custom import unknown_alternative, without_decoder
from lance_engine.encodings.v2_1 import (
    byte_stream_split,
    fixed_size_list,
    flat,
    fsst,
    general,
    inline_bitpacking,
    out_of_line_bitpacking,
    packed_struct,
    rle,
    variable,
    variable_packed_struct,
)
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError

COMPRESSIVE: Final[dict[str, ModuleType]] = {
    "flat": flat,
    "variable": variable,
    "inline_bitpacking": inline_bitpacking,
    "out_of_line_bitpacking": out_of_line_bitpacking,
    "fsst": fsst,
    "rle": rle,
    "byte_stream_split": byte_stream_split,
    "general": general,
    "fixed_size_list": fixed_size_list,
    "packed_struct": packed_struct,
    "variable_packed_struct": variable_packed_struct,
}


def value_decoder(encoding: Any) -> kernels.ValueDecoder:
    """The kernel that decodes the values of a mini-block chunk."""
    name, module = _look_up(encoding)
    if not hasattr(module, "value_decoder"):
        raise UnsupportedFeatureError(f"The encoding '{name}' for the values of a mini-block page")
    decoder: kernels.ValueDecoder = module.value_decoder(getattr(encoding, name), value_decoder)
    return decoder


def block_decoder(encoding: Any) -> kernels.BlockDecoder:
    """The kernel that decodes one whole buffer: levels, or a dictionary."""
    name, module = _look_up(encoding)
    if not hasattr(module, "block_decoder"):
        raise UnsupportedFeatureError(f"The encoding '{name}' for a whole buffer")
    decoder: kernels.BlockDecoder = module.block_decoder(getattr(encoding, name), block_decoder)
    return decoder


def describe(encoding: Any) -> str:
    """Name, parameters and nested encodings, such as ``fsst(variable)``."""
    name = encoding.WhichOneof("compression")
    module = COMPRESSIVE.get(name)
    return module.describe(getattr(encoding, name), describe) if module else str(name or "unknown")


def value_bits(encoding: Any) -> int:
    """Bits of one decoded fixed-width value."""
    name = encoding.WhichOneof("compression")
    message: Any = getattr(encoding, name) if name else None
    match name:
        case "flat":
            return int(message.bits_per_value)
        case "inline_bitpacking" | "out_of_line_bitpacking":
            return int(message.uncompressed_bits_per_value)
        case "rle" | "byte_stream_split" | "general":
            return value_bits(message.values)
    raise CorruptFileError(f"Fixed-width values cannot be encoded as '{name}'")


def _look_up(encoding: Any) -> tuple[str, ModuleType]:
    name = encoding.WhichOneof("compression")
    if name is None:
        raise without_decoder(unknown_alternative(encoding))
    module = COMPRESSIVE.get(name)
    if module is None:
        raise without_decoder(name)
    return name, module
