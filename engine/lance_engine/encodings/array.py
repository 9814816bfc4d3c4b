"""The table of array encodings of version 2.0, and how their messages become kernels.

The keys are the names of the alternatives in `ArrayEncoding`.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from google.protobuf.message import DecodeError

from lance_engine import kernels
from lance_engine.encodings.custom import unknown_alternative, without_decoder
from lance_engine.encodings.v2_0 import (
    binary,
    bitpacked,
    bitpacked_for_non_neg,
    constant,
    dictionary,
    fixed_size_binary,
    fixed_size_list,
    flat,
    fsst,
    nullable,
    packed_struct,
)
from lance_engine.encodings.v2_0.context import PageContext
from lance_engine.errors import CorruptFileError
from lance_engine.format.container import EncodedMessage
from lance_engine.format.pb import encodings_pb2

ARRAY_ENCODING: Final = "lance.encodings.ArrayEncoding"

ARRAY: Final[dict[str, ModuleType]] = {
    "flat": flat,
    "nullable": nullable,
    "fixed_size_list": fixed_size_list,
    "binary": binary,
    "dictionary": dictionary,
    "fsst": fsst,
    "packed_struct": packed_struct,
    "bitpacked": bitpacked,
    "fixed_size_binary": fixed_size_binary,
    "bitpacked_for_non_neg": bitpacked_for_non_neg,
    "constant": constant,
}


def parse_array_encoding(encoding: EncodedMessage) -> Any:
    """The `ArrayEncoding` message of a 2.0 page."""
    if encoding.name != ARRAY_ENCODING:
        raise without_decoder(encoding.name)
    try:
        return encodings_pb2.ArrayEncoding.FromString(encoding.value)
    except DecodeError as error:
        raise CorruptFileError("The description of a page cannot be parsed") from error


def array_decoder(message: Any, page: PageContext) -> kernels.ArrayDecoder:
    """The kernel that decodes a page or a part of one."""
    name = message.WhichOneof("array_encoding")
    module = ARRAY.get(name)
    if module is None:
        raise without_decoder(name or unknown_alternative(message))
    decoder: kernels.ArrayDecoder = module.decoder(
        getattr(message, name), page, lambda inner: array_decoder(inner, page)
    )
    return decoder


def describe(message: Any) -> str:
    """Name and nested encodings, such as ``nullable(flat64)``."""
    name = message.WhichOneof("array_encoding")
    if name == "list":
        return f"list({describe(message.list.offsets)})"
    module = ARRAY.get(name)
    return module.describe(getattr(message, name), describe) if module else str(name or "unknown")
