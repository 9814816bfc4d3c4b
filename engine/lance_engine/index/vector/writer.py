"""Writing the two files of a segment of a vector index."""

from __future__ import annotations

import json
import mmap
import os
import tempfile
from collections.abc import Iterator
from typing import IO, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine import kernels
from lance_engine.index.kind import IndexOutput
from lance_engine.index.vector import graph
from lance_engine.index.vector.codec import ROW_ID, U8Array, U64Array
from lance_engine.index.vector.encoder import Encoder, Stages
from lance_engine.index.vector.ivf import serialize_ivf
from lance_engine.index.vector.metadata import METRIC_NAMES
from lance_engine.index.vector.options import GRAPH_LEVELS
from lance_engine.index.vector.segment import INDEX_FILE, VECTORS_FILE
from lance_engine.machine import processors

# If vectors or codes have more bytes than this, they wait in a temporary file.
_MEMORY: Final = 256 << 20
_BATCH_ROWS: Final = 1 << 16
# Rows that are looked up in a temporary file at once.
_GATHERED_ROWS: Final = 1 << 12
_BATCH_BYTES: Final = 16 << 20

_MARKER: Final = pa.schema([pa.field("__flat_marker", pa.uint64(), nullable=False)])
_NODES: Final = pa.schema(
    [
        (graph.NODE, pa.uint32()),
        (graph.NEIGHBOURS, pa.list_(pa.uint32())),
        (graph.DISTANCES, pa.list_(pa.float32())),
    ]
)


class EncodedRows:
    """Rows with their partitions and stored codes, in any order; in a temporary file if there are many."""

    def __init__(self, width: int, memory: int = _MEMORY) -> None:
        self._width, self._memory = width, memory
        self._ids: list[U64Array] = []
        self._labels: list[npt.NDArray[np.uint32]] = []
        self._codes: list[U8Array] = []
        self._bytes = 0
        self._file: IO[bytes] | None = None

    def __enter__(self) -> EncodedRows:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, ids: U64Array, labels: npt.NDArray[np.uint32], codes: U8Array) -> None:
        """Rows, one row of `codes` for each."""
        self._ids.append(ids)
        self._labels.append(labels)
        self._bytes += codes.nbytes
        if self._file is not None:
            self._file.write(codes.tobytes())
            return
        self._codes.append(codes)
        if self._bytes > self._memory:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the block around all rows
            for held in self._codes:
                self._file.write(held.tobytes())
            self._codes = []

    def partitions(self, count: int) -> Iterator[tuple[U64Array, U8Array]]:
        """The ids and codes of the rows of each partition, in the order of the ids' arrival."""
        ids = np.concatenate([np.empty(0, dtype=np.uint64), *self._ids])
        labels = np.concatenate([np.empty(0, dtype=np.uint32), *self._labels])
        order = np.argsort(labels, kind="stable")
        ends = np.cumsum(np.bincount(labels, minlength=count))
        codes = self._all_codes()
        begin = 0
        for end in ends.tolist():
            rows = order[begin:end]
            yield ids[rows], _gathered(codes, rows)
            begin = end

    def _all_codes(self) -> npt.NDArray[np.uint8]:
        if self._file is None:
            return np.concatenate([np.empty((0, self._width), dtype=np.uint8), *self._codes])
        self._file.flush()
        rows = os.fstat(self._file.fileno()).st_size // self._width
        return np.memmap(self._file, dtype=np.uint8, mode="r", shape=(rows, self._width))


def _gathered(codes: npt.NDArray[np.uint8], rows: npt.NDArray[np.int64]) -> U8Array:
    """Some rows, ascending; only the part of a file that was read last stays mapped."""
    gathered = np.empty((len(rows), codes.shape[1]), dtype=np.uint8)
    for begin in range(0, len(rows), _GATHERED_ROWS):
        chosen = rows[begin : begin + _GATHERED_ROWS]
        np.take(codes, chosen, axis=0, out=gathered[begin : begin + len(chosen)])
        if isinstance(codes, np.memmap) and hasattr(mmap, "MADV_DONTNEED"):
            codes.base.madvise(mmap.MADV_DONTNEED)  # type: ignore[union-attr]
    return gathered


class _Graph(NamedTuple):
    entry: str
    rows: pa.RecordBatch


