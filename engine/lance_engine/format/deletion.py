"""Deletion files: the offsets of the deleted rows of one fragment, as an Arrow file or a Roaring bitmap."""

from __future__ import annotations

from array import array
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine.arrow_values import to_numpy
from lance_engine.errors import CorruptFileError
from lance_engine.format.fragment import DeletionKind

U32Array = npt.NDArray[np.uint32]

# Minimum number of deleted rows for which a new deletion file is a bitmap.
BITMAP_THRESHOLD: Final = 5000
_COLUMN: Final = pa.field("row_id", pa.uint32(), nullable=False)


class DeletedOffsets(NamedTuple):
    """The contents of a deletion file."""

    within: U32Array
    """The deleted rows of the fragment, ascending."""
    recorded: int
    """How many rows the file names."""
    beyond: int | None
    """The last row that the fragment does not have, None if it has all."""


def decode_deletions(data: bytes, kind: DeletionKind, physical_rows: int) -> DeletedOffsets:
    """The deleted offsets of a fragment with this many rows; CorruptFileError if the file is damaged."""
    if kind is DeletionKind.BITMAP:
        return _decode_bitmap(data, physical_rows)
    offsets = _decode_arrow(data)
    beyond = int(offsets[-1]) if len(offsets) and offsets[-1] >= physical_rows else None
    return DeletedOffsets(offsets[offsets < physical_rows], len(offsets), beyond)


def encode_deletions(offsets: U32Array, kind: DeletionKind) -> bytes:
    """The bytes of a deletion file with these offsets."""
    if kind is DeletionKind.BITMAP:
        from pyroaring import BitMap  # many queries read no bitmap

        # From an array of the same kind: a numpy array is walked number by number.
        bitmap = BitMap(array("I", offsets.astype(np.uint32, copy=False).tobytes()))
        bitmap.run_optimize()
        data: bytes = bitmap.serialize()
        return data
    sink = pa.BufferOutputStream()
    schema = pa.schema([_COLUMN])
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, schema, options=options) as writer:
        writer.write_batch(pa.record_batch([pa.array(offsets, pa.uint32())], schema=schema))
    content: bytes = sink.getvalue().to_pybytes()
    return content


def preferred_kind(count: int) -> DeletionKind:
    """The kind of a newly written file with `count` deleted rows."""
    return DeletionKind.BITMAP if count >= BITMAP_THRESHOLD else DeletionKind.ARROW


def _decode_arrow(data: bytes) -> U32Array:
    try:
        reader = pa.ipc.open_file(pa.py_buffer(data))
        if reader.num_record_batches != 1 or reader.schema.names != ["row_id"]:
            raise CorruptFileError("A deletion file must hold one record batch with the column 'row_id'")
        batch = reader.get_batch(0)
        batch.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise CorruptFileError(f"The deletion file cannot be read as an Arrow file: {error}") from error
    column = batch.column(0)
    if column.type != pa.uint32() or column.null_count:
        raise CorruptFileError(f"The deleted rows must be uint32 without nulls, but are {column.type}")
    offsets = np.sort(to_numpy(column).astype(np.uint32))
    if np.any(offsets[1:] == offsets[:-1]):
        raise CorruptFileError("The deletion file contains a row twice")
    return offsets


def _decode_bitmap(data: bytes, physical_rows: int) -> DeletedOffsets:
    from pyroaring import BitMap  # many queries read no bitmap

    try:
        bitmap = BitMap.deserialize(data)
    except (ValueError, IndexError) as error:
        raise CorruptFileError("The deletion file is not a Roaring bitmap") from error
    recorded = len(bitmap)
    beyond = bitmap.max() if recorded and bitmap.max() >= physical_rows else None
    if beyond is not None:
        # A few bytes can describe four billion rows: limit them before expanding.
        bitmap &= BitMap(range(physical_rows))
    return DeletedOffsets(np.asarray(bitmap.to_array(), dtype=np.uint32), recorded, beyond)
