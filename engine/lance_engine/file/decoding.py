"""Decoding rows of files that may be remote: fetch the predictable data, then what a decoder misses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from lance_engine import kernels
from lance_engine.file.contents import FileContents
from lance_engine.file.file_group import FileGroup

#: The source of leaves.
LeafSource = FileContents | FileGroup
Overlays = list[tuple[kernels.Source, kernels.Source]]


def decode_fetched(
    files: Sequence[tuple[LeafSource, list[kernels.LeafColumn]]],
    rows: Callable[[], npt.NDArray[np.int64]],
    decode: Callable[[Overlays], kernels.DecodedBatch],
) -> kernels.DecodedBatch:
    """Call `decode` with the bytes for `rows` (ranges) of the leaves; local files are already available."""
    remote = [
        (file, leaves) for file, leaves in files if isinstance(file, FileContents) and not file.is_local
    ]
    if not remote:
        return decode([])
    ranges = rows()
    overlays = [file.overlay(leaves, ranges) for file, leaves in remote]
    readers = {
        source.identity: (file, source, batch)
        for (file, _), (source, batch) in zip(remote, overlays, strict=True)
    }
    while True:
        try:
            return decode(overlays)
        except kernels.NotResidentError as missing:  # only the data could show that this is needed too
            identity, offset, length, lasting = missing.args
            file, source, batch = readers[identity]
            file.fetch(source if lasting else batch, offset, length)


def one_by_one(rows: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """Ascending rows as ranges of one row each."""
    first = rows.astype(np.int64)
    return np.stack([first, first + 1], axis=1)


def one_range(begin: int, end: int) -> npt.NDArray[np.int64]:
    """The rows [begin, end) as a range."""
    return np.array([[begin, end]], dtype=np.int64)
