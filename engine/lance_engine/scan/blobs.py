"""Reads the bytes of blobs from their descriptors (format 2.2, blob v2)."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from lance_engine import kernels
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError

if TYPE_CHECKING:
    from lance_engine.format.fragment import DataFile
    from lance_engine.io.store import Store
    from lance_engine.table.snapshot import Snapshot

DESCRIPTOR: Final = pa.struct(
    [
        pa.field("kind", pa.uint8(), False),
        pa.field("position", pa.uint64(), False),
        pa.field("size", pa.uint64(), False),
        pa.field("blob_id", pa.uint32(), False),
        pa.field("blob_uri", pa.string(), False),
    ]
)
# Maximum size of the blobs in a batch of several rows.
_BATCH_BYTES: Final = 64 << 20
_ENDING: Final = ".lance"


class BlobKind(IntEnum):
    """The location of the bytes of a blob."""

    INLINE = 0
    PACKED = 1
    DEDICATED = 2
    EXTERNAL = 3


class BlobReader:
    """The blobs of a data file: in that file, in files next to it, or anywhere else."""

    def __init__(self, snapshot: Snapshot, file: DataFile) -> None:
        self._snapshot = snapshot
        self._store, self._path = snapshot.data_file_location(file)

    def read(self, descriptors: pa.StructArray) -> pa.LargeBinaryArray:
        """The bytes of each blob; null if the descriptor is null.

        `kernels.BatchTooLargeError` asks for fewer rows. CorruptFileError where a blob is outside its file.
        """
        rows = np.flatnonzero(np.asarray(descriptors.is_valid()))
        fields = [descriptors.field(field.name).take(pa.array(rows)).to_pylist() for field in DESCRIPTOR]
        if len(rows) > 1 and sum(fields[2]) > _BATCH_BYTES:
            raise kernels.BatchTooLargeError("blobs too large for one batch")
        values: list[bytes | None] = [None] * len(descriptors)
        wanted: dict[tuple[Store, str], list[tuple[int, int, int]]] = {}
        for row, kind, position, size, number, uri in zip(rows.tolist(), *fields, strict=True):
            if size == 0 and kind != BlobKind.EXTERNAL:
                values[row] = b""
                continue
            place = self._place(kind, number, uri)
            if kind == BlobKind.EXTERNAL and size == 0:
                size = place[0].size(place[1]) - position
            wanted.setdefault(place, []).append((row, position, size))
        for (store, path), ranges in wanted.items():
            end = store.size(path)
            if any(position + size > end or size < 0 for _, position, size in ranges):
                raise CorruptFileError("A blob is past the end of its file", path=path)
            blobs = store.read_ranges(path, [(position, size) for _, position, size in ranges])
            for (row, _, _), value in zip(ranges, blobs, strict=True):
                values[row] = bytes(value)
        return pa.array(values, pa.large_binary())

    def _place(self, kind: int, number: int, uri: str) -> tuple[Store, str]:
        """The store and the path of the file that holds a blob."""
        if kind == BlobKind.INLINE:
            return self._store, self._path
        if kind in (BlobKind.PACKED, BlobKind.DEDICATED):
            folder = self._path.removesuffix(_ENDING)
            # The first digits of the name are the file number, which spreads files over key ranges.
            return self._store, f"{folder}/{f'{number:032b}'[::-1]}.blob"
        if kind != BlobKind.EXTERNAL:
            raise UnsupportedFeatureError(f"Unknown blob kind {kind}", path=self._path)
        return self._snapshot.external_blob(number or None, uri)
