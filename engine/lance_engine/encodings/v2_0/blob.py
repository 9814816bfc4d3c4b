"""Blobs: a page of descriptors, and values elsewhere in the file (format 2.0, blob)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_engine.encodings.blob_payloads import blob_payloads
from lance_engine.encodings.page import BlobPage, EncodedPage
from lance_engine.encodings.v2_0.builder import PageBuilder
from lance_engine.encodings.v2_0.packed_struct import stored_rows

_DESCRIPTOR_BITS = (64, 64)
_NULL_BLOB = 1


def blob_page(array: pa.Array) -> BlobPage:
    descriptors = np.zeros((len(array), 2), np.uint64)
    descriptors[np.asarray(array.is_null()), 0] = _NULL_BLOB
    stored, payloads = blob_payloads(array)
    descriptors[stored, 1] = [len(payload) for payload in payloads]

    def finish(positions: Sequence[int]) -> EncodedPage:
        descriptors[stored, 0] = positions
        builder = PageBuilder()
        return builder.page(len(array), stored_rows(builder, descriptors, _DESCRIPTOR_BITS))

    return BlobPage(len(array), payloads, finish)
