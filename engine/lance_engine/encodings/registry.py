"""The table of page layouts of versions 2.1 and 2.2: from the encoding of a page to its kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Any, Final

from google.protobuf.message import DecodeError

from lance_engine import kernels
from lance_engine.encodings import array
from lance_engine.encodings.custom import custom_page, unknown_alternative, without_decoder
from lance_engine.encodings.v2_1 import blob, constant, full_zip, mini_block
from lance_engine.errors import CorruptFileError
from lance_engine.format.container import EncodedMessage, PageMetadata
from lance_engine.format.pb import encodings21_pb2

PAGE_LAYOUT: Final = "lance.encodings21.PageLayout"

LAYOUTS: Final[dict[str, ModuleType]] = {
    "mini_block_layout": mini_block,
    "full_zip_layout": full_zip,
    "constant_layout": constant,
    "blob_layout": blob,
}

# Descriptions of pages of which the decoders are kept. Most take some tens of bytes; a symbol table, which
# hardly two pages share, takes 2 KiB.
_KEPT_MAKERS: Final = 256


def build_page(metadata: PageMetadata) -> kernels.Page:
    """The kernel that decodes a page.

    UnsupportedFeatureError names a layout or encoding without a decoder.
    """
    custom = custom_page(metadata)
    if custom is not None:
        return custom
    return _page_maker(metadata.encoding)(rows=metadata.rows, buffers=metadata.buffers)


@lru_cache(_KEPT_MAKERS)
def _page_maker(encoding: EncodedMessage) -> Callable[..., kernels.Page]:
    """What makes the kernel of a page of its `rows` and `buffers`; many pages are described alike."""
    name, message = _parse(encoding)
    module = LAYOUTS.get(name)
    if module is None:
        raise without_decoder(name)
    maker: Callable[..., kernels.Page] = module.page_maker(message)
    return maker


def describe_page(encoding: EncodedMessage) -> str:
    """Layout and encodings of a page in one line, such as ``mini-block(fsst(variable))``."""
    if encoding.name == array.ARRAY_ENCODING:
        return array.describe(array.parse_array_encoding(encoding))
    if encoding.name != PAGE_LAYOUT:
        return encoding.name
    name, message = _parse(encoding)
    module = LAYOUTS.get(name)
    return module.describe(message) if module else name


def _parse(encoding: EncodedMessage) -> tuple[str, Any]:
    if encoding.name != PAGE_LAYOUT:
        raise without_decoder(encoding.name)
    try:
        layout = encodings21_pb2.PageLayout.FromString(encoding.value)
    except DecodeError as error:
        raise CorruptFileError("The description of a page cannot be parsed") from error
    name = layout.WhichOneof("layout")
    if name is None:
        raise without_decoder(unknown_alternative(layout))
    return name, getattr(layout, name)
