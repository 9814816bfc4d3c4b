"""The table of page encodings of version 0.1, and the creation of kernels for pages.

The encoding of a field follows from its type: the keys are the kinds of leaves, and ``dictionary``.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

from lance_engine import kernels
from lance_engine.encodings.legacy import dictionary, null, plain, var_binary
from lance_engine.encodings.legacy.context import PageContext
from lance_engine.format.legacy import Page

LEGACY: Final[dict[str, ModuleType]] = {
    "null": null,
    "bits": plain,
    "fixed": plain,
    "variable32": var_binary,
    "variable64": var_binary,
    "dictionary": dictionary,
}

# Bits of a list offset, and a null adjustment that no offset reaches.
_LIST_BITS: Final = {False: 32, True: 64}
NO_NULL_LISTS: Final = 1 << 63


def build_page(page: Page, context: PageContext) -> kernels.Page:
    """The kernel that decodes a page of a leaf column."""
    module = LEGACY["dictionary" if context.index_bits else context.shape.kind]
    return kernels.array_page(page.length, module.decoder(page, context))


def list_ends(page: Page, file_size: int, *, large: bool) -> kernels.ArrayDecoder:
    """The kernel for the list ends of a batch, which has one more offset than lists."""
    bits = _LIST_BITS[large]
    length = min(page.length * bits // 8, file_size - page.position)
    return kernels.legacy_list_ends((page.position, length), bits)
