"""Dictionary: indices into values that the file stores once per column (format 0.1, dictionary values)."""

from __future__ import annotations

from lance_engine import kernels
from lance_engine.encodings.legacy import plain, var_binary
from lance_engine.encodings.legacy.context import PageContext
from lance_engine.errors import CorruptFileError
from lance_engine.format.legacy import Page


def decoder(page: Page, context: PageContext) -> kernels.ArrayDecoder:
    stored = context.dictionary
    if stored is None or not 0 <= stored.position <= context.file_size or not 0 <= stored.length < 2**32:
        raise CorruptFileError("The file does not give the position of the dictionary values")
    shape = context.shape
    items = (plain if shape.kind == "fixed" else var_binary).decoder(Page(*stored), context)
    return kernels.array_dictionary(
        indices=kernels.array_flat(context.buffer(page, context.index_bits), context.index_bits, ""),
        index_width=context.index_bits // 8,
        items=items,
        count=stored.length,
        shifted=False,
        kind=shape.kind,
        width=shape.width,
    )
