"""All page types of versions 2.1 and 2.2: the encodings of their values and the kinds of pages.

Every encoding is a separate module: ``describe`` creates the message that stores it in a page, ``estimate``
predicts the size of values, and its candidate writes them. Encodings that only occur around or inside others,
such as ``general`` and ``out_of_line_bitpacking``, are called by these. A kind of page is a module with
``page``. The kernels read these encodings (``engine/kernels/page``).
"""

from __future__ import annotations

from typing import Final

from lance_engine.encodings.v2_1 import (
    blob,
    byte_stream_split,
    constant,
    dictionary,
    fixed_size_list,
    flat,
    fsst,
    inline_bitpacking,
    numbers,
    packed_struct,
    rle,
    strings,
    variable,
    variable_packed_struct,
)
from lance_engine.encodings.v2_1.context import Table

TABLE: Final = Table(
    pages=(
        blob,
        constant,
        packed_struct,
        variable_packed_struct,
        dictionary,
        fixed_size_list,
        strings,
        numbers,
    ),
    numbers=(flat, inline_bitpacking, rle, byte_stream_split),
    strings=(variable, fsst),
)
