"""The table of page layouts of versions 2.1 and 2.2: from the encoding of a page to its kernel."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from google.protobuf.message import DecodeError

from lance_engine import kernels
from lance_engine.encodings import array
from lance_engine.encodings.v2_1 import blob, constant, full_zip, mini_block
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.format.container import EncodedMessage, PageMetadata
from lance_engine.format.pb import encodings21_pb2

PAGE_LAYOUT: Final = "lance.encodings21.PageLayout"

LAYOUTS: Final[dict[str, ModuleType]] = {
    "mini_block_layout": mini_block,
    "full_zip_layout": full_zip,
    "constant_layout": constant,
    "blob_layout": blob,
}

_REMEDY: Final = "Read the file with a newer release, or leave the column out"


def build_page(metadata: PageMetadata) -> kernels.Page:
    """The kernel that decodes a page.

    UnsupportedFeatureError names a layout or encoding without a decoder.
    """
    name, message = _parse(metadata.encoding)
    module = LAYOUTS.get(name)
    if module is None:
        raise UnsupportedFeatureError(
            f"A page uses the layout '{name}', for which there is no decoder", remedy=_REMEDY
        )
    page: kernels.Page = module.page(message, metadata)
    return page


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
        raise UnsupportedFeatureError(
            f"A page is encoded as '{encoding.name}', for which there is no decoder", remedy=_REMEDY
        )
    try:
        layout = encodings21_pb2.PageLayout.FromString(encoding.value)
    except DecodeError as error:
        raise CorruptFileError("The description of a page cannot be parsed") from error
    name = layout.WhichOneof("layout")
    if name is None:
        raise UnsupportedFeatureError("A page uses a layout that this release does not know", remedy=_REMEDY)
    return name, getattr(layout, name)
