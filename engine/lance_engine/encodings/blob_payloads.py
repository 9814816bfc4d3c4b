"""The values of blob columns, which are stored in the file outside of pages."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_engine.encodings.page import Buffer


def blob_payloads(array: pa.Array) -> tuple[np.ndarray, tuple[Buffer, ...]]:
    """The numbers of the values that are neither null nor empty, and their bytes, which are not copied."""
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    stored = np.flatnonzero((np.diff(ends) > 0) & np.asarray(array.is_valid()))
    content = memoryview(data or b"")
    return stored, tuple(content[ends[number] : ends[number + 1]] for number in stored)