def write_segment(encoder: Encoder, rows: EncodedRows, output: IndexOutput, stages: Stages) -> None:
    """Write the files of a segment with these rows, partition by partition."""
    options, coder = encoder.options, encoder.coder
    count = options.partitions
    schema = pa.schema([(ROW_ID, pa.uint64()), (coder.column, coder.column_type)])
    lengths = np.zeros(count, dtype=np.int64)
    vectors = output.create(VECTORS_FILE, schema)
    index = _IndexFile(encoder, output)
    stages.begin("writing the index", count, "partitions")
    pending: list[pa.RecordBatch] = []
    for number, (ids, codes) in enumerate(rows.partitions(count)):
        lengths[number] = len(ids)
        pending.append(_batch(schema, ids, coder.partition(codes)))
        index.add(codes)
        if sum(batch.nbytes for batch in pending) >= _BATCH_BYTES:
            vectors.write(pa.concat_batches(pending))
            pending = []
        stages.advance(1)
    if pending:
        vectors.write(pa.concat_batches(pending))
    storage, buffers = coder.metadata()
    vectors.finish(
        {
            "distance_type": METRIC_NAMES[options.metric],
            "lance:ivf": "1",
            "storage_metadata": storage,
        },
        [serialize_ivf(lengths, None), *buffers],
    )
    index.finish()
    stages.end()


class _IndexFile:
    """The file of the centroids, and of the graphs over partitions, which are written as they are built."""

    def __init__(self, encoder: Encoder, output: IndexOutput) -> None:
        self._encoder = encoder
        self._entries: list[str] = []
        self._lengths = np.zeros(encoder.options.partitions, dtype=np.int64)
        self._file = output.create(INDEX_FILE, _NODES if encoder.options.has_graph else _MARKER)

    def add(self, codes: U8Array) -> None:
        """The next partition has vectors with these codes."""
        if not self._encoder.options.has_graph:
            return
        built = _graph(self._encoder, codes)
        self._lengths[len(self._entries)] = built.rows.num_rows
        self._entries.append(built.entry)
        for begin in range(0, built.rows.num_rows, _BATCH_ROWS):
            self._file.write(built.rows.slice(begin, _BATCH_ROWS))

    def finish(self) -> None:
        """Complete the file."""
        options = self._encoder.options
        described = {"type": options.kind, "distance_type": METRIC_NAMES[options.metric]}
        metadata = {"lance:index": json.dumps(described, separators=(",", ":")), "lance:ivf": "1"}
        if options.has_graph:
            metadata["lance:hnsw"] = json.dumps(self._entries, separators=(",", ":"))
        else:
            metadata["lance:flat"] = json.dumps([""] * options.partitions, separators=(",", ":"))
        self._file.finish(metadata, [serialize_ivf(self._lengths, self._encoder.stored_centroids)])


def _batch(schema: pa.Schema, ids: U64Array, codes: U8Array) -> pa.RecordBatch:
    kind = schema.field(1).type
    items = pa.Array.from_buffers(
        kind.value_type, len(codes) * 8 // kind.value_type.bit_width, [None, pa.py_buffer(codes)]
    )
    lists = pa.FixedSizeListArray.from_arrays(items, kind.list_size)
    return pa.RecordBatch.from_arrays([pa.array(ids), lists], schema=schema)


def _graph(encoder: Encoder, codes: U8Array) -> _Graph:
    """The graph over the rows of a partition."""
    options = encoder.options
    metric = kernels.Metric.DOT if options.metric is kernels.Metric.DOT else kernels.Metric.L2
    values = np.ascontiguousarray(encoder.coder.decoded(codes)).reshape(-1)
    threads = processors()
    entry, ends, ids, offsets, neighbours, distances = kernels.build_graph(
        metric, options.dim, values, options.neighbours, options.candidates, GRAPH_LEVELS, threads
    )
    described = {
        "entry_point": int(entry),
        "params": {
            "max_level": GRAPH_LEVELS,
            "m": options.neighbours,
            "ef_construction": options.candidates,
            "prefetch_distance": 2,
        },
        "level_offsets": [0, *ends.tolist()],
    }
    lists = [
        pa.ListArray.from_arrays(pa.array(offsets), pa.array(values)) for values in (neighbours, distances)
    ]
    nodes = pa.RecordBatch.from_arrays([pa.array(ids), *lists], schema=_NODES)
    return _Graph(json.dumps(described, separators=(",", ":")), nodes)
