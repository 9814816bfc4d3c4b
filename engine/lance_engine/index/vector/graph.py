"""The graphs of HNSW indices: neighbours within a partition, on several levels."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_engine import kernels
from lance_engine.errors import CorruptFileError
from lance_engine.index.vector.codec import numbers_in
from lance_engine.index.vector.metadata import whole

NODE: Final = "__vector_id"
NEIGHBOURS: Final = "__neighbors"
DISTANCES: Final = "_distance"

_MOST_LEVELS: Final = 256


def attach(partition: kernels.Partition, entries: dict[str, Any], rows: pa.RecordBatch) -> None:
    """Add the graph of these nodes to a partition; CorruptFileError if it contradicts itself."""
    ends = entries.get("level_offsets")
    if not isinstance(ends, list) or not 2 <= len(ends) <= _MOST_LEVELS or ends[0] != 0:
        raise CorruptFileError("The levels of an index graph are not a valid list of offsets")
    if any(
        isinstance(end, bool) or not isinstance(end, int) or not 0 <= end <= rows.num_rows for end in ends
    ):
        raise CorruptFileError("A level of an index graph extends past its nodes")
    entry = whole(entries, "entry_point", 0, 2**32 - 1)
    neighbours = rows.column(NEIGHBOURS)
    if not pa.types.is_list(neighbours.type) or neighbours.null_count:
        raise CorruptFileError(f"The neighbours in an index graph are {neighbours.type}, or null")
    offsets = neighbours.offsets.to_numpy()
    ids = numbers_in(rows.column(NODE), pa.uint32())
    used = ends[-1]
    try:
        partition.set_graph(
            entry,
            np.array(ends[1:], dtype=np.uint64),
            ids[:used],
            np.ascontiguousarray(offsets[: used + 1] - offsets[0]),
            numbers_in(neighbours.flatten(), pa.uint32())[: offsets[used] - offsets[0]],
        )
    except ValueError as error:
        raise CorruptFileError("An index graph is inconsistent") from error
