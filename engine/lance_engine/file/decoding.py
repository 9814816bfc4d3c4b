"""Decoding rows of files that need not be local: fetch what can be foreseen, then what a decoder misses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lance_engine import kernels
from lance_engine.file.contents import FileContents
from lance_engine.file.file_group import FileGroup

#: What leaves are read from.
LeafSource = FileContents | FileGroup
Overlays = list[tuple[kernels.Source, kernels.Source]]


def decode_fetched(
    files: Sequence[tuple[LeafSource, list[kernels.LeafColumn]]],
    ranges: Iterable[tuple[int, int]],
    decode: Callable[[Overlays], kernels.DecodedBatch],
) -> kernels.DecodedBatch:
    """Call `decode` with the bytes that `ranges` of rows of the leaves need; local files have theirs."""
    remote = [
        (file, leaves) for file, leaves in files if isinstance(file, FileContents) and not file.is_local
    ]
    if not remote:
        return decode([])
    spans = list(ranges)
    overlays = [file.overlay(leaves, spans) for file, leaves in remote]
    readers = {
        source.identity: (file, source, batch)
        for (file, _), (source, batch) in zip(remote, overlays, strict=True)
    }
    while True:
        try:
            return decode(overlays)
        except kernels.NotResidentError as missing:  # only the data could tell that this is needed too
            identity, offset, length, lasting = missing.args
            file, source, batch = readers[identity]
            file.fetch(source if lasting else batch, offset, length)
